"""Tiny histories, and everything that judging says of them."""

from pathlib import Path

from ackworth.history.meta import End
from ackworth.model.outcome import Outcome
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.engine import Inline
from ackworth.testing.histories import Answer, Delivered, History, Mark, Sample, Sent, trial, write_history

SECOND = 10**9
MS = 10**6


def test_a_clean_run(tmp_path: Path) -> None:
    history = History(
        trial=trial(plan={"faults": [{"kind": "kill"}]}),
        end=End(t=4 * SECOND, drained=True, notes=("the disk was warm",)),
        sent=[Sent(0, 0, SECOND), Sent(0, 1, SECOND + 10 * MS), Sent(0, 2, SECOND + 20 * MS)],
        outcome=[
            Answer(0, 0, Outcome.ACKED, SECOND + 1 * MS, latency=1 * MS),
            Answer(0, 1, Outcome.ACKED, SECOND + 12 * MS, latency=2 * MS),
            Answer(0, 2, Outcome.UNKNOWN, SECOND + 25 * MS, latency=5 * MS, reason=2),
        ],
        delivered=[
            Delivered(0, 0, SECOND + 4 * MS, latency=4 * MS),
            Delivered(0, 1, 3 * SECOND, latency=1990 * MS),
            Delivered(0, 2, 3 * SECOND + 1 * MS, latency=1981 * MS),
        ],
        mark=[
            Mark("phase", "send", SECOND, 2 * SECOND),
            Mark("fault", "kill", SECOND + 20 * MS, SECOND + 21 * MS, node="a", detail='{"signal": 9}'),
            Mark("ready", "", 2 * SECOND, 2 * SECOND, node="a"),
        ],
        sample=[
            Sample("node:a", SECOND, cpu=0, rss=100, read=5, written=7),
            Sample("node:a", 2 * SECOND, cpu=SECOND // 2, rss=300, read=5, written=10),
            Sample("node:a", 3 * SECOND, cpu=SECOND // 4, rss=200, read=1, written=2),
        ],
    )
    result = judge_trial(write_history(tmp_path, history), Inline())
    judging = result.pop("judging")  # type: ignore[misc]
    assert judging["events"] == 15
    latency = {"count": 2, "censored": 1, "mean": 1.5 * MS, "p50": 2.0 * MS, "max": 2 * MS}
    never = {"p90": None, "p99": None, "p999": None, "p9999": None}
    assert result == {
        "trial": "trial",
        "case": "",
        "cell": "",
        "repeat": 1,
        "verdict": "held",
        "sentence": (
            "Held: all 2 acked messages were delivered after 1 kill; 1 unanswered one recovered, nothing doubled."
        ),
        "checks": result["checks"],
        "account": {
            "sent": 3,
            "acked": 2,
            "refused": 0,
            "unknown": 1,
            "unanswered": 0,
            "recovered": 1,
            "reasons": {"timeout": 1},
        },
        "groups": [
            {
                "name": "all",
                "expected": 2,
                "delivered": 3,
                "distinct": 3,
                "lost": 0,
                "recovered": 1,
                "resurrected": 0,
                "phantom": 0,
                "foreign": 0,
                "corrupt": 0,
                "misdelivered": 0,
                "reordered": 0,
                "duplicates": {"extra": 0, "flagged": 0, "explained": 0, "unexplained": 0},
            }
        ],
        "losses": [],
        "latency": {
            "due_to_ack": {**latency, **never},
            "sent_to_ack": {**latency, **never},
            "sent_to_delivery": {
                "count": 3,
                "censored": 0,
                "mean": 1325.0 * MS,
                "p50": 1983905792.0,
                "p90": 1990.0 * MS,
                "p99": 1990.0 * MS,
                "p999": 1990.0 * MS,
                "p9999": 1990.0 * MS,
                "max": 1990 * MS,
            },
        },
        "throughput": {
            "acked_per_second": 2 / 0.020,
            "acked_per_second_peak": None,  # it was over within one second
            "delivered_per_second": 2 * SECOND / (1997 * MS),
            "delivered_per_second_peak": 2.0,
        },
        "faults": [
            {
                "name": "kill",
                "node": "a",
                "begin": 1.02,
                "end": 1.021,
                "ready": 2.0,
                "asked": False,
                "first_ack": None,
                "first_delivery": 1.98,
                "refused": None,
                "repaired": None,
                "detail": {"signal": 9},
            }
        ],
        "phases": [{"name": "send", "begin": 1.0, "end": 2.0}],
        "series": {
            "t": [0, 1, 2, 3],
            "sent": [0, 3, 0, 0],
            "acked": [0, 2, 0, 0],
            "delivered": [0, 1, 0, 2],
            "ack_p50": [None, 1001472.0, None, None],
            "ack_p99": [None, 2002944.0, None, None],
            "delivery_p50": [None, 4005888.0, None, 1983905792.0],
            "delivery_p99": [None, 4005888.0, None, 1992294400.0],
        },
        "resources": [
            {
                "who": "node:a",
                "cpu_cores": 0.375,
                "cpu_cores_max": 0.5,
                "rss_max": 300,
                "read": 1,
                "written": 5,
                "t": [2.0, 3.0],
                "cpu": [0.5, 0.25],
                "rss": [300, 200],
                "busy": [0.0, 0.0],
            }
        ],
        "limit": {
            "side": "unknown",
            "said": "Which side was the limit cannot be told: the load was too short to be sampled undisturbed.",
            "generator": None,
            "broker": None,
            "disk": None,
            "machine": None,
            "others": None,
        },
        "notes": ["the disk was warm"],
        "plan": {"faults": [{"kind": "kill"}]},
        "broker": {"kind": "test"},
        "claims": {
            "survives": ["kill"],
            "survives_in_part": [],
            "ordered": True,
            "ordered_alone": False,
            "once": True,
            "source": "the test",
        },
    }
    assert [(check["verdict"], check["found"]) for check in result["checks"]] == [("held", 0)] * 9


def test_an_empty_record_is_unknown(tmp_path: Path) -> None:
    result = judge_trial(write_history(tmp_path, History(trial=trial())), Inline())
    assert result["verdict"] == "unknown"
    assert result["sentence"] == "Unknown: no message was acked."
    assert result["account"]["sent"] == 0
    assert result["latency"]["due_to_ack"]["p50"] is None
    assert result["series"]["t"] == []


def test_what_was_sent_in_the_warm_up_is_in_the_account_and_not_in_the_figures(tmp_path: Path) -> None:
    """Of each of two messages one comes back; only those that were sent after the warm-up are measured."""
    history = History(
        trial=trial(),
        sent=[Sent(0, seq, seq * SECOND) for seq in range(6)],
        outcome=[Answer(0, seq, Outcome.ACKED, seq * SECOND + MS, latency=MS) for seq in (0, 2, 3)],
        delivered=[Delivered(0, 3, 3 * SECOND + 2 * MS, latency=2 * MS)],
        mark=[Mark("phase", "warm-up", 0, 2 * SECOND, detail='{"warm_up": true}')],
    )
    result = judge_trial(write_history(tmp_path, history, rows_per_group=2), Inline(3))
    found = {kind: (latency["count"], latency["censored"]) for kind, latency in result["latency"].items()}
    assert found == {"due_to_ack": (2, 2), "sent_to_ack": (2, 2), "sent_to_delivery": (1, 1)}
    assert (result["account"]["unanswered"], result["groups"][0]["lost"]) == (3, 2)


def test_messages_of_groups_with_their_own_topics(tmp_path: Path) -> None:
    history = History(
        trial=trial(topics=2, consumers=2, groups=[("first", [0]), ("second", [1])]),
        sent=[Sent(0, 0, 1, topic=0), Sent(0, 1, 2, topic=1)],
        outcome=[Answer(0, 0, Outcome.ACKED, 3), Answer(0, 1, Outcome.ACKED, 4)],
        delivered=[
            Delivered(0, 0, 5, topic=0, group=0, consumer=0),
            Delivered(0, 1, 6, topic=1, group=1, consumer=1),
        ],
    )
    result = judge_trial(write_history(tmp_path, history), Inline())
    assert [(group["expected"], group["distinct"], group["lost"]) for group in result["groups"]] == [(1, 1, 0)] * 2
    assert result["verdict"] == "held"
    assert result["sentence"] == (
        "Held: all 2 acked messages were delivered to every group that reads them; nothing doubled."
    )
