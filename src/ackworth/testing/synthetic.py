"""Large records with a planted truth: a busy broker, one fault, and every kind of defect in known places.

Everything about a message follows from its (producer, seq), so that producers and consumers can be
written one after the other, in any size, and the truth is counted from the same rules.

A producer sends every 192 us, to the topics in turn; a consumer reads every 16th topic. At six tenths
of the way the broker fails for a second. What is planted, and where, is in `Planted`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ackworth.history.meta import End, Group, Trial, write_end, write_trial
from ackworth.history.schema import DELIVERED, MARK, OUTCOME, SENT, Table
from ackworth.history.segment import SegmentWriter, Values
from ackworth.model.clock import SECOND
from ackworth.model.outcome import Delivery, Outcome
from ackworth.model.verdict import Claims

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PERIOD = 192_000  # nanoseconds between two messages of a producer
DOWN = SECOND
ABSURD = 1 << 40


@dataclass(frozen=True)
class Planted:
    """The rules by which messages are lost, doubled and so on. Masks are over seqs of one producer."""

    messages: int
    producers: int = 64
    consumers: int = 16
    topics: int = 256
    scattered: bool = False  # unexplained repeats and reordered messages all over, not in one stretch of the run

    @property
    def each(self) -> int:
        """Messages of one producer."""
        return self.messages // self.producers

    @property
    def cut(self) -> int:
        """The first seq after the fault."""
        return self.each * 6 // 10

    def near_the_cut(self, seqs: Int64s) -> Mask:
        return np.asarray((seqs >= self.cut - 100) & (seqs < self.cut + 100))

    def lost(self, producer: int, seqs: Int64s) -> Mask:
        """Acked just before the fault, and gone."""
        return np.asarray((seqs >= self.cut - 20) & (seqs < self.cut) & (producer % 2 == 0))

    def refused(self, producer: int, seqs: Int64s) -> Mask:
        """The broker is full for a while."""
        full = (seqs >= self.each * 7 // 10) & (seqs < self.each * 7 // 10 + max(2000, self.each // 100))
        return np.asarray(full & (seqs % 10 == 5) & ~self.near_the_cut(seqs) & ~self.unanswered(producer, seqs))

    def resurrected(self, producer: int, seqs: Int64s) -> Mask:
        return np.asarray(self.refused(producer, seqs) & (seqs % 50 == 5) & (producer == 0))

    def unknown(self, producer: int, seqs: Int64s) -> Mask:
        """In flight when the broker failed; every other one was stored."""
        return np.asarray((seqs >= self.cut) & (seqs < self.cut + 8))

    def unanswered(self, producer: int, seqs: Int64s) -> Mask:
        return seqs >= self.each - 3

    def repeated_after_fault(self, producer: int, seqs: Int64s) -> Mask:
        return np.asarray((seqs >= self.cut - 60) & (seqs < self.cut - 20))

    def repeated_flagged(self, producer: int, seqs: Int64s) -> Mask:
        return np.asarray(self.repeated_after_fault(producer, seqs) & (seqs % 4 == 0))

    def repeated_for_nothing(self, producer: int, seqs: Int64s) -> Mask:
        return np.asarray((seqs % 400 == 77) & self._troubled(seqs) & (producer % 16 == 5))

    def reordered(self, producer: int, seqs: Int64s) -> Mask:
        """Held back until the next two messages of the stream have passed."""
        later = seqs + 3 * self.topics
        usual = self._troubled(seqs) & ((later < self.cut - 100) | (seqs >= self.cut + 100))
        return np.asarray((seqs % 400 == 234) & usual & (later < self.each) & (producer % 16 == 6))

    def _troubled(self, seqs: Int64s) -> Mask:
        """Where the broker repeats and holds back messages for no reason."""
        stretch = (seqs >= self.each * 3 // 10) & (seqs < self.each * 3 // 10 + max(2000, self.each // 50))
        return np.asarray((stretch | self.scattered) & ~self.near_the_cut(seqs))

    def delivered(self, producer: int, seqs: Int64s) -> Mask:
        refused = self.refused(producer, seqs) & ~self.resurrected(producer, seqs)
        unstored = self.unknown(producer, seqs) & (seqs % 2 == 1)
        return np.asarray(~self.lost(producer, seqs) & ~refused & ~unstored)

    def count(self, rule: str) -> int:
        seqs = np.arange(self.each, dtype=np.int64)
        return sum(int(np.count_nonzero(getattr(self, rule)(p, seqs))) for p in range(self.producers))

    def ids(self, rule: str, limit: int = 100) -> list[str]:
        """The first of the messages of a rule, as a check names them."""
        seqs = np.arange(self.each, dtype=np.int64)
        found: list[str] = []
        for producer in range(self.producers):
            found += [f"{producer}/{seq}" for seq in np.flatnonzero(getattr(self, rule)(producer, seqs)).tolist()]
            if len(found) >= limit:
                break
        return found[:limit]

    @cached_property
    def account(self) -> dict[str, int]:
        sent = self.each * self.producers
        refused, unknown, unanswered = (self.count(rule) for rule in ("refused", "unknown", "unanswered"))
        acked = sent - refused - unknown - unanswered
        recovered = self.count("delivered") + self.count("lost") - acked - self.count("resurrected")
        return {
            "sent": sent,
            "acked": acked,
            "refused": refused,
            "unknown": unknown,
            "unanswered": unanswered,
            "recovered": recovered,
        }

    @cached_property
    def group(self) -> dict[str, Any]:
        flagged, after, nothing = (
            self.count(rule) for rule in ("repeated_flagged", "repeated_after_fault", "repeated_for_nothing")
        )
        extra = {"extra": after + nothing, "flagged": flagged, "explained": after - flagged, "unexplained": nothing}
        distinct, lost, resurrected = (self.count(rule) for rule in ("delivered", "lost", "resurrected"))
        strange = {"phantom": 3 * self.consumers, "foreign": self.consumers, "corrupt": self.consumers}
        return {
            "name": "all",
            "expected": self.account["acked"],
            "delivered": distinct + after + nothing + strange["phantom"] + strange["corrupt"],
            "distinct": distinct,
            "lost": lost,
            "recovered": self.account["recovered"],
            "resurrected": resurrected,
            **strange,
            "misdelivered": 0,
            "reordered": self.count("reordered"),
            "duplicates": extra,
        }

    # Times

    def sent_at(self, producer: int | Int64s, seqs: Int64s) -> Int64s:
        jitter = _noise(producer, seqs, 1) % (PERIOD // 4)
        return SECOND + seqs * PERIOD + producer * (PERIOD // self.producers) + jitter + (seqs >= self.cut) * DOWN

    @property
    def fault(self) -> tuple[int, int]:
        begin = int(SECOND + self.cut * PERIOD - PERIOD // 2 + 60 * 10**6)
        return begin, begin + DOWN // 2


def write_synthetic(directory: Path, planted: Planted) -> Planted:
    """Write the record of a trial, whole series by whole series."""
    directory.mkdir(parents=True, exist_ok=True)
    write_trial(directory, _trial(planted))
    for producer in range(planted.producers):
        _write_producer(directory / "record", planted, producer)
    for consumer in range(planted.consumers):
        _write_consumer(directory / "record", planted, consumer)
    begin, end = planted.fault
    with SegmentWriter(directory / "record", MARK, "run") as writer:
        mark = {"what": ["fault"], "name": ["power-cut"], "node": ["a"], "detail": [""]}
        writer.write({**mark, "t_begin": np.array([begin]), "t_end": np.array([end])})
    write_end(directory, End(t=10**15, drained=True))
    return planted


def _trial(planted: Planted) -> Trial:
    return Trial(
        run="00000000000000cd",
        name="synthetic",
        plan={"faults": [{"kind": "power-cut"}]},
        topics=tuple(f"topic-{number}" for number in range(planted.topics)),
        groups=(Group(name="all", topics=None),),
        producers=planted.producers,
        consumers=planted.consumers,
        reasons=("", "full", "timeout"),
        claims=Claims(survives=frozenset({"power-cut"}), ordered=True, once=True, source="the generator"),
        seed=0,
        t_zero=0,
        wall_zero="2024-01-01T00:00:00+00:00",
        broker={"kind": "synthetic"},
    )


def _write_producer(record: Path, planted: Planted, producer: int) -> None:
    seqs = np.arange(planted.each, dtype=np.int64)
    sent = planted.sent_at(producer, seqs)
    same = np.zeros(len(seqs), np.int64)
    columns = {"producer": same + producer, "topic": (seqs + producer) % planted.topics, "seq": seqs, "t": sent}
    _write(record, SENT, producer, {**columns, "late": same})
    outcome = np.full(len(seqs), Outcome.ACKED, np.int64)
    outcome[planted.refused(producer, seqs)] = Outcome.REFUSED
    outcome[planted.unknown(producer, seqs)] = Outcome.UNKNOWN
    answered = np.maximum.accumulate(sent + 10**6 + _noise(producer, seqs, 2) % 10**6)
    reason = np.array([0, 0, 1, 2])[outcome]
    columns = {"outcome": outcome, "t": answered, "latency": answered - sent, "late": same, "reason": reason}
    columns |= {"producer": same + producer, "seq": seqs}
    keep = ~planted.unanswered(producer, seqs)
    _write(record, OUTCOME, producer, {name: values[keep] for name, values in columns.items()})


def _write_consumer(record: Path, planted: Planted, consumer: int) -> None:
    columns = [
        part
        for producer in range(planted.producers)
        for part in _deliveries(planted, producer, _seqs_of(planted, producer, consumer))
    ]
    columns.append(_strange(planted, consumer))
    rows = np.concatenate(columns, axis=1)
    producer, seq, t, sent, flags = rows[:, np.argsort(rows[2], kind="stable")]
    _write(
        record,
        DELIVERED,
        consumer,
        {
            "consumer": np.full(len(t), consumer),
            "group": np.zeros(len(t)),
            "producer": producer,
            "topic": np.where(seq < ABSURD, (seq + producer) % planted.topics, consumer),
            "seq": seq,
            "t": t,
            "latency": t - sent,
            "flags": flags,
            "position": np.arange(len(t)),
        },
    )


def _seqs_of(planted: Planted, producer: int, consumer: int) -> Int64s:
    """The messages of a producer whose topics the consumer reads."""
    return np.arange((consumer - producer) % planted.consumers, planted.each, planted.consumers, dtype=np.int64)


def _deliveries(planted: Planted, producer: int, seqs: Int64s) -> Iterable[Int64s]:
    seqs = seqs[planted.delivered(producer, seqs)]
    sent = planted.sent_at(producer, seqs)
    # A few take long, but not so long that the next message of the stream overtakes them.
    slow = (_noise(producer, seqs, 3) % 1000 == 0) * (planted.topics * PERIOD // 3)
    t = sent + 2 * 10**6 + _noise(producer, seqs, 4) % 10**6 + slow
    t = t + planted.reordered(producer, seqs) * (planted.topics * PERIOD * 5 // 2)
    yield _rows(producer, seqs, t, sent, np.full(len(seqs), Delivery.INTACT))
    again = planted.repeated_for_nothing(producer, seqs)
    yield _rows(producer, seqs[again], t[again] + 10**6, sent[again], np.full(again.sum(), Delivery.INTACT))
    after = planted.repeated_after_fault(producer, seqs)
    flagged = planted.repeated_flagged(producer, seqs)[after]
    late = np.full(after.sum(), planted.fault[1] + 10**6) + _noise(producer, seqs[after], 5) % 10**6
    flags = np.where(flagged, Delivery.INTACT | Delivery.REDELIVERED, Delivery.INTACT)
    yield _rows(producer, seqs[after], late, sent[after], flags)


def _strange(planted: Planted, consumer: int) -> Int64s:
    """Two phantoms with absurd seqs, one of another run, and a corrupt body, at every consumer."""
    seqs = np.array([ABSURD + 2 * consumer, ABSURD + 2 * consumer + 1, 7, consumer], np.int64)
    times = 2 * SECOND + np.arange(4, dtype=np.int64)
    flags = np.array([Delivery.INTACT, Delivery.INTACT, Delivery.INTACT | Delivery.FOREIGN, 0])
    return _rows(1, seqs, times, times - 10**6, flags)


def _rows(producer: int, seqs: Int64s, t: Int64s, sent: Int64s, flags: npt.NDArray[np.int64]) -> Int64s:
    return np.stack([np.full(len(seqs), producer), seqs, t, sent, flags])


def _write(record: Path, table: Table, number: int, columns: dict[str, Values]) -> None:
    with SegmentWriter(record, table, f"{number:05d}") as writer:
        writer.write(columns)


def _noise(producer: int | Int64s, seqs: Int64s, salt: int) -> Int64s:
    """Numbers that look random and follow from the id."""
    mixed = (seqs + np.int64(producer) * 1_000_003 + salt * 7_919).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    return (mixed >> np.uint64(20)).astype(np.int64)
