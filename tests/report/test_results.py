import json
from pathlib import Path
from typing import Any

import pytest

from ackworth import report
from ackworth.model.errors import BadRecord
from ackworth.report.results import read_results, write_results
from ackworth.testing.results import hostile_run, sample_run


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    for result in (sample_run(), hostile_run()):
        write_results(tmp_path, result)
        assert read_results(tmp_path) == result


def test_write_leaves_three_whole_files_and_nothing_beside(tmp_path: Path) -> None:
    assert report.write(tmp_path, hostile_run()) == tmp_path / "report.html"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["junit.xml", "report.html", "results.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    write_results(tmp_path, sample_run())
    broken: Any = {**sample_run(), "seed": object()}
    with pytest.raises(TypeError):
        write_results(tmp_path, broken)
    assert read_results(tmp_path) == sample_run()


def _changed(*path: str | int, value: object) -> dict[str, Any]:
    result: Any = json.loads(json.dumps(sample_run()))
    *way, last = path
    place = result
    for step in way:
        place = place[step]
    place[last] = value
    return dict(result)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([], "result is [], not an object"),
        ({}, "result has no 'ackworth'"),
        (_changed("seed", value="7"), "result.seed is '7', not a whole number"),
        (_changed("seed", value=True), "result.seed is True, not a whole number"),
        (
            _changed("trials", 1, "account", "acked", value=None),
            "result.trials[1].account.acked is None, not a whole number",
        ),
        (_changed("trials", 0, "faults", 0, "ready", value="soon"), "faults[0].ready is 'soon', not a number or null"),
        (_changed("trials", 0, "latency", "sent_to_ack", value={}), "latency.sent_to_ack has no 'censored'"),
        (_changed("trials", 0, "verdict", value="fine"), "verdict 'fine' is none of held, broken, unknown"),
        (_changed("trials", 0, "series", "sent", value=[1]), "the series of trial 'item-1' differ in length"),
    ],
)
def test_a_file_of_another_shape_is_named_with_place_and_remedy(tmp_path: Path, data: object, complaint: str) -> None:
    (tmp_path / "results.json").write_text(json.dumps(data))
    with pytest.raises(BadRecord) as caught:
        read_results(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/results.json: ")
    assert complaint in message
    assert message.endswith(f"judge the run again with `ackworth check {tmp_path}`")


@pytest.mark.parametrize("content", [b"", b'{"run": "5', b"\xff\xfe", b'{"seed": NaN}'])
def test_a_file_that_is_not_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(BadRecord, match=r"results\.json: not JSON .*: judge the run again"):
        read_results(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRecord, match="No such file or directory: judge the run again"):
        read_results(tmp_path)
