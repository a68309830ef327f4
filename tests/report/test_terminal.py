import io
import re
import textwrap
from pathlib import Path

import pytest

from ackworth.report.terminal import Style, render_terminal
from ackworth.testing.results import broken_trial, held_trial, hostile_run, sample_run, unknown_trial


def test_one_trial_whole() -> None:
    assert render_terminal(sample_run(broken_trial()), Style(), Path("runs/reboot/report.html")) == textwrap.dedent(
        """\
        ✗ BROKEN  2,048 of 612,480 acked messages did not survive the power cut.

        Check        Verdict   Seen
        -----------  --------  -----------------------------------------------------------------------------
        lost         ✗ broken  2,048 of 612,480 acked messages never came (first: 0/153480, 0/153481,
                               0/153482)
        resurrected  ✓ held    none was delivered
        phantom      ✓ held    nothing was
        corrupt      ✓ held    every byte was compared
        duplicates   ✓ held    0 repeats, all explained
        order        ✓ held    all in order

        account          618,720 sent = 612,480 acked + 2,048 refused + 3,900 unknown + 292 unanswered
        group all        610,432 of 612,480 acked delivered, 2,048 lost
        throughput       acked 29,166/s, delivered 87,205/s, acked peak 33,262/s, delivered peak 103,021/s
        due→ack          p50 2.40 ms, p99 15.0 ms, p99.9 25.1 ms, max 42.0 ms, 292 never came back
        sent→ack         p50 2.30 ms, p99 14.0 ms, p99.9 24.0 ms, max 41.0 ms, 292 never came back
        sent→delivery    p50 9.90 s, p99 17.6 s, p99.9 never, max 21.0 s, 2,048 never came back
        power-cut brook  at 20.0 s; ready after 1.60 s, first ack after 1.74 s, first delivery after 3.02 s
        limit            The disk was the limit (busiest producer 0.30 of a core, disk busy 97%, machine
                         1.10 of 2 cores).
        note             The cut came at 20 s.

        Report: runs/reboot/report.html
        """
    )


def test_several_trials_begin_with_an_overview() -> None:
    text = render_terminal(sample_run(held_trial(), unknown_trial()), Style(width=80))
    assert (
        textwrap.dedent(
            """\
        ? UNKNOWN  The power cut was unavailable: no loop device can be had without
                   root: run as root.

        Trial           Verdict      Acked     Lost  Acked per second  Ack p99  Recovery
        --------------  ---------  -------  -------  ----------------  -------  --------
        item-1          ✓ held     398,720        0          18,987/s  15.0 ms    1.74 s
        item-2-no-root  ? unknown        0  unknown           unknown     none  no fault
        """
        )
        in text
    )
    assert "sent→ack       none measured" in text


def test_of_many_trials_only_what_did_not_hold_is_told() -> None:
    text = render_terminal(sample_run(*(held_trial(f"cell-{n}") for n in range(9)), broken_trial()), Style())
    assert text.count("✓ held") == 9
    assert "account" not in text
    assert "0/153480" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_facts_keep_to_the_width(width: int) -> None:
    facts = render_terminal(sample_run(broken_trial()), Style(width=width)).split("\n\n")
    assert max(len(line) for block in (facts[0], facts[2]) for line in block.splitlines()) <= width


@pytest.mark.parametrize("width", [40, 60])
def test_a_table_that_a_terminal_would_break_has_a_line_for_each_cell(width: int) -> None:
    text = render_terminal(sample_run(), Style(width=width, room=width))
    assert max(map(len, text.splitlines())) <= width
    assert "\n  Acked per second  " in text
    assert "\nTrial  " in render_terminal(sample_run(), Style(width=width))  # a file has room to the right


def test_a_number_and_its_unit_stay_together() -> None:
    for width in range(40, 121):
        assert not re.search(r"\d\n +(ns|µs|ms|s|MiB)\b", render_terminal(sample_run(), Style(width=width)))


def test_a_check_without_a_reason_keeps_its_line() -> None:
    trial = held_trial()
    trial["checks"][0]["reason"] = ""
    assert "lost         ✓ held\n" in render_terminal(sample_run(trial), Style())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_needs_a_terminal_and_no_objection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert not Style.of(io.StringIO()).colour
    assert Style.of(Terminal()).colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Style.of(Terminal()).colour


@pytest.mark.parametrize(("columns", "width"), [("20", 40), ("90", 90), ("300", 120)])
def test_width_is_the_terminals_within_reason(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert Style.of(Terminal()).width == width


def test_colour_changes_nothing_but_the_colour() -> None:
    plain = render_terminal(sample_run(), Style())
    colourful = render_terminal(sample_run(), Style(colour=True))
    assert "\033[31m✗ broken\033[0m" in colourful
    for code in ("0", "1", "31", "32", "33", "1;31"):
        colourful = colourful.replace(f"\033[{code}m", "")
    assert colourful == plain


def test_hostile_texts_cannot_command_the_terminal() -> None:
    text = render_terminal(hostile_run(), Style())
    assert not {"\x1b", "\x00", "\u202e"} & set(text)
    text.encode("utf-8")
