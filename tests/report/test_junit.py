from xml.etree import ElementTree as Xml

from ackworth.report.junit import render_junit
from ackworth.testing.results import broken_trial, held_trial, hostile_run, sample_run, unknown_trial


def test_broken_is_a_failure_and_unknown_an_error() -> None:
    root = Xml.fromstring(render_junit(sample_run()))
    assert root.attrib == {"name": "ackworth reboot", "tests": "13", "failures": "1", "errors": "1"}
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["item-1", "item-2", "item-2-no-root"]
    assert suites["item-1"].find(".//failure") is None
    failure = suites["item-2"].find("testcase[@name='lost']/failure")
    assert failure is not None
    assert failure.get("message") == "2,048 of 612,480 acked messages never came"
    assert "0/153480" in (failure.text or "")
    error = suites["item-2-no-root"].find("testcase[@name='lost']/error")
    assert error is not None
    assert error.get("message") == "no loop device can be had without root: run as root"


def test_a_suite_says_when_and_how_long() -> None:
    suite = Xml.fromstring(render_junit(sample_run(held_trial())))[0]
    assert (suite.get("timestamp"), suite.get("time")) == ("2025-03-14T15:09:26+00:00", "30.000")
    assert suite.findtext("system-out") == "Every one of 398,720 acked messages survived the power cut."


def test_a_verdict_that_no_check_accounts_for_is_a_case_of_its_own() -> None:
    cut_short = held_trial()
    cut_short["verdict"] = "unknown"
    cut_short["sentence"] = "The run was killed."
    suite = Xml.fromstring(render_junit(sample_run(cut_short)))[0]
    assert suite.find("testcase[@name='verdict']/error[@message='The run was killed.']") is not None
    assert suite.get("errors") == "1"


def test_a_run_without_trials_does_not_pass() -> None:
    nothing = sample_run(unknown_trial())
    nothing["trials"] = []
    assert Xml.fromstring(render_junit(nothing)).get("errors") == "1"


def test_a_trial_without_checks_does_not_pass() -> None:
    trial = unknown_trial()
    trial["checks"] = []
    assert Xml.fromstring(render_junit(sample_run(trial))).get("errors") == "1"


def test_hostile_texts_stay_texts() -> None:
    root = Xml.fromstring(render_junit(hostile_run()))
    assert {element.tag for element in root.iter()} == {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "system-out",
    }
    assert "</script><img src=x onerror=alert(1)>" in (root[0].get("name") or "")


def test_only_what_did_not_hold_has_text() -> None:
    suite = Xml.fromstring(render_junit(sample_run(broken_trial())))[0]
    answers = {case.get("name"): len(case) for case in suite.iter("testcase")}
    assert answers == {"lost": 1, "resurrected": 0, "phantom": 0, "corrupt": 0, "duplicates": 0, "order": 0}
