"""The price of an ack: a row for each setting, and nothing in it that was not told."""

import csv
import io
from typing import Any

import pytest
from tests.report.test_html import Outline

from ackworth.model.result import PriceRow, RunResult, TrialResult
from ackworth.report import price, price_csv, price_table
from ackworth.report.html import render
from ackworth.report.terminal import Style, render_terminal
from ackworth.testing.results import broken_trial, held_trial, sample_run, unknown_trial


def trial(made: TrialResult, *, cell: str = "full", fault: str | None = None, rate: float | None = None) -> TrialResult:
    """A trial of a price list: its faults and its pace say what it shows."""
    plan = {
        "overview": "price",
        "faults": [{"kind": fault}] if fault else [],
        "workload": {"phases": [{"name": "send", "rate": rate}]},
    }
    latency = {**made["latency"], "due_to_ack": made["latency"]["sent_to_ack"]}
    broker = {**made["broker"], "settings": {"durability": cell}}
    return {**made, "plan": plan, "cell": cell, "latency": latency, "broker": broker}


def table(*trials: TrialResult) -> RunResult:
    return {**sample_run(*trials), "price": price.rows(trials)}


def only(*trials: TrialResult) -> PriceRow:
    [row] = price.rows(trials)
    return row


CALM = (trial(held_trial("fast")), trial(held_trial("late"), rate=1000.0))


def unclaimed(made: TrialResult) -> TrialResult:
    """As where the broker does not claim to survive what befell it."""
    checks = [{**check, "verdict": "held"} for check in made["checks"]]
    claims = {**made["claims"], "survives": []}
    return {**made, "verdict": "held", "checks": checks, "claims": claims}  # type: ignore[typeddict-item]


def test_what_a_trial_did_says_what_it_shows() -> None:
    cuts = [trial(held_trial("cut-1"), fault="power-cut"), trial(broken_trial("cut-2"), fault="power-cut")]
    row = only(*CALM, *cuts)
    assert (row["fast"], row["late"], [toll["trials"] for toll in row["tolls"]]) == (
        ["fast"],
        ["late"],
        [["cut-1", "cut-2"]],
    )
    [toll] = row["tolls"]
    assert (toll["lost"], toll["acked"], toll["recovered"]) == ([0, 2048], [398_720, 612_480], [412, 0])
    assert (toll["window"], toll["holes"], toll["recovery"]) == ([0.0, 0.311], [0, 0], [1.74, 1.74])
    assert toll["claimed"] and (toll["verdict"], row["verdict"]) == ("broken", "broken")


def test_another_plan_has_no_price_list() -> None:
    assert price.rows([held_trial()]) == []


def test_a_row_for_each_cell_in_their_order() -> None:
    found = price.rows([trial(held_trial(), cell=cell) for cell in ("full", "off", "full")])
    assert [row["settings"]["durability"] for row in found] == ["full", "off"]


def test_what_could_not_be_told_is_unknown_and_not_nothing() -> None:
    [toll] = only(trial(unknown_trial("a"), fault="kill"), trial(held_trial("b"), fault="kill"))["tolls"]
    assert (toll["lost"], toll["window"], toll["holes"]) == ([None, 0], [None, 0.0], [None, 0])
    assert price_table.span(toll["lost"], str) == "0 (1 unknown)"
    assert price_table.fate(toll) == ("unknown", "? unknown")


def test_holes_are_losses_with_something_kept_behind_them() -> None:
    made = trial(broken_trial(), fault="power-cut")
    made["losses"][0].update(place="scattered", ranges_total=4, holes=3)
    assert only(made)["tolls"][0]["holes"] == [3]


def test_a_loss_that_nobody_promised_to_prevent_is_neither_held_nor_broken() -> None:
    [toll] = only(unclaimed(trial(broken_trial(), fault="power-cut")))["tolls"]
    assert price_table.fate(toll) == ("unclaimed", "not claimed")
    assert "up to 0.33% of 612,480 acked" in price_table.details(toll)
    assert "loss window 311 ms" in price_table.details(toll)


