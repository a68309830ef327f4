"""From a plan file to its trials: cases x matrix x repeats, at a size, with --set on top.

    base <- case <- matrix cell <- --set, and then the size is chosen

A case is a named overlay of the whole plan; a matrix maps dotted keys to lists of values.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ackworth.model.errors import BadInput
from ackworth.model.words import nearest
from ackworth.plan import brokers, reader
from ackworth.plan.model import Plan
from ackworth.plan.reader import RateOf
from ackworth.plan.tree import SIZES, Place, Tree, for_size, get, load, overlay, parse, put

VARIATIONS = ("cases", "matrix", "repeats")
MOST_TRIALS = 10_000  # of a run: more would be an oversight

Cell = list[tuple[str, Tree]]


@dataclass(frozen=True)
class TrialPlan:
    name: str  # unique within the run, fit for a directory
    plan: Plan
    tree: Tree  # what the plan was read from
    case: str = ""
    cell: str = ""  # of the matrix
    repeat: int = 1

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Bad input that is found in here is said to stand where the plan says this, or what it is a part of."""
        try:
            yield
        except BadInput as error:
            places = (get(self.tree, part) for part in itertools.accumulate(key.split("."), "{}.{}".format))
            place = [self.tree.place, *(found.place for found in places if found is not None)][-1]
            raise BadInput(f"{place}: {error}") from error


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


def trials(tree: Tree, size: str, sets: Sequence[str] = (), repeats: int | None = None) -> list[TrialPlan]:
    """Every trial of the plan; `repeats` instead of what it says of them. Raises BadInput."""
    if size not in SIZES:
        raise BadInput(f"unknown size '{size}'{nearest(size, SIZES)}")
    if tree.mapping is None:
        raise BadInput(f"{tree.place}: a plan is a mapping of keys, this is {reader.shown(tree)}")
    base = _without(tree, *VARIATIONS)
    changes = [_set(text) for text in sets]
    found: list[TrialPlan] = []
    for case_name, case in _cases(tree.mapping.get("cases")):
        often = repeats or _repeats((case.mapping or {}).get("repeats") or tree.mapping.get("repeats"), size)
        for cell_name, cell in _cells(tree.mapping.get("matrix")):
            whole = overlay(base, _without(case, "repeats"))
            for path, leaf in (*cell, *changes):
                whole = put(whole, path, leaf)
            if not _contradicted(cell, whole):
                if len(found) + often > MOST_TRIALS:
                    raise BadInput(f"{tree.place}: more than {MOST_TRIALS:,} trials: repeat less, or vary fewer keys")
                sized = for_size(whole, size)
                plan = reader.read(Plan, sized)
                found += [_trial(plan, sized, case_name, cell_name, n, often) for n in range(1, often + 1)]
    if not found:
        raise BadInput(f"--set {' --set '.join(sets)}: leaves nothing of the plan's matrix: choose among its values")
    _check_names(found, tree.place)
    _check_references(found, tree.place)
    return found


def _trial(plan: Plan, tree: Tree, case: str, cell: str, repeat: int, repeats: int) -> TrialPlan:
    parts = (case, cell, str(repeat) if repeats > 1 else "")
    return TrialPlan("-".join(filter(None, parts)) or "trial", plan, tree, case, cell, repeat)


def referred(trial: TrialPlan, among: Sequence[TrialPlan]) -> list[TrialPlan]:
    """The trials whose speed a trial's rates are parts of."""
    cases = {phase.rate.case for phase in trial.plan.workload.phases if isinstance(phase.rate, RateOf)}
    return [other for other in among if other.case in cases and other.cell == trial.cell]


def _check_names(found: Sequence[TrialPlan], place: Place) -> None:
    """Each trial has a directory of its own."""
    for name, often in Counter(trial.name for trial in found).items():
        if often > 1:
            raise BadInput(f"{place}: {often} trials are called '{name}': give cases and values that read differently")


