"""What's here says what is here: every module, every dependency, and nothing that is gone."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, text

PAGE = "docs/whats-here.md"
SOURCE = ROOT / "src" / "ackworth"


def modules(package: Path) -> set[str]:
    """All modules of a package, those of packages within it too."""
    return {path.stem for path in package.rglob("*.py") if path.stem != "__init__"}


def packages() -> Iterator[Path]:
    return (path.parent for path in sorted(SOURCE.glob("*/__init__.py")))


def section(package: str) -> str:
    return text(PAGE).partition(f"### `{package}/`")[2].partition("\n##")[0]


def test_every_module_is_named_where_it_belongs() -> None:
    missing = {p.name: sorted(modules(p) - set(re.findall(r"`(\w+)`", section(p.name)))) for p in packages()}
    assert {name: gone for name, gone in missing.items() if gone} == {}


def test_nothing_is_named_that_is_gone() -> None:
    stale = {
        p.name: sorted(set(re.findall(r"^- ((?:`\w+`(?:, )?)+):", section(p.name), re.MULTILINE)) - {""})
        for p in packages()
    }
    named = {name: {m for line in lines for m in re.findall(r"`(\w+)`", line)} for name, lines in stale.items()}
    assert {
        name: words - modules(SOURCE / name) for name, words in named.items() if words - modules(SOURCE / name)
    } == {}


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
