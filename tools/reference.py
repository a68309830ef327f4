"""Writes docs/reference from the code. Nothing in those pages is written by hand, so nothing in them can be stale.

python -m tools.reference
"""

import contextlib
import dataclasses
import enum
import inspect
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from ackworth.broker import registry
from ackworth.broker.contract import Broker
from ackworth.cli import main as cli
from ackworth.fault import contract as faults
from ackworth.history import meta, schema
from ackworth.model import outcome, result, verdict
from ackworth.plan import model, reader
from ackworth.plan.tree import SIZES
from ackworth.run import directory

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
MADE = "<!-- Made by `make docs` from the code: change the code, not this page. -->"


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    made = {"cli.md": cli_page(), "plan.md": plan_page(), "record.md": record_page(), "results.md": results_page()}
    return {name: "\n\n".join([MADE, *parts]) + "\n" for name, parts in made.items()}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


# ---- the command ------------------------------------------------------------------------------------


def cli_page() -> Iterator[str]:
    yield "# The command"
    yield "What `ackworth --help` and the `--help` of each subcommand print."
    yield from _command()
    for name in cli.COMMANDS:
        yield from _command(name)
    yield from _command("brokers", "install")


def _command(*names: str) -> Iterator[str]:
    yield f"## {' '.join(['ackworth', *names])}"
    yield f"```text\n{_help(*names).rstrip()}\n```"


def _help(*names: str) -> str:
    """The help text at a fixed width, whatever terminal this runs in."""
    said = io.StringIO()
    with (
        mock.patch.dict(os.environ, COLUMNS="100"),
        contextlib.redirect_stdout(said),
        contextlib.suppress(SystemExit),
    ):
        cli.parser().parse_args([*names, "--help"])
    return said.getvalue()


# ---- the plan ---------------------------------------------------------------------------------------

VARIATIONS = f"""\
Beside the keys of a plan, a plan file may have these, from which its trials are made:

| key | takes | means |
| --- | --- | --- |
| `cases` | a mapping of case names to what differs | each case is laid over the rest of the plan |
| `matrix` | a mapping of dotted keys to lists of values | a trial for each combination of the values |
| `matrix.broker` | `every` | a trial for each broker that is installed, at each of its settings |
| `repeats` | a whole number of at least 1 | how often each trial is run; a case may have its own |

A trial is the plan, with its case laid over it, then its cell of the matrix, then each `--set`.
Any value may be written as `{{{": a, ".join(SIZES)}: b}}`: `--size` chooses."""


def plan_page() -> Iterator[str]:
    yield "# The plan"
    yield "Every key of a plan file. How to write one: [write a plan](../how-to/write-a-plan.md)."
    for cls, path in _nested(model.Plan, ""):
        yield f"## {f'`{path}`' if path else 'The whole'}"
        yield inspect.cleandoc(cls.__doc__ or "")
        yield _table(("key", "takes", "default", "means"), (_key(field) for field in dataclasses.fields(cls)))
    yield "## Cases, matrix and sizes"
    yield VARIATIONS
    yield "## Brokers"
    yield "What `broker.kind` may be, and what each broker's own settings are."
    for broker in registry.brokers().values():
        yield from _broker(broker)
    yield "## Faults"
    yield "What `faults.N.kind` may be. `ackworth brokers` says which of them can be had on a machine."
    rows = ((f"`{f.name}`", f.summary, _yes(f.needs_disk), _yes(f.ends_node)) for f in faults.faults().values())
    yield _table(("kind", "what it does", "needs a disk of its own", "the node is down afterwards"), rows)


def _nested(cls: Any, path: str) -> Iterator[tuple[Any, str]]:
    """A dataclass of the plan and, in order, those within it, each with its dotted key."""
    yield cls, path
    for field in dataclasses.fields(cls):
        inner = field.metadata["reader"].nested
        if inner is not None:
            many = isinstance(field.default, tuple) or str(field.type).startswith("tuple")
            yield from _nested(inner, ".".join(filter(None, (path, field.name, "N" if many else ""))))


def _key(field: Any) -> tuple[str, ...]:
    return f"`{field.name}`", field.metadata["reader"].words, _default(field), field.metadata["means"]


def _default(field: Any) -> str:
    """As a plan would say it."""
    value = field.default
    if value is dataclasses.MISSING:
        return "**required**" if field.default_factory is dataclasses.MISSING else "none"
    if field.metadata["reader"].nested is not None and value != ():
        return "its defaults"
    if value is None:
        return "`max`" if field.metadata["reader"] is reader.rate else "none"
    return f"`{_value(value, field.metadata['reader'])}`" if value not in ((), "") else "none"


