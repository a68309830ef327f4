"""The rows of a trial are counted while they are written, and none is passed over."""

from pathlib import Path

import pytest

from ackworth.history.schema import OUTCOME, SENT
from ackworth.history.spool import Spool, chunks
from ackworth.model.errors import AckworthError
from ackworth.run.watch import Watch


def send(spool: Spool, count: int) -> None:
    spool.append(count, producer=0, topic=0, seq=0, t=0, late=0)


def test_rows_stay_counted_when_their_chunk_has_gone(tmp_path: Path) -> None:
    spool, watch = Spool(tmp_path, SENT, "p00000", rows_per_chunk=10), Watch(tmp_path)
    for so_far in range(7, 50, 7):
        send(spool, 7)
        watch.look()
        assert (watch.rows(SENT), watch.rows(SENT, "p00000"), watch.rows(OUTCOME)) == (so_far, so_far, 0)
        for _, _, path in list(chunks(tmp_path, SENT))[:-1]:
            path.unlink()


def test_chunks_that_have_gone_unseen_are_not_passed_over(tmp_path: Path) -> None:
    spool, watch = Spool(tmp_path, SENT, "p00000", rows_per_chunk=10), Watch(tmp_path)
    send(spool, 5)
    watch.look()
    send(spool, 20)
    for _, _, path in list(chunks(tmp_path, SENT))[:-1]:
        path.unlink()
    with pytest.raises(AckworthError, match="gone before they were counted"):
        watch.look()
