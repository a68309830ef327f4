"""Results for readers: an HTML page, JSON, JUnit XML and a table for the terminal."""

from pathlib import Path

from ackworth.model.files import write_whole
from ackworth.model.result import RunResult
from ackworth.report import html, junit
from ackworth.report.results import read_results, write_results

__all__ = ["read_results", "write", "write_results"]


def write(run_directory: Path, result: RunResult) -> Path:
    """Write results.json, junit.xml and report.html, each whole or not at all, and return the page's path."""
    write_results(run_directory, result)
    write_whole(run_directory / junit.NAME, junit.render_junit(result))
    page = run_directory / html.NAME
    write_whole(page, html.render(result))
    return page
