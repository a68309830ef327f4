"""Every store of Brook, killed and cut off while it is written to: the plan reboot-stores, at a size of seconds."""

from pathlib import Path

import pytest

from ackworth.broker.brook_mariadb import BROKER as BROOK_MARIADB
from ackworth.broker.registry import find
from ackworth.model.result import TrialResult
from ackworth.pipeline.trial import judge_trial
from ackworth.plan import resolve
from ackworth.plan.resolve import TrialPlan
from ackworth.run.conductor import Conductor
from ackworth.testing.engine import Inline
from tests.conftest import had
from tests.run.test_conductor import Silent

pytestmark = pytest.mark.real

CASES = {"item-1-kill", "item-1-power-cut", "item-2-kill", "item-2-power-cut"}
QUICK = ["workload.topics=16", "workload.drain.quiet=300ms", "faults.0.down=50ms"]
SIZES = {"item-1": "workload.phases.0.messages=30_000", "item-2": "workload.phases.0.duration=1500ms"}


def chosen(case: str, *sets: str) -> TrialPlan:
    found = resolve.trials(resolve.find("reboot-stores"), "small", [*QUICK, SIZES[case[:6]], *sets])
    (trial,) = [trial for trial in found if trial.case == case]
    return trial


def judged(trial: TrialPlan, directory: Path) -> TrialResult:
    had(find(trial.plan.broker.kind), trial.plan.broker.topology)
    Conductor(trial, directory, "00000000000000aa", 7, Silent()).run()
    return judge_trial(str(directory), Inline())


def test_it_has_every_store_at_every_durability_with_both_items_and_both_faults() -> None:
    found = [(t.case, *vars(t.plan.broker).values()) for t in resolve.trials(resolve.find("reboot-stores"), "small")]
    stores = [("brook-sqlite", "single"), *(("brook-mariadb", topology) for topology in BROOK_MARIADB.topologies)]
    assert sorted(map(str, found)) == sorted(
        str((case, *store, {"durability": durability}))
        for case in CASES
        for store in stores
        for durability in ("full", "normal", "off")
    )


@pytest.mark.parametrize(
    ("case", "durability"),
    [("item-1-power-cut", "full"), ("item-2-kill", "off"), ("item-2-power-cut", "full"), ("item-1-kill", "normal")],
)
def test_sqlite(tmp_path: Path, own_mounts: None, case: str, durability: str) -> None:
    result = judged(
        chosen(case, "broker.kind=brook-sqlite", f"broker.settings.durability={durability}"), tmp_path / "t"
    )
    assert_kept(result, case)


@pytest.mark.parametrize(
    ("case", "topology", "durability"),
    [("item-1-power-cut", "with-redis", "full"), ("item-1-kill", "single", "normal")],
)
def test_mariadb(tmp_path: Path, own_mounts: None, case: str, topology: str, durability: str) -> None:
    sets = ["broker.kind=brook-mariadb", f"broker.topology={topology}", f"broker.settings.durability={durability}"]
    assert_kept(judged(chosen(case, *sets), tmp_path / ("long" * 20)), case)  # longer than the name of a socket may be


def assert_kept(result: TrialResult, case: str) -> None:
    assert result["verdict"] == "held", result["sentence"]
    assert {fault["name"] for fault in result["faults"]} == {case[7:]}
    assert result["groups"][0]["lost"] == 0 and result["account"]["acked"] > 1_000


def test_mariadb_that_does_not_sync_loses_and_says_so(tmp_path: Path, own_mounts: None) -> None:
    sets = ["broker.kind=brook-mariadb", "broker.topology=single", "broker.settings.durability=off"]
    steady = ["workload.phases.0.rate=4_000", "workload.phases.0.duration=2s", "workload.batch=50"]
    result = judged(chosen("item-2-power-cut", *sets, *steady, "expect.lost=none"), tmp_path / "t")
    assert result["verdict"] == "broken", result["sentence"]
    assert result["groups"][0]["lost"] > 0
