"""The generated pages are what the code says today, and say all of it."""

import argparse
import dataclasses
import runpy
from collections.abc import Iterator
from typing import Any

import pytest

from ackworth.cli import main as cli
from ackworth.history.schema import TABLES
from ackworth.plan.model import Plan
from tests.docs.pages import ROOT, text

GENERATED: dict[str, str] = runpy.run_path(str(ROOT / "tools" / "reference.py"))["pages"]()


@pytest.mark.parametrize("name", GENERATED)
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert text(f"docs/reference/{name}") == GENERATED[name], f"docs/reference/{name} is stale: run `make docs`"


def test_no_page_is_left_over() -> None:
    assert {page.name for page in (ROOT / "docs" / "reference").iterdir()} == set(GENERATED)


def test_a_terminals_width_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert runpy.run_path(str(ROOT / "tools" / "reference.py"))["pages"]() == GENERATED


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def test_every_command_and_option_is_described() -> None:
    page = text("docs/reference/cli.md")
    for name, command in commands(cli.parser()):
        section = page.partition(f"## ackworth {name}\n")[2].partition("\n## ")[0]
        assert section, f"no section for {name}"
        for action in command._actions:
            for word in action.option_strings or [str(action.metavar)]:
                assert word in section, f"{name} {word}"


def keys(cls: Any) -> Iterator[str]:
    for field in dataclasses.fields(cls):
        yield field.name
        if field.metadata["reader"].nested:
            yield from keys(field.metadata["reader"].nested)


def test_every_key_of_a_plan_is_described() -> None:
    page = text("docs/reference/plan.md")
    assert [key for key in keys(Plan) if f"| `{key}` |" not in page] == []


def test_every_column_of_the_record_is_described() -> None:
    page = text("docs/reference/record.md")
    assert [(t.name, c) for t in TABLES.values() for c in t.names if f"| `{c}` |" not in page] == []
