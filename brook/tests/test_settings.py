"""Topic rules, settings and retention, as an application sees them."""

import contextlib
import threading
from dataclasses import fields
from typing import Any

import pytest

from brook import (
    LADDER,
    BadSetting,
    BodyTooLarge,
    Brook,
    DatabaseLocked,
    Forbidden,
    Message,
    Outgoing,
    Settings,
    UnknownTopic,
)
from brook import settings as settings_module
from brook.errors import Unreachable
from brook.group_commit import GroupCommit
from brook.packing import Run
from brook.stores import retention


def test_rules_hold_at_once_in_every_process(mq: Brook, url: str) -> None:
    with Brook(url) as other:
        mq.send("t", b"0")
        other.send("t", b"1")
        mq.set_rule("t", "read-only")
        assert other.rules() == {"t": "read-only"}
        for send in (
            lambda: other.send("t", b"x"),
            lambda: other.send_many([Outgoing("u", b"x"), Outgoing("t", b"x")]),
            lambda: other.append_runs([Run(1, 1, b"x")]),
        ):
            with pytest.raises(Forbidden, match="topic 't' is read-only: nothing can be sent to it"):
                send()
        other.subscribe("g")
        assert other.receive("g").bodies == [b"0", b"1"]
        mq.set_rule("t", "write-only")
        assert other.send("t", b"2").offset == 2
        assert not other.receive("g")
        for look in (
            lambda: other.receive("g", ["t"]),
            lambda: other.get("t", 0),
            lambda: other.tail("t"),
            lambda: other.query("t"),
            lambda: other.listen("t"),
        ):
            with pytest.raises(Forbidden, match="topic 't': its rule lets nobody read it"):
                look()
        mq.set_rule("t", "read-write")
        assert other.receive("g").bodies == [b"2"]


def test_bad_rules(mq: Brook) -> None:
    mq.create_topics(["t"])
    with pytest.raises(BadSetting, match="rule='open': give read-write, write-only, read-only, closed"):
        mq.set_rule("t", "open")  # type: ignore[arg-type]
    with pytest.raises(UnknownTopic):
        mq.set_rule("u", "closed")


def test_a_forbidden_send_does_not_take_others_along() -> None:
    gate, entered, stored = threading.Event(), threading.Event(), list[int]()

    def append(runs: list[Run]) -> list[int]:
        entered.set()
        assert gate.wait(60)
        if any(run.topic == 13 for run in runs):
            raise Forbidden("13")
        stored.extend(run.topic for run in runs)
        return [0] * len(runs)

    commit, forbidden = GroupCommit(append), list[int]()

    def send(topic: int) -> None:
        try:
            commit.one(topic, b"x", None)
        except Forbidden:
            forbidden.append(topic)

    threads = [threading.Thread(target=send, args=(topic,)) for topic in (1, 13, 2, 13, 3)]
    threads[0].start()
    assert entered.wait(60)
    for thread in threads[1:]:
        thread.start()
    while len(commit._queue) < 4:
        threading.Event().wait(0.001)
    gate.set()
    for thread in threads:
        thread.join()
    assert (sorted(stored), forbidden) == ([1, 2, 3], [13, 13])


def test_settings_are_typed_and_documented() -> None:
    assert {field.name for field in fields(Settings)} == settings_module._CHECKS.keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auto_create", 1),
        ("max_body", 0),
        ("max_body", True),
        ("lease", "60"),
        ("lease", 0),
        ("lease", float("inf")),
        ("timeout", float("nan")),
        ("slow", 1e10),
        ("threads", -1),
        ("batch", 1.5),
        ("timeout", -1),
        ("ladder", 10),
        ("ladder", [10, -1]),
        ("keep_bytes", -1),
    ],
)
def test_bad_settings(mq: Brook, name: str, value: Any) -> None:
    with pytest.raises(BadSetting, match=f"{name}="):
        mq.set(name, value)
    assert mq.settings == Settings()


def test_unknown_settings(mq: Brook) -> None:
    for value in (1, None):
        with pytest.raises(BadSetting, match="volume: no such setting: there are auto_create, max_body"):
            mq.set("volume", value)


