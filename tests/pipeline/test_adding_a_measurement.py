"""Adding a measurement is adding a file."""

import sys
from pathlib import Path

import pytest

from ackworth.model.outcome import Outcome
from ackworth.pipeline import measure
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.engine import Inline
from ackworth.testing.histories import Answer, History, Sent, trial, write_history

FILE = """
from ackworth.pipeline.measurement import TOTAL, Measurement


class Slowest(Measurement):
    name = "slowest"
    needs = ("account",)
    columns = {"outcome": ("latency",)}

    def __init__(self, context, knows):
        super().__init__(context, knows)
        self.slowest = 0

    def fold(self, table, rows):
        self.slowest = max(self.slowest, int(rows["latency"].max()))

    def partials(self):
        yield TOTAL, self.slowest

    @classmethod
    def reduce(cls, context, knows, key, partials):
        return max(partials)

    @classmethod
    def conclude(cls, context, found, findings):
        findings.result["throughput"]["slowest"] = found[TOTAL]
"""


def test_a_file_is_all_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "slowest.py").write_text(FILE)
    monkeypatch.setattr(measure, "__path__", [*measure.__path__, str(folder)])
    history = History(
        trial=trial(),
        sent=[Sent(0, seq, seq) for seq in range(5)],
        outcome=[Answer(0, seq, Outcome.ACKED, 10 + seq, latency=100 * seq) for seq in range(5)],
    )
    try:
        result = judge_trial(write_history(tmp_path / "trial", history, rows_per_group=2), Inline(3))
    finally:
        sys.modules.pop("ackworth.pipeline.measure.slowest", None)
    assert result["throughput"]["slowest"] == 400
    assert result["notes"] == []