def _check_references(found: Sequence[TrialPlan], place: Place) -> None:
    for number, trial in enumerate(found):
        for phase in trial.plan.workload.phases:
            if not isinstance(phase.rate, RateOf):
                continue
            earlier = [other.case for other in found[:number] if other.cell == trial.cell]
            if phase.rate.case not in earlier:
                raise BadInput(
                    f"{place}: the rate of phase '{phase.name}' is a part of '{phase.rate.case}', "
                    f"but no earlier case has that name{nearest(phase.rate.case, earlier)}"
                )


def _without(tree: Tree, *keys: str) -> Tree:
    return tree if tree.mapping is None else Tree({k: v for k, v in tree.mapping.items() if k not in keys}, tree.place)


def _repeats(tree: Tree | None, size: str) -> int:
    if tree is None:
        return 1
    value = for_size(tree, size).value
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadInput(f"{tree.place}: key 'repeats' is {value!r}, but must be a whole number of at least 1")
    return value


def _cases(tree: Tree | None) -> list[tuple[str, Tree]]:
    if tree is None:
        return [("", Tree({}, Place("", 0)))]
    if not isinstance(tree.value, dict) or not tree.value:
        raise BadInput(f"{tree.place}: key 'cases' must be a mapping of case names to what differs")
    for name, case in tree.value.items():
        if case.mapping is None:
            raise BadInput(f"{case.place}: case '{name}' is {reader.shown(case)}, but must be what differs, or {{}}")
    return [(_name(name, case.place), case) for name, case in tree.value.items()]


def _cells(tree: Tree | None) -> list[tuple[str, Cell]]:
    if tree is None:
        return [("", [])]
    axes = [_axis(path, values) for path, values in (tree.mapping or {"": tree}).items()]
    return [("-".join(_cell_name(*pair) for pair in cell), list(cell)) for cell in itertools.product(*axes)]


def _axis(path: str, values: Tree) -> Cell:
    if path == brokers.AXIS and values.value == brokers.EVERY:
        raise BadInput(f"{values.place}: `{path}: {brokers.EVERY}` needs to know which brokers there are")
    if not path or not isinstance(values.value, list) or not values.value:
        raise BadInput(
            f"{values.place}: key 'matrix' must map dotted keys to lists of values, such as "
            "{broker.settings.durability: [full, normal]}"
        )
    for leaf in values.value:
        if path == brokers.AXIS and not _is_broker(leaf.plain()):
            raise BadInput(
                f"{leaf.place}: a value of '{path}' in a matrix is a mapping with `kind`, and perhaps `settings`"
            )
    return [(path, leaf) for leaf in values.value]


def _is_broker(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("kind"), str) and isinstance(row.get("settings", {}), dict)


def _contradicted(cell: Cell, whole: Tree) -> bool:
    """Whether --set, or another axis, has made a value of the cell another one: then the cell is not asked for."""
    found = [(get(whole, path), leaf) for path, leaf in cell]
    return any(there is None or not _keeps(there.plain(), leaf.plain()) for there, leaf in found)


def _keeps(found: Any, asked: Any) -> bool:
    """A row of several keys may be added to, but what it says stays as it is."""
    if isinstance(found, dict) and isinstance(asked, dict):
        return all(found.get(key) == value for key, value in asked.items())
    return bool(found == asked)


def _cell_name(path: str, leaf: Tree) -> str:
    if path == brokers.AXIS:
        broker = {**leaf.plain()}
        kind, settings = broker.pop("kind"), broker.pop("settings", {})
        return _name(",".join([kind, *(f"{k}={v}" for k, v in (broker | settings).items())]), leaf.place)
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
    if (head := path.strip().partition(".")[0]) in VARIATIONS:
        instead = "give --repeats N" if head == "repeats" else "change it in a plan of your own"
        raise BadInput(f"{where}: '{head}' is what trials are made from, and no key of a trial: {instead}")
    return path.strip(), Tree(parse(value, where).value, Place(where, 0))
