"""The page in a real browser: it fits, it is silent, it asks for nothing, and it answers to a pointer."""

from pathlib import Path
from typing import Any

import pytest
from tests.report.test_price import CALM, table, trial

from ackworth.report import html
from ackworth.testing.results import broken_trial, held_trial, hostile_run, sample_run

pytestmark = pytest.mark.web

LAPTOP, PHONE = 1280, 390


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(html.render(sample_run()), encoding="utf-8")
    return path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [LAPTOP, PHONE])
def test_page_fits_and_is_silent(open_page: Any, report: Path, width: int, dark: bool) -> None:
    page = open_page(report, width=width, dark=dark)
    assert page.ask("innerWidth") == width
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.complained() == []
    assert page.requests() == [report.as_uri()]


@pytest.mark.parametrize("width", [LAPTOP, PHONE])
def test_a_price_list_fits_and_its_cells_open_their_trials(open_page: Any, tmp_path: Path, width: int) -> None:
    path = tmp_path / "price.html"
    cuts = [trial(broken_trial(f"cut-{n}"), fault="power-cut") for n in range(3)]
    path.write_text(html.render(table(*CALM, *cuts)), encoding="utf-8")
    page = open_page(path, width=width)
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.ask("document.querySelectorAll('details.trial[open]').length") == 0
    page.ask("document.querySelector('.price a[title=cut-1]').click()")
    page.wait_until("document.querySelector('#trial-4').open")
    assert page.ask("document.querySelectorAll('details.trial[open]').length") == 1
    assert page.complained() == []


def test_dark_mode_turns_the_page(open_page: Any, report: Path) -> None:
    colours = [
        open_page(report, width=LAPTOP, dark=dark).ask("getComputedStyle(document.body).backgroundColor")
        for dark in (False, True)
    ]
    assert colours[0] != colours[1]


def test_policy_stops_foreign_script_and_style(open_page: Any, report: Path) -> None:
    planted = "<script>document.title = 'taken'</script><style>body { display: none }</style></body>"
    report.write_text(report.read_text(encoding="utf-8").replace("</body>", planted), encoding="utf-8")
    page = open_page(report, width=LAPTOP)
    assert page.ask("document.title") != "taken"
    assert page.ask("getComputedStyle(document.body).display") == "block"
    assert len(page.complained()) == 2


def test_hostile_texts_stay_texts(open_page: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html.render(hostile_run()), encoding="utf-8")
    for width in (LAPTOP, PHONE):
        page = open_page(path, width=width)
        assert page.complained() == []
        assert page.requests() == [path.as_uri()]
        assert page.ask("document.images.length + document.scripts.length") == 1
        assert page.ask("document.documentElement.scrollWidth") <= width


LEGEND = "[...document.querySelector('.chart').querySelectorAll('output')].map(o => o.textContent)"


def _middle_of_chart(page: Any) -> tuple[float, float]:
    page.ask("document.querySelector('.plot').scrollIntoView({behavior: 'instant', block: 'center'})")
    box = page.ask(
        "(({x, y, width, height}) => [x, y, width, height])(document.querySelector('.plot').getBoundingClientRect())"
    )
    return box[0] + box[2] * 10.5 / 30, box[1] + box[3] / 2


@pytest.mark.parametrize("width", [LAPTOP, PHONE])
def test_pointing_at_a_chart_reads_its_values(open_page: Any, report: Path, width: int) -> None:
    page = open_page(report, width=width)
    page.point_at(*_middle_of_chart(page))
    series = held_trial()["series"]
    seen = [f"{series[name][10]:,}" for name in ("sent", "acked", "delivered")]
    assert page.ask(LEGEND) == [*seen, "at 10.0 s"]
    assert page.ask("getComputedStyle(document.querySelector('.cross')).visibility") == "visible"
    page.point_at(1, 1)
    assert page.ask(LEGEND) == ["", "", "", ""]


def test_arrow_keys_read_a_chart(open_page: Any, report: Path) -> None:
    page = open_page(report, width=LAPTOP)
    page.ask("document.querySelector('.plot').focus()")
    page.press("Home")
    page.press("ArrowRight")
    acked = f"{held_trial()['series']['acked'][1]:,}"
    assert page.ask(LEGEND)[1] == acked
    assert acked in page.ask("document.activeElement.getAttribute('aria-valuetext')")


def test_reading_a_chart_does_not_move_the_page(open_page: Any, report: Path) -> None:
    page = open_page(report, width=PHONE)
    place = _middle_of_chart(page)
    before = page.ask("document.documentElement.scrollHeight")
    page.point_at(*place)
    assert page.ask("document.documentElement.scrollHeight") == before


def test_no_label_of_a_chart_lies_on_another(open_page: Any, report: Path) -> None:
    overlaps = """
      [...document.querySelectorAll('.frame svg, .bar')].flatMap((svg) => {
        const boxes = [...svg.querySelectorAll('text')].map((t) => [t.textContent, t.getBoundingClientRect()])
          .filter(([, box]) => box.width);
        return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
          .filter(([, q]) => p.left < q.right && q.left < p.right && p.top < q.bottom - 2 && q.top < p.bottom - 2)
          .map(([b]) => `${a} on ${b}`));
      })"""
    for width in (LAPTOP, PHONE):
        assert open_page(report, width=width).ask(overlaps) == []


def test_many_trials_are_folded_and_a_link_opens_one(open_page: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html.render(sample_run(*(held_trial(f"cell-{n}") for n in range(200)))), encoding="utf-8")
    page = open_page(path, width=PHONE)
    assert page.ask("document.documentElement.scrollWidth") <= PHONE
    assert page.ask("document.querySelectorAll('details.trial[open]').length") == 0
    page.ask("document.querySelector('a[href=\"#trial-150\"]').click()")
    page.wait_until("document.querySelector('details.trial[open]')")
    assert page.ask("document.querySelector('details.trial[open] h2').textContent") == "cell-149"
    assert page.complained() == []
