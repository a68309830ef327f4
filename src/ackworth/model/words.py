"""Words for people: near misses and counts."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """': did you mean ...?', or what there is."""
    names = sorted(known)
    if not names:
        return ": there is none"
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f": did you mean '{near[0]}'?" if near else f": known are {', '.join(names)}"


def counted(number: int, what: str) -> str:
    """ "3 lost messages", "1 corrupt delivery", "2 processes"."""
    if number == 1:
        return f"1 {what}"
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number:,} {many}"