def _value(value: Any, read_by: reader.Reader) -> str:
    if isinstance(value, model.BodySize):
        return str(value.largest)
    if read_by is reader.duration:
        return f"{value:g}s"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _broker(broker: Broker) -> Iterator[str]:
    yield f"### `{broker.name}`"
    topologies = (f"`{topology}` (nodes: {_codes(broker.nodes(topology))})" for topology in broker.topologies)
    yield f"{broker.summary}. Topologies: {'; '.join(topologies)}."
    rows = (
        (f"`{name}`", _codes(setting.values), f"`{setting.default}`", setting.means)
        for name, setting in broker.settings.items()
    )
    yield _table(("setting", "values", "default", "means"), rows)
    yield "What it claims, setting by setting, the others at their defaults:"
    yield _table(("settings", "an acked message survives", "in order", "once", "source"), _claims(broker))
    for topology in broker.topologies:
        if spared := broker.claims(registry.settle(broker, {}), topology).survives_in_part:
            survived = _codes(sorted(spared))
            yield f"In the topology `{topology}` it survives {survived} at any setting if some nodes are spared."


def _claims(broker: Broker) -> Iterator[tuple[str, ...]]:
    for name, setting in broker.settings.items():
        for value in setting.values:
            claims = broker.claims(registry.settle(broker, {name: value}))
            survives = _codes(sorted(claims.survives))
            ordered = "to one consumer" if claims.ordered_alone else _yes(claims.ordered)
            yield f"`{name}: {value}`", survives, ordered, _yes(claims.once), claims.source


# ---- the record and the results ---------------------------------------------------------------------


def record_page() -> Iterator[str]:
    yield "# The record"
    yield f"Version {schema.VERSION}. What it is for and why it is so: [design](../design.md#the-record)."
    yield inspect.cleandoc(schema.__doc__ or "").partition("\n\n")[2].replace("A trial is", "A trial's record is", 1)
    yield (
        f"A row group has {schema.ROWS_PER_GROUP:,} rows, a segment {schema.ROWS_PER_SEGMENT:,}, "
        f"a chunk of the spool {schema.ROWS_PER_CHUNK:,}; the last of a series may have fewer."
    )
    for table in schema.TABLES.values():
        yield f"## Table `{table.name}`"
        rows = ((f"`{c.name}`", c.type, _encoding(c), c.means) for c in table.columns)
        yield _table(("column", "type", "encoding", "means"), rows)
    yield "## Values of `outcome.outcome`"
    yield _members(outcome.Outcome)
    yield "## Bits of `delivered.flags`"
    yield _members(outcome.Delivery)
    for name, cls in (("run.json", directory.Run), ("trial.json", meta.Trial), ("end.json", meta.End)):
        yield f"## `{name}`"
        yield from _fields(cls)


def results_page() -> Iterator[str]:
    yield "# The results"
    yield "What `results.json` in a run's directory holds, and what `--json` prints."
    yield inspect.cleandoc(result.__doc__ or "").partition("\n\n")[2]
    declared = [thing for thing in vars(result).values() if getattr(thing, "__module__", "") == result.__name__]
    for cls in reversed(declared):  # the whole is declared after its parts
        yield f"## {cls.__name__}"
        yield from _fields(cls)


def _encoding(column: schema.Column) -> str:
    return "delta, bit-packed" if column.packed else "dictionary"


def _members(values: type[enum.IntEnum] | type[enum.IntFlag]) -> str:
    comments = _comments(values)
    rows = ((str(int(v)), name.lower(), comments[name]) for name, v in values.__members__.items())
    return _table(("value", "name", "means"), rows)


def _fields(cls: type) -> Iterator[str]:
    if cls.__doc__ and not cls.__doc__.startswith("dict("):
        yield inspect.cleandoc(cls.__doc__)
    comments = _comments(verdict.Check if cls is result.CheckResult else cls)
    rows = ((f"`{name}`", f"`{kind}`", comments.get(name, "")) for name, kind in _annotations(cls).items())
    yield _table(("field", "type", "means"), rows)


def _annotations(cls: type) -> Mapping[str, str]:
    return {name: _matched(cls, rf"^    {name}: (.+?)(?: = .*)?(?:  # .*)?$") for name in cls.__annotations__}


def _matched(cls: type, pattern: str) -> str:
    found = re.search(pattern, inspect.getsource(cls), re.MULTILINE)
    assert found is not None, f"{cls.__name__} has no line that looks like {pattern}"
    return found[1]


def _comments(cls: type) -> Mapping[str, str]:
    """What the comment beside each field or member says."""
    return dict(re.findall(r"^    (\w+)(?::| =).*?  # (.+)$", inspect.getsource(cls), re.MULTILINE))


# ---- Markdown ---------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """A text that neither ends its cell nor opens a tag."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def _codes(values: Iterable[Any]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


if __name__ == "__main__":
    main()
