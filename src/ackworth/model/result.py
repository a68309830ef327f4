"""What judging finds: the shape of `results.json`, which reports and comparisons read.

Times in results are seconds since the trial's start, durations nanoseconds unless the name says
otherwise. A count that could not be told is None, never 0.
"""

from typing import Any, TypedDict


class CheckResult(TypedDict):
    name: str
    verdict: str
    found: int | float | None
    rule: str
    reason: str
    ids: list[str]


class Account(TypedDict):
    """sent = acked + refused + unknown + unanswered"""

    sent: int
    acked: int
    refused: int
    unknown: int
    unanswered: int
    recovered: int  # unknown or unanswered, and delivered to some group
    reasons: dict[str, int]  # why messages were refused or unknown, by text


class Duplicates(TypedDict):
    """Deliveries beyond the first of a message to a group."""

    extra: int  # = flagged + explained + unexplained
    flagged: int  # the broker said that it may be a repeat
    explained: int  # a fault or a consumer's death lies between the two deliveries
    unexplained: int


class GroupAccount(TypedDict):
    name: str
    expected: int  # acked messages that the group must have
    delivered: int  # rows, repeats and all
    distinct: int  # messages of ours that reached it intact, each counted once
    lost: int  # acked and never delivered intact
    recovered: int  # unknown or unanswered, and delivered
    resurrected: int  # refused, and delivered
    phantom: int  # intact and never sent
    foreign: int  # intact, of another run (a part of phantom)
    corrupt: int  # not what was sent
    misdelivered: int  # from another topic than it was sent to, or to a group that does not read the topic
    reordered: int  # delivered after a later message of the same producer and topic, to the same consumer
    duplicates: Duplicates


class Loss(TypedDict):
    """Where the lost messages of one group lie.

    How long before a fault is counted to the end of its strike: rather too long than too short.
    """

    group: str
    count: int
    first: str  # "producer/seq"
    last: str
    ranges: list[list[int]]  # [producer, first seq, last seq], the first 100
    ranges_total: int
    holes: int  # how many of the ranges have something after them that was acked before the same fault, and kept
    sent_by: list[int]  # how many messages each producer sent, by its number
    place: str  # 'prefix', 'middle', 'tail', 'scattered' or 'all' of what was acked before the fault
    topics: int  # how many topics lost something
    fault: str | None  # the fault that followed the last lost ack; None if one of the lost acks came after all faults
    seconds_before_fault: list[float] | None  # nearest and farthest ack of a lost message, each before its own fault


class Latency(TypedDict):
    count: int
    censored: int  # never came back: counted as slower than anything that did
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None
    p9999: float | None
    max: int | None


class FaultResult(TypedDict):
    name: str
    node: str
    begin: float
    end: float
    ready: float | None  # when the node answered its protocol again
    asked: bool  # whether anything was sent once it could be acked again
    first_ack: float | None  # seconds from the fault's beginning to the first ack that was not under way already
    first_delivery: float | None
    refused: str | None  # why the node did not start again by itself; None if it did
    repaired: str | None  # what the vendor's repair tool said; None if it was not needed, or there is none
    detail: dict[str, Any]


class Series(TypedDict):
    """Per second of the trial; every list has the length of `t`."""

    t: list[int]
    sent: list[int]
    acked: list[int]
    delivered: list[int]
    ack_p50: list[float | None]
    ack_p99: list[float | None]
    delivery_p50: list[float | None]
    delivery_p99: list[float | None]


class Resource(TypedDict):
    who: str
    cpu_cores: float  # mean over its life
    cpu_cores_max: float
    rss_max: int
    read: int
    written: int
    t: list[float]
    cpu: list[float]  # cores, per interval
    rss: list[int]
    busy: list[float]  # of a disk: the part of each interval in which it was busy


class Limit(TypedDict):
    """Which side held the load back, and what each used while it went on undisturbed; None where it was not sampled."""

    side: str  # 'generator', 'broker', 'disk', 'machine', 'none' or 'unknown'
    said: str  # in words
    generator: float | None  # cores of the busiest process that sent
    broker: float | None  # cores of all nodes together
    disk: float | None  # the part of the time that it was busy
    machine: float | None  # cores
    others: float | None  # cores that went to what is no part of the run: other programs, the kernel, the hypervisor


class Claimed(TypedDict):
    """What the broker, at its settings, promises."""

    survives: list[str]  # the faults after which every acked message is still there
    ordered: bool
    ordered_alone: bool  # only where a group has one consumer
    once: bool
    source: str  # who says so, and where
    survives_in_part: list[str]  # the faults that it also survives if they spare some of its nodes


class TrialResult(TypedDict):
    trial: str
    case: str  # of the plan
    cell: str  # of the plan's matrix
    repeat: int  # which of the repeats of this case in this cell
    verdict: str
    sentence: str
    checks: list[CheckResult]
    account: Account
    groups: list[GroupAccount]
    losses: list[Loss]
    latency: dict[str, Latency]  # due_to_ack, sent_to_ack, sent_to_delivery
    throughput: dict[str, float | None]  # acked_per_second, delivered_per_second, peaks
    faults: list[FaultResult]
    phases: list[dict[str, Any]]  # name, begin, end
    series: Series
    resources: list[Resource]
    limit: Limit
    notes: list[str]
    plan: dict[str, Any]
    broker: dict[str, Any]
    claims: Claimed
    judging: dict[str, Any]  # seconds, events, events_per_second, spark, master


class Toll(TypedDict):
    """What one kind of fault took at one setting; a value for each repeat, None where it could not be told.

    The window is counted to the end of the strike: rather too long than too short.
    """

    fault: str
    trials: list[str]
    claimed: bool  # whether the broker claims that an acked message survives it
    verdict: str
    broken: list[str]  # the checks that are
    acked: list[int | None]
    lost: list[int | None]  # acked and gone
    window: list[float | None]  # seconds: how long before the fault the first ack lies that was lost; 0 if none was
    holes: list[int | None]  # stretches of lost messages after which something older than the fault was kept
    duplicates: list[int | None]
    recovered: list[int | None]  # not answered, and there all the same
    recovery: list[float | None]  # seconds from the fault to the first ack after it
    refused: list[str]  # why it did not start again by itself, of each trial in which it did not
    repaired: list[str]  # what the vendor's repair tool said


class PriceRow(TypedDict):
    """A broker at one setting: how fast, how late, and what faults take."""

    broker: str
    version: str
    settings: dict[str, Any]
    source: str  # where the claims are made
    verdict: str
    fast: list[str]  # the trials that show how fast
    acked_per_second: list[float | None]
    limits: list[str]  # which side held it back: see Limit
    late: list[str]  # the trials that show how late, at a rate that it can bear
    ack: list[Latency]  # from due to ack
    delivery: list[Latency]  # from sent to delivery
    tolls: list[Toll]


class RunResult(TypedDict):
    run: str
    plan: str
    title: str
    size: str
    seed: int
    started: str
    ackworth: str
    verdict: str
    sentence: str
    trials: list[TrialResult]
    price: list[PriceRow]  # if the plan asks for that overview
    published: list[dict[str, Any]]  # source, hardware, rows: [{what, value}], trial (absent: all of them)
    environment: dict[str, Any]  # cpu, cores, memory, kernel, filesystem, python, java, versions
