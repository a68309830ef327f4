"""Every lie is found, by exactly the ids that were planted, and an honest broker is not accused of any.

The whole path is real but the broker and the clock: producers, bodies, spool, segments, Spark, judge.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ackworth.model.result import TrialResult
from ackworth.pipeline.session import Session
from ackworth.pipeline.trial import judge_trial
from ackworth.testing.liar import ATTEMPTS, INVENTED_FROM, Chooser, Liar, one_in, these
from ackworth.testing.play import play

pytestmark = pytest.mark.spark

RUN = 0x0123456789ABCDEF
FINDS = ("lost", "resurrected", "phantom", "corrupt", "misdelivered", "duplicates", "reordered")

Tell = Callable[..., tuple[Liar, TrialResult]]


@pytest.fixture
def tell(tmp_path: Path, spark: Session) -> Iterator[Tell]:
    def run(lies: dict[str, Chooser], **settings: Any) -> tuple[Liar, TrialResult]:
        topics = settings.setdefault("topics", 3)
        liar = Liar(run=RUN, topics=topics, lies=lies)
        play(tmp_path / "trial", liar, run=RUN, **{"messages": 20_000, **settings})
        return liar, judge_trial(tmp_path / "trial", spark)

    yield run


def checks(result: TrialResult) -> dict[str, tuple[str, Any, set[str]]]:
    return {check["name"]: (check["verdict"], check["found"], set(check["ids"])) for check in result["checks"]}


def assert_only(result: TrialResult, *names: str) -> None:
    """These checks are broken, and no other of those that look for lies."""
    assert {name for name in FINDS if checks(result)[name][0] != "held"} == set(names)
    assert result["verdict"] == ("broken" if names else "held")


def written(ids: set[tuple[int, int]]) -> set[str]:
    return {f"{producer}/{seq}" for producer, seq in ids}


def test_an_honest_broker(tell: Tell) -> None:
    _, result = tell({}, groups=2)
    assert_only(result)
    assert result["account"] == {
        "sent": 40_000,
        "acked": 40_000,
        "refused": 0,
        "unknown": 0,
        "unanswered": 0,
        "recovered": 0,
        "reasons": {},
    }


@pytest.mark.parametrize(
    ("lie", "found"),
    [
        ("lose", {"lost"}),
        ("double", {"duplicates"}),
        ("reorder", {"reordered"}),
        ("corrupt", {"corrupt", "lost"}),  # what arrives broken has not arrived
        ("invent", {"phantom"}),
        ("resurrect", {"resurrected"}),
        ("misdeliver", {"misdelivered"}),
    ],
)
def test_each_lie_is_found_by_its_ids(tell: Tell, lie: str, found: set[str]) -> None:
    liar, result = tell({lie: these((0, 17), (1, 19_003))})
    planted = written(liar.planted[lie])
    assert len(planted) == 2
    assert_only(result, *found)
    for name in found:
        assert checks(result)[name] == ("broken", 2, planted)


def test_invented_messages_have_seqs_that_nobody_sent(tell: Tell) -> None:
    liar, _ = tell({"invent": these((0, 5))})
    assert liar.planted["invent"] == {(0, 5 + INVENTED_FROM)}


def test_a_loss_is_not_hidden_by_a_duplicate(tell: Tell) -> None:
    _, result = tell({"lose": these((0, 100)), "double": these((0, 101))})
    assert_only(result, "lost", "duplicates")
    assert result["groups"][0]["delivered"] == result["groups"][0]["expected"] == 40_000


def test_acked_too_early_is_lost_in_a_crash(tell: Tell) -> None:
    _, result = tell({"ack-early": these((0, 3), (1, 4), (1, 5))}, crash=True)
    assert_only(result, "lost")
    assert checks(result)["lost"] == ("broken", 3, {"0/3", "1/4", "1/5"})
    (loss,) = result["losses"]
    assert loss["fault"] == "kill" and loss["ranges"] == [[0, 3, 3], [1, 4, 5]]


def test_acked_too_early_is_no_lie_if_nothing_crashes(tell: Tell) -> None:
    _, result = tell({"ack-early": these((0, 19_999))})
    assert_only(result)


def test_what_one_group_is_denied(tell: Tell) -> None:
    """Of a broadcast every client gets everything; as a group of its own, one that does not has lost it."""
    liar, result = tell({"withhold": these((0, 17), (1, 3))}, groups=3)
    assert_only(result, "lost")
    assert checks(result)["lost"] == ("broken", 2, written(liar.planted["withhold"]))
    assert [group["lost"] for group in result["groups"]] == [2, 0, 0]


def test_refused_as_often_as_it_should_be(tell: Tell) -> None:
    _, result = tell({}, refuse=100, groups=2, expect={"attempts": ATTEMPTS})
    assert_only(result)
    assert checks(result)["attempts"] == ("held", 0, set())
    assert [group["duplicates"]["flagged"] for group in result["groups"]] == [400 * (ATTEMPTS - 1)] * 2


@pytest.mark.parametrize("lie", ["give-up", "insist"])
def test_refused_too_often_or_not_often_enough(tell: Tell, lie: str) -> None:
    liar, result = tell({lie: these((0, 300), (1, 19_900))}, refuse=100, expect={"attempts": ATTEMPTS})
    assert checks(result)["attempts"] == ("broken", 2, written(liar.planted[lie]))
    assert {name for name, (verdict, _, _) in checks(result).items() if verdict != "held"} == {"attempts"}


def test_nothing_refused_tells_nothing(tell: Tell) -> None:
    _, result = tell({}, expect={"attempts": ATTEMPTS})
    assert checks(result)["attempts"][0] == "unknown"


def test_one_in_a_million(tell: Tell) -> None:
    lies = {
        lie: one_in(1_000_000, seed) for seed, lie in enumerate(("lose", "double", "corrupt", "invent", "misdeliver"))
    }
    liar, result = tell(lies, messages=1_500_000, producers=2, topics=256)
    planted = {lie: written(ids) for lie, ids in liar.planted.items()}
    assert all(0 < len(planted[lie]) < 20 for lie in lies)
    found = {name: ids for name, (_, _, ids) in checks(result).items()}
    assert found["lost"] == planted["lose"] | planted["corrupt"]
    assert found["duplicates"] == planted["double"]
    assert found["corrupt"] == planted["corrupt"]
    assert found["phantom"] == planted["invent"]
    assert found["misdelivered"] == planted["misdeliver"]
