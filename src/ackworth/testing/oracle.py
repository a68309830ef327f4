"""A judge in plain Python: one dictionary an id, one loop a question. Slow, and easy to believe.

The pipeline is held against it on random histories. It shares nothing with the pipeline but the words.
"""

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

from ackworth.model.outcome import Delivery, Outcome
from ackworth.testing.histories import Delivered, History

Id = tuple[int, int]


def account(history: History) -> dict[str, Any]:
    """The parts of a result that must agree exactly."""
    fate = fates(history)
    counts = Counter(fate.values())
    return {
        "sent": len(fate),
        "acked": counts["acked"],
        "refused": counts["refused"],
        "unknown": counts["unknown"],
        "unanswered": counts["unanswered"],
        "recovered": len(set[Id]().union(*(sets(history, n)["recovered"] for n in range(len(history.trial.groups))))),
        "reasons": dict(
            Counter(
                history.trial.reasons[row.reason] or "no reason given"
                for row in history.outcome
                if row.outcome != Outcome.ACKED
            )
        ),
    }


def defects(history: History) -> dict[str, int]:
    sent = {(row.producer, row.seq) for row in history.sent}
    outcomes = Counter((row.producer, row.seq) for row in history.outcome)
    limits = _limits(history)
    # An id beyond the last that was sent is counted by rows: there is no place to remember it.
    never = [i for i in outcomes if i not in sent]
    return {
        "messages with several outcomes": sum(n > 1 for i, n in outcomes.items() if 0 <= i[1] < limits[i[0]]),
        "messages that were sent twice": len(history.sent) - len(sent),
        "outcomes of messages that were never sent": sum(1 if 0 <= i[1] < limits[i[0]] else outcomes[i] for i in never),
    }


def groups(history: History) -> list[dict[str, Any]]:
    return [_group(history, number) for number in range(len(history.trial.groups))]


def offenders(history: History, check: str) -> list[str]:
    """The ids that a check must name, in order."""
    found: set[Id] = set()
    for number in range(len(history.trial.groups)):
        found |= sets(history, number)[check]
    return [f"{producer}/{seq}" for producer, seq in sorted(found)]


def fates(history: History) -> dict[Id, str]:
    """What became of every message that was sent."""
    outcomes: defaultdict[Id, set[Outcome]] = defaultdict(set)
    for row in history.outcome:
        outcomes[row.producer, row.seq].add(row.outcome)
    fate = {}
    for sent in history.sent:
        found = outcomes[sent.producer, sent.seq]
        known = [o for o in (Outcome.REFUSED, Outcome.UNKNOWN, Outcome.ACKED) if o in found]
        fate[sent.producer, sent.seq] = known[0].name.lower() if known else "unanswered"
    return fate


def _limits(history: History) -> dict[int, int]:
    """One more than each producer's last seq: what lies beyond was certainly never sent."""
    limits = dict.fromkeys(range(history.trial.producers), 0)
    for row in history.sent:
        limits[row.producer] = max(limits[row.producer], row.seq + 1)
    return limits


def ours(row: Delivered) -> bool:
    return bool(row.flags & Delivery.INTACT) and not row.flags & Delivery.FOREIGN


def _reads(history: History, group: int, topic: int) -> bool:
    topics = history.trial.groups[group].topics
    return topics is None or topic in topics


def sets(history: History, group: int) -> dict[str, set[Id]]:
    """Which messages a group must have, and what became of them."""
    fate = fates(history)
    rows = [row for row in history.delivered if row.group == group]
    got = {(row.producer, row.seq) for row in rows if ours(row)}
    must = {(row.producer, row.seq) for row in history.sent if _reads(history, group, row.topic)}
    return {
        "expected": {i for i in must if fate[i] == "acked"},
        "distinct": {i for i in got if i in fate},
        "lost": {i for i in must if fate[i] == "acked" and i not in got},
        "recovered": {i for i in got if fate.get(i) in ("unknown", "unanswered")},
        "resurrected": {i for i in got if fate.get(i) == "refused"},
        "phantom": {i for i in got if i not in fate},
        "corrupt": {(r.producer, r.seq) for r in rows if not r.flags & (Delivery.INTACT | Delivery.FOREIGN)},
        "misdelivered": {(r.producer, r.seq) for r in rows if _misdelivered(history, r)},
        "reordered": {(r.producer, r.seq) for r in _reordered(history, group)},
        "duplicates": {i for i, kind in _repeats(history, group) if kind == "unexplained"},
    }


