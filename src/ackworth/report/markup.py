"""Markup that cannot be broken by what it shows: whatever is not Html yet is escaped on its way in."""

import html
from collections.abc import Sequence

from ackworth.report.text import clean

_VOID = {"meta"}


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def escape(text: str) -> Html:
    return text if isinstance(text, Html) else Html(html.escape(clean(text)))


def join(*parts: str | None) -> Html:
    return Html("".join(escape(part) for part in parts if part is not None))


def tag(name: str, /, *children: str | None, **attributes: str | float | None) -> Html:
    """An element. An attribute that is None or False is left out; class_ is class, aria_label is aria-label."""
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(opening if name in _VOID else f"{opening}{join(*children)}</{name}>")


def _attribute(key: str, value: str | float | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(clean(_plain(value)))}"'


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}" if isinstance(value, float) else str(value)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, label: str, class_: str) -> Html:
    """A table whose first column names the row. Class 'stack' turns rows into cards on a narrow screen."""
    header = tag("tr", *(tag("th", name, scope="col") for name in head))
    body = [tag("tr", *_cells(head, row)) for row in rows]
    inner = tag("table", tag("thead", header), tag("tbody", *body), class_=class_)
    return tag("div", inner, class_="scroll", role="region", aria_label=label)


def _cells(head: Sequence[str], row: Sequence[str]) -> list[Html]:
    cells = [tag("td", cell, data_label=name) for name, cell in zip(head[1:], row[1:], strict=True)]
    return [tag("th", row[0], scope="row"), *cells]
