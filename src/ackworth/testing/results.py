"""A run's result that never happened: the reboot plan on Brook on SQLite, for tests and for the documentation.

Three trials, one of each verdict: item-1 held, item-2 lost the tail of what it had acked, and in the third
the power cut could not be had. Every number follows from the few that the builders name, so that each account
adds up; the same seed gives the same result.
"""

import random
from typing import Any

from ackworth.model.clock import SECOND
from ackworth.model.result import (
    Account,
    CheckResult,
    Claimed,
    Duplicates,
    FaultResult,
    GroupAccount,
    Latency,
    Limit,
    Loss,
    Resource,
    RunResult,
    Series,
    TrialResult,
)
from ackworth.model.verdict import Verdict, worst

MILLISECOND = SECOND // 1000
PRODUCERS = 4


def sample_run(*trials: TrialResult) -> RunResult:
    """The three trials, or those given."""
    found = list(trials) or [held_trial(), broken_trial(), unknown_trial()]
    verdict = worst(Verdict(trial["verdict"]) for trial in found)
    return RunResult(
        run="5eedc0ffee15900d",
        plan="reboot",
        title="The broker loses its power while it is written to; what was acked must be there afterwards",
        size="small",
        seed=7,
        started="2025-03-14T15:09:26+00:00",
        ackworth="0.1.0",
        verdict=verdict,
        sentence=next(trial["sentence"] for trial in found if trial["verdict"] == verdict),
        trials=found,
        price=[],
        published=[
            _published("item-1", 10_000_000, 8_031_671, 1_968_329, 8_031_671),
            _published("item-2", 121_805_124, 96_169_628, 25_521_792, 96_170_415),
        ],
        environment=_environment(),
    )


def held_trial(name: str = "item-1") -> TrialResult:
    """Every acked message was there after the cut, and some that had not been answered."""
    account = _account(acked=398_720, refused=0, unknown=1_180, unanswered=100, recovered=412)
    group = _group(account, explained=96)
    return _trial(name, "Every one of 398,720 acked messages survived the power cut.", account, [group], [])


