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
from tdl.values import time
from tstorm.commands import replay, run

CHOSEN = RunOptions(
    until_ns=9, pace=2, hosts=2, faults={"host1": {"clock_offset_ns": -5}}, fail_on_exit=True
)
IN_A_CLUSTER = RunOptions(backend="k8s", nodes="pool=lab", datapath="kernel")
OF_TESTS = {"version", "ports", "period_ns", "faults"}  # no command asks for them


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
        ({"pace": 0}, "x: the pace is 0"),
        ({"period_ns": 5}, "x: period_ns is 5"),
        ({"backend": "cloud"}, "x: there is no backend 'cloud'"),
        ({"nodes": "a=b"}, "x: a run on this machine has no nodes to select"),
        ({"backend": "k8s", "hosts": 2}, "x: local hosts are for runs on this machine"),
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
    names = {row.name for row in fields(RunOptions)} - OF_TESTS
    assert names <= asked.keys()
    given = command.make_context("tstorm", ["x.plan"]).params
    assert {given[name] for name in names} == {None}, "what was not said can be told from what was"
    shown = {name: re.search(r"\[default: (\w+)\S", asked[name].help or "") for name in names}
    values = {name: found[1] for name, found in shown.items() if found}
    del values["allow_spoofing"], values["nodes"]  # in words
    for name, value in values.items():
        default = getattr(DEFAULTS, name)
        assert default == (time(value) if name.endswith("_ns") else type(default)(value))
    assert values.keys() >= {"pace", "datapath", "hosts", "clock_budget_ns", "on_agent_loss"}
