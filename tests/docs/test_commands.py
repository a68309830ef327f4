"""Every command that a page shows can be given."""

import re
import shlex
from pathlib import Path

import pytest

from ackworth.cli import main as cli
from ackworth.plan import resolve
from tests.docs.pages import PAGES, ROOT, files


def commands(page: Path) -> list[str]:
    """What follows `ackworth` in each line after a prompt, up to a pipe."""
    shown = re.findall(r"^\$ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    found = (re.search(r"(?:^|[ /])ackworth (.+)", line) for line in shown)
    return [match[1].partition(" | ")[0] for match in found if match]


COMMANDS = [(page, command) for page in PAGES for command in commands(page)]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{p.relative_to(ROOT)}: {c}" for p, c in COMMANDS])
def test_a_command_can_be_given(page: Path, command: str) -> None:
    try:
        cli.parser().parse_args(shlex.split(command, comments=True))
    except SystemExit as error:
        pytest.fail(f"{page.relative_to(ROOT)}: ackworth {command}: exit code {error.code}")


def test_the_tutorial_shows_commands() -> None:
    assert len(commands(ROOT / "docs" / "tutorial.md")) > 5


def test_the_tutorials_plan_is_right(tmp_path: Path) -> None:
    plan = tmp_path / "payments.yaml"
    plan.write_text(files("docs/tutorial.md")["payments.yaml"])
    assert resolve.trials(resolve.find(str(plan)), "small")


def test_a_wrong_command_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ PYTHON=x .venv/bin/ackworth run reboot --sizes small | cat\n$ ls\n```\n")
    [command] = commands(page)
    assert command == "run reboot --sizes small"
    with pytest.raises(SystemExit):
        cli.parser().parse_args(shlex.split(command))
