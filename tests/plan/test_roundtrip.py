"""What is written is what is read; epochs are differences that add up; the bytes are canonical."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from compiler.plan import format as form
from compiler.plan.format import PlanError
from compiler.plan.reader import decode, read_plan
from compiler.plan.routes.core import Core
from compiler.plan.routes.routing import snapshots
from compiler.plan.routes.table import RouteReader, RouteWriter
from compiler.plan.state import StateAt, epochs
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode, write_plan
from tests.plan.networks import SECOND, contents, listing, networks, timeline
from tests.plan.oracle import states_at

Case = tuple[Topology, tuple[Event, ...]]


@settings(max_examples=200, deadline=None)
@given(networks())
def test_decode_inverts_encode(case: Case) -> None:
    topology, events = case
    written = contents(topology, events, seed=42)
    files = encode(written)
    plan = decode(files, lazy=False)
    plan.verify(deep=True)
    assert (plan.topology, plan.events) == (topology, events)
    assert (plan.seed, plan.end_ns, plan.source) == (42, written.end_ns, written.source)
    assert plan.epochs == tuple(epochs(topology, events))
    assert plan.digest == hashlib.sha256(files[form.HEADER]).hexdigest()
    again = contents(plan.topology, plan.events, seed=42)
    assert encode(replace(again, end_ns=plan.end_ns)) == files


@settings(max_examples=200, deadline=None)
@given(networks(length=20))
def test_deltas_fold_to_the_full_state(case: Case) -> None:
    topology, events = case
    fold = StateAt(topology)
    covered = 0
    for epoch in epochs(topology, events):
        fold.advance(epoch)
        nodes, links = states_at(topology, events, epoch.at_ns)
        assert fold.nodes == list(nodes.values())
        assert fold.links == [links[link.name] for link in topology.links]
        assert epoch.first_seq == covered
        assert all(event.at_ns == epoch.at_ns for event in events[covered : epoch.last_seq])
        covered = epoch.last_seq
    assert covered == len(events)


@settings(max_examples=100, deadline=None)
@given(networks(length=20))
def test_every_table_is_found_alone(case: Case) -> None:
    """The table of an epoch, read directly, is what all changes before it lead to."""
    topology, events = case
    core, writer = Core(topology), RouteWriter(Core(topology))
    deltas = [delta for _, delta in snapshots(topology, events)]
    for delta in deltas:
        writer.add(delta)
    reader = RouteReader(writer.encode(), topology, core, len(deltas))
    table = [0] * core.cells
    for epoch, delta in enumerate(deltas):
        assert reader.changes(epoch) == delta
        for cell, value in zip(delta.cells, delta.values, strict=True):
            table[cell] = value
        assert list(reader.table(epoch)) == table
    reader.verify()


def test_a_flapping_link_is_stored_once() -> None:
    """Two states taking turns a thousand times need two tables and two lists of changes at most."""
    topology = listing()
    flaps = [
        (second * SECOND, f"link_{'up' if second % 2 == 0 else 'down'}", "s1->s2")
        for second in range(1, 1001)
    ]
    files = encode(contents(topology, timeline(topology, *flaps)))
    index = 24 + 24 * 1001
    cells = Core(topology).cells
    assert len(files[form.ROUTES]) <= index + 2 * (2 * cells) + 2 * 6 * cells
    plan = decode(files, lazy=False)
    plan.verify(deep=True)
    assert plan.state_at(500 * SECOND).table == plan.state_at(0).table
    assert plan.state_at(501 * SECOND).table != plan.state_at(0).table


def test_lines_are_canonical_json_of_integers_and_strings() -> None:
    files = encode(contents(listing(), timeline(listing(), (SECOND, "crash", "client.1"))))

    def check(value: object) -> None:
        assert type(value) in (dict, list, int, str)
        for item in value.values() if isinstance(value, dict) else ():
            check(item)
        for item in value if isinstance(value, list) else ():
            check(item)

    for name, data in files.items():
        if name.endswith((".json", ".jsonl")):
            for line in data.splitlines(keepends=True):
                check(json.loads(line))
                assert line == form.canonical(json.loads(line))
                assert line.isascii()


def test_a_line_of_the_timeline() -> None:
    """As docs/plan.md shows it; others read it."""
    topology = listing()
    files = encode(contents(topology, timeline(topology, (SECOND, "crash", "client.1"))))
    assert files[form.TIMELINE].splitlines()[-1] == (
        b'{"args":{},"at_ns":1000000000,"file":"","kind":"crash","line":7,"seq":4,"target":"client.1"}'
    )
    assert files[form.SNAPSHOTS].splitlines()[-1] == (
        b'{"at_ns":1000000000,"first_seq":4,"index":1,"last_seq":5,"links":'
        b'[[8,0,50000000,23400000,1200000,10000000,312500,"normal"],'
        b'[9,0,1000000000,9100000,0,0,6250000,"normal"]],"nodes":[[3,"down"]]}'
    )


def test_the_plan_on_disk_is_the_plan_in_memory(tmp_path: Path) -> None:
    files = encode(contents(listing(), timeline(listing(), (SECOND, "crash", "server.0"))))
    digest = write_plan(tmp_path / "x.plan", files)
    plan = read_plan(tmp_path / "x.plan")
    assert plan.digest == digest == decode(files).digest
    assert plan.events == decode(files).events
    assert plan.source_name == "source.tdl"
    lazy = read_plan(tmp_path / "x.plan", lazy=True)
    assert lazy.state_at(SECOND).nodes == ["down", "up", "up", "up", "up", "up"]
    assert "events" not in lazy.__dict__, "the timeline is not read for a state"


def test_epochs_begin_at_zero_and_cover_their_own_instant() -> None:
    topology = listing()
    events = timeline(topology, (SECOND, "crash", "server.0"), (SECOND, "join", "server.0"))
    plan = decode(encode(contents(topology, events)))
    assert [(epoch.at_ns, epoch.first_seq, epoch.last_seq) for epoch in plan.epochs] == [
        (0, 0, 4),
        (SECOND, 4, 6),
    ]
    assert plan.epochs[1].nodes == (), "gone and back at once is no change of state"
    assert plan.state_at(SECOND - 1).epoch == 0
    assert plan.state_at(SECOND).epoch == 1
    assert plan.state_at(99 * SECOND).epoch == 1
    with pytest.raises(ValueError, match="starts at 0"):
        plan.state_at(-1)


def test_background_comes_off_the_rate_and_goes_back() -> None:
    topology = listing()
    name = "s1->s2"
    link = next(i for i, item in enumerate(topology.links) if item.name == name)
    full = topology.links[link].state.rate_bps
    events = [
        *timeline(topology),
        Event(4, SECOND, "background", name, {"rate_bps": 60_000_000}, 1),
        Event(5, 2 * SECOND, "set", name, {"rate_bps": 80_000_000}, 2),
        Event(6, 3 * SECOND, "background", name, {"rate_bps": 0}, 3),
    ]
    plan = decode(encode(contents(topology, tuple(events))), lazy=False)
    states = [plan.state_at(at * SECOND).links[link] for at in range(4)]
    assert [state.rate_bps for state in states] == [full, 40_000_000, 20_000_000, 80_000_000]
    assert [state.capacity_bps for state in states] == [0, 100_000_000, 80_000_000, 0]


@pytest.mark.parametrize(
    ("kind", "target", "args", "message"),
    [
        ("join", "server.0", {}, "join 'server.0' is not possible: the target is up"),
        ("reconnect", "server.0", {}, "is not possible: the target is up"),
        ("bridge_up", "s1", {}, "is not possible: the target is up"),
        ("link_up", "s1->s2", {}, "the link is up already"),
        ("crash", "server.7", {}, "names no instance"),
        ("crash", "s1", {}, "names no instance"),
        ("bridge_down", "server.0", {}, "names no bridge"),
        ("link_down", "s1->s9", {}, "names no link"),
        ("background", "s1->s2", {"rate_bps": 100_000_000}, "leaves no rate"),
        ("quit", "server.0", {}, "quit 'server.0' has a target"),
    ],
)
def test_impossible_events_are_refused(
    kind: str, target: str, args: dict[str, int | str], message: str
) -> None:
    topology = listing()
    events = (*timeline(topology), Event(4, SECOND, kind, target, args, 1))
    with pytest.raises(PlanError, match=message) as caught:
        list(epochs(topology, events))
    assert (caught.value.file, caught.value.line) == ("timeline.jsonl", 5)


def test_nothing_comes_after_quit() -> None:
    topology = listing()
    events = timeline(topology, (SECOND, "quit", ""), (SECOND, "crash", "server.0"))
    with pytest.raises(PlanError, match="comes after quit"):
        list(epochs(topology, events))
