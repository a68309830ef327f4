"""A plan file becomes trials, and whatever is wrong in it is named by file, line, key and value."""

import pytest

from ackworth.model.errors import BadInput
from ackworth.plan import resolve
from ackworth.plan.brokers import on
from ackworth.plan.model import BodySize, Moment
from ackworth.plan.tree import parse

PLAN = """\
name: tiny
title: a tiny plan
broker:
  settings: {durability: off}
workload:
  phases:
    - {name: send, messages: {small: 1_000, published: 1_000_000}}
faults:
  - {kind: kill, at: 50%}
"""


BOMB = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))


def trials(text: str = PLAN, size: str = "small", *sets: str) -> list[resolve.TrialPlan]:
    return resolve.trials(parse(text, "tiny.yaml"), size, sets)


def complaint(text: str = PLAN, *sets: str, size: str = "small") -> str:
    with pytest.raises(BadInput) as caught:
        trials(text, size, *sets)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_plan_without_cases_is_one_trial() -> None:
    (trial,) = trials()
    assert trial.name == "trial"
    assert trial.plan.workload.messages == 1000
    assert trial.plan.faults[0].at == Moment(share=0.5)


def test_off_is_a_word_and_not_a_boolean() -> None:
    assert trials()[0].plan.broker.settings == {"durability": "off"}


def test_a_number_with_a_zero_before_it_is_decimal() -> None:
    assert trials(PLAN, "small", "workload.topics=010")[0].plan.workload.topics == 10
    assert trials(PLAN, "small", "workload.topics=08")[0].plan.workload.topics == 8


@pytest.mark.parametrize("change", ["broker=5", "broker.settings=5", "broker=[1]"])
def test_what_leaves_no_place_for_the_matrix_is_refused(change: str) -> None:
    text = PLAN + "matrix: {broker.settings.durability: [full, off]}\n"
    assert f"--set {change}: leaves nothing of the plan's matrix" in complaint(text, change)


def test_a_size_picks_its_values() -> None:
    assert trials(size="published")[0].plan.workload.messages == 1_000_000


def test_cases_times_matrix_with_set_on_top() -> None:
    text = (
        PLAN
        + "cases:\n  a: {}\n  b: {workload: {topics: 2}}\n"
        + "matrix:\n  broker.settings.durability: [full, normal]\n"
    )
    found = trials(text, "small", "workload.producers=3")
    assert [(t.name, t.plan.workload.topics, t.plan.broker.settings["durability"]) for t in found] == [
        ("a-durability=full", 1, "full"),
        ("a-durability=normal", 1, "normal"),
        ("b-durability=full", 2, "full"),
        ("b-durability=normal", 2, "normal"),
    ]
    assert {t.plan.workload.producers for t in found} == {3}


def test_set_reaches_into_lists() -> None:
    assert trials(PLAN, "small", "faults.0.at=30s")[0].plan.faults[0].at == Moment(seconds=30.0)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("30s", Moment(seconds=30.0)),
        ("5m", Moment(seconds=300.0)),
        ("100%", Moment(share=1.0)),
        ("6_000 messages", Moment(messages=6000)),
        ("50000/s", Moment(rate=50000.0)),
    ],
)
def test_moments(written: str, moment: Moment) -> None:
    assert trials(PLAN.replace("50%", written), "published")[0].plan.faults[0].at == moment


@pytest.mark.parametrize(
    ("written", "body"),
    [
        ("128", BodySize((128,), (1.0,))),
        ("{uniform: [100, 200]}", BodySize((100, 200), None)),
        ("{choice: {128: 9, 4096: 1}}", BodySize((128, 4096), (9.0, 1.0))),
    ],
)
def test_body_sizes(written: str, body: BodySize) -> None:
    assert trials(PLAN, "small", f"workload.body={written}")[0].plan.workload.body == body


def test_every_shipped_plan_reads_at_both_sizes() -> None:
    assert "reboot" in resolve.shipped()
    for name in resolve.shipped():
        for size in ("small", "published"):
            assert resolve.trials(on(resolve.find(name), [], {"a broker": [{}]}), size)


