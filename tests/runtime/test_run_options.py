"""The record of a run's options: written and read back, strict, and shown with its defaults."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

import click
import pytest

from runtime.errors import RunError
from runtime.options import DEFAULTS, RunOptions, decode
from runtime.schedule import START_GRID_NS, first_moment
from tdl.values import time
from tstorm.command_support import options_of
from tstorm.commands import replay, run
from tstorm.options.option_types import CPU_MODEL, INSTANT, THREADS

NEW_YEAR_2026_NS = 1_767_225_600 * 10**9
CHOSEN = RunOptions(
    until_ns=9, pace=2, hosts=2, faults={"host1": {"clock_offset_ns": -5}}, fail_on_exit=True
)
IN_A_CLUSTER = RunOptions(backend="k8s", nodes="pool=lab", datapath="kernel")
# No command asks for them.
NOT_ASKED = {"version", "ports", "period_ns", "faults", "page"}


@pytest.mark.parametrize("options", [DEFAULTS, CHOSEN, IN_A_CLUSTER])
def test_what_is_written_is_read_back(options: RunOptions) -> None:
    assert decode(json.loads(json.dumps(options.to_record())), "x") == options


def test_what_an_older_release_did_not_record_has_its_default() -> None:
    assert decode({"pace": 2}, "x") == RunOptions(pace=2)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ([], "x: it must be an object"),
        ({"pace": "2"}, "x: pace must be an integer, not '2'"),
        ({"pace": None}, "x: pace must be an integer, not None"),
        ({"hosts": True}, "x: hosts must be an integer, not True"),
        ({"until_ns": 1.5}, "x: until_ns must be an integer or null, not 1.5"),
        ({"faults": {"host0": 1}}, "x: faults.host0 must be an object, not 1"),
        ({"fail_on_exit": 0}, "x: fail_on_exit must be true or false, not 0"),
        ({"warp": 9}, "x: this release does not know the option 'warp'"),
        ({"version": 2}, "x: the options have version 2, and this release reads 1"),
        ({"pace": 0}, "x: pace is 0"),
        ({"period_ns": 5}, "x: period_ns is 5"),
        ({"backend": "cloud"}, "x: backend is 'cloud'"),
        ({"nodes": "a=b"}, "x: a run on this machine has no nodes to select"),
        ({"backend": "k8s", "hosts": 2}, "x: local hosts are for runs on this machine"),
        ({"time": "slow"}, "x: time is 'slow'"),
        ({"time": "virtual", "backend": "k8s"}, "x: a cluster has many clocks"),
        ({"cpu_ppb": 10**9}, "x: in real time computing takes as long as it takes"),
        ({"time": "virtual", "cpu_ppb": -1}, "x: cpu_ppb is -1"),
        ({"time": "virtual", "preempt_ns": 1_000_000_001}, "x: preempt_ns is 1000000001"),
        (
            {"time": "virtual", "cpu_ppb": 10**9, "preempt_ns": 1},
            "x: where computing takes time, the machine's time says",
        ),
        ({"clock_start_ns": 10**10 - 1}, "x: clock_start_ns is"),
        ({"clock_start_ns": 4102444800 * 10**9 + 1}, "x: clock_start_ns is"),
        ({"packets": True, "hosts": 1}, "x: there are files of packets only where one engine"),
        ({"packets": True, "backend": "k8s"}, "x: there are files of packets only where one"),
        ({"datapath": "kernel"}, "x: the kernel's datapath knows collapsed paths only"),
    ],
)
def test_a_record_that_is_none_is_refused_by_name(record: Any, words: str) -> None:
    with pytest.raises(RunError) as refusal:
        decode(record, "x")
    assert refusal.value.message.startswith(words)


@pytest.mark.parametrize("command", [run.command, replay.command])
def test_every_option_can_be_asked_for_and_is_shown_with_its_default(
    command: click.Command,
) -> None:
    asked = {one.name: one for one in command.params if isinstance(one, click.Option)}
    names = {row.name for row in fields(RunOptions)} - NOT_ASKED
    assert names <= asked.keys()
    given = command.make_context("tstorm", ["x.plan"]).params
    assert {given[name] for name in names} == {None}, "what was not said can be told from what was"
    shown = {name: re.search(r"\[default: (\w+)\S", asked[name].help or "") for name in names}
    values = {name: found[1] for name, found in shown.items() if found}
    del values["allow_spoofing"], values["nodes"]  # in words
    clock = re.search(r"\[default: (\S+)\]", asked["clock_start_ns"].help or "")
    assert clock is not None
    assert INSTANT.convert(clock[1], None, None) == DEFAULTS.clock_start_ns
    assert CPU_MODEL.convert(values.pop("cpu_ppb"), None, None) == DEFAULTS.cpu_ppb
    assert THREADS.convert(values.pop("engine_threads"), None, None) == DEFAULTS.engine_threads
    del values["clock_start_ns"]
    for name, value in values.items():
        default = getattr(DEFAULTS, name)
        assert default == (time(value) if name.endswith("_ns") else type(default)(value))
    assert values.keys() >= {"pace", "datapath", "hosts", "clock_budget_ns", "on_agent_loss"}


@pytest.mark.parametrize(
    "text",
    [
        *("2026-01-01", "2026-01-01T00:00", "2026-01-01T00:00:00Z"),
        *("2026-01-01T01:00:00+01:00", "2025-12-31T19:00:00-05:00"),
    ],
)
def test_an_instant_is_utc_unless_it_says_more(text: str) -> None:
    assert INSTANT.convert(text, None, None) == NEW_YEAR_2026_NS


@pytest.mark.parametrize("text", ["", "soon", "2026", "2026-13-01", "12:00"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no date"):
        INSTANT.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "ppb"),
    [
        ("model=1", 10**9),
        ("model=0.25", 250_000_000),
        ("model=1000", 10**12),
        ("model=0.001", 10**6),
        ("none", 0),
    ],
)
def test_a_factor_of_computing_is_exact(text: str, ppb: int) -> None:
    assert CPU_MODEL.convert(text, None, None) == ppb


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, "says not what computing costs") for text in ("", "1", "model", "model=", "x=1")),
        *((text, "says not what computing costs") for text in ("model=-1", "model=1e3")),
        *((text, "give one from 0.001 to 1000") for text in ("model=0", "model=1000.1")),
    ],
)
def test_what_is_no_factor_of_computing_is_refused(text: str, words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        CPU_MODEL.convert(text, None, None)


def test_computing_takes_time_in_virtual_time_alone() -> None:
    with pytest.raises(click.UsageError, match="--cpu is for --time virtual"):
        options_of({"cpu_ppb": 5_000_000})
    recorded = {"options": RunOptions(time="virtual", cpu_ppb=10**9).to_record()}
    assert options_of({}, recorded).cpu_ppb == 10**9
    assert options_of({"cpu_ppb": 0}, recorded).cpu_ppb == 0
    assert options_of({"time": "real"}, recorded).cpu_ppb == 0
    assert options_of({"backend": "k8s"}, recorded).cpu_ppb == 0


def test_programs_are_stopped_inside_computing_in_virtual_time_alone() -> None:
    with pytest.raises(click.UsageError, match="--preempt is for --time virtual"):
        options_of({"preempt_ns": 100_000})
    recorded = {"options": RunOptions(time="virtual", preempt_ns=5).to_record()}
    assert options_of({}, recorded).preempt_ns == 5
    assert options_of({"preempt_ns": 0}, recorded).preempt_ns == 0
    with pytest.raises(RunError, match="machine's time says when programs are interrupted"):
        options_of({"cpu_ppb": 10**9}, recorded)


def test_an_instant_that_cannot_be_kept_is_refused() -> None:
    assert INSTANT.convert("2026-01-01T00:00:00.000001", None, None) == NEW_YEAR_2026_NS + 1000
    with pytest.raises(click.BadParameter, match="too exact: microseconds are kept"):
        INSTANT.convert("2026-01-01T00:00:00.0000001Z", None, None)


def test_virtual_time_begins_at_a_round_moment_and_real_time_at_once() -> None:
    virtual = RunOptions(time="virtual")
    found = [first_moment(virtual, earliest) for earliest in (1, START_GRID_NS, START_GRID_NS + 1)]
    assert found == [START_GRID_NS, START_GRID_NS, 2 * START_GRID_NS]
    assert first_moment(DEFAULTS, 123) == 123


def test_a_replay_has_the_time_of_the_recorded_run_but_in_a_cluster() -> None:
    recorded = {"options": RunOptions(time="virtual", clock_start_ns=10**10).to_record()}
    again = options_of({}, recorded)
    assert (again.time, again.clock_start_ns) == ("virtual", 10**10)
    assert options_of({"time": "real"}, recorded).time == "real"
    assert options_of({"backend": "k8s"}, recorded).time == "real"


def test_a_replay_over_hosts_keeps_no_packets_unless_that_is_asked_for() -> None:
    recorded = {"options": RunOptions(packets=True).to_record()}
    assert options_of({}, recorded).packets
    assert not options_of({"hosts": 2}, recorded).packets
    assert not options_of({"backend": "k8s"}, recorded).packets
    assert not options_of({"packets": False}, recorded).packets
    with pytest.raises(RunError, match="only where one engine has every link"):
        options_of({"packets": True, "hosts": 2}, recorded)


def test_only_virtual_time_has_a_clock_to_set() -> None:
    with pytest.raises(click.UsageError, match="--clock-start is for --time virtual"):
        options_of({"clock_start_ns": 10**10})
    assert options_of({"clock_start_ns": 10**10, "time": "virtual"}).clock_start_ns == 10**10
