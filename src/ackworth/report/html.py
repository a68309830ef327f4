"""The report of a run: one HTML file that needs nothing but itself."""

import base64
import hashlib
from collections import Counter
from importlib.resources import files

from ackworth.model.result import RunResult, TrialResult
from ackworth.model.verdict import Verdict
from ackworth.report.markup import Html, table, tag
from ackworth.report.price_table import section as price_section
from ackworth.report.summary import COLUMNS, figures
from ackworth.report.text import SYMBOLS, outline, quantity
from ackworth.report.trial import badge, trial_sections

NAME = "report.html"
OPEN_TRIALS = 3  # with more of them, the reader chooses from the overview
MOST_POINTS = 600  # a line of a chart
LEAST_POINTS = 120
POINTS_OF_A_PAGE = 6000


def render(result: RunResult) -> str:
    style, script = _asset("report.css"), _asset("report.js")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{SYMBOLS[result['verdict']]} {result['verdict']}: {result['plan']} – Ackworth"),
        tag("style", style),
    )
    body = tag(
        "body",
        _masthead(result),
        tag("main", _overview(result), *_trials(result), _environment(result)),
        tag("script", script),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _asset(name: str) -> Html:
    return Html(files("ackworth.report").joinpath("assets", name).read_text(encoding="utf-8"))


def _policy(style: str, script: str) -> str:
    """Nothing is fetched, and nothing runs but what was written here."""
    allowed = f"style-src {_digest(style)}; script-src {_digest(script)}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _masthead(result: RunResult) -> Html:
    facts = [
        ("run", result["run"]),
        ("size", result["size"]),
        ("seed", str(result["seed"])),
        ("started", f"{result['started'][:19].replace('T', ' ')} UTC"),
        ("Ackworth", result["ackworth"]),
    ]
    return tag(
        "header",
        tag("p", tag("b", "Ackworth"), " ", result["title"], class_="title"),
        tag("p", badge(result["verdict"]), class_="verdict"),
        tag("h1", result["sentence"]),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts"),
        class_=f"masthead {result['verdict']}",
    )


def _overview(result: RunResult) -> Html | None:
    trials = result["trials"]
    if len(trials) < 2:
        return None
    if result["price"]:
        return price_section(result["price"], {t["trial"]: f"#trial-{n}" for n, t in enumerate(trials, 1)})
    rows = [
        [tag("a", trial["trial"], href=f"#trial-{number}"), badge(trial["verdict"]), *figures(trial)]
        for number, trial in enumerate(trials, 1)
    ]
    tally = Counter(trial["verdict"] for trial in trials)
    counts = ", ".join(f"{tally[verdict]} {verdict}" for verdict in Verdict if tally[verdict])
    overview = table(COLUMNS, rows, label="All trials", class_="stack numbers overview")
    return tag("section", tag("h2", f"{len(trials)} trials"), tag("p", counts, class_="quiet"), overview)


def _trials(result: RunResult) -> list[Html]:
    trials = result["trials"]
    limit = max(LEAST_POINTS, min(MOST_POINTS, POINTS_OF_A_PAGE // max(len(trials), 1)))
    return [_trial(result, trial, number, limit) for number, trial in enumerate(trials, 1)]


def _trial(result: RunResult, trial: TrialResult, number: int, limit: int) -> Html:
    is_open = len(result["trials"]) <= OPEN_TRIALS
    heading = tag("summary", tag("h2", trial["trial"]), badge(trial["verdict"]))
    # The only trial would say again what the page's head has just said.
    sentence = tag("p", trial["sentence"], class_="sentence") if len(result["trials"]) > 1 else None
    content = trial_sections(result, trial, limit)
    return tag("details", heading, sentence, content, class_="trial", id=f"trial-{number}", open=is_open)


def _environment(result: RunResult) -> Html:
    rows = [_fact(name, value) for name, value in result["environment"].items()]
    listed = tag("dl", *rows, class_="environment") if rows else tag("p", "Not recorded.", class_="none")
    return tag("section", tag("h2", "Environment"), listed)


def _fact(key: str, value: object) -> Html:
    name, text = quantity(key, value)
    shown = tag("pre", outline(value)) if isinstance(value, dict | list) and value else text
    return tag("div", tag("dt", name), tag("dd", shown))
