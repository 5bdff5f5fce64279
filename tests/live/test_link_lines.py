"""Answers to lines of JSON (tstorm/live/link_lines.py), with a stand-in for the run."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from compiler import extension
from compiler.link_changes import MOST_LINE, read
from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from runtime.errors import RunError
from runtime.launch import registry
from runtime.launch.registry import RunRecord
from runtime.options import RunOptions, RunPlaces
from runtime.rundir import rundir
from tdl.diagnostics import TdlError
from tstorm.commands.live.do import _decoded
from tstorm.exit_codes import CommandError
from tstorm.live import link_lines, quick_links, steer
from tstorm.live.link_lines import LinkLines
from tstorm.live.quick_links import QuickLinks

S = 1_000_000_000
PLAN = compile_source(
    "service a replicas=2\nservice b\nlink a--b latency=1ms up=10Mb symmetric\nat 100s quit\n"
).plan
BOTH: dict[str, Any] = {"src": "a.0", "dst": "b.0", "delay_ns": 9, "up": 0, "both": 1, "id": "x"}
LATER = {"src": "a.1", "dst": "b.0", "delay_ns": 7, "id": "y"}


def taken(run: str, said: str, make: Callable[[Plan, int], str], where: object) -> steer.Done:
    try:
        extension.extend(PLAN, 1, make(PLAN, 5 * S), 5 * S)
    except TdlError as error:
        raise steer.ActionError(error.diagnostics, PLAN, "do@1") from error
    return steer.Done({"action": 1, "planned_ns": 8 * S, "events": 2}, (), "do@1")


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinkLines:
    found = SimpleNamespace(directory=str(tmp_path), socket="")
    monkeypatch.setattr(registry, "find", lambda run: found)
    monkeypatch.setattr(link_lines, "options_of", lambda _directory: RunOptions())
    monkeypatch.setattr(steer, "do_made", taken)
    monkeypatch.setattr(QuickLinks, "change", lambda *_: None)
    return LinkLines("run")


def test_the_guilty_object_is_blamed_whatever_those_before_it_became(lines: LinkLines) -> None:
    over = {**LATER, "at_ns": 1 * S}
    first, second = lines.answers(json.dumps([BOTH, over]))
    assert (first["id"], second["id"]) == ("x", "y")
    assert "another change of its line" in first["error"]
    assert second["code"] == "TS0321"
    assert "another change" not in second["error"]


def test_each_object_is_told_its_own_moment(lines: LinkLines) -> None:
    asked = [{**LATER, "at_ns": at_s * S, "id": at_s} for at_s in (20, 8)]
    found = lines.answers(json.dumps(asked))
    assert [(one["id"], one["ok"]["planned_ns"]) for one in found] == [(20, 20 * S), (8, 8 * S)]


@pytest.mark.parametrize("why", ["the run has ended", "the plan is replaced"])
def test_a_run_that_cannot_be_known_is_left_to_who_says_why(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or tries again, as `steer` does."""

    def asked(_socket: Path, what: dict[str, Any]) -> tuple[dict[str, Any], None]:
        if "ended" in why:
            raise RunError("the run does not listen", "try again")
        return {"at_ns": 5 * S, "number": 1, "base": "", "free_ns": 0, "t0_ns": 0}, None

    monkeypatch.setattr(quick_links, "ask", asked)
    quick = QuickLinks(cast(RunRecord, SimpleNamespace(directory=str(tmp_path), socket="")))
    assert quick.change(read(json.dumps(LATER)), "") is None


def test_only_a_line_feed_ends_a_line() -> None:
    asked = '{"id": "a\u2028b\x85c"}\n[]\n'
    assert "".join(_decoded(io.BytesIO(asked.encode()))) == asked
    assert len(list(_decoded(io.BytesIO(asked.encode())))) == 2


@pytest.mark.parametrize("bad", [b"x" * MOST_LINE + b'{"up": 1}\n', b'{"id": "\xff"}\n'])
def test_what_is_no_line_is_refused_and_nothing_after_it_is_read(bad: bytes) -> None:
    found = _decoded(io.BytesIO(b"[]\n" + bad + b"[]\n"))
    assert next(found) == "[]\n"
    with pytest.raises(CommandError):
        next(found)


def test_a_run_in_a_cluster_is_looked_for_there_while_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No list of this machine has it."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    out = tmp_path / "run"
    rundir.begin_new(PLAN, RunOptions(backend="k8s"), RunPlaces(out=out))
    for act in (steer.hold, steer.go, lambda run: steer.do(run, "a crash 1")):
        with pytest.raises(RunError, match="there is no kubeconfig"):
            act(str(out))
    with pytest.raises(RunError, match="other"):
        steer.hold(str(tmp_path / "other"))
