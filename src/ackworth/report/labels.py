"""Labels that never lie on each other, from a phone's width upwards.

Text keeps its size while a chart grows and shrinks, so labels that are apart on the narrowest screen
are apart on all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

PHONE = 290  # pixels of a plot on the narrowest screen that counts
LAPTOP = 760
CHARACTER = 7.2  # pixels, of a wide font
LONGEST = 20


@dataclass(frozen=True)
class Label:
    text: str
    begin: float  # 0 to 1 of the plot's width
    end: float
    anchor: str
    row: int = 0

    @property
    def at(self) -> float:
        return {"start": self.begin, "middle": (self.begin + self.end) / 2, "end": self.end}[self.anchor]


def width(text: str, screen: int = PHONE) -> float:
    """The part of a plot's width that the text takes."""
    return (len(text) * CHARACTER + 8) / screen


def beside(text: str, place: float) -> Label:
    """A label that begins at its place, or ends there if the plot ends soon."""
    short = shorten(text)
    if place <= 0.5:
        return Label(short, place, place + width(short), "start")
    return Label(short, place - width(short), place, "end")


def in_rows(labels: Sequence[Label], rows: int) -> list[Label]:
    """The labels, each in the first row where it is free of the others; what fits nowhere is left out."""
    placed: list[Label] = []
    for label in labels:
        for row in range(rows):
            if not any(p.row == row and p.begin < label.end and label.begin < p.end for p in placed):
                placed.append(Label(label.text, label.begin, label.end, label.anchor, row))
                break
    return placed


def shorten(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
