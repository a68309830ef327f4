"""One planted defect for each check: the check finds exactly it, and no other check minds."""

from dataclasses import replace
from pathlib import Path

import pytest

from ackworth.history.meta import End
from ackworth.history.reader import open_record
from ackworth.history.schema import DELIVERED, OUTCOME, SENT
from ackworth.history.segment import SegmentWriter
from ackworth.model.outcome import Delivery, Outcome
from ackworth.model.result import CheckResult, TrialResult
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.engine import Inline
from ackworth.testing.histories import (
    REDELIVERED,
    Answer,
    Delivered,
    History,
    Mark,
    Sent,
    columns_of,
    trial,
    write_history,
)

ACKED, REFUSED, UNKNOWN = Outcome


def clean() -> History:
    """Two producers, four messages each, all acked and delivered to both groups, in order."""
    sent = [Sent(p, seq, 10 * seq + p, topic=seq % 2) for p in range(2) for seq in range(4)]
    return History(
        trial=trial(producers=2, consumers=2, topics=2, groups=[("one", None), ("two", None)]),
        sent=sent,
        outcome=[Answer(row.producer, row.seq, ACKED, row.t + 2, latency=2) for row in sent],
        delivered=[
            Delivered(row.producer, row.seq, 100 + row.t, latency=100, topic=row.topic, group=group, consumer=group)
            for group in range(2)
            for row in sorted(sent, key=lambda row: row.t)
        ],
    )


def judged(history: History, tmp_path: Path) -> TrialResult:
    return judge_trial(write_history(tmp_path, history, rows_per_group=3), Inline(3))


def broken(result: TrialResult) -> dict[str, CheckResult]:
    return {check["name"]: check for check in result["checks"] if check["verdict"] != "held"}


def without(history: History, group: int, *ids: tuple[int, int]) -> list[Delivered]:
    return [row for row in history.delivered if row.group != group or (row.producer, row.seq) not in ids]


def changed(history: History, group: int, which: tuple[int, int], **changes: int) -> list[Delivered]:
    rows = history.delivered
    return [replace(r, **changes) if (r.group, r.producer, r.seq) == (group, *which) else r for r in rows]


def test_a_clean_history_raises_nothing(tmp_path: Path) -> None:
    result = judged(clean(), tmp_path)
    assert broken(result) == {}
    assert result["verdict"] == "held"


def test_lost(tmp_path: Path) -> None:
    history = clean()
    history = replace(history, delivered=without(history, 1, (0, 2), (1, 3)))
    result = judged(history, tmp_path)
    assert list(broken(result)) == ["lost"]
    assert broken(result)["lost"]["ids"] == ["0/2", "1/3"]
    assert broken(result)["lost"]["found"] == 2
    assert [group["lost"] for group in result["groups"]] == [0, 2]
    assert result["sentence"] == "Broken: 2 of 8 acked messages were lost to two."


def test_a_loss_is_not_masked_by_a_duplicate(tmp_path: Path) -> None:
    """Totals agree: eight acked, eight delivered."""
    history = clean()
    rows = without(history, 0, (0, 2))
    history = replace(history, delivered=[*rows, replace(rows[0], t=500, group=0, consumer=0)])
    result = judged(history, tmp_path)
    assert broken(result)["lost"]["ids"] == ["0/2"]
    assert broken(result)["duplicates"]["ids"] == ["0/0"]


def test_resurrected(tmp_path: Path) -> None:
    history = clean()
    refused = [replace(row, outcome=REFUSED, reason=1) if row.seq == 1 else row for row in history.outcome]
    history = replace(history, outcome=refused, delivered=without(history, 0, (0, 1), (1, 1)))
    result = judged(history, tmp_path)
    assert list(broken(result)) == ["resurrected"]
    assert broken(result)["resurrected"]["ids"] == ["0/1", "1/1"]
    assert result["account"]["reasons"] == {"full": 2}


