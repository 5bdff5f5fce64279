"""A test template beside the experiment, in real time, as root and as an ordinary user."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runtime.support import User, processes_with, records

pytestmark = pytest.mark.e2e

TEXT = """
service client exec="sleep 60"
service other exec="sleep 60"
bridge s
link client--s latency=1ms
link other--s latency=1ms
at 1s client disconnect
at 1500ms client reconnect
at 3s quit
expect drivers client "test"
"""
SCRIPTS = {
    "first_create": "echo $TSTORM_INSTANCE >made;"
    " setsid sh -c 'trap : TERM; until sleep 86423; do :; done' &",
    "parallel_driver_hang": "timeout 777 sleep 777; exit 3",
    "eventually_whole": "grep client.0 made && ! pgrep -a sleep | grep 777 && ping -c 1 other"
    " && pgrep -a sleep | grep 86423",
}


def test_drivers_end_with_what_they_have_begun(user: User) -> None:
    template: Path = user.home / "test"
    template.mkdir()
    for name, text in SCRIPTS.items():
        (template / name).write_text(f"#!/bin/sh\n{text}\n")
        (template / name).chmod(0o755)
    (user.home / "d.tdl").write_text(TEXT)
    template.chmod(0o755)
    process = user.tstorm("run", "d.tdl", "--quiet", "--no-probes", "--out", "out")
    _, said = process.communicate(timeout=60)
    (found,) = json.loads((user.home / "out/summary.json").read_text())["expectations"]
    assert (process.returncode, found["state"]) == (0, "passed"), said
    ends = [one for one in records(user.home / "out/events.jsonl") if one["kind"] == "command_end"]
    assert ends[0]["command"] == "first_create"
    assert ends[-1]["command"] == "eventually_whole"
    hung = [one for one in ends if one["command"] == "parallel_driver_hang"]
    assert hung, "one was begun"
    assert all("lost" in one for one in hung)
    assert processes_with("86423") == [], "a daemon lives as long as its instance"
