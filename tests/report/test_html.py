"""The page as text: whole, escaped, honest about what is not known. How it looks is tested in a browser."""

from html.parser import HTMLParser
from typing import Any

import pytest

from ackworth.model.result import RunResult, TrialResult
from ackworth.report.html import MOST_POINTS, render
from ackworth.report.terminal import Style, render_terminal
from ackworth.report.text import fields
from ackworth.report.trial import BLIND_SPOTS
from ackworth.testing.results import HOSTILE, broken_trial, held_trial, hostile_run, sample_run, unknown_trial


class Outline(HTMLParser):
    """Elements, texts and headings of a page; fails on a tag that is not closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def headings(self, level: str) -> list[str]:
        return [text for tag, text in self.texts if tag == level]

    def all_text(self) -> str:
        return " ".join(text for tag, text in self.texts if tag not in {"style", "script"})


def _text(*trials: TrialResult) -> str:
    return Outline(render(sample_run(*trials))).all_text()


def test_page_is_well_formed_and_in_the_order_of_a_readers_questions() -> None:
    page = Outline(render(sample_run(broken_trial())))
    assert page.headings("h1") == ["2,048 of 612,480 acked messages did not survive the power cut."]
    assert page.headings("h3") == [
        "Checks",
        "Account",
        "Over time",
        "Latency percentiles",
        "Where the losses lie",
        "Recovery",
        "Published beside measured",
        "Resources",
        "Notes",
        "What the power cut cannot show",
        "Plan and broker",
    ]
    assert page.headings("h2") == ["item-2", "Environment"]


def test_page_needs_nothing_but_itself() -> None:
    for tag, attributes in Outline(render(sample_run())).tags:
        assert tag not in {"link", "img", "iframe", "object", "embed"}
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")


def test_policy_allows_only_what_is_in_the_page() -> None:
    metas = [attributes for tag, attributes in Outline(render(sample_run())).tags if tag == "meta"]
    policy = next(m["content"] or "" for m in metas if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_no_style_attribute_which_the_policy_would_stop() -> None:
    assert not [tag for tag, attributes in Outline(render(sample_run())).tags if "style" in attributes]


@pytest.mark.parametrize(
    ("trial", "badge"), [(held_trial(), "✓ held"), (broken_trial(), "✗ broken"), (unknown_trial(), "? unknown")]
)
def test_verdict_is_a_symbol_and_a_word(trial: TrialResult, badge: str) -> None:
    symbol, word = badge.split()
    page = render(sample_run(trial))
    assert f'<span class="badge {word}"><span aria-hidden="true">{symbol}</span> {word}</span>' in page
    assert f'<header class="masthead {word}">' in page


def test_overview_links_each_trial_to_its_section() -> None:
    page = Outline(render(sample_run()))
    links = [(attributes["href"] or "")[1:] for tag, attributes in page.tags if tag == "a"]
    sections = [attributes.get("id") for tag, attributes in page.tags if attributes.get("class") == "trial"]
    assert links == sections == ["trial-1", "trial-2", "trial-3"]
    assert "1 held, 1 broken, 1 unknown" in page.all_text()


def test_one_trial_has_no_overview() -> None:
    assert "All trials" not in render(sample_run(held_trial()))


@pytest.mark.parametrize(("trials", "are_open"), [(1, 1), (3, 3), (4, 0)])
def test_many_trials_are_folded(trials: int, are_open: int) -> None:
    page = Outline(render(sample_run(*(held_trial(f"cell-{n}") for n in range(trials)))))
    folded = [attributes for tag, attributes in page.tags if attributes.get("class") == "trial"]
    assert len(folded) == trials
    assert sum("open" in attributes for attributes in folded) == are_open


def test_nothing_recorded_is_said_and_not_drawn_as_zero() -> None:
    page = Outline(render(sample_run(unknown_trial())))
    text = page.all_text()
    assert "Throughput over time was not recorded." in text
    assert "Latency over time was not recorded." in text
    assert not [tag for tag, attributes in page.tags if attributes.get("class") == "chart"]


def test_percentile_among_those_that_never_came_back_is_never() -> None:
    rows = render(sample_run(held_trial()))
    assert '<th scope="row">p99.99</th><td data-label="due → ack">never</td>' in rows
    assert '<th scope="row">p99.9</th><td data-label="due → ack">25.1 ms</td>' in rows


def test_fault_without_recovery_says_never() -> None:
    trial = held_trial()
    trial["faults"][0].update({"ready": None, "first_ack": None, "first_delivery": None})
    page = render(sample_run(trial, trial))
    for column in ("Ready after", "First ack after", "First delivery after", "Recovery"):
        assert f'<td data-label="{column}">never</td>' in page


def test_a_fault_that_ended_the_load_does_not_say_that_it_was_never_acked_again() -> None:
    trial = held_trial()
    trial["faults"][0].update({"asked": False, "first_ack": None})
    assert '<td data-label="First ack after">nothing sent</td>' in render(sample_run(trial))
    assert '<td data-label="Recovery">3.02 s</td>' in render(sample_run(trial, trial))
    emptied = held_trial()
    emptied["faults"][0].update({"asked": False, "first_ack": None, "first_delivery": None})
    assert '<td data-label="Recovery">nothing sent</td>' in render(sample_run(emptied, emptied))
    assert "nothing sent afterwards, first delivery after" in render_terminal(sample_run(trial), Style(width=200))


def test_blind_spots_are_told_with_a_power_cut_only() -> None:
    killed = held_trial()
    killed["faults"][0]["name"] = "kill"
    assert BLIND_SPOTS[0] in _text(held_trial())
    assert BLIND_SPOTS[0] not in _text(killed)


def test_a_bar_that_is_not_to_scale_says_so() -> None:
    assert "The thinnest parts are drawn wider than they are." in _text(held_trial())
    assert "The thinnest parts" not in _text(unknown_trial())


def test_losses_are_placed_in_words_and_in_lanes() -> None:
    page = render(sample_run(broken_trial()))
    assert (
        "Group all lost 2,048 acked messages in 4 ranges and 256 topics, from 0/153480 to 3/153991: "
        "the tail of what was acked before the power-cut; they were acked 4.00 ms to 311 ms before it."
    ) in page
    assert page.count("to its last, of 154,680") == 4
    assert "<code>0/153480–153991</code>" in page


def test_what_is_not_drawn_of_the_losses_is_said() -> None:
    trial = broken_trial()
    assert "Drawn are" not in render(sample_run(trial))
    trial["losses"][0]["ranges_total"] = 5_000
    assert "Drawn are the first 4 of 5,000 ranges." in render(sample_run(trial))


def test_one_lost_message_is_one() -> None:
    trial = broken_trial()
    trial["losses"][0].update(
        count=1, first="0/7", last="0/7", ranges=[[0, 7, 7]], ranges_total=1, topics=1, seconds_before_fault=[0.3, 0.3]
    )
    assert (
        "Group all lost 1 acked message in 1 range and 1 topic, 0/7: the tail of what was acked before the power-cut; "
        "it was acked 300 ms before it."
    ) in render(sample_run(trial))


def test_published_names_both_machines() -> None:
    text = _text(held_trial())
    assert "Published on: 3 nodes of 4 vCPU (Xeon Platinum 8269CY), 8 GiB, cloud disk of 140 MB/s." in text
    assert "Measured on: AMD EPYC 7B13, 2 cores, 7,981 MiB." in text


def _overnight() -> RunResult:
    trial = held_trial()
    series: Any = {name: values * 1200 for name, values in fields(trial["series"]).items()}
    trial["series"] = series | {"t": list(range(36_000))}
    return sample_run(trial)


def test_ten_hours_are_drawn_with_few_points() -> None:
    page = Outline(render(_overnight()))
    paths = [attributes["d"] or "" for tag, attributes in page.tags if tag == "path"]
    assert paths
    assert max(path.count("L") + path.count("M") for path in paths) <= MOST_POINTS


def test_hostile_texts_stay_texts() -> None:
    page = Outline(render(hostile_run()))
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not [tag for tag, attributes in page.tags if tag == "img" or "onerror" in attributes]
    shown = (
        HOSTILE.replace("\x1b", "\ufffd")
        .replace("\x00", "\ufffd")
        .replace("\u202e", "\ufffd")
        .replace("\ud800", "\ufffd")
    )
    assert page.headings("h1")[0].startswith(shown)
    render(hostile_run()).encode("utf-8")


def test_a_trial_with_nothing_in_it_is_still_a_page() -> None:
    trial = unknown_trial()
    trial.update({"checks": [], "groups": [], "latency": {}, "throughput": {}, "notes": []})
    trial.update({"plan": {}, "broker": {}, "judging": {}})
    run = sample_run(trial)
    run.update({"published": [], "environment": {}})
    text = Outline(render(run)).all_text()
    assert "No check was made." in text
    assert "Not recorded." in text


def test_every_table_has_headers_and_a_name() -> None:
    page = Outline(render(sample_run()))
    tables = [tag for tag, _ in page.tags if tag == "table"]
    regions = [attributes for _, attributes in page.tags if attributes.get("class") == "scroll"]
    assert len(regions) == len(tables)
    assert all(region.get("aria-label") for region in regions)
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")


def test_losses_that_could_not_be_told_are_not_counted_in_the_overview() -> None:
    trial = broken_trial()
    doubt = "Whether it is lost could not be told."
    assert '<td data-label="Lost">2,048</td>' in render(sample_run(trial, trial)) and doubt not in _text(trial)
    trial["checks"][0]["verdict"] = "unknown"
    assert '<td data-label="Lost">unknown</td>' in render(sample_run(trial, trial)) and doubt in _text(trial)
