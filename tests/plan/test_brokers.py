"""Plans on several brokers, on every broker at every setting, repeated, and at a part of their own speed."""

import pytest

from ackworth.model.errors import BadInput
from ackworth.plan import resolve
from ackworth.plan.brokers import Catalogue, on
from ackworth.plan.reader import RateOf
from ackworth.plan.resolve import TrialPlan
from ackworth.plan.tree import parse

PLAN = """\
name: tiny
title: a tiny plan
workload:
  phases: [{name: send, messages: 1_000}]
"""
EVERY = PLAN + "matrix: {broker: every}\n"
CATALOGUE: Catalogue = {"pail": [{"sync": "always"}, {"sync": "never"}], "tub": [{}]}


def trials(text: str, *sets: str, named: tuple[str, ...] = (), repeats: int | None = None) -> list[TrialPlan]:
    catalogue = {name: CATALOGUE[name] for name in named or CATALOGUE}
    return resolve.trials(on(parse(text, "tiny.yaml"), named, catalogue), "small", sets, repeats)


def names(*arguments: object, **more: object) -> list[str]:
    return [trial.name for trial in trials(*arguments, **more)]  # type: ignore[arg-type]


def test_every_broker_at_every_setting() -> None:
    found = trials(EVERY)
    assert [(t.cell, t.plan.broker.kind, t.plan.broker.settings) for t in found] == [
        ("pail,sync=always", "pail", {"sync": "always"}),
        ("pail,sync=never", "pail", {"sync": "never"}),
        ("tub", "tub", {}),
    ]


def test_only_the_named_brokers() -> None:
    assert names(EVERY, named=("tub",)) == ["tub"]
    assert names(PLAN, named=("tub",)) == ["trial"]
    assert trials(PLAN, named=("tub",))[0].plan.broker.kind == "tub"
    assert names(PLAN, named=("tub", "pail")) == ["kind=tub", "kind=pail"]


def test_the_named_brokers_of_a_list() -> None:
    assert names(PLAN + STORES, named=("tub",)) == ["tub,topology=single-sync=always", "tub,topology=single-sync=never"]
    assert len(names(PLAN + STORES, named=("tub", "pail"))) == 6
    with pytest.raises(BadInput, match="--broker jug: the plan's matrix has none of it: choose among pail, tub"):
        on(parse(PLAN + STORES, "tiny.yaml"), ["jug"], {})


def test_a_set_chooses_among_the_rows() -> None:
    assert names(EVERY, "broker.settings.sync=never") == ["pail,sync=never"]
    assert names(EVERY, "broker.kind=pail") == ["pail,sync=always", "pail,sync=never"]
    assert len(names(EVERY, "broker.topology=single")) == 3
    with pytest.raises(BadInput, match=r"--set broker.settings.sync=nevr: leaves nothing of the plan's matrix"):
        trials(EVERY, "broker.settings.sync=nevr")


STORES = """\
matrix:
  broker: [{kind: pail, topology: single}, {kind: pail, topology: three}, {kind: tub, topology: single}]
  broker.settings.sync: [always, never]
"""


def test_rows_of_named_brokers_and_another_axis() -> None:
    assert names(PLAN + STORES, "broker.topology=three") == [
        "pail,topology=three-sync=always",
        "pail,topology=three-sync=never",
    ]
    assert names(PLAN + STORES, "broker.settings.sync=never", "broker.kind=tub") == ["tub,topology=single-sync=never"]


def test_without_brokers_it_says_so() -> None:
    with pytest.raises(BadInput, match="no broker is installed here"):
        on(parse(EVERY, "tiny.yaml"), [], {})
    with pytest.raises(BadInput, match="needs to know which brokers there are"):
        resolve.trials(parse(EVERY, "tiny.yaml"), "small")


def test_repeats_of_the_plan_of_a_case_and_of_the_command() -> None:
    text = PLAN + "repeats: {small: 2, published: 9}\ncases: {a: {}, b: {repeats: 1}}\n"
    assert names(text) == ["a-1", "a-2", "b"]
    assert [trial.repeat for trial in trials(text)] == [1, 2, 1]
    assert names(text, repeats=1) == ["a", "b"]
    with pytest.raises(BadInput, match=r"tiny.yaml:5: key 'repeats' is 'often', but must be a whole number"):
        trials(PLAN + "repeats: often\n")


PACED = """\
matrix: {broker: every}
cases:
  full: {}
  half: {workload: {phases: [{name: send, duration: 1s, rate: 50% of full}]}}
"""


def test_a_rate_that_is_a_part_of_another_cases() -> None:
    found = trials(PLAN + PACED, repeats=2)
    paced = next(trial for trial in found if trial.name == "half-pail,sync=never-1")
    assert paced.plan.workload.phases[0].rate == RateOf(0.5, "full")
    assert [t.name for t in resolve.referred(paced, found)] == ["full-pail,sync=never-1", "full-pail,sync=never-2"]


@pytest.mark.parametrize("case", ["ful", "half"])
def test_a_rate_refers_to_an_earlier_case(case: str) -> None:
    with pytest.raises(BadInput, match=f"a part of '{case}', but no earlier case has that name: .*full"):
        trials(PLAN + PACED.replace("of full", f"of {case}"))
