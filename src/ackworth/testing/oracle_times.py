"""The plain judge on times: latencies, rates, what came after faults, and where losses lie among them."""

import json
from collections import Counter
from itertools import accumulate
from typing import Any

from ackworth.model.outcome import Outcome
from ackworth.testing.histories import Answer, History, Mark
from ackworth.testing.oracle import fates, ours, sets

NEVER = 1 << 62


def warm_at(history: History) -> int:
    """When the warm-up was over; without one, before all that happened."""
    warm_ups = [mark.t_end for mark in history.mark if mark.what == "phase" and "warm_up" in mark.detail]
    return max(warm_ups, default=-NEVER)


def latencies(history: History) -> dict[str, list[int]]:
    warm = warm_at(history)
    acked = [row for row in _acks(history) if row.t - row.latency >= warm]
    delivered = [row for row in history.delivered if ours(row) and row.t - row.latency >= warm]
    return {
        "due_to_ack": sorted(row.latency + row.late for row in acked),
        "sent_to_ack": sorted(row.latency for row in acked),
        "sent_to_delivery": sorted(row.latency for row in delivered),
    }


def censored(history: History) -> dict[str, int]:
    """Messages that never came back, of those that were sent after the warm-up."""
    measured = {(row.producer, row.seq) for row in history.sent if row.t >= warm_at(history)}
    unanswered = sum(fate in ("unknown", "unanswered") for i, fate in fates(history).items() if i in measured)
    lost = sum(len(sets(history, group)["lost"] & measured) for group in range(len(history.trial.groups)))
    return {"due_to_ack": unanswered, "sent_to_ack": unanswered, "sent_to_delivery": lost}


def acked_per_second(history: History) -> float | None:
    """Of the messages sent after the warm-up, from the first sending to the last ack."""
    warm = warm_at(history)
    sent = [row.t for row in history.sent if row.t >= warm]
    acked = [row.t for row in _acks(history) if row.t - row.latency >= warm]
    if not sent or not acked:
        return None
    span = max(*sent, *acked) - min(*sent, *acked)
    return len(acked) * 1e9 / span if span else None


def delivered_per_second(history: History) -> float | None:
    """From the first delivery on, those of its moment not counted."""
    times = sorted(row.t for row in history.delivered if row.t - row.latency >= warm_at(history))
    if not times or times[0] == times[-1]:
        return None
    return sum(t > times[0] for t in times) * 1e9 / (times[-1] - times[0])


def faults(history: History) -> list[Mark]:
    found = [mark for mark in history.mark if mark.what == "fault"]
    return sorted(found, key=lambda mark: (mark.t_begin, mark.t_end))


def detail(mark: Mark) -> dict[str, Any]:
    return {"of": "node", "whole": True, **json.loads(mark.detail or "{}")}


def ready(history: History, fault: Mark) -> Mark | None:
    """The first that says so of the fault's node, before the next fault of the node."""
    of_node = [mark for mark in history.mark if mark.node == fault.node]
    until = min((m.t_begin for m in of_node if m.what == "fault" and m.t_begin > fault.t_begin), default=NEVER)
    said = [m for m in of_node if m.what == "ready" and fault.t_begin <= m.t_begin < until]
    return min(said, key=lambda mark: mark.t_end, default=None)


def back_at(history: History, fault: Mark) -> int:
    """From when on something can come that was not under way when the broker was struck."""
    found, told = ready(history, fault), detail(fault)
    if found is None or told["of"] == "consumer" or not told["whole"] or found.t_begin == found.t_end:
        return fault.t_end
    return max(fault.t_end, found.t_begin)


def after_faults(history: History) -> list[tuple[bool, int | None, int | None]]:
    """For each fault: whether anything was sent once it was mended, and nanoseconds from its beginning to the first
    ack and the first delivery from then on."""
    return [_after(history, fault) for fault in faults(history)]


def _after(history: History, fault: Mark) -> tuple[bool, int | None, int | None]:
    back = back_at(history, fault)
    sent, acks, deliveries = ([row.t for row in rows] for rows in (history.sent, _acks(history), history.delivered))
    first_ack, first_delivery = (
        min((t - fault.t_begin for t in times if t >= back), default=None) for times in (acks, deliveries)
    )
    return any(t >= back for t in sent), first_ack, first_delivery


def _acks(history: History) -> list[Answer]:
    return [row for row in history.outcome if row.outcome == Outcome.ACKED]


# ---- losses -----------------------------------------------------------------------------------------


def lost_ranges(history: History, group: int) -> list[list[int]]:
    ranges: list[list[int]] = []
    for producer, seq in sorted(sets(history, group)["lost"]):
        if ranges and ranges[-1][0] == producer and ranges[-1][2] == seq - 1:
            ranges[-1][2] = seq
        else:
            ranges.append([producer, seq, seq])
    return ranges


def lost_topics(history: History, group: int) -> int:
    topics = {(row.producer, row.seq): row.topic for row in history.sent}
    return len({topics[i] for i in sets(history, group)["lost"]})


def lost_before(history: History, group: int) -> tuple[str | None, list[float] | None]:
    """The fault that followed the last lost ack, and how long before their faults the lost acks came."""
    lost, struck = sets(history, group)["lost"], faults(history)
    spans: list[tuple[int, int]] = []
    for row in _acks(history):
        if (row.producer, row.seq) in lost:
            followed_by = next((n for n, fault in enumerate(struck) if back_at(history, fault) >= row.t), None)
            if followed_by is None:
                return None, None
            spans.append((followed_by, max(0, struck[followed_by].t_end - row.t)))
    times = [span for _, span in spans]
    return struck[max(spans)[0]].name, [min(times) / 10**9, max(times) / 10**9]


def lost_holes(history: History, group: int) -> int:
    return sum(_is_hole(history, group, producer, first) for producer, first, _ in lost_ranges(history, group))


def _is_hole(history: History, group: int, producer: int, seq: int) -> bool:
    """Whether something behind it was kept that the producer had sent before the same fault."""
    found = sets(history, group)
    kept = [i[1] for i in found["expected"] - found["lost"] if i[0] == producer and i[1] > seq]
    reach = next((reach for reach in _reaches(history, producer) if reach >= seq), NEVER)
    return any(other <= reach for other in kept)


def _reaches(history: History, producer: int) -> list[int]:
    """For each fault, the highest seq that was sent and acked by then."""
    seqs = Counter(row.seq for row in history.sent if row.producer == producer)
    acks = [row for row in _acks(history) if row.producer == producer and 0 <= row.seq <= max(seqs, default=-1)]
    found = [
        max((row.seq for row in acks if row.t <= back_at(history, fault)), default=-1) for fault in faults(history)
    ]
    return list(accumulate(found, max))
