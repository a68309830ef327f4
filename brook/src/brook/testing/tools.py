"""What the checks have in common."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from brook.identity import new_client_id
from brook.model import Claimed
from brook.packing import Piece, Run, pack
from brook.stores.base import ClaimRequest, Store

Open = Callable[[], Store]
Check = Callable[[Open], None]

NOW = 1_000_000.0
LEASE = 60.0
CLIENT = new_client_id("check")
OTHER = new_client_id("other")


def create(store: Store, *names: str) -> list[int]:
    store.create_topics(names)
    ids = store.topics()
    return [ids[name] for name in names]


def run(topic: int, messages: int) -> list[Run]:
    return pack(topic, [b"body"] * messages)


def subscribe_all(store: Store) -> None:
    store.subscribe("g", None, "earliest")


def request(
    group: str = "g",
    *,
    topics: frozenset[int] | None = None,
    limit: int = 1000,
    client: str = CLIENT,
    now: float = NOW,
) -> ClaimRequest:
    return ClaimRequest(group, topics, limit, client, now, LEASE)


def claim(store: Store, request: ClaimRequest) -> Claimed | None:
    """One batch."""
    claimed = store.claim(request)
    assert len(claimed) <= 1, "more batches than threads"
    return claimed[0] if claimed else None


def read(store: Store, receipt: int) -> list[Piece]:
    (pieces,) = store.read([receipt])
    return pieces


def ack(store: Store, receipt: int) -> int:
    (held,) = store.ack([receipt], NOW)
    return held


def receive(store: Store, *, client: str = CLIENT, limit: int, now: float = NOW) -> tuple[int, list[Piece]]:
    claimed = claim(store, request(client=client, limit=limit, now=now))
    assert claimed is not None, "there were messages, and none was handed out"
    return claimed.receipt, read(store, claimed.receipt)


def drain(store: Store, group: str = "g", *, limit: int = 1000, now: float = NOW) -> list[Piece]:
    pieces: list[Piece] = []
    while claimed := claim(store, request(group, limit=limit, now=now)):
        pieces += read(store, claimed.receipt)
        ack(store, claimed.receipt)
    return pieces


def offsets(pieces: Sequence[Piece]) -> dict[int, list[int]]:
    """By topic."""
    found: dict[int, list[int]] = {}
    for piece in pieces:
        found.setdefault(piece.topic, []).extend(range(piece.first, piece.first + piece.messages))
    return {topic: sorted(offsets) for topic, offsets in sorted(found.items())}


def bodies(pieces: Sequence[Piece]) -> list[bytes]:
    return [body for piece in pieces for body in piece.bodies]


def time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def dead(client: str) -> str:
    """A client of this host and process that started at another time: there is no such process."""
    label, place, pid, started, unique = client.split("/")
    return "/".join((label, place, pid, str(int(started) + 1), unique))


def in_threads(jobs: Sequence[Callable[[], object]]) -> None:
    """Run all at once, and raise what one of them raised."""
    errors: list[BaseException] = []

    def run(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@contextlib.contextmanager
def raises(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")
