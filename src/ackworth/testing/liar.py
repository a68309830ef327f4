"""A broker in memory that lies when it is told to, and keeps account of its lies.

    liar = Liar(run=..., groups=2, lies={"lose": one_in(1_000_000), "double": these((0, 17), (3, 4))})

    lose        acked and thrown away
    ack-early   acked before it is stored: `crash` loses what was not flushed
    double      stored twice, without a word
    reorder     held back until a later message of its topic is stored
    corrupt     stored with one bit flipped
    invent      beside it, a message is stored that nobody sent
    resurrect   refused, and stored all the same
    misdeliver  stored under another topic
    withhold    stored, but one group never gets it
    give-up     refused, it comes again once less than it should
    insist      refused, it comes again once more than it should

A message that is refused each time is delivered ATTEMPTS times.

`planted` has the ids of every lie, as (producer, seq): what a verifier must find, and nothing else.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ackworth.driver.contract import Answers, Incoming, Int64s, Outgoing
from ackworth.load.body import Bodies, mix
from ackworth.model.outcome import Outcome

LIES = ("lose", "ack-early", "double", "reorder", "corrupt", "invent", "resurrect", "misdeliver")
LIES_TO_GROUPS = ("withhold", "give-up", "insist")
ATTEMPTS = 3
DEPRIVED = "group-0"  # who does not get what is withheld
INVENTED_FROM = 1 << 32  # seqs that nobody sends

Chooser = Callable[[int, Int64s], npt.NDArray[np.bool_]]  # producer, seqs -> which of them
Ids = set[tuple[int, int]]


def these(*ids: tuple[int, int]) -> Chooser:
    """Exactly these messages."""
    chosen: dict[int, list[int]] = defaultdict(list)
    for producer, seq in ids:
        chosen[producer].append(seq)
    return lambda producer, seqs: np.isin(seqs, chosen.get(producer, []))


def one_in(n: int, seed: int = 0) -> Chooser:
    """One message in n, by chance that repeats itself."""
    salt = np.uint64(seed + 1) << np.uint64(56)

    def choose(producer: int, seqs: Int64s) -> npt.NDArray[np.bool_]:
        scrambled = mix(seqs.astype(np.uint64) ^ (np.uint64(producer) << np.uint64(40)) ^ salt)
        chosen: npt.NDArray[np.bool_] = scrambled % np.uint64(n) == 0
        return chosen

    return choose


@dataclass(frozen=True)
class _Stored:
    """Messages in the log, in columns."""

    bodies: npt.NDArray[np.uint8]
    sizes: Int64s
    topics: Int64s
    seqs: Int64s
    producer: int
    again: bool = False  # they were refused before

    def pick(self, which: npt.NDArray[np.bool_] | Int64s) -> "_Stored":
        return replace(
            self, bodies=self.bodies[which], sizes=self.sizes[which], topics=self.topics[which], seqs=self.seqs[which]
        )

    def __len__(self) -> int:
        return len(self.seqs)


class Liar:
    def __init__(self, *, run: int, topics: int = 1, lies: Mapping[str, Chooser] | None = None) -> None:
        unknown = set(lies or {}) - {*LIES, *LIES_TO_GROUPS}
        assert not unknown, f"no such lie: {unknown}"
        self._run, self._topics, self._lies = run, topics, dict(lies or {})
        self._log: list[_Stored] = []
        self._early: list[_Stored] = []
        self._held: list[_Stored] = []
        self._read: dict[str, int] = defaultdict(int)
        self._refused: Counter[tuple[str, int, int]] = Counter()  # by group, producer and seq
        self._again: dict[str, list[_Stored]] = defaultdict(list)
        self.planted: dict[str, Ids] = {lie: set() for lie in (*LIES, *LIES_TO_GROUPS)}

    def sender(self, producer: int) -> "LiarSender":
        return LiarSender(self, producer)

    def receiver(self, group: str) -> "LiarReceiver":
        return LiarReceiver(self, group)

    def store(self, producer: int, batch: Outgoing) -> Answers:
        seqs = np.arange(batch.first_seq, batch.first_seq + len(batch.sizes))
        chosen = {lie: self._choose(lie, producer, seqs) for lie in LIES}
        stored = _Stored(batch.bodies.copy(), batch.sizes, batch.topics.copy(), seqs, producer)
        outcomes = np.full(len(seqs), Outcome.ACKED, np.int8)
        outcomes[chosen["resurrect"]] = Outcome.REFUSED
        stored.bodies[chosen["corrupt"], stored.sizes[chosen["corrupt"]] - 1] ^= 1
        stored.topics[chosen["misdeliver"]] = (stored.topics[chosen["misdeliver"]] + 1) % max(2, self._topics)
        away = chosen["lose"] | chosen["ack-early"] | chosen["reorder"]
        self._early.append(stored.pick(chosen["ack-early"]))
        self._log += [
            stored.pick(~away),
            stored.pick(chosen["double"]),
            *self._held,
            self._invent(stored, chosen["invent"]),
        ]
        self._held = [stored.pick(chosen["reorder"])]
        return Answers(seqs, outcomes, np.zeros(len(seqs), np.int16))

    def _choose(self, lie: str, producer: int, seqs: Int64s) -> npt.NDArray[np.bool_]:
        mask = self._lies[lie](producer, seqs) if lie in self._lies else np.zeros(len(seqs), bool)
        offset = INVENTED_FROM if lie == "invent" else 0
        self.planted[lie] |= {(producer, int(seq) + offset) for seq in seqs[mask]}
        return mask

    def _invent(self, like: _Stored, which: npt.NDArray[np.bool_]) -> _Stored:
        beside = like.pick(which)
        rows = [
            Bodies(self._run).build(
                like.producer, beside.topics[i : i + 1], INVENTED_FROM + int(seq), beside.sizes[i : i + 1], 1
            )
            for i, seq in enumerate(beside.seqs)
        ]
        return replace(beside, bodies=np.concatenate(rows)) if rows else beside

    def flush(self) -> None:
        """Store what was acked early, and let go of what was held back."""
        self._log += [*self._early, *self._held]
        self._early, self._held = [], []

    def crash(self) -> Ids:
        """Forget what was acked and not stored; returns what is lost by it."""
        lost = {(s.producer, int(seq)) for s in self._early for seq in s.seqs}
        self._early = []
        return lost

    def next_for(self, group: str) -> _Stored | None:
        while self._read[group] < len(self._log):
            stored = self._log[self._read[group]]
            self._read[group] += 1
            if group == DEPRIVED:
                stored = stored.pick(~self._choose("withhold", stored.producer, stored.seqs))
            if len(stored):
                return stored
        return self._again[group].pop(0) if self._again[group] else None

    def refuse(self, group: str, stored: _Stored) -> None:
        limits = np.full(len(stored), ATTEMPTS)
        limits[self._choose("give-up", stored.producer, stored.seqs)] -= 1
        limits[self._choose("insist", stored.producer, stored.seqs)] += 1
        ids = [(group, stored.producer, int(seq)) for seq in stored.seqs]
        self._refused.update(ids)
        left = np.array([self._refused[each] for each in ids]) < limits
        if left.any():
            self._again[group].append(replace(stored.pick(left), again=True))


class LiarSender:
    def __init__(self, liar: Liar, producer: int) -> None:
        self._liar, self._producer = liar, producer
        self._answers: list[Answers] = []

    def send(self, batch: Outgoing) -> None:
        self._answers.append(self._liar.store(self._producer, batch))

    def answers(self, wait: float) -> Answers:
        if self._answers:
            return self._answers.pop(0)
        nothing = np.empty(0, np.int64)
        return Answers(nothing, nothing.astype(np.int8), nothing.astype(np.int16))

    def close(self) -> None:
        """There is nothing to close."""


class LiarReceiver:
    def __init__(self, liar: Liar, group: str) -> None:
        self._liar, self._group = liar, group

    def receive(self, limit: int, wait: float) -> Incoming | None:
        stored = self._liar.next_for(self._group)
        if stored is None:
            return None
        count = len(stored)
        again = np.full(count, stored.again)
        return Incoming(stored.bodies, stored.sizes, stored.topics, np.full(count, -1), again, stored)

    def acknowledge(self, incoming: Incoming) -> None:
        """A liar does not care."""

    def refuse(self, incoming: Incoming, chosen: npt.NDArray[np.bool_]) -> None:
        self._liar.refuse(self._group, incoming.token.pick(chosen))

    def close(self) -> None:
        """There is nothing to close."""
