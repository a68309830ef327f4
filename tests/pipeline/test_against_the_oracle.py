"""Random histories, judged by the pipeline and by the plain judge: they must agree in everything."""

import math
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ackworth.history.meta import End
from ackworth.model.outcome import Delivery, Outcome
from ackworth.model.result import TrialResult
from ackworth.pipeline.trial import judge_trial
from ackworth.testing import oracle
from ackworth.testing.engine import Inline
from ackworth.testing.histories import Answer, Delivered, History, Mark, Sent, trial, write_history

FLAGS = st.sampled_from(
    [
        *[Delivery.INTACT] * 6,
        Delivery.INTACT | Delivery.REDELIVERED,
        Delivery(0),
        Delivery.INTACT | Delivery.FOREIGN,
        Delivery.INTACT | Delivery.MISDELIVERED,
    ]
)
OUTCOMES = st.sampled_from(
    [*[(Outcome.ACKED,)] * 6, (Outcome.REFUSED,), (Outcome.UNKNOWN,), (), (Outcome.ACKED, Outcome.UNKNOWN)]
)
LATENCIES = st.one_of(st.integers(0, 100), st.integers(0, 10**12))


@st.composite
def histories(draw: st.DrawFn) -> History:
    producers, topics = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    subset = st.one_of(st.none(), st.lists(st.integers(0, topics - 1), unique=True, max_size=topics))
    groups = draw(st.lists(subset, min_size=1, max_size=2))
    consumers = draw(st.integers(len(groups), 4))
    sent, answers = [], []
    for producer in range(producers):
        for seq in range(draw(st.integers(0, 8))):
            t = 10 * seq + draw(st.integers(0, 9))
            row = Sent(producer, seq, t, draw(st.integers(0, topics - 1)))
            sent += [row] * draw(st.sampled_from([1] * 20 + [0, 2]))
            for outcome in draw(OUTCOMES):
                late = draw(st.sampled_from([0, 0, 7]))
                reason = 0 if outcome == Outcome.ACKED else draw(st.integers(0, 2))
                answers.append(Answer(producer, seq, outcome, t + 5, draw(LATENCIES), late, reason))
    ids = [(row.producer, row.seq) for row in sent] + [(0, 9), (-1, -1), (2, 2**40), (32767, 5)]
    delivered = []
    for t in sorted(draw(st.lists(st.integers(0, 2 * 10**9), max_size=30))):
        producer, seq = draw(st.sampled_from(ids))
        consumer = draw(st.integers(0, consumers - 1))
        delivered.append(
            Delivered(
                producer,
                seq,
                t,
                latency=draw(LATENCIES),
                topic=draw(st.integers(0, topics - 1)),
                group=consumer % len(groups),
                consumer=consumer,
                flags=draw(FLAGS),
            )
        )
    return History(
        trial=trial(
            producers=producers,
            consumers=consumers,
            topics=topics,
            groups=[(f"group {n}", topics) for n, topics in enumerate(groups)],
        ),
        end=End(t=2 * 10**9, drained=True),
        sent=sent,
        outcome=answers,
        delivered=delivered,
        mark=draw(marks()),
    )


@st.composite
def marks(draw: st.DrawFn) -> list[Mark]:
    spans = draw(st.lists(st.tuples(st.integers(0, 2 * 10**9), st.integers(0, 10**8)), max_size=2))
    what = st.sampled_from(["fault", "worker-died", "note"])
    warm_up = [Mark("phase", "warm-up", 0, draw(st.integers(1, 100)), detail='{"warm_up": true}')]
    return draw(st.sampled_from([[], warm_up])) + [
        Mark(draw(what), "kill", begin, begin + length) for begin, length in spans
    ]


@settings(max_examples=300)
@given(history=histories(), rows=st.integers(1, 6), parallel=st.integers(1, 6))
def test_the_pipeline_agrees_with_the_plain_judge(history: History, rows: int, parallel: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        where = write_history(Path(directory), history, rows_per_group=rows, rows_per_segment=2 * rows)
        result = judge_trial(where, Inline(parallel))
    agree(history, result)


def agree(history: History, result: TrialResult) -> None:
    assert not [note for note in result["notes"] if "failed" in note]
    assert result["account"] == oracle.account(history)
    assert result["groups"] == oracle.groups(history)
    checks = {check["name"]: check for check in result["checks"]}
    for name in ("lost", "resurrected", "corrupt", "misdelivered", "duplicates", "reordered"):
        assert checks[name]["ids"] == oracle.offenders(history, name), name
    assert checks["account"]["found"] == sum(oracle.defects(history).values())
    agree_on_times(history, result)
    agree_on_losses(history, result)


def agree_on_times(history: History, result: TrialResult) -> None:
    found = [(f["first_ack"], f["first_delivery"]) for f in result["faults"]]
    assert found == [tuple(None if t is None else t / 1e9 for t in pair) for pair in oracle.first_after(history)]
    censored = result["account"]["unknown"] + result["account"]["unanswered"]
    lost = sum(group["lost"] for group in result["groups"])
    for kind, values in oracle.latencies(history).items():
        latency = result["latency"][kind]
        assert latency["censored"] == (lost if kind == "sent_to_delivery" else censored)
        assert latency["count"] == len(values)
        assert latency["max"] == (values[-1] if values else None)
        assert latency["mean"] == (sum(values) / len(values) if values else None)
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)):
            rank = math.ceil(round(share * (len(values) + latency["censored"]), 6))
            found_value = latency[name]  # type: ignore[literal-required]
            if 0 < rank <= len(values):
                assert math.isclose(found_value, values[rank - 1], rel_tol=0.004), (kind, name)
            else:
                assert found_value is None
    assert result["throughput"].get("acked_per_second") == oracle.acked_per_second(history)
    series = result["series"]
    assert sum(series["sent"]) == len(history.sent)
    assert sum(series["delivered"]) == len(history.delivered)
    assert {len(values) for values in series.values()} == {len(series["t"])}  # type: ignore[arg-type]


def agree_on_losses(history: History, result: TrialResult) -> None:
    expected = [n for n, group in enumerate(oracle.groups(history)) if group["lost"]]
    assert [loss["group"] for loss in result["losses"]] == [f"group {n}" for n in expected]
    for number, loss in zip(expected, result["losses"], strict=True):
        ranges = oracle.lost_ranges(history, number)
        assert loss["ranges"] == ranges[:100]
        assert loss["ranges_total"] == len(ranges)
        assert loss["topics"] == oracle.lost_topics(history, number)
        assert loss["first"] == f"{ranges[0][0]}/{ranges[0][1]}"
        assert loss["last"] == f"{ranges[-1][0]}/{ranges[-1][2]}"
