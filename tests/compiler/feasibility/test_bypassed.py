"""Links that no path takes, against walks between all pairs in every state."""

from __future__ import annotations

import pytest

from compiler.feasibility import bypassed
from compiler.feasibility.bypassed import Bypassed
from compiler.pipeline import compile_source, elaborate
from compiler.plan.paths.path import path
from compiler.plan.reader import decode
from compiler.plan.routes.routing import snapshots
from compiler.plan.state import NetworkState
from tdl.diagnostics import Sink
from tdl.parser import parse
from tests.plan.topologies import instances, scale_free

SIZE = 40


def taken(state: NetworkState) -> set[int]:
    """Links, by one of their directions, that lead from an instance to another."""
    here = range(instances(SIZE))
    found = (path(state, src, dst) for src in here for dst in here if src != dst)
    return {link & ~1 for one in found if one is not None for link in one.links}


@pytest.mark.parametrize("seed", range(12))
def test_what_nobody_takes_is_found(seed: int) -> None:
    text = scale_free(SIZE, events=25, seed=seed)
    model, timeline = elaborate(parse(text)[0], Sink())
    found = Bypassed(model)
    for _ in found.through(snapshots(model.topology, timeline.events)):
        pass
    plan = decode(compile_source(text).files)
    used = set().union(*(taken(plan.state_at(epoch.at_ns)) for epoch in plan.epochs))
    core = {
        d
        for d, link in enumerate(model.topology.links)
        if min(link.src, link.dst) >= instances(SIZE)
    }
    assert {*found.unused.values()} == {d for d in core if not d & 1} - used
    assert used & core, "else nothing was looked up"


def test_of_a_network_that_is_too_large_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not known, then, that nobody takes a link; the plan is the same."""
    text = scale_free(SIZE, events=25, seed=1)
    whole = compile_source(text)
    assert "TS0925" in {one.code for one in whole.diagnostics}
    monkeypatch.setattr(bypassed, "WORK", 10)
    found = compile_source(text)
    assert "TS0925" not in {one.code for one in found.diagnostics}
    assert found.empty == () and found.files == whole.files
