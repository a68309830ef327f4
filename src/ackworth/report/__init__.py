"""Results for readers: an HTML page, JSON, JUnit XML and a table for the terminal."""

from pathlib import Path

from ackworth.model.files import write_whole
from ackworth.model.result import RunResult
from ackworth.report import html, junit, price_csv
from ackworth.report.results import read_results, write_results

__all__ = ["read_results", "write", "write_results"]


def write(run_directory: Path, result: RunResult) -> Path:
    """Write results.json, junit.xml, report.html and price.csv, each whole or not at all; returns the page's path."""
    write_results(run_directory, result)
    write_whole(run_directory / junit.NAME, junit.render_junit(result))
    if result["price"]:
        write_whole(run_directory / price_csv.NAME, price_csv.render_csv(result["price"]))
    page = run_directory / html.NAME
    write_whole(page, html.render(result))
    return page
