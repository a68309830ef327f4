"""Random histories, judged by the pipeline and by the plain judge: they must agree in everything."""

import math
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from ackworth.history import segment
from ackworth.history.meta import End
from ackworth.model.outcome import Delivery, Outcome
from ackworth.model.result import TrialResult
from ackworth.pipeline.trial import judge_trial
from ackworth.testing import oracle, oracle_times, oracle_verdict
from ackworth.testing.engine import Inline
from ackworth.testing.histories import Answer, Delivered, History, Mark, Sent, trial, write_history

FLAGS = st.sampled_from(
    [
        *[Delivery.INTACT] * 6,
        Delivery.INTACT | Delivery.REDELIVERED,
        Delivery(0),
        Delivery.INTACT | Delivery.FOREIGN,
        Delivery.INTACT | Delivery.MISDELIVERED,
        Delivery.INTACT | Delivery.REFUSED,
    ]
)
OUTCOMES = st.sampled_from(
    [
        *[(Outcome.ACKED,)] * 6,
        (Outcome.REFUSED,),
        (Outcome.UNKNOWN,),
        (),
        (Outcome.ACKED, Outcome.UNKNOWN),
        (Outcome.ACKED, Outcome.ACKED),
    ]
)
LATENCIES = st.one_of(st.integers(0, 100), st.integers(0, 10**12), st.integers(-50, 0))
TIMES = st.one_of(st.integers(0, 120), st.integers(0, 2 * 10**9))  # sends and acks come in the first 100
ENDS = st.sampled_from(
    [
        *[End(t=2 * 10**9, drained=True)] * 6,
        End(t=2 * 10**9, drained=False),
        End(t=2 * 10**9, drained=True, problems=("the disk was full",)),
        None,
    ]
)
EXPECTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "lost": st.sampled_from(["none", "before-fault", "any"]),
        "duplicates": st.sampled_from(["none", "explained", "any"]),
        "reordered": st.sampled_from(["none", "any"]),
    },
)


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
    for seq in draw(st.lists(st.sampled_from([-1, 9, 2**40]), max_size=1)):
        answers.append(Answer(0, seq, Outcome.ACKED, 200))
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
            survives_in_part=["power-cut"],
            ordered=draw(st.booleans()),
            once=draw(st.booleans()),
            plan={"expect": draw(EXPECTATIONS)},
        ),
        end=draw(ENDS),
        sent=sent,
        outcome=answers,
        delivered=delivered,
        mark=draw(marks()),
    )


@st.composite
def marks(draw: st.DrawFn) -> list[Mark]:
    found = [
        Mark("phase", "warm-up", 0, 1 + draw(TIMES), detail='{"warm_up": true}')
        for _ in range(draw(st.sampled_from([0, 0, 1, 2])))
    ]
    for _ in range(draw(st.integers(0, 3))):
        what = draw(st.sampled_from(["fault", "fault", "fault", "worker-died", "note"]))
        begin, length = draw(TIMES), draw(st.integers(0, 50))
        detail = draw(st.sampled_from(["", '{"whole": false}', '{"of": "consumer"}', '{"of": "node", "whole": true}']))
        node = draw(st.sampled_from("ab"))
        found.append(Mark(what, draw(st.sampled_from(["kill", "power-cut"])), begin, begin + length, node, detail))
        if draw(st.booleans()):
            mended = begin + length + draw(st.integers(0, 20))
            found.append(Mark("ready", "", mended, mended + draw(st.integers(0, 20)), node))
    return found


@settings(max_examples=300)
@given(history=histories(), rows=st.integers(1, 6), parallel=st.integers(1, 6))
def test_the_pipeline_agrees_with_the_plain_judge(history: History, rows: int, parallel: int) -> None:
    # A record that nobody keeps need not be on the disk.
    with tempfile.TemporaryDirectory() as directory, mock.patch.object(segment, "_sync"):
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
    assert {name: check["verdict"] for name, check in checks.items()} == oracle_verdict.verdicts(history)
    agree_on_times(history, result)
    agree_on_losses(history, result)


def agree_on_times(history: History, result: TrialResult) -> None:
    found = [(f["asked"], f["first_ack"], f["first_delivery"]) for f in result["faults"]]
    expected = oracle_times.after_faults(history)
    assert found == [(asked, *(None if t is None else t / 1e9 for t in waits)) for asked, *waits in expected]
    censored = oracle_times.censored(history)
    for kind, values in oracle_times.latencies(history).items():
        latency = result["latency"][kind]
        assert latency["censored"] == censored[kind]
        assert latency["count"] == len(values)
        assert latency["max"] == (values[-1] if values else None)
        assert latency["mean"] == (sum(values) / len(values) if values else None)
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)):
            rank = math.ceil(round(share * (len(values) + latency["censored"]), 6))
            found_value = latency[name]  # type: ignore[literal-required]
            if 0 < rank <= len(values):
                assert math.isclose(found_value, max(values[rank - 1], min(0, values[-1])), rel_tol=0.004), (kind, name)
            else:
                assert found_value is None
    throughput = result["throughput"]
    assert throughput["acked_per_second"] == oracle_times.acked_per_second(history)
    assert throughput["delivered_per_second"] == oracle_times.delivered_per_second(history)
    for kind in ("acked", "delivered"):
        rate, peak = throughput[f"{kind}_per_second"], throughput[f"{kind}_per_second_peak"]
        assert peak is None or (rate is not None and peak >= rate)
    series = result["series"]
    assert sum(series["sent"]) == len(history.sent)
    assert sum(series["delivered"]) == len(history.delivered)
    assert {len(values) for values in series.values()} == {len(series["t"])}  # type: ignore[arg-type]


def agree_on_losses(history: History, result: TrialResult) -> None:
    expected = [n for n, group in enumerate(oracle.groups(history)) if group["lost"]]
    assert [loss["group"] for loss in result["losses"]] == [f"group {n}" for n in expected]
    for number, loss in zip(expected, result["losses"], strict=True):
        ranges = oracle_times.lost_ranges(history, number)
        assert loss["ranges"] == ranges[:100]
        assert loss["ranges_total"] == len(ranges)
        assert loss["topics"] == oracle_times.lost_topics(history, number)
        assert loss["holes"] == oracle_times.lost_holes(history, number)
        assert (loss["fault"], loss["seconds_before_fault"]) == oracle_times.lost_before(history, number)
        assert loss["first"] == f"{ranges[0][0]}/{ranges[0][1]}"
        assert loss["last"] == f"{ranges[-1][0]}/{ranges[-1][2]}"
