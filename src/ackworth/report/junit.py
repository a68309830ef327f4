"""The verdict as JUnit XML, which every CI server reads: a suite a trial, a case a check.

What is broken is a failure. What could not be told is an error: a build must not pass on it.
"""

from xml.etree import ElementTree as Xml

from ackworth.model.result import CheckResult, RunResult, TrialResult
from ackworth.model.verdict import Verdict, worst
from ackworth.report.text import clean

NAME = "junit.xml"


def render_junit(result: RunResult) -> str:
    suites = [_suite(result, trial) for trial in result["trials"]]
    if not suites or result["verdict"] != worst(Verdict(trial["verdict"]) for trial in result["trials"]):
        suites.append(_suite_of(result, "run", [_verdict_check(result)]))
    root = Xml.Element("testsuites", {"name": clean(f"ackworth {result['plan']}"), **_sums(suites)})
    root.extend(suites)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(result: RunResult, trial: TrialResult) -> Xml.Element:
    checks = list(trial["checks"])
    if not checks or trial["verdict"] != worst(Verdict(check["verdict"]) for check in checks):
        checks.append(_verdict_check(trial))
    suite = _suite_of(result, trial["trial"], checks)
    suite.set("time", f"{length(trial):.3f}")
    Xml.SubElement(suite, "system-out").text = clean(trial["sentence"])
    return suite


def _verdict_check(judged: TrialResult | RunResult) -> CheckResult:
    """A verdict that no check accounts for, such as that of a run cut short, as a case of its own."""
    verdict, sentence = judged["verdict"], judged["sentence"]
    return CheckResult(name="verdict", verdict=verdict, found=None, rule="the verdict is held", reason=sentence, ids=[])


def _suite_of(result: RunResult, name: str, checks: list[CheckResult]) -> Xml.Element:
    verdicts = [check["verdict"] for check in checks]
    suite = Xml.Element("testsuite", name=clean(name), timestamp=clean(result["started"]), tests=str(len(checks)))
    suite.set("failures", str(verdicts.count(Verdict.BROKEN)))
    suite.set("errors", str(verdicts.count(Verdict.UNKNOWN)))
    suite.extend(_case(f"{result['plan']}.{name}", check) for check in checks)
    return suite


def _sums(suites: list[Xml.Element]) -> dict[str, str]:
    return {name: str(sum(int(suite.get(name, "0")) for suite in suites)) for name in ("tests", "failures", "errors")}


def _case(classname: str, check: CheckResult) -> Xml.Element:
    case = Xml.Element("testcase", name=clean(check["name"]), classname=clean(classname))
    kind = {Verdict.BROKEN: "failure", Verdict.UNKNOWN: "error"}.get(Verdict(check["verdict"]))
    if kind:
        answer = Xml.SubElement(case, kind, type=check["verdict"], message=clean(check["reason"]))
        answer.text = clean("\n".join([f"rule: {check['rule']}", f"seen: {check['reason']}", *check["ids"]]))
    return case


def length(trial: TrialResult) -> float:
    """Seconds from the trial's start to the last thing that is known of it."""
    spans = [*(phase["end"] for phase in trial["phases"]), *(fault["end"] for fault in trial["faults"])]
    return float(max([0, *spans, *(second + 1 for second in trial["series"]["t"])]))