def _misdelivered(history: History, row: Delivered) -> bool:
    return ours(row) and (bool(row.flags & Delivery.MISDELIVERED) or not _reads(history, row.group, row.topic))


def _group(history: History, group: int) -> dict[str, Any]:
    found = sets(history, group)
    rows = [row for row in history.delivered if row.group == group]
    foreign = sum(bool(row.flags & Delivery.FOREIGN) for row in rows)
    fate = fates(history)
    repeats = Counter(kind for _, kind in _repeats(history, group))
    return {
        "name": history.trial.groups[group].name,
        **{kind: len(found[kind]) for kind in ("expected", "distinct", "lost", "recovered", "resurrected")},
        "delivered": len(rows),
        "phantom": foreign + sum(ours(row) and (row.producer, row.seq) not in fate for row in rows),
        "foreign": foreign,
        "corrupt": sum(not row.flags & (Delivery.INTACT | Delivery.FOREIGN) for row in rows),
        "misdelivered": sum(_misdelivered(history, row) for row in rows),
        "reordered": len(_reordered(history, group)),
        "duplicates": {
            "extra": repeats.total(),
            **{kind: repeats[kind] for kind in ("flagged", "explained", "unexplained")},
        },
    }


def _repeats(history: History, group: int) -> list[tuple[Id, str]]:
    """Every delivery beyond the first of a message that was sent, and its kind."""
    fate = fates(history)
    found = []
    for i, rows in _deliveries(history, group).items():
        for before, row in pairwise(rows):
            if i in fate:
                found.append((i, _kind(history, before, row)))
    return found


def _kind(history: History, before: Delivered, row: Delivered) -> str:
    marks = [m for m in history.mark if m.what in ("fault", "worker-died")]
    between = any(m.t_begin <= row.t and m.t_end >= before.t for m in marks)
    flagged = bool(row.flags & Delivery.REDELIVERED)
    if flagged and (between or history.trial.plan.get("expect", {}).get("duplicates") != "explained"):
        return "flagged"
    return "explained" if between and not flagged else "unexplained"


def _deliveries(history: History, group: int) -> dict[Id, list[Delivered]]:
    """A group's intact deliveries of each id, the first one first."""
    late = set(map(id, _late(history)))
    by_id: defaultdict[Id, list[Delivered]] = defaultdict(list)
    for row in history.delivered:
        if row.group == group and ours(row):
            by_id[row.producer, row.seq].append(row)
    for rows in by_id.values():
        # Among deliveries of the same moment, the one that tells least against the broker is the first.
        rows.sort(key=lambda row: (row.t, bool(row.flags & Delivery.REDELIVERED), id(row) in late))
    return by_id


def _late(history: History) -> list[Delivered]:
    """Deliveries that come after a later message of their stream and are not flagged as repeats."""
    limits = _limits(history)
    highest: dict[tuple[int, int, int], int] = {}
    late = []
    for row in history.delivered:
        if not ours(row) or not 0 <= row.seq < limits.get(row.producer, 0):
            continue
        stream = (row.consumer, row.producer, row.topic)
        if row.seq < highest.get(stream, -1) and not row.flags & Delivery.REDELIVERED:
            late.append(row)
        highest[stream] = max(row.seq, highest.get(stream, -1))
    return late


def _reordered(history: History, group: int) -> list[Delivered]:
    late = set(map(id, _late(history)))
    return [rows[0] for rows in _deliveries(history, group).values() if id(rows[0]) in late]