@pytest.mark.parametrize("absurd", [(1, 4), (0, 2**40), (77, 0), (0, -5)])
def test_phantom(tmp_path: Path, absurd: tuple[int, int]) -> None:
    history = clean()
    history = replace(history, delivered=[*history.delivered, Delivered(*absurd, 900), Delivered(*absurd, 901)])
    result = judged(history, tmp_path)
    assert list(broken(result)) == ["phantom"]
    assert broken(result)["phantom"]["ids"] == [f"{absurd[0]}/{absurd[1]}"]
    assert broken(result)["phantom"]["found"] == 2


def test_a_phantom_between_messages_that_were_sent(tmp_path: Path) -> None:
    history = clean()
    sent = [row for row in history.sent if (row.producer, row.seq) != (0, 1)]
    answers = [row for row in history.outcome if (row.producer, row.seq) != (0, 1)]
    again = Delivered(0, 1, 900, topic=1)
    result = judged(replace(history, sent=sent, outcome=answers, delivered=[*history.delivered, again]), tmp_path)
    assert list(broken(result)) == ["phantom"]
    assert broken(result)["phantom"]["found"] == 3
    assert broken(result)["phantom"]["ids"] == ["0/1"]


def test_of_another_run(tmp_path: Path) -> None:
    history = clean()
    foreign = Delivered(0, 1, 900, flags=Delivery.INTACT | Delivery.FOREIGN)
    result = judged(replace(history, delivered=[*history.delivered, foreign]), tmp_path)
    assert list(broken(result)) == ["phantom"]
    assert broken(result)["phantom"]["ids"] == ["0/1 of another run"]
    assert result["groups"][0]["foreign"] == 1


def test_corrupt_is_no_delivery(tmp_path: Path) -> None:
    history = clean()
    result = judged(replace(history, delivered=changed(history, 1, (1, 2), flags=0)), tmp_path)
    assert list(broken(result)) == ["lost", "corrupt"]
    assert broken(result)["corrupt"]["ids"] == ["1/2"] == broken(result)["lost"]["ids"]


def test_misdelivered_by_its_flag(tmp_path: Path) -> None:
    history = clean()
    flags = Delivery.INTACT | Delivery.MISDELIVERED
    result = judged(replace(history, delivered=changed(history, 0, (1, 1), flags=flags)), tmp_path)
    assert list(broken(result)) == ["misdelivered"]
    assert broken(result)["misdelivered"]["ids"] == ["1/1"]


def test_misdelivered_to_a_group_that_does_not_read_the_topic(tmp_path: Path) -> None:
    history = clean()
    choosy = trial(producers=2, consumers=2, topics=2, groups=[("one", None), ("two", [1])])
    kept = [row for row in history.delivered if row.group == 0 or row.topic == 1 or row.seq == 2]
    result = judged(replace(history, trial=choosy, delivered=kept), tmp_path)
    assert list(broken(result)) == ["misdelivered"]
    assert broken(result)["misdelivered"]["ids"] == ["0/2", "1/2"]


def test_duplicates_are_told_apart(tmp_path: Path) -> None:
    history = clean()
    repeats = [
        Delivered(0, 0, 900, topic=0),  # nothing explains it
        Delivered(0, 1, 901, topic=1, flags=REDELIVERED),
        Delivered(0, 3, 2000, topic=1),  # after the fault
        Delivered(1, 3, 2001, topic=1),
        Delivered(1, 3, 2002, topic=1),  # again, and the fault lies before both
    ]
    fault = Mark("fault", "kill", 1000, 1100)
    result = judged(replace(history, delivered=[*history.delivered, *repeats], mark=[fault]), tmp_path)
    assert result["groups"][0]["duplicates"] == {"extra": 5, "flagged": 1, "explained": 2, "unexplained": 2}
    assert list(broken(result)) == ["duplicates"]
    assert broken(result)["duplicates"]["ids"] == ["0/0", "1/3"]
    assert broken(result)["duplicates"]["reason"] == "2 unexplained duplicates, 1 flagged, 2 explained"


