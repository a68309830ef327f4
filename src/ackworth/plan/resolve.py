"""From a plan file to its trials: cases x matrix, at a size, with --set on top.

    base <- case <- matrix cell <- --set, and then the size is chosen

A case is a named overlay of the whole plan; a matrix maps dotted keys to lists of values.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ackworth.model.errors import BadInput
from ackworth.model.words import nearest
from ackworth.plan import reader
from ackworth.plan.model import Plan
from ackworth.plan.tree import SIZES, Place, Tree, for_size, load, overlay, parse, put

VARIATIONS = ("cases", "matrix")


@dataclass(frozen=True)
class TrialPlan:
    name: str  # unique within the run, fit for a directory
    plan: Plan


def shipped() -> dict[str, Path]:
    """The plans that ship, by name."""
    folder = Path(str(resources.files("ackworth") / "plans"))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find(name: str) -> Tree:
    """A plan by its shipped name or by its path."""
    known = shipped()
    if name in known:
        return load(known[name])
    if "/" in name or name.endswith((".yaml", ".yml")) or Path(name).is_file():
        return load(Path(name))
    raise BadInput(f"unknown plan '{name}'{nearest(name, known)}; a plan of your own is named by its path")


def trials(tree: Tree, size: str, sets: Sequence[str] = ()) -> list[TrialPlan]:
    """Every trial of the plan. Raises BadInput."""
    if size not in SIZES:
        raise BadInput(f"unknown size '{size}'{nearest(size, SIZES)}")
    if tree.mapping is None:
        raise BadInput(f"{tree.place}: a plan is a mapping of keys, this is a {type(tree.value).__name__}")
    base = Tree({k: v for k, v in tree.mapping.items() if k not in VARIATIONS}, tree.place)
    changes = [_set(text) for text in sets]
    found = []
    for case_name, case in _cases(tree.mapping.get("cases")):
        for cell_name, cell in _cells(tree.mapping.get("matrix")):
            whole = overlay(base, case)
            for path, leaf in (*cell, *changes):
                whole = put(whole, path, leaf)
            whole = for_size(whole, size)
            name = "-".join(filter(None, (case_name, cell_name))) or "trial"
            found.append(TrialPlan(name, reader.read(Plan, whole)))
    return found


def _cases(tree: Tree | None) -> list[tuple[str, Tree]]:
    if tree is None:
        return [("", Tree({}, Place("", 0)))]
    if not isinstance(tree.value, dict) or not tree.value:
        raise BadInput(f"{tree.place}: key 'cases' must be a mapping of case names to what differs")
    return [(_name(name, case.place), case) for name, case in tree.value.items()]


def _cells(tree: Tree | None) -> list[tuple[str, list[tuple[str, Tree]]]]:
    if tree is None:
        return [("", [])]
    axes = [_axis(path, values) for path, values in (tree.mapping or {"": tree}).items()]
    return [("-".join(_cell_name(*pair) for pair in cell), list(cell)) for cell in itertools.product(*axes)]


def _axis(path: str, values: Tree) -> list[tuple[str, Tree]]:
    if not path or not isinstance(values.value, list) or not values.value:
        raise BadInput(
            f"{values.place}: key 'matrix' must map dotted keys to lists of values, such as "
            "{broker.settings.durability: [full, normal]}"
        )
    return [(path, leaf) for leaf in values.value]


def _cell_name(path: str, leaf: Tree) -> str:
    return _name(f"{path.rsplit('.', 1)[-1]}={leaf.plain()}", leaf.place)


def _name(text: str, place: Place) -> str:
    cleaned = "".join(c if c.isalnum() or c in "=.,_-" else "_" for c in text)
    if not cleaned or cleaned.startswith("."):
        raise BadInput(f"{place}: '{text}' cannot name a trial: use letters and digits")
    return cleaned[:80]


def _set(text: str) -> tuple[str, Tree]:
    path, equals, value = text.partition("=")
    if not equals or not path.strip() or not value.strip():
        raise BadInput(f"--set {text}: write it as key=value, for example --set broker.settings.durability=normal")
    where = f"--set {text}"
    return path.strip(), Tree(parse(value, where).value, Place(where, 0))
