"""From a run's directory to its results and its report: what `run` and `check` have in common."""

import argparse
import json
import logging
import signal
import sys
from pathlib import Path
from typing import Any

from ackworth import report
from ackworth.cli.progress import Progress
from ackworth.history.reader import open_record
from ackworth.history.settle import settle
from ackworth.model.errors import BadInput, BadRecord
from ackworth.model.result import PriceRow, RunResult, TrialResult
from ackworth.model.verdict import Verdict, worst
from ackworth.model.words import counted
from ackworth.report import price
from ackworth.report.price_table import sentence as price_sentence
from ackworth.report.terminal import Style, render_terminal
from ackworth.run import directory, traces


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--master", metavar="URL", help="where Spark judges: a master, or a Connect server as sc://HOST:PORT"
    )
    command.add_argument("--json", action="store_true", help="print the results as JSON instead of the table")
    command.add_argument("--quiet", action="store_true", help="no progress")


def judge_and_report(path: Path, args: argparse.Namespace, progress: Progress) -> int:
    run = directory.open_run(path)
    if traces.alive(run.run):
        raise BadRecord(f"{path}: this run is still going on: judge it when it has ended")
    trials = directory.trial_directories(path, run)
    if not trials:
        raise BadRecord(f"{path}: no trial was begun, so there is nothing to judge: run the plan again")
    try:
        judged = _judge(trials, args.master, progress)
    except KeyboardInterrupt:
        raise BadInput(f"interrupted; the record is in {path}: judge it with `ackworth check {path}`") from None
    result = _result(run, judged, path)
    page = report.write(path, result)
    print(json.dumps(result, indent=1) if args.json else render_terminal(result, Style.of(sys.stdout), page))
    return Verdict(result["verdict"]).exit_code


def _judge(trials: dict[str, Path], master: str | None, progress: Progress) -> list[TrialResult]:
    # Spark is slow to load, and nothing else needs it.
    from ackworth.pipeline.session import LOCAL, session
    from ackworth.pipeline.trial import judge_trial

    for name, folder in trials.items():
        progress.begin(f"judging {name}")
        if (folder / "spool").exists():
            settle(folder, progress.working)
        open_record(folder)  # what is not whole is said before Spark is started
    progress.say("judging: starting Spark")
    logging.getLogger().addHandler(logging.NullHandler())  # Spark's client logs an interrupt with all that led to it
    results = []
    with session(master or LOCAL) as spark:
        _take_interrupts_from_spark()
        for name, folder in trials.items():
            progress.begin(f"judging {name}")
            results.append(judge_trial(folder, spark, progress.share))
            progress.end([])
    return results


def _take_interrupts_from_spark() -> None:
    """PySpark's own handler speaks to Spark in the middle of an answer."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _result(run: directory.Run, trials: list[TrialResult], path: Path) -> RunResult:
    verdict = worst(Verdict(trial["verdict"]) for trial in trials)
    missing = [name for name in run.trials if name not in {trial["trial"] for trial in trials}]
    if missing:
        verdict = worst([verdict, Verdict.UNKNOWN])
    rows = price.rows(trials)
    return {
        "run": run.run,
        "plan": run.plan,
        "title": run.title,
        "size": run.size,
        "seed": run.seed,
        "started": run.started,
        "ackworth": run.ackworth,
        "verdict": verdict,
        "sentence": _price_sentence(verdict, rows, missing) if rows else _sentence(verdict, trials, missing),
        "trials": trials,
        "price": rows,
        "published": _published(trials),
        "environment": run.environment,
    }


def _price_sentence(verdict: Verdict, rows: list[PriceRow], missing: list[str]) -> str:
    """A price list speaks of its settings."""
    never = f" Never begun: {counted(len(missing), 'trial')}." if missing else ""
    return price_sentence(rows, verdict) + never


def _sentence(verdict: Verdict, trials: list[TrialResult], missing: list[str]) -> str:
    """One trial speaks for itself; of several, those that did not hold speak, and if all held, their number does."""
    if len(trials) == 1 and not missing:
        return trials[0]["sentence"]
    told = [f"{trial['trial']}: {trial['sentence']}" for trial in trials if trial["verdict"] != Verdict.HELD]
    told += [f"{name}: Unknown: it was never begun." for name in missing]
    if told:
        return (
            f"{verdict.capitalize()}: {len(told)} of {len(trials) + len(missing)} trials did not hold. {' '.join(told)}"
        )
    acked = sum(trial["account"]["acked"] for trial in trials)
    lost = sum(group["lost"] for trial in trials for group in trial["groups"])
    fate = f"{lost:,} {'was' if lost == 1 else 'were'} lost, which was allowed" if lost else "none was lost"
    return f"Held: {acked:,} messages were acked in {len(trials)} trials, and {fate}."


def _published(trials: list[TrialResult]) -> list[dict[str, Any]]:
    return [{"trial": trial["trial"], **table} for trial in trials for table in trial["plan"].get("published", ())]
