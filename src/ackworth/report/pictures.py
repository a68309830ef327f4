"""The account and the losses as pictures: bars whose widths are counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ackworth.model.result import Account, GroupAccount, Loss
from ackworth.report.labels import LAPTOP, PHONE, width
from ackworth.report.markup import Html, join, tag
from ackworth.report.text import count, share

BAR = 30
LANE = 14
SLIVER = 0.006  # of the width: what exists is seen, however little it is


@dataclass(frozen=True)
class Part:
    name: str
    number: int
    style: str


def account_picture(account: Account, groups: Sequence[GroupAccount]) -> Html:
    """What was sent, split by its outcome; below it, column by column, what each group got of it."""
    parts = [
        Part("acked", account["acked"], "acked"),
        Part("unknown", account["unknown"], "unsure"),
        Part("unanswered", account["unanswered"], "unanswered"),
        Part("refused", account["refused"], "refused"),
    ]
    acked, unknown, unanswered, refused = visible_widths([part.number for part in parts])
    rows = [
        _row(
            "sent",
            [(acked, parts[:1]), (unknown, parts[1:2]), (unanswered, parts[2:3]), (refused, parts[3:])],
        )
    ]
    for group in groups:
        columns = zip((acked, unknown + unanswered, refused), _group_parts(account, group), strict=True)
        rows.append(_row(f"reached group {group['name']}", list(columns)))
    drawn = [*parts, *(part for group in groups for column in _group_parts(account, group) for part in column)]
    if any(0 < part.number < SLIVER * account["sent"] for part in drawn):
        rows.append(tag("p", "The thinnest parts are drawn wider than they are.", class_="quiet"))
    words = ", ".join(f"{part.name} {count(part.number)}" for part in parts)
    return tag("div", *rows, class_="account", role="img", aria_label=f"Sent {count(account['sent'])}: {words}")


def _group_parts(account: Account, group: GroupAccount) -> list[list[Part]]:
    """What became of the acked, of those without a definite answer, and of the refused."""
    unsure = account["unknown"] + account["unanswered"]
    return [
        [
            Part("delivered", group["expected"] - group["lost"], "delivered"),
            Part("lost", group["lost"], "lost"),
            Part("not for this group", account["acked"] - group["expected"], "empty"),
        ],
        [
            Part("recovered", group["recovered"], "recovered"),
            Part("not delivered", unsure - group["recovered"], "empty"),
        ],
        [
            Part("resurrected", group["resurrected"], "lost"),
            Part("not delivered", account["refused"] - group["resurrected"], "empty"),
        ],
    ]


def visible_widths(numbers: Sequence[int], whole: float = 1) -> list[float]:
    """Shares of the whole; slivers are widened until they can be seen, at the cost of the others."""
    total = sum(numbers) or 1
    widened = [max(whole * number / total, SLIVER) if number > 0 else 0 for number in numbers]
    return [whole * wide / (sum(widened) or 1) for wide in widened]


def _row(name: str, columns: Sequence[tuple[float, Sequence[Part]]]) -> Html:
    parts = [part for _, column in columns for part in column]
    widths = [wide for whole, column in columns for wide in visible_widths([p.number for p in column], whole)]
    begins = accumulate(widths, initial=0.0)
    bars = [_segment(*placed) for placed in zip(parts, begins, widths, strict=False) if placed[2] > 0]
    total = sum(part.number for part in parts)
    legend = [_legend_item(part, total) for part in parts if part.number > 0]
    drawing = tag("svg", *bars, class_="bar", height=BAR)
    return join(tag("h5", name), drawing, tag("ul", *legend, class_="parts"))


def _legend_item(part: Part, total: int) -> Html:
    key = tag("i", class_=part.style)
    return tag("li", key, f"{part.name} ", tag("b", count(part.number)), f" {share(part.number, total)}")


def _segment(part: Part, begin: float, wide: float) -> Html:
    bar = tag("rect", class_=part.style, x=_percent(begin), width=_percent(wide), y=0, height=BAR)
    if width(part.name, LAPTOP) > wide:
        return bar
    class_ = part.style if width(part.name, PHONE) <= wide else f"{part.style} wide"
    name = tag("text", part.name, x=_percent(begin + wide / 2), y=BAR / 2 + 4, text_anchor="middle", class_=class_)
    return join(bar, name)


def loss_strip(loss: Loss) -> Html:
    """A lane for every producer that lost something, with its lost ranges where they lie among its messages."""
    lanes = [_lane(loss, producer) for producer in sorted({found[0] for found in loss["ranges"]})]
    label = f"Where the {count(loss['count'])} lost messages of group {loss['group']} lie, by producer"
    return tag("div", *lanes, class_="losses", role="img", aria_label=label)


def _lane(loss: Loss, producer: int) -> Html:
    ranges = [(first, last) for owner, first, last in loss["ranges"] if owner == producer]
    end = loss["sent_by"][producer]
    marks = [
        tag(
            "rect",
            class_="lost",
            x=_percent(first / end),
            width=_percent((last + 1 - first) / end),
            height=LANE,
        )
        for first, last in ranges
    ]
    ground = tag("rect", class_="ground", width="100%", height=LANE)
    names = f"producer {producer}, from its first message", f"to its last, of {count(end)}"
    ends = tag("p", *(tag("span", name) for name in names), class_="ends")
    return join(ends, tag("svg", ground, *marks, class_="bar", height=LANE))


def _percent(place: float) -> str:
    return f"{100 * place:.3f}%"
