import pytest

from ackworth.report import text


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "0 ns"),
        (7, "7.00 ns"),
        (843, "843 ns"),
        (999.6, "1.00 µs"),
        (1_234, "1.23 µs"),
        (12_345_678, "12.3 ms"),
        (999_600_000, "1.00 s"),
        (1_500_000_000, "1.50 s"),
        (3_661_000_000_000, "3,661 s"),
        (None, "unknown"),
    ],
)
def test_durations_have_three_digits_that_count(nanoseconds: float | None, shown: str) -> None:
    assert text.duration(nanoseconds) == shown


def test_what_is_none_is_never_shown_as_nothing() -> None:
    shown = [text.count(None), text.rate(None), text.size(None), text.seconds(None), text.duration(None)]
    assert shown == ["unknown"] * 5
    assert text.quantity("java", None) == ("java", "unknown")


def test_a_little_is_never_shown_as_nothing() -> None:
    assert text.size(1) == "<0.01 MiB"
    assert text.rate(0.001) == "<0.01/s"
    assert text.rate(0) == "0/s"


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (1, 10_000_000, "<0.01%"),
        (9_999_999, 10_000_000, ">99.99%"),
        (0, 5, "0%"),
        (5, 5, "100%"),
        (1, 3, "33.33%"),
        (0, 0, "none"),
    ],
)
def test_a_share_is_whole_only_when_it_is(part: int, whole: int, shown: str) -> None:
    assert text.share(part, whole) == shown


def test_counts_have_separators_and_sizes_are_mib() -> None:
    assert text.count(96_169_628) == "96,169,628"
    assert text.size(1536 * 2**20) == "1,536 MiB"
    assert text.rate(18_986.6) == "18,987/s"


def test_the_unit_at_the_end_of_a_key_moves_to_the_value() -> None:
    assert text.quantity("struck_ms", 43.21) == ("struck", "43.2 ms")
    assert text.quantity("memory_bytes", 2**30) == ("memory", "1,024 MiB")
    assert text.quantity("down_seconds", 1.0) == ("down", "1.00 s")
    assert text.quantity("cores", 2) == ("cores", "2")
    assert text.quantity("clean", True) == ("clean", "True")


def test_what_an_output_cannot_carry_is_replaced() -> None:
    assert text.clean("a\x1b[31m\x00\u202e\ud800\tb\nc") == "a\ufffd[31m\ufffd\ufffd\ufffd\tb\nc"


def test_outline_reads_like_the_plan() -> None:
    plan = {
        "workload": {"topics": 256, "body": [1, 2]},
        "faults": [{"kind": "power-cut"}],
        "x": None,
        "y": {},
        "z": True,
    }
    assert text.outline(plan) == (
        "workload:\n  topics: 256\n  body: [1, 2]\nfaults:\n  -\n    kind: power-cut\nx: null\ny: {}\nz: true"
    )