def test_a_dead_worker_explains_a_duplicate(tmp_path: Path) -> None:
    history = clean()
    repeat = Delivered(0, 0, 2000)
    died = Mark("worker-died", "consumer 0", 1000, 1000)
    result = judged(replace(history, delivered=[*history.delivered, repeat], mark=[died]), tmp_path)
    assert broken(result) == {}
    assert result["groups"][0]["duplicates"]["explained"] == 1


def test_reordered(tmp_path: Path) -> None:
    history = clean()
    # 0/0 comes after 0/2, which is of the same topic.
    late = Delivered(0, 0, 125, topic=0)
    rows = without(history, 0, (0, 0))
    place = next(n for n, row in enumerate(rows) if row.t > 125)
    result = judged(replace(history, delivered=[*rows[:place], late, *rows[place:]]), tmp_path)
    assert list(broken(result)) == ["reordered"]
    assert broken(result)["reordered"]["ids"] == ["0/0"]


def test_a_repeat_is_never_reordered(tmp_path: Path) -> None:
    history = clean()
    repeats = [Delivered(0, 0, 900), Delivered(0, 2, 901)]
    result = judged(replace(history, delivered=[*history.delivered, *repeats]), tmp_path)
    assert list(broken(result)) == ["duplicates"]


def test_a_record_that_does_not_add_up_is_unknown(tmp_path: Path) -> None:
    history = clean()
    more = [Answer(0, 3, UNKNOWN, 900), Answer(1, 4, ACKED, 901)]
    result = judged(
        replace(history, outcome=[*history.outcome, *more], sent=[*history.sent, history.sent[-1]]), tmp_path
    )
    assert list(broken(result)) == ["account"]
    assert result["verdict"] == "unknown"
    account = broken(result)["account"]
    assert account["found"] == 3
    assert account["reason"] == (
        "messages with several outcomes: 1, messages that were sent twice: 1, "
        "outcomes of messages that were never sent: 1"
    )


def test_many_offenders_are_counted_and_the_first_hundred_named(tmp_path: Path) -> None:
    sent = [Sent(0, seq, seq) for seq in range(300)]
    history = History(trial=trial(), sent=sent, outcome=[Answer(0, row.seq, ACKED, 400 + row.t) for row in sent])
    result = judged(history, tmp_path)
    assert broken(result)["lost"]["found"] == 300
    assert broken(result)["lost"]["ids"] == [f"0/{seq}" for seq in range(100)]


def truncated(expect: str, *lost: tuple[int, int], **fault: str) -> History:
    """Sent at 0 to 31; struck at 15, when the messages with seq 2 and 3 were yet to be sent."""
    history = clean()
    plan = {"expect": {"lost": expect}, "faults": [{"kind": "truncate"}]}
    choosy = replace(history.trial, plan=plan)
    mark = Mark("fault", "truncate", 14, 15, **fault)
    return replace(history, trial=choosy, mark=[mark], delivered=without(history, 1, *lost))


def test_lost_before_the_fault_is_allowed_if_the_plan_says_so(tmp_path: Path) -> None:
    result = judged(truncated("before-fault", (0, 0), (1, 1)), tmp_path)
    assert broken(result) == {}
    (check,) = [check for check in result["checks"] if check["name"] == "lost"]
    assert check["reason"] == "2 lost messages, all of them sent before the last fault, which the plan allows"


def test_lost_after_the_fault_is_lost(tmp_path: Path) -> None:
    result = judged(truncated("before-fault", (0, 0), (1, 2)), tmp_path)
    assert list(broken(result)) == ["lost"]
    assert broken(result)["lost"]["ids"] == ["0/0", "1/2"]


