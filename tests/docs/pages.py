"""The documentation as tests see it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for pattern in ("*.md", "docs/**/*.md", "brook/*.md") for page in ROOT.glob(pattern))


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def files(page: str) -> dict[str, str]:
    """The files that a page tells its reader to write: a path in backquotes with a colon, then a block."""
    return dict(re.findall(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)
