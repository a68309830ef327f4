"""Whatever is wrong with what was asked for is one clear line, exit code 2, and nothing on the disk."""

import json
from pathlib import Path

import pytest

from ackworth.cli.main import main
from ackworth.run import space


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error of a command that must fail with 2."""
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("ackworth: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rebot"], "unknown plan 'rebot': did you mean 'reboot'?"),
        (["./nowhere.yaml"], "nowhere.yaml: cannot be read (No such file or directory)"),
        (["reboot", "--broker", "brook-sqlit"], "unknown broker 'brook-sqlit': did you mean 'brook-sqlite'?"),
        (["reboot", "--set", "workload.topcs=3"], "unknown key 'workload.topcs' (value 3): did you mean 'topics'?"),
        (["reboot", "--set", "workload.body=20"], "at least 48 bytes, the size of the header"),
        (
            ["reboot", "--set", "broker.settings.durability=ful"],
            "durability is 'ful', but must be one of full, normal, off",
        ),
        (
            ["reboot", "--set", "broker.settings.durabilty=full"],
            "has no setting 'durabilty': did you mean 'durability'?",
        ),
        (
            ["reboot", "--broker", "kafka", "--set", "broker.settings.acks=true"],
            "acks is True, but must be one of idempotent, all, 1, 0",
        ),
        (["reboot", "--set", "broker.topology=three"], "has no topology 'three': it has single"),
        (["reboot", "--set", "faults.0.kind=power-cutt"], "unknown fault 'power-cutt': did you mean 'power-cut'?"),
        (["reboot", "--set", "faults.0.node=third"], "has no node 'third' to break"),
        (
            ["broadcast", "--set", "faults=[{kind: power-cut, at: 1s, node: consumer}]"],
            "'power-cut' breaks a disk, and a consumer has none",
        ),
        (["broadcast", "--broker", "redis-streams"], "redis-streams has no broadcast: choose another broker"),
        (["retries", "--broker", "redis-streams"], "'redis-streams' has no setting 'retries'"),
        (
            ["consistency", "--broker", "redis-streams", "--set", "workload.refuse=2"],
            "redis-streams cannot be refused a message",
        ),
        (["reboot", "--only", "item1"], "the plan has no trial 'item1': did you mean 'item-1'?"),
        (["reboot", "--seed", "7", "--set", "x"], "write it as key=value"),
        (["reboot", "--attach", "redis"], "--attach: no broker is reached so: begin with one of "),
    ],
)
def test_bad_runs(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in said(capsys, "run", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_size_is_refused_by_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "reboot", "--size", "huge"])
    assert ended.value.code == 2
    assert "invalid choice: 'huge'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seed", "-1"], "'-1' is no whole number of at least 0"),
        (["--repeats", "0"], "no whole number of at least 1"),
        (["--repeats", "²"], "'²' is no whole number of at least 1"),
    ],
)
def test_numbers_that_are_none_are_refused_by_the_parser(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "reboot", *arguments])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_directory_that_holds_something_is_not_written_over(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "precious").write_text("mine")
    assert "is not empty: name a new directory with --out" in said(
        capsys, "run", "reboot", "--quiet", "--out", str(tmp_path)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_directory_that_cannot_be_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be made (Not a directory)" in said(capsys, "run", "reboot", "--out", str(tmp_path / "file" / "run"))


def test_too_little_room_is_said_before_anything_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "needed", lambda *_: 1 << 60)
    line = said(capsys, "run", "reboot", "--out", str(tmp_path / "deep" / "run"))
    assert "GiB are needed" in line and "--out" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["check", "report"])
def test_foreign_directories(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str) -> None:
    remedy = "name a directory that `ackworth run` made" if command == "check" else "ackworth check"
    assert remedy in said(capsys, command, str(tmp_path / "nowhere"))
    assert remedy in said(capsys, command, str(tmp_path))


def test_a_damaged_run_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    whole = {"run": "x", "plan": "p", "title": "t", "size": "small", "seed": 1, "sets": [], "trials": ["a"]}
    whole |= {"started": "", "ackworth": "", "environment": {}}
    broken = [json.dumps({**whole, **change}) for change in ({"seed": "x"}, {"trials": [1]})]
    for damage in ('{"run": 1', "[]", '{"run": "x"}', *broken):
        (tmp_path / "run.json").write_text(damage)
        assert "run.json: damaged" in said(capsys, "check", str(tmp_path))


def test_a_traceback_only_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--debug", "run", "rebot"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_no_defect(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    line = said(capsys, "run", "reboot", "--quiet", "--out", str(tmp_path / "run"))
    assert f"{tmp_path}/file" in line and "may be written, and has room" in line


def test_a_defect_that_cannot_even_say_what_it_is_is_no_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Speechless(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fail(_: object) -> int:
        raise Speechless

    monkeypatch.setattr("ackworth.cli.doctor.main", fail)
    assert main(["doctor"]) == 2
    assert "a defect of Ackworth's own" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("  kind: brook-sqlit", "4: unknown broker 'brook-sqlit': did you mean"),
        ("  settings: {durabilty: full}", "4: broker 'brook-sqlite' has no setting 'durabilty'"),
        ("  topology: ring", "4: brook-sqlite has no topology 'ring'"),
        ("faults: [{kind: kil, at: 50%}]", "4: unknown fault 'kil'"),
        ("faults: [{kind: kill, node: third, at: 50%}]", "4: brook-sqlite has no node 'third'"),
    ],
)
def test_what_no_plan_can_know_is_said_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    first = "broker:" if line.startswith(" ") else "about: breaks"
    plan = tmp_path / "mine.yaml"
    plan.write_text(f"name: mine\ntitle: mine\n{first}\n{line}\nworkload: {{phases: [{{name: send, messages: 10}}]}}\n")
    assert main(["run", str(plan)]) == 2
    assert capsys.readouterr().err.startswith(f"ackworth: {plan}:{said}")