def broken_trial(name: str = "item-2") -> TrialResult:
    """The last messages before the cut were acked and are gone."""
    account = _account(acked=612_480, refused=2_048, unknown=3_900, unanswered=292)
    sent_by = [account["sent"] // PRODUCERS] * PRODUCERS
    ranges = [[producer, last - 1_200, last - 1_200 + 511] for producer, last in enumerate(sent_by)]
    loss = Loss(
        group="all",
        count=512 * PRODUCERS,
        first=f"0/{ranges[0][1]}",
        last=f"{PRODUCERS - 1}/{ranges[-1][2]}",
        ranges=ranges,
        ranges_total=len(ranges),
        holes=0,
        sent_by=sent_by,
        place="tail",
        topics=256,
        fault="power-cut",
        seconds_before_fault=[0.004, 0.311],
    )
    group = _group(account, explained=0, lost=loss["count"])
    sentence = "2,048 of 612,480 acked messages did not survive the power cut."
    return _trial(name, sentence, account, [group], [loss])


def unknown_trial(name: str = "item-2-no-root") -> TrialResult:
    """The cut could not be had, so nothing was tried and nothing is known."""
    reason = "no loop device can be had without root: run as root"
    trial = _trial(name, f"The power cut was unavailable: {reason}.", _account(), [], [])
    empty = Series(t=[], sent=[], acked=[], delivered=[], ack_p50=[], ack_p99=[], delivery_p50=[], delivery_p99=[])
    checks = [_check("lost", "no acked message is lost", Verdict.UNKNOWN, None, reason)]
    return {
        **trial,
        "verdict": Verdict.UNKNOWN,
        "checks": checks,
        "latency": {name: _no_latency() for name in trial["latency"]},
        "throughput": dict.fromkeys(trial["throughput"]),
        "faults": [],
        "phases": [],
        "series": empty,
        "resources": [],
        "limit": {**trial["limit"], "side": "unknown", "said": ""},
        "notes": [reason],
    }


def _trial(name: str, sentence: str, account: Account, groups: list[GroupAccount], losses: list[Loss]) -> TrialResult:
    lost = sum(loss["count"] for loss in losses)
    ids = [f"{loss['ranges'][0][0]}/{loss['ranges'][0][1] + n}" for loss in losses for n in range(5)]
    checks = _checks(account, groups, lost, ids)
    series = _series(account, groups)
    return TrialResult(
        trial=name,
        case=name,
        cell="",
        repeat=1,
        verdict=worst(Verdict(check["verdict"]) for check in checks),
        sentence=sentence,
        checks=checks,
        account=account,
        groups=groups,
        losses=losses,
        latency={
            "due_to_ack": _latency(account["acked"], account["unanswered"], *(n * MILLISECOND for n in (2.4, 15, 42))),
            "sent_to_ack": _latency(account["acked"], account["unanswered"], *(n * MILLISECOND for n in (2.3, 14, 41))),
            "sent_to_delivery": _latency(account["acked"] - lost, lost, *(n * SECOND for n in (9.9, 17.6, 21))),
        },
        throughput=_throughput(series),
        faults=[_power_cut()],
        phases=[_phase("send", 0, 20), _phase("restart", 20, 23), _phase("drain", 23, 30)],
        series=series,
        resources=[_resource(who, busy) for who, busy in _PROCESSES.items()],
        limit=Limit(
            side="disk",
            said="The disk was the limit (busiest producer 0.30 of a core, disk busy 97%, machine 1.10 of 2 cores).",
            generator=0.3,
            broker=None,
            disk=0.97,
            machine=1.1,
            others=0.1,
        ),
        notes=["The cut came at 20 s."],
        plan=_plan(name),
        broker={"kind": "brook-sqlite", "version": "SQLite 3.40.1", "settings": {"durability": "full"}},
        claims=Claimed(
            survives=["kill", "power-cut"],
            ordered=True,
            ordered_alone=False,
            once=True,
            source="Brook's README",
            survives_in_part=[],
        ),
        judging={"seconds": 3.2, "events": 3 * account["sent"], "spark": "4.1.0", "master": "local[2]"},
    )


def _account(acked: int = 0, refused: int = 0, unknown: int = 0, unanswered: int = 0, recovered: int = 0) -> Account:
    reasons = {"queue is full": refused, "connection lost": unknown}
    return Account(
        sent=acked + refused + unknown + unanswered,
        acked=acked,
        refused=refused,
        unknown=unknown,
        unanswered=unanswered,
        recovered=recovered,
        reasons={reason: count for reason, count in reasons.items() if count},
    )


def _group(account: Account, *, explained: int, lost: int = 0) -> GroupAccount:
    distinct = account["acked"] - lost + account["recovered"]
    return GroupAccount(
        name="all",
        expected=account["acked"],
        delivered=distinct + explained,
        distinct=distinct,
        lost=lost,
        recovered=account["recovered"],
        resurrected=0,
        phantom=0,
        foreign=0,
        corrupt=0,
        misdelivered=0,
        reordered=0,
        duplicates=Duplicates(extra=explained, flagged=0, explained=explained, unexplained=0),
    )


def _check(
    name: str, rule: str, verdict: Verdict, found: int | None, reason: str, ids: list[str] | None = None
) -> CheckResult:
    return CheckResult(name=name, verdict=verdict, found=found, rule=rule, reason=reason, ids=ids or [])


def _checks(account: Account, groups: list[GroupAccount], lost: int, ids: list[str]) -> list[CheckResult]:
    explained = sum(group["duplicates"]["explained"] for group in groups)
    seen = f"{lost:,} of {account['acked']:,} acked messages never came" if lost else f"all {account['acked']:,} came"
    return [
        _check("lost", "no acked message is lost", Verdict.BROKEN if lost else Verdict.HELD, lost, seen, ids),
        _check("resurrected", "no refused message is delivered", Verdict.HELD, 0, "none was delivered"),
        _check("phantom", "nothing is delivered that was not sent", Verdict.HELD, 0, "nothing was"),
        _check("corrupt", "every body is as it was sent", Verdict.HELD, 0, "every byte was compared"),
        _check(
            "duplicates",
            "every repeat is explained by a fault",
            Verdict.HELD,
            0,
            f"{explained:,} repeats, all explained",
        ),
        _check("order", "a producer's messages of a topic keep their order", Verdict.HELD, 0, "all in order"),
    ]


def _power_cut() -> FaultResult:
    return FaultResult(
        name="power-cut",
        node="brook",
        begin=20.0,
        end=21.1,
        ready=21.6,
        asked=True,
        first_ack=1.74,
        first_delivery=3.02,
        refused=None,
        repaired=None,
        detail={"struck_ms": 43.2},
    )


def _phase(name: str, begin: float, end: float) -> dict[str, Any]:
    return {"name": name, "begin": begin, "end": end}


def _series(account: Account, groups: list[GroupAccount]) -> Series:
    """Sending until the cut at 20 s, again from 22 s; draining from 23 s. The sums are those of the account."""
    dice = random.Random(account["sent"])
    sending = [(0.85 + 0.3 * dice.random()) * (1 if s < 20 else 0.6 if s == 22 else 0) for s in range(30)]
    draining = [(0.8 + 0.4 * dice.random()) * (s >= 23) for s in range(30)]
    acked = _spread(account["acked"], sending)
    delivered = _spread(sum(group["delivered"] for group in groups), draining)
    ack = [(1.9 + 0.8 * dice.random()) * MILLISECOND if count else None for count in acked]
    wait = [(8 + 1.5 * (s - 23) * dice.random()) * SECOND if count else None for s, count in enumerate(delivered)]
    return Series(
        t=list(range(30)),
        sent=_spread(account["sent"], sending),
        acked=acked,
        delivered=delivered,
        ack_p50=[*ack],
        ack_p99=[None if value is None else value * (2.2 + 9 * dice.random() ** 6) for value in ack],
        delivery_p50=[*wait],
        delivery_p99=[None if value is None else value * 1.6 for value in wait],
    )


def _spread(total: int, weights: list[float]) -> list[int]:
    """The total over the seconds by weight; rounding falls to the first second that has any."""
    parts = [int(total * weight / sum(weights)) for weight in weights]
    parts[next(i for i, weight in enumerate(weights) if weight)] += total - sum(parts)
    return parts


def _throughput(series: Series) -> dict[str, float | None]:
    busy = sum(1 for acked in series["acked"] if acked) or 1
    draining = sum(1 for delivered in series["delivered"] if delivered) or 1
    return {
        "acked_per_second": sum(series["acked"]) / busy,
        "delivered_per_second": sum(series["delivered"]) / draining,
        "acked_peak": max(series["acked"]),
        "delivered_peak": max(series["delivered"]),
    }


def _latency(count: int, censored: int, p50: float, p99: float, longest: float) -> Latency:
    def above(tail: float, value: float) -> float | None:
        """A percentile with this share of the messages above it; None if it lies among the censored."""
        return None if censored > tail * (count + censored) else value

    p999 = (p99 * longest) ** 0.5
    return Latency(
        count=count,
        censored=censored,
        mean=p50 * 1.1,
        p50=above(0.5, p50),
        p90=above(0.1, (p50 * p99) ** 0.5),
        p99=above(0.01, p99),
        p999=above(0.001, p999),
        p9999=above(0.0001, (p999 * longest) ** 0.5),
        max=int(longest),
    )


def _no_latency() -> Latency:
    return Latency(count=0, censored=0, mean=None, p50=None, p90=None, p99=None, p999=None, p9999=None, max=None)


_PROCESSES = {"node:brook": 0.92, "worker:producer-0": 0.31, "worker:producer-1": 0.28, "scribe": 0.06}


def _resource(who: str, busy: float) -> Resource:
    dice = random.Random(who)
    cpu = [round(busy * (0.8 + 0.4 * dice.random()) * (s not in (20, 21)), 3) for s in range(30)]
    rss = [int((40 + 2.5 * min(s, 20) * busy) * 2**20) for s in range(30)]
    return Resource(
        who=who,
        cpu_cores=sum(cpu) / len(cpu),
        cpu_cores_max=max(cpu),
        rss_max=max(rss),
        read=3 * 2**20,
        written=int(busy * 512 * 2**20),
        t=[float(s) for s in range(30)],
        cpu=cpu,
        rss=rss,
        busy=[0.0] * 30,
    )


def _published(trial: str, sent: int, acked: int, refused: int, delivered: int) -> dict[str, Any]:
    rows = {"sent": sent, "acked": acked, "refused": refused, "delivered": delivered}
    return {
        "trial": trial,
        "source": f"FastMiniMQ 0.13.1, reboot report, {trial}",
        "hardware": "3 nodes of 4 vCPU (Xeon Platinum 8269CY), 8 GiB, cloud disk of 140 MB/s",
        "rows": [{"what": what, "value": value} for what, value in rows.items()],
    }


def _plan(trial: str) -> dict[str, Any]:
    return {
        "name": "reboot",
        "case": trial,
        "workload": {"topics": 256, "body": 128, "producers": PRODUCERS, "consumers": 4, "window": 8192},
        "faults": [{"kind": "power-cut", "at": "80%", "down": "1s"}],
        "expect": {"lost": "none"},
    }


def _environment() -> dict[str, Any]:
    return {
        "cpu": "AMD EPYC 7B13",
        "cores": 2,
        "memory_bytes": 8_368_709_632,
        "kernel": "Linux 6.1.0",
        "filesystem": "ext4 on a loop device",
        "python": "3.11.2",
        "java": "17.0.14",
        "libraries": {"pyspark": "4.1.0", "pyarrow": "20.0.0", "numpy": "2.2.4"},
    }


HOSTILE = "</script><img src=x onerror=alert(1)>'\"&]]>|\x1b[31m\x00\u202e\ud800"


def hostile_run() -> RunResult:
    """The sample with every text that comes from elsewhere made to attack whatever shows it."""
    run: RunResult = _poisoned(sample_run())
    return run


def _poisoned(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        open_ended = key in {"reasons", "latency", "throughput", "detail", "plan", "broker", "judging", "environment"}
        return {f"{name}{HOSTILE}" if open_ended else name: _poisoned(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_poisoned(item, key) for item in value]
    return HOSTILE + value if isinstance(value, str) and key not in {"verdict", "place"} else value
