"""What's here says what is here: every module, every dependency, and nothing that is gone."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, text

PAGE = "docs/whats-here.md"
SOURCE = ROOT / "src" / "ackworth"


def modules(package: Path) -> set[str]:
    """All modules of a package, those of packages within it too."""
    return {path.stem for path in package.rglob("*.py") if path.stem != "__init__"}


def section(package: str) -> str:
    return text(PAGE).partition(f"### `{package}/`")[2].partition("\n##")[0]


def listed(package: str) -> set[str]:
    """The names at the beginning of the items of its section, and those that it names of a folder."""
    items = re.findall(r"^- ((?:`\w+/?`(?:, )?)+)(.*(?:\n  .*)*)", section(package), re.MULTILINE)
    names = (names + (rest if names.endswith("/`") else "") for names, rest in items)
    return {name for text in names for name in re.findall(r"`(\w+)`", text)}


@pytest.mark.parametrize(
    "package", [path.parent for path in sorted(SOURCE.glob("*/__init__.py"))], ids=lambda p: p.name
)
def test_a_package_has_the_modules_that_are_listed(package: Path) -> None:
    assert listed(package.name) == modules(package)


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads(text("pyproject.toml"))
    asked = [
        *project["project"]["dependencies"],
        *(name for names in project["project"]["optional-dependencies"].values() for name in names),
        *(name for names in project["dependency-groups"].values() for name in names),
    ]
    names = {re.split(r"[<>=~]", name)[0] for name in asked} - {"brook-queue"}
    table = text(PAGE).partition("## Dependencies")[2]
    assert sorted(name for name in names if name not in table) == []