def test_settings_change_at_run_time_for_all(mq: Brook, url: str, clock: Any) -> None:
    with Brook(url, clock=clock, lease=5) as other:
        mq.set("max_body", 3)
        mq.set("ladder", [1, 2])
        mq.set("lease", 30)
        mq.set("auto_create", False)
        with pytest.raises(BodyTooLarge, match="4 bytes: a body may have 3"):
            mq.send("t", b"1234")
        clock.now += settings_module.MAX_AGE + 0.1
        assert (other.settings.ladder, other.settings.max_body) == ((1.0, 2.0), 3)
        assert other.settings.lease == 5  # what the program gave stands in for it
        with pytest.raises(UnknownTopic):
            other.send("t", b"1")
        mq.set("ladder", None)
        assert mq.settings.ladder == LADDER
    with Brook(url) as later:
        assert later.settings.max_body == 3


def test_a_setting_written_by_hand_that_means_nothing(mq: Brook, clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    mq._store.set_setting("batch", "many")
    mq._store.set_setting("noise", "1")
    clock.now += 2
    assert mq.settings.batch == Settings().batch
    assert "taking the default" in caplog.text


def test_settings_that_cannot_be_read_stay_as_they_were(
    mq: Brook, clock: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    mq.set("batch", 3)

    def away() -> dict[str, str]:
        raise Unreachable("the server is away")

    with monkeypatch.context() as patched:
        patched.setattr(mq._store, "settings", away)
        clock.now += settings_module.MAX_AGE + 0.1
        assert mq.settings.batch == 3
    assert "stay as they were: the server is away" in caplog.text
    mq._store.set_setting("batch", "4")
    clock.now += settings_module.MAX_AGE + 0.1
    assert mq.settings.batch == 4


def test_consumers_take_settings_as_they_change(mq: Brook) -> None:
    sizes: list[int] = []

    @mq.consumer("t", group="g", threads=0)
    def note(messages: list[Message]) -> None:
        sizes.append(len(messages))

    mq.append(["t"] * 20, [b"x"] * 20)
    note.step()
    mq.set("batch", 3)
    note.step()
    assert sizes == [10, 3]


def test_retention_by_age(mq: Brook, clock: Any) -> None:
    for _ in range(1000):
        mq.send("t", b"x")
        clock.now += 1
    mq.send("u", b"y")
    assert mq.clean() == {}
    mq.set("keep_seconds", 100.5)
    mq.subscribe("g")
    held = mq.receive("g", ["t"], max_messages=3)
    assert mq.clean() == {"t": 897}
    assert mq.clean() == {}
    assert mq.lag("g") == 104
    mq.ack(held)
    assert mq.receive("g", ["t"]).offsets == list(range(900, 1000))


def test_retention_by_size(mq: Brook) -> None:
    for n in range(10):
        mq.send("t", b"%d" % n * 100)
    assert mq.clean(keep_bytes=350) == {"t": 7}
    assert [m.body[:1] for m in mq.query("t")] == [b"7", b"8", b"9"]
    assert mq.send("t", b"new").offset == 10


def test_retention_by_size_over_many_steps(mq: Brook) -> None:
    """What stays counts in the next step too."""
    mq.create_topics(["t"])
    mq.append_runs([Run(1, 1, b"x")] * 300)
    mq.subscribe("g")
    held = mq.receive("g", max_messages=100)
    assert mq.clean(keep_bytes=50) == {"t": 150}
    assert [m.offset for m in mq.tail("t", 300)] == [*range(100), *range(250, 300)]
    mq.ack(held)


def test_cleaning_spares_what_a_group_has_that_comes_meanwhile(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when what is in flight has been looked at: either it has to wait, or what it gets stays."""
    got, look = list[int](), retention._in_flight
    with Brook(url, durability="off") as mq, Brook(url, durability="off", patience=0.1) as other:
        mq.append(["t"] * 3, [b"x"] * 3)

        def then_come(*arguments: Any) -> list[tuple[int, int]]:
            found = look(*arguments)
            with contextlib.suppress(DatabaseLocked):
                other.subscribe("late")
                got.extend(other.receive("late").offsets)
            return found

        monkeypatch.setattr(retention, "_in_flight", then_come)
        mq.clean(keep_bytes=0)
        assert [offset for offset in got if mq.get("t", offset) is None] == []
