"""A YAML file as a tree in which every value knows its place, so that an error can name it.

A tree is a mapping (dict of str to Tree), a list (of Trees) or a scalar, wrapped with the file and
line that it came from. Overlays, sizes and `--set` work on trees; `reader` turns one into data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from ackworth.model.errors import BadInput

SIZES = ("small", "published")
MOST_VALUES = 100_000  # of a plan: a few aliases of aliases would be more than any machine can hold

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Place:
    file: str
    line: int  # from 1; 0 where there are no lines, as in --set

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Tree:
    value: dict[str, Tree] | list[Tree] | Scalar
    place: Place

    @property
    def mapping(self) -> dict[str, Tree] | None:
        return self.value if isinstance(self.value, dict) else None

    def plain(self) -> Any:
        """The tree as JSON-like data, its places forgotten."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value


class _Loader(yaml.SafeLoader):
    """Safe, and with YAML 1.2's idea of a boolean: `off` and `no` are words, as settings want them.

    A whole number may be written with underscores, and a number with an exponent needs no point.
    """

    values = 0  # read so far, those that aliases repeat included


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag in ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _regexp, _first in (
    ("tag:yaml.org,2002:bool", r"^(?:true|false)$", "tf"),
    ("tag:yaml.org,2002:int", r"^[-+]?[0-9][0-9_]*$", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"^[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?$", "-+0123456789"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_regexp), list(_first))
# YAML 1.1 would read 010 as 8.
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value.replace("_", "")))


def parse(text: str, file: str) -> Tree:
    """The tree of a YAML text. Raises BadInput with the line of whatever is wrong."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise BadInput(f"{file}: the file is empty: a plan needs at least a name, a title and a workload")
            return _tree(loader, node, file)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        why = ", ".join(part for part in (error.context, error.problem) if part)
        raise BadInput(f"{Place(file, line)}: not YAML: {why}") from error
    except yaml.YAMLError as error:
        raise BadInput(f"{file}: not YAML: {str(error).splitlines()[0]}") from error
    except RecursionError:
        raise BadInput(f"{file}: a value is inside of itself, or of too many others: write it out") from None


def load(path: Path) -> Tree:
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise BadInput(
            f"{path}: cannot be read ({error.strerror}): name a plan file or one of `ackworth plans`"
        ) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start}): a plan is a YAML file") from error


def _tree(loader: _Loader, node: yaml.Node, file: str) -> Tree:
    place = Place(file, node.start_mark.line + 1)
    loader.values += 1
    if loader.values > MOST_VALUES:
        raise BadInput(f"{place}: more than {MOST_VALUES:,} values in a plan: repeat less by aliases")
    if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
        raise BadInput(f"{place}: the tag {node.tag} is not for plans: write a plain value")
    if isinstance(node, yaml.MappingNode):
        children: dict[str, Tree] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in children:
                raise BadInput(f"{Place(file, key_node.start_mark.line + 1)}: key '{key}' stands twice: keep one")
            children[key] = _tree(loader, value_node, file)
        return Tree(children, place)
    if isinstance(node, yaml.SequenceNode):
        return Tree([_tree(loader, child, file) for child in node.value], place)
    try:
        return Tree(loader.construct_object(node), place)
    except (ValueError, KeyError):
        raise BadInput(f"{place}: {node.value!r} is not of the kind that its tag says: leave the tag away") from None


def plant(value: Any, place: Place) -> Tree:
    """Plain data as a tree, all of it from one place."""
    if isinstance(value, dict):
        return Tree({str(key): plant(child, place) for key, child in value.items()}, place)
    if isinstance(value, list):
        return Tree([plant(child, place) for child in value], place)
    return Tree(value, place)


def overlay(base: Tree, over: Tree) -> Tree:
    """Mappings are merged key by key; anything else is replaced."""
    below, above = base.mapping, over.mapping
    if below is None or above is None:
        return over
    merged = dict(below)
    for key, child in above.items():
        merged[key] = overlay(below[key], child) if key in below else child
    return replace(base, value=merged)


def get(base: Tree, path: str) -> Tree | None:
    """The value at a dotted key; None if there is none."""
    head, _, rest = path.partition(".")
    items = {str(i): item for i, item in enumerate(base.value)} if isinstance(base.value, list) else base.mapping
    child = (items or {}).get(head)
    return get(child, rest) if rest and child is not None else child


def put(base: Tree, path: str, leaf: Tree) -> Tree:
    """The base with the value at a dotted key replaced; a number in the key picks from a list."""
    head, _, rest = path.partition(".")
    if isinstance(base.value, list):
        if not head.isdigit() or int(head) >= len(base.value):
            raise BadInput(f"{leaf.place}: '{head}' picks nothing from a list of {len(base.value)}: count from 0")
        items = list(base.value)
        items[int(head)] = put(items[int(head)], rest, leaf) if rest else leaf
        return replace(base, value=items)
    children = dict(base.value) if isinstance(base.value, Mapping) else {}
    children[head] = put(children.get(head, Tree({}, leaf.place)), rest, leaf) if rest else leaf
    return replace(base, value=children)


def for_size(tree: Tree, size: str) -> Tree:
    """Each `{small: a, published: b}` replaced by its value at that size."""
    if isinstance(tree.value, list):
        return replace(tree, value=[for_size(child, size) for child in tree.value])
    if not isinstance(tree.value, dict):
        return tree
    if tree.value and set(tree.value) <= set(SIZES):
        if size not in tree.value:
            raise BadInput(
                f"{tree.place}: no value for size '{size}': add '{size}:' beside '{next(iter(tree.value))}:'"
            )
        return for_size(tree.value[size], size)
    return replace(tree, value={key: for_size(child, size) for key, child in tree.value.items()})
