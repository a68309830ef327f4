"""The commands that only tell: plans, brokers, doctor."""

import json
from pathlib import Path
from typing import Any

import pytest

from ackworth.cli.main import main


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert main(list(arguments)) == 0
    assert capsys.readouterr().out.strip()
    return data


def test_plans(capsys: pytest.CaptureFixture[str]) -> None:
    plans = {plan["name"]: plan for plan in told(capsys, "plans")}
    reboot, stores = plans["reboot"], plans["reboot-stores"]
    assert [trial["name"] for trial in reboot["trials"]] == ["item-1", "item-2"]
    assert reboot["trials"][0]["published"] == "10,000,000 messages and power-cut"
    assert len(stores["trials"]) == 4 and {trial["settings"] for trial in stores["trials"]} == {12}


def test_brokers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    data = told(capsys, "brokers")
    (brook,) = [broker for broker in data["brokers"] if broker["name"] == "brook-sqlite"]
    assert brook["missing"] is None and brook["attach"] == ["sqlite"]
    assert [broker["attach"] for broker in data["brokers"] if broker["name"] == "redis-streams"] == [
        ["redis", "rediss"]
    ]
    survives = brook["settings"]["durability"]["survives"]
    assert "power-cut" in survives["full"] and "power-cut" not in survives["normal"]
    faults = {fault["name"]: fault["unavailable"] for fault in data["faults"]}
    assert set(faults) == {"kill", "pause", "power-cut", "sigterm", "truncate"}
    assert faults["kill"] is None and "root" in faults["power-cut"]


def test_doctor_is_well_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert {finding["name"] for finding in told(capsys, "doctor")} >= {"python", "java", "power cut", "disk"}


def test_doctor_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["doctor"]) == 2
    out = capsys.readouterr().out
    assert "MISSING java" in out and f"there is no Java in {tmp_path}: install a Java 17" in out
