"""The price of an ack: from trials to a row for each broker at each setting.

What a trial shows follows from what it did: without faults and as fast as it goes, how fast; without faults at a
rate, how late; with faults, what they take.
"""

from collections.abc import Sequence
from typing import Any

from ackworth.model.result import PriceRow, Toll, TrialResult
from ackworth.model.verdict import Verdict, worst
from ackworth.report.figures import broken, counted, known, paced, planned, recovery

OVERVIEW = "price"


def rows(trials: Sequence[TrialResult]) -> list[PriceRow]:
    """None if the plan does not ask for them."""
    if not trials or trials[0]["plan"].get("overview") != OVERVIEW:
        return []
    cells: dict[str, list[TrialResult]] = {}
    for trial in trials:
        cells.setdefault(trial["cell"], []).append(trial)
    return [_row(cell) for cell in cells.values()]


def _row(trials: Sequence[TrialResult]) -> PriceRow:
    broker, claims = trials[0]["broker"], trials[0]["claims"]
    calm = [trial for trial in trials if not planned(trial)]
    fast = [trial for trial in calm if not paced(trial)]
    late = [trial for trial in calm if paced(trial)]
    kinds = dict.fromkeys(planned(trial)[0] for trial in trials if planned(trial))
    return PriceRow(
        broker=_name(broker),
        version=broker["version"],
        settings=_asked(trials[0]),
        source=claims["source"],
        verdict=worst(Verdict(trial["verdict"]) for trial in trials),
        fast=[trial["trial"] for trial in fast],
        acked_per_second=[trial["throughput"].get("acked_per_second") for trial in fast],
        limits=[trial["limit"]["side"] for trial in fast],
        late=[trial["trial"] for trial in late],
        ack=[trial["latency"]["due_to_ack"] for trial in late if "due_to_ack" in trial["latency"]],
        delivery=[trial["latency"]["sent_to_delivery"] for trial in late if "sent_to_delivery" in trial["latency"]],
        tolls=[_toll(kind, [trial for trial in trials if kind in planned(trial)]) for kind in kinds],
    )


def _asked(trial: TrialResult) -> dict[str, Any]:
    """What the plan sets, which is what its rows differ in; all of it if it sets nothing."""
    asked: dict[str, Any] = trial["plan"].get("broker", {}).get("settings") or trial["broker"]["settings"]
    return asked


def _name(broker: dict[str, Any]) -> str:
    """With its topology, unless it is a single node."""
    topology = broker.get("topology", "single")
    return str(broker["kind"]) if topology == "single" else f"{broker['kind']} {topology}"


def _toll(kind: str, trials: Sequence[TrialResult]) -> Toll:
    return Toll(
        fault=kind,
        trials=[trial["trial"] for trial in trials],
        claimed=kind in trials[0]["claims"]["survives"],
        verdict=worst(Verdict(trial["verdict"]) for trial in trials),
        broken=list(dict.fromkeys(name for trial in trials for name in broken(trial))),
        acked=[trial["account"]["acked"] for trial in trials],
        lost=[counted(trial, "lost") for trial in trials],
        window=[_window(trial) for trial in trials],
        holes=[_holes(trial) for trial in trials],
        duplicates=[_duplicates(trial) for trial in trials],
        recovered=[counted(trial, "recovered") for trial in trials],
        recovery=[recovery(trial) for trial in trials],
        refused=[said for trial in trials for said in _told(trial, "refused")[:1]],
        repaired=[said for trial in trials for said in _told(trial, "repaired")],
    )


def _told(trial: TrialResult, what: str) -> list[str]:
    """What was said of its faults, of each node that was struck."""
    found = [fault[what] for fault in trial["faults"]]  # type: ignore[literal-required]
    return [said for said in found if said is not None]


def _duplicates(trial: TrialResult) -> int | None:
    return sum(group["duplicates"]["extra"] for group in trial["groups"]) if known(trial) else None


def _window(trial: TrialResult) -> float | None:
    """None if it could not be told, or a loss lies after every fault."""
    spans = [loss["seconds_before_fault"] for loss in trial["losses"]]
    if not known(trial) or None in spans:
        return None
    return max((span[1] for span in spans if span is not None), default=0.0)


def _holes(trial: TrialResult) -> int | None:
    return sum(loss["holes"] for loss in trial["losses"]) if known(trial) else None