def test_what_else_than_a_loss_is_broken_is_named() -> None:
    made = trial(broken_trial(), fault="power-cut")
    assert price_table.fate(only(made)["tolls"][0]) == ("broken", "✗ broken")
    made["checks"] = [
        {**check, "verdict": {"lost": "held", "order": "broken"}.get(check["name"], check["verdict"])}
        for check in made["checks"]
    ]
    assert price_table.fate(only(made)["tolls"][0]) == ("broken", "✗ broken: order")


def test_a_refusal_to_start_and_its_repair_are_told() -> None:
    made = trial(held_trial(), fault="kill")
    made["faults"][0] |= {"refused": "bad file", "repaired": "fixed it"}
    said = price_table.details(only(made)["tolls"][0])
    assert "refused to start in 1 of 1 trials" in said and "fixed it" in said


def test_a_cluster_that_refuses_to_start_refuses_once() -> None:
    made = trial(held_trial(), fault="kill")
    made["faults"] = [{**made["faults"][0], "node": node, "refused": "bad file"} for node in "abc"]
    [toll] = only(made, trial(held_trial("other"), fault="kill"))["tolls"]
    assert "refused to start in 1 of 2 trials" in price_table.details(toll)


def test_what_was_not_measured_did_not_never_come_back() -> None:
    nothing = trial(unknown_trial("late"), rate=1.0)
    assert price_table.percentiles(only(nothing)["ack"]) == "unknown / unknown"
    assert price_table.percentiles(only(nothing, CALM[1])["ack"]) == "2.30 ms / 14.0 ms"


@pytest.mark.parametrize(
    ("values", "said"),
    [([], "not measured"), ([None], "unknown"), ([2, 2], "2"), ([3, 1], "1 to 3"), ([3, None], "3 (1 unknown)")],
)
def test_spans(values: list[float | None], said: str) -> None:
    assert price_table.span(values, str) == said


def test_the_page_has_the_table_and_leads_to_every_trial() -> None:
    trials = (*CALM, trial(broken_trial("cut-1"), fault="power-cut"), trial(held_trial("cut-2"), fault="power-cut"))
    page = Outline(render(table(*trials)))
    assert page.headings("h2")[0] == "The price of an ack"
    links = {attributes["title"]: attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert links == {made["trial"]: f"#trial-{n}" for n, made in enumerate(trials, 1)}
    assert "0 to 2,048 lost" in page.all_text() and "Brook's README" in page.all_text()


def test_the_terminal_shows_the_rows() -> None:
    said = render_terminal(table(*CALM, trial(broken_trial("cut"), fault="power-cut")), Style(width=120))
    assert "Lost after power-cut" in said and "✗ broken, 2,048" in said


def records(*trials: TrialResult) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(price_csv.render_csv(price.rows(trials)))))


def test_csv_has_plain_numbers() -> None:
    cuts = [trial(held_trial("cut-1"), fault="power-cut"), trial(broken_trial("cut-2"), fault="power-cut")]
    [record] = records(*CALM, *cuts)
    assert (record["broker"], record["setting"], record["verdict"]) == ("brook-sqlite", "durability=full", "broken")
    assert (record["power_cut_lost_min"], record["power_cut_lost_max"]) == ("0", "2048")
    assert (record["power_cut_claimed"], record["power_cut_repeats"]) == ("True", "2")
    assert float(record["ack_p50_ns"]) == 2_300_000


def test_csv_is_empty_where_it_could_not_be_told() -> None:
    [record] = records(trial(unknown_trial("late"), rate=1.0), trial(unknown_trial("kill"), fault="kill"))
    assert (record["ack_p99_ns"], record["kill_lost_max"], record["acked_per_second_min"]) == ("", "", "")


def test_the_sentence_names_what_did_not_keep_its_word() -> None:
    rows = price.rows([trial(held_trial(), cell="full"), trial(broken_trial(), cell="off", fault="kill")])
    assert price_table.sentence(rows, "broken") == (
        "Broken: 1 of 2 settings kept what is claimed of them; not so brook-sqlite durability=off (broken)."
    )
    assert price_table.sentence(rows[:1], "held") == "Held: 1 of 1 settings kept what is claimed of them."
