"""Whether the page can be read: the contrast of every text with what is behind it."""

import re
from importlib.resources import files

import pytest

READABLE = 4.5  # WCAG 2, level AA, for text of usual size
PAIRS = [
    *((ink, paper) for ink in ("ink", "soft", "held", "broken", "unknown") for paper in ("paper", "panel")),
    *((verdict, f"{verdict}-paper") for verdict in ("held", "broken", "unknown")),
    *(("soft", phase) for phase in ("phase", "phase-odd")),
    *(("on-bar", f"bar-{part}") for part in ("acked", "delivered", "lost", "unsure", "refused")),
    *(("on-pale-bar", f"bar-{part}") for part in ("recovered", "unanswered")),
]


def _colours(scheme: str) -> dict[str, str]:
    css = files("ackworth.report").joinpath("assets", "report.css").read_text(encoding="utf-8")
    day, night = (
        dict(re.findall(r"--([a-z-]+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", css, re.S)
    )
    return day if scheme == "light" else day | night


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "paper"), PAIRS)
def test_text_stands_out_from_its_ground(scheme: str, ink: str, paper: str) -> None:
    colours = _colours(scheme)
    dark, bright = sorted(_luminance(colours[name]) for name in (ink, paper))
    assert (bright + 0.05) / (dark + 0.05) >= READABLE