def test_the_reboot_plan_is_the_source_at_its_published_size() -> None:
    first, second = resolve.trials(resolve.find("reboot"), "published")
    assert (first.name, second.name) == ("item-1", "item-2")
    assert (first.plan.workload.messages, second.plan.workload.phases[0].duration) == (10_000_000, 300.0)
    for trial in (first, second):
        assert (trial.plan.workload.topics, trial.plan.workload.body.sizes, trial.plan.workload.producers) == (
            256,
            (128,),
            4,
        )
        assert [fault.kind for fault in trial.plan.faults] == ["power-cut"]
        assert trial.plan.expect.lost == "none"


def test_an_unknown_key_is_named_with_its_neighbour() -> None:
    message = complaint(PLAN.replace("workload:", "workload:\n  topcs: 3"))
    assert message == "tiny.yaml:6: unknown key 'workload.topcs' (value 3): did you mean 'topics'?"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PLAN.replace("50%", "soon"), "tiny.yaml:9: key 'faults.0.at' is 'soon', but must be a moment"),
        (PLAN.replace("name: tiny\n", ""), "key 'name' is missing"),
        (PLAN.replace("title: a tiny plan", "title: a\ntitle: b"), "tiny.yaml:3: key 'title' stands twice"),
        (PLAN.replace("published: 1_000_000", "small: 2"), "stands twice"),
        (PLAN.replace("{name: send, messages: {small: 1_000, published: 1_000_000}}", "{name: send}"), "never ends"),
        (PLAN.replace("{name: send, ", "{name: send, warm_up: true, "), "a phase with warm_up comes before all others"),
        (PLAN + "matrix: 3\n", "key 'matrix' must map dotted keys to lists"),
        (PLAN + "cases: []\n", "key 'cases' must be a mapping"),
        (PLAN + "cases: {a: }\n", "tiny.yaml:10: case 'a' is nothing, but must be what differs, or {}"),
        (PLAN + "repeats: 10_001\n", "more than 10,000 trials: repeat less, or vary fewer keys"),
        (PLAN.replace("name: tiny", "name:"), "key 'name' is nothing, but must be a name"),
        (PLAN + "---\nname: another\n", "tiny.yaml:10: not YAML: expected a single document in the stream, but found"),
        ("", "the file is empty"),
        ("[1, 2]", "a plan is a mapping"),
        ("a: [", "not YAML"),
        ("name: !!python/object/apply:os.system [ls]", "is not for plans"),
        ("\x00", "not YAML"),
        ("a: &a [*a]", "tiny.yaml: a value is inside of itself"),
        (BOMB, "more than 100,000 values in a plan"),
        ("a: !!int b", "tiny.yaml:1: 'b' is not of the kind that its tag says"),
        ("a: !!bool maybe", "tiny.yaml:1: 'maybe' is not of the kind that its tag says"),
        (PLAN + "matrix: {broker: [redis-streams]}\n", "tiny.yaml:10: a value of 'broker' in a matrix is a mapping"),
        (PLAN + "matrix: {broker: [{settings: {}}]}\n", "a value of 'broker' in a matrix is a mapping with `kind`"),
        (PLAN + "matrix: {workload.window: [4096, 4096]}\n", "2 trials are called 'window=4096'"),
        (PLAN + "cases: {a b: {}, a_b: {}}\n", "2 trials are called 'a_b'"),
    ],
)
def test_bad_plans(text: str, words: str) -> None:
    assert words in complaint(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("workload.body=12", "at least 48 bytes, the size of the header"),
        ("workload.body=big", "a number of bytes"),
        ("workload.topics=0", "a whole number of 1 to 32,767"),
        ("workload.topics=true", "a whole number of 1 to 32,767"),
        ("workload.topics=32768", "a whole number of 1 to 32,767"),
        ("workload.window=0", "a whole number of at least 1"),
        ("workload.phases.0.rate=0", "'max', a number of messages a second"),
        ("workload.phases.0.rate=0% of full", "'max', a number of messages a second"),
        ("workload.phases.0.rate=1e400", "a number"),
        ("workload.body={choice: {²: 1}}", "a number of bytes"),
        ("faults.0.at=_ messages", "a moment"),
        ("workload.consume=later", "did you mean 'after'?"),
        ("workload.batch=9999", "batch 9999 is larger than window 4096"),
        ("faults.3.at=1s", "'3' picks nothing from a list of 1"),
        ("faults.0.times=3", "times is 3, but nothing says how far apart: add `every`"),
        ("faults.0.every=3s", "every is 3 s, but nothing says how often: add `times`"),
        ("faults.0.at=120%", "a moment"),
        ("workload.sends=3", "a list of lists of numbers from 0 on"),
        ("workload.sends=[[0], [-1]]", "a list of lists of numbers from 0 on"),
        ("workload.reads=[[0], []]", "a list of lists of numbers from 0 on"),
        ("name=../../elsewhere", "a name of letters, digits, spaces and . _ - alone"),
        ("published=[{source: a, hardware: b, rows: [3]}]", "rows such as {what: acked, value: 8031671}"),
        ("repeats=3", "'repeats' is what trials are made from, and no key of a trial: give --repeats N"),
        ("matrix.broker=every", "change it in a plan of your own"),
        ("workload", "write it as key=value"),
        ("=3", "write it as key=value"),
        ("broker.kind=", "write it as key=value"),
    ],
)
def test_bad_sets(change: str, words: str) -> None:
    message = complaint(PLAN, change)
    assert message.startswith(f"--set {change}") or "batch" in message or "every" in message
    assert words in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["workload.sends=[[0], [0]]"], "sends has 2 lists, there are 1 producers: give a list for each"),
        (["workload.reads=[[1]]"], "reads names number 1, there are 1 topics: they count from 0"),
        (["workload.clients=[[0], [1]]"], "clients names number 1, there are 1 groups"),
        (["workload.groups=200", "workload.consumers=200"], "40,000 consumers in all: at most 32,767"),
        (["workload.clients=[]"], "no client reads for group 0"),
        (["workload.groups=2", "workload.clients=[[0]]"], "no client reads for group 1, so all would be lost to it"),
        (["workload.broadcast=true", "workload.consumers=2"], "each group is one client"),
        (["workload.broadcast=true", "workload.refuse=2"], "nothing can be refused"),
        (["workload.phases=[{name: send, duration: 0s}]"], "phase 'send' lasts no time: give it a duration above 0s"),
        (["faults.0.at=1_001 messages"], "faults.0 strikes at 1,001 messages, but the load has 1,000"),
        (["expect.attempts=17"], "expect.attempts is about refused messages, but none is refused"),
        (["faults.0.every=0s", "faults.0.times=2"], "every is 0 s: strikes are some time apart"),
        (["workload.consume=after", "faults.0.node=consumer"], "a fault strikes a consumer, but none runs yet"),
    ],
)
def test_what_does_not_go_together(changes: list[str], words: str) -> None:
    assert words in complaint(PLAN, *changes)


def test_who_sends_and_reads_what() -> None:
    workload = trials()[0].plan.workload
    assert (workload.topics_sent, workload.topics_read, workload.consumer_groups) == (((0,),), ((0,),), (0,))
    changes = (
        "topics=2",
        "producers=2",
        "sends=[[0], [0, 1]]",
        "groups=3",
        "reads=[[0], [1], [1]]",
        "clients=[[0], [1, 2]]",
    )
    workload = trials(PLAN, "small", *(f"workload.{change}" for change in changes))[0].plan.workload
    assert workload.consumer_groups == (0, 1, 2)
    assert workload.copies == 4 / 3


def test_an_unknown_size_and_an_unknown_plan() -> None:
    assert "did you mean 'small'?" in complaint(PLAN, size="smal")
    with pytest.raises(BadInput, match="did you mean 'reboot'"):
        resolve.find("rebot")
    with pytest.raises(BadInput, match="cannot be read"):
        resolve.find("./nowhere.yaml")
