"""The command line, with and without --json."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brook import Brook, Message, Refusal
from brook.administration import MAX_OFFSET
from brook.cli import _parser, main

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def shop(mq: Brook, url: str, monkeypatch: pytest.MonkeyPatch) -> Brook:
    monkeypatch.setenv("BROOK_URL", url)
    for n in range(3):
        mq.send("orders", b"order %d" % n, key=f"k{n}", tags=["eu"], properties={"a": "b"})
    mq.send("odd", b"\xff\x00")

    @mq.consumer("orders", group="billing", threads=0, batch=1, ladder=[])
    def bill(messages: list[Message]) -> Refusal | None:
        return Refusal("no money") if messages[0].offset == 1 else None

    bill.step()
    bill.step()
    return mq


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_command_says_something_in_both_ways(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [
        ["topics"], ["groups"], ["clients"], ["listeners"], ["alerts"], ["lag"], ["lag", "billing"], ["tail", "orders"],
        ["query", "orders"], ["dead", "billing"], ["trace", "orders", "1"], ["clean"], ["settings"],
        ["rule", "orders", "read-write"], ["replay", "billing", "--to", "latest"],
    ]  # fmt: skip
    for command in commands:
        assert main(command) == 0
        assert capsys.readouterr().out.strip()
        assert isinstance(run(capsys, *command), list)


def test_topics_and_groups(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    found = {row["topic"]: row for row in run(capsys, "topics")}
    assert (found["orders"]["sent"], found["orders"]["bytes"], found["orders"]["rule"]) == (3, 21, "read-write")
    assert run(capsys, "groups") == [
        {"group": "billing", "topic": "orders", "next": 2, "end": 3, "claimed": 0, "waiting": 0, "dead": 1, "lag": 1}
    ]


def test_lag_is_told_of_groups_clients_and_listeners(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    taken, listener = shop.receive("billing", max_messages=1), shop.listen("orders", start=1)
    shop._upkeep.step()
    of_group = [
        {"group": "billing", "client": None, "lag": 1},
        {"group": "billing", "client": shop.client, "lag": len(taken)},
    ]
    assert run(capsys, "lag", "billing") == of_group
    assert run(capsys, "lag") == [*of_group, {"group": None, "client": shop.client, "lag": listener.lag()}]


def test_listeners_and_alerts(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    listener = shop.listen("orders", start=1)
    shop._upkeep.step()
    (row,) = run(capsys, "listeners")
    assert (row["client"], row["topic"], row["next"], row["lag"]) == (shop.client, "orders", 1, 2)
    assert listener.lag() == 2
    (row,) = run(capsys, "alerts")
    assert (row["kind"], row["group"], row["text"]) == ("dead", "billing", "1 message is dead: no money")
    assert run(capsys, "alerts", "--limit", "0") == []


def test_messages(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = run(capsys, "query", "orders", "--key", "k1")
    assert row == {
        "topic": "orders", "offset": 1, "sent_at": 1000.0, "key": "k1", "tags": ["eu"], "properties": {"a": "b"},
        "body": "order 1",
    }  # fmt: skip
    assert [row["offset"] for row in run(capsys, "query", "orders", "--tag", "eu", "--first", "1")] == [1, 2]
    assert run(capsys, "query", "orders", "--offset", "9") == []
    assert run(capsys, "query", "orders", "--since", "2026-01-01T00:00") == []
    assert [row["body"] for row in run(capsys, "tail", "orders", "-n", "1")] == ["order 2"]
    assert [row["body"] for row in run(capsys, "tail", "odd")] == [r"b'\xff\x00'"]


def test_replay_and_dead(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    (letter,) = run(capsys, "dead", "billing")
    assert (letter["offset"], letter["attempts"], letter["cause"]) == (1, 1, "no money")
    assert run(capsys, "dead", "billing", "--offset", "0", "--drop") == []
    run(capsys, "dead", "billing", "--replay")
    assert run(capsys, "dead", "billing") == []
    assert run(capsys, "replay", "billing", "--to", "earliest", "--topic", "orders")[0]["lag"] == 3
    for place, lag in (("2", 1), ("latest", 0), ("1970-01-01T00:00+00:00", 3)):
        assert run(capsys, "replay", "billing", "--to", place)[0]["lag"] == lag


def test_dead_letters_are_chosen_before_they_are_counted(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    shop.subscribe("all")
    shop._receiver.refuse(shop.receive("all"), "broken", None, ladder=[])
    for options, found in (
        (["--topic", "orders"], [("orders", 0)]),
        (["--offset", "2"], [("orders", 2)]),
        (["--topic", "orders", "--offset", "1"], [("orders", 1)]),
        (["--topic", "odd", "--offset", "1"], []),
    ):
        rows = run(capsys, "dead", "all", "--limit", "1", *options)
        assert [(row["topic"], row["offset"]) for row in rows] == found


def test_trace(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = run(capsys, "trace", "orders", "1")
    assert (found["sent"]["thread"], found["standing"]) == ("MainThread", {"billing": "dead"})
    assert [each["outcome"] for each in found["deliveries"]] == ["dead"]
    main(["trace", "orders", "1"])
    shown = capsys.readouterr().out
    assert "group billing, attempt 1: dead no money" in shown
    assert "1000.0" not in shown and ":16:40" in shown  # the times are for people


def test_settings_rules_and_cleaning(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, value in (([], 10), (["7"], 7), ([], 7), (["null"], 10)):
        assert run(capsys, "settings", "batch", *arguments) == [{"setting": "batch", "value": value}]
    assert {"topic": "odd", "rule": "closed"} in run(capsys, "rule", "odd", "closed")
    cleaned = {row["topic"]: row["deleted"] for row in run(capsys, "clean", "--keep-bytes", "0")}
    assert cleaned == {"odd": 1, "orders": 2}


def test_tables_cannot_be_torn(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    shop.send("nasty\n\x1b[2J", b"a\nb\x1b[31m")
    main(["topics"])
    main(["tail", "nasty\n\x1b[2J"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert r"a\nb\x1b[31m" in out


def test_tables_show_the_beginning_of_what_is_long(shop: Brook, capsys: pytest.CaptureFixture[str]) -> None:
    shop.send("long", b"x" * 100_000)
    main(["tail", "long"])
    assert f" {'x' * 200}… (100,000 characters)" in capsys.readouterr().out
    assert run(capsys, "tail", "long")[0]["body"] == "x" * 100_000


def test_every_argument_has_its_help() -> None:
    (commands,) = [action.choices for action in _parser()._actions if isinstance(action.choices, dict)]
    arguments = [(name, each.dest, each.help) for name, command in commands.items() for each in command._actions]
    assert [(name, dest) for name, dest, text in arguments if not text] == []


def test_errors_are_one_line(shop: Brook, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, text in (
        (["lag", "nobody"], "brook: 'nobody': no such group"),
        (["tail", "nowhere"], "brook: 'nowhere': no such topic"),
        (["settings", "batch", "many"], "brook: 'many': not JSON"),
        (["settings", "bath"], "brook: bath: no such setting: there are auto_create, "),
        (["--url", f"sqlite:///{tmp_path}/none.db", "topics"], "none.db: give the URL of a queue that exists"),
        (["--url", "", "topics"], "brook: no queue is named"),
    ):
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert text in error and error.count("\n") == 1
    assert not (tmp_path / "none.db").exists()


HUGE = "99999999999999999999"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["topics", "--seconds", "0"], "seconds=0.0: give a number of seconds above 0"),
        (["topics", "--seconds", "nan"], "seconds=nan: give a number of seconds above 0"),
        (["query", "orders", "--limit", "-1"], "limit=-1: give a number from 0"),
        (["query", "orders", "--limit", HUGE], f"limit={HUGE}: give a number from 0"),
        (["query", "orders", "--offset", HUGE], f"offset={HUGE}: give a number from 0 to {MAX_OFFSET}"),
        (["query", "orders", "--key", "k1", "--first", "-5"], "first=-5: give a number from 0"),
        (["tail", "orders", "-n", "-3"], "last=-3: give a number from 0"),
        (["trace", "orders", HUGE], f"offset={HUGE}: give a number from 0"),
        (["replay", "billing", "--to", HUGE], f"position={HUGE}: give earliest"),
        (["dead", "billing", "--limit", "-1"], "limit=-1: give a number from 0"),
    ],
)
def test_numbers_that_mean_nothing(
    shop: Brook, capsys: pytest.CaptureFixture[str], command: list[str], text: str
) -> None:
    assert main(command) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"brook: {text}") and error.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["query", "orders", "--since", "yesterday"], "'yesterday': give a time as 2026-01-31T12:00"),
        (["replay", "billing", "--to", "bogus"], "'bogus': give earliest, latest, an offset, or a time"),
    ],
)
def test_a_wrong_command_line(capsys: pytest.CaptureFixture[str], command: list[str], text: str) -> None:
    with pytest.raises(SystemExit) as wrong:
        main(command)
    assert wrong.value.code == 2
    assert text in capsys.readouterr().err


def test_every_command_is_in_the_readme() -> None:
    (commands,) = [action.choices for action in _parser()._actions if action.choices]
    text = README.read_text()
    assert [name for name in commands or [] if f"brook {name}" not in text] == []


@pytest.mark.real
def test_following(shop: Brook) -> None:
    command = [sys.executable, "-m", "brook", "tail", "orders", "-n", "1", "--follow"]
    with subprocess.Popen(command, stdout=-1, text=True, env=os.environ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["body"] == "order 2"
        shop.send("orders", b"new")
        assert json.loads(process.stdout.readline())["body"] == "new"
        process.kill()
