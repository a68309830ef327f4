"""Which brokers a plan runs on: its own, those that were named, or every one at every setting."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ackworth.model.errors import BadInput
from ackworth.plan.tree import Place, Tree, plant, put

AXIS = "broker"
EVERY = "every"

# What `every` stands for: of each broker, the settings that are worth a row each.
Catalogue = Mapping[str, Sequence[Mapping[str, Any]]]


def asks_for_every(tree: Tree) -> bool:
    axis = _matrix(tree).get(AXIS)
    return axis is not None and axis.value == EVERY


def on(tree: Tree, named: Sequence[str], catalogue: Catalogue) -> Tree:
    """The plan on the named brokers; where it asks for every broker, on those of the catalogue."""
    if asks_for_every(tree):
        rows = [{"kind": kind, "settings": dict(s)} for kind, levels in catalogue.items() for s in levels]
        if not rows:
            raise BadInput("no broker is installed here: see `ackworth brokers`, and `ackworth brokers install`")
        return _with_axis(tree, AXIS, rows)
    listed = _matrix(tree).get(AXIS)
    if named and listed is not None and isinstance(listed.value, list):
        return _with_axis(tree, AXIS, _chosen(listed.plain(), named))
    if len(named) > 1:
        return _with_axis(tree, "broker.kind", list(named))
    return put(tree, "broker.kind", plant(named[0], Place(f"--broker {named[0]}", 0))) if named else tree


def _chosen(rows: list[Any], named: Sequence[str]) -> list[Any]:
    kinds = dict.fromkeys(str(row.get("kind")) for row in rows if isinstance(row, dict))
    for name in named:
        if name not in kinds:
            raise BadInput(f"--broker {name}: the plan's matrix has none of it: choose among {', '.join(kinds)}")
    return [row for row in rows if not isinstance(row, dict) or row.get("kind") in named]


def _matrix(tree: Tree) -> dict[str, Tree]:
    matrix = (tree.mapping or {}).get("matrix")
    return (matrix.mapping or {}) if matrix is not None else {}


def _with_axis(tree: Tree, path: str, values: list[Any]) -> Tree:
    matrix = {**_matrix(tree), path: plant(values, tree.place)}
    return replace(tree, value={**(tree.mapping or {}), "matrix": Tree(matrix, tree.place)})