def test_a_fault_of_the_broker_excuses_what_one_of_a_consumer_does_not(tmp_path: Path) -> None:
    excused = judged(truncated("claimed", (0, 0)), tmp_path / "broker")
    assert broken(excused) == {}
    result = judged(truncated("claimed", (0, 0), detail='{"of": "consumer"}'), tmp_path / "consumer")
    assert list(broken(result)) == ["lost"]


def test_a_refused_message_that_came_too_often(tmp_path: Path) -> None:
    history = clean()
    expecting = replace(history.trial, plan={"expect": {"attempts": 2}})
    flags = Delivery.INTACT | Delivery.REFUSED
    rows = changed(replace(history, delivered=changed(history, 0, (0, 1), flags=flags)), 0, (1, 2), flags=flags)
    again = flags | Delivery.REDELIVERED
    repeats = [
        Delivered(0, 1, 600, topic=1, flags=again),
        Delivered(1, 2, 601, flags=again),
        Delivered(1, 2, 701, flags=again),
    ]
    result = judged(replace(history, trial=expecting, delivered=[*rows, *repeats]), tmp_path)
    assert list(broken(result)) == ["attempts"]
    assert broken(result)["attempts"]["ids"] == ["1/2"]
    assert broken(result)["attempts"]["reason"] == "1 of 2 refused messages not delivered 2 times"


@pytest.mark.parametrize(("drained", "verdict"), [(True, "held"), (False, "unknown")])
def test_a_refused_message_may_come_again_until_all_is_drained(tmp_path: Path, drained: bool, verdict: str) -> None:
    history = clean()
    expecting = replace(history.trial, plan={"expect": {"attempts": 1}})
    refused = changed(history, 0, (0, 1), flags=Delivery.INTACT | Delivery.REFUSED)
    end = End(t=1000, drained=drained)
    result = judged(replace(history, trial=expecting, delivered=refused, end=end), tmp_path)
    (check,) = [check for check in result["checks"] if check["name"] == "attempts"]
    assert check["verdict"] == verdict
    assert check["reason"].startswith("1 refused message, each delivered once")


@pytest.mark.parametrize("expect", ["none", "explained"])
@pytest.mark.parametrize("killed", [True, False])
def test_a_flagged_repeat_may_need_a_reason(tmp_path: Path, expect: str, killed: bool) -> None:
    history = clean()
    asking = replace(history.trial, plan={"expect": {"duplicates": expect}})
    again = Delivered(0, 1, 600, topic=1, flags=REDELIVERED)
    died = [Mark("worker-died", "consumers-0", 300, 301)] if killed else []
    result = judged(replace(history, trial=asking, mark=died, delivered=[*history.delivered, again]), tmp_path)
    if killed or expect == "none":
        assert broken(result) == {}
        assert result["groups"][0]["duplicates"] == {"extra": 1, "flagged": 1, "explained": 0, "unexplained": 0}
    else:
        assert list(broken(result)) == ["duplicates"]
        assert broken(result)["duplicates"]["ids"] == ["0/1"]


def test_series_that_several_share(tmp_path: Path) -> None:
    """Producers, consumers and groups may be mixed in one series: the account is the same."""
    history = clean()
    history = replace(history, delivered=without(history, 1, (0, 2)))
    write_history(tmp_path, history)
    for table, column in ((SENT, "producer"), (OUTCOME, "producer"), (DELIVERED, "consumer")):
        folder = tmp_path / "record" / table.name
        rows = sorted(getattr(history, table.name), key=lambda row: row.t)
        for path in folder.iterdir():
            path.unlink()
        with SegmentWriter(tmp_path / "record", table, "all", rows_per_group=5) as writer:
            writer.write(columns_of(table, rows))
        assert any(group.constant(column) is None for group in open_record(tmp_path).of(table.name))
    result = judge_trial(tmp_path, Inline(3))
    assert list(broken(result)) == ["lost"]
    assert broken(result)["lost"]["ids"] == ["0/2"]
    assert [group["distinct"] for group in result["groups"]] == [8, 7]
