"""Reading for a few paths: the same answers as the strict reader, and errors for what is used."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings

from compiler.plan import format as form
from compiler.plan.format import PlanError
from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan, decode, read_plan
from compiler.plan.routes.core import Core
from compiler.plan.sparse import LazyRecords, SparseState
from compiler.plan.state import NetworkState
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode, write_plan
from tests.plan.networks import PLAIN, SECOND, build, contents, listing, networks, timeline
from tests.plan.test_oracle import moments
from tests.plan.test_reader import ENTRY, edited, files, put, routes_with, signed

Case = tuple[Topology, tuple[Event, ...]]
HEADER, TOPOLOGY, TIMELINE = form.HEADER, form.TOPOLOGY, form.TIMELINE
SNAPSHOTS, ROUTES = form.SNAPSHOTS, form.ROUTES


def same(sparse: SparseState, full: NetworkState) -> None:
    assert (sparse.epoch, sparse.at_ns) == (full.epoch, full.at_ns)
    assert tuple(sparse.topology.nodes) == full.topology.nodes
    assert tuple(sparse.topology.links) == full.topology.links
    assert list(sparse.nodes) == list(full.nodes)
    assert list(sparse.links) == list(full.links)
    cells = range(full.core.cells)
    assert [sparse.table[cell] for cell in cells] == list(full.table)
    assert all(getattr(sparse.core, name) == getattr(full.core, name) for name in Core.__slots__)


@settings(max_examples=150, deadline=None)
@given(networks(services=4, bridges=8, length=20))
def test_agrees_with_the_strict_reader(case: Case) -> None:
    topology, events = case
    plan = decode(encode(contents(topology, events)), lazy=False)
    for at_ns in moments(events):
        same(plan.sparse_at(at_ns), plan.state_at(at_ns))


def test_members_are_the_instances_of_services() -> None:
    members = decode(files()).sparse_at(0).topology.members
    assert members == {"server": range(2), "client": range(2, 4)}


def test_a_directory_gives_what_memory_gives(tmp_path: Path) -> None:
    write_plan(tmp_path / "x.plan", files())
    plan = read_plan(tmp_path / "x.plan", lazy=True)
    for second in (0, 1, 2, 99):
        same(plan.sparse_at(second * SECOND), decode(files()).state_at(second * SECOND))
    with pytest.raises(ValueError, match="time starts at 0"):
        plan.sparse_at(-1)


class Counting:
    """The files of a plan in memory; counts what is read of each."""

    def __init__(self, found: dict[str, bytes]) -> None:
        self.found = found
        self.read_bytes = dict.fromkeys(found, 0)

    def size(self, name: str) -> int:
        return len(self.found[name])

    def read(self, name: str, size: int) -> bytes:
        self.read_bytes[name] += len(self.found[name])
        return self.found[name][: size + 1]

    def parts(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.read_bytes[name] += sum(size for _, size in ranges)
        return [self.found[name][offset : offset + size] for offset, size in ranges]


def test_reads_cells_not_tables() -> None:
    """A ring of 40 bridges with an instance each: 1,600 cells, of which a path needs a few."""
    bridges = [f"s{i}" for i in range(40)]
    wires = [(bridges[i - 1], bridges[i], PLAIN, PLAIN) for i in range(40)]
    wires += [(f"n{i}", bridges[i], PLAIN, PLAIN) for i in range(40)]
    topology = build([(f"n{i}", 1) for i in range(40)], bridges, wires)
    events = timeline(topology, (SECOND, "link_down", "s3->s4"), (2 * SECOND, "crash", "n0.0"))
    counting = Counting(encode(contents(topology, events)))
    state = Plan(counting).sparse_at(2 * SECOND)
    found = Paths(state).path(5, 9)
    assert found.reachable
    assert len(found.links) == 6
    read = counting.read_bytes
    assert 0 < read[ROUTES] < 2 * 1600 < len(counting.found[ROUTES])
    assert (read[TIMELINE], read[form.SOURCE]) == (0, 0)


def test_records_are_made_once_and_when_taken() -> None:
    made: list[int] = []

    def make(index: int) -> str:
        made.append(index)
        return str(index)

    records = LazyRecords(5, make)
    assert (len(records), made) == (5, [])
    assert (records[3], records[3], made) == ("3", "3", [3])
    assert list(records[1:4]) == ["1", "2", "3"]
    assert made == [3, 1, 2]
    for beyond in (5, -1):
        with pytest.raises(IndexError):
            records[beyond]


# --- what is wrong -------------------------------------------------------------------------------


def refused(found: dict[str, bytes], at_ns: int = 9 * SECOND) -> PlanError:
    """The error of asking for everything, bit by bit."""
    with pytest.raises(PlanError) as caught:
        ask(decode(found).sparse_at(at_ns))
    assert caught.value.hint
    return caught.value


def ask(state: SparseState) -> None:
    """For every record, and every path."""
    assert all(node.name for node in state.topology.nodes)
    assert all(link.name for link in state.topology.links)
    assert set(state.nodes) <= {"up", "cut", "down"}
    assert all(link.rate_bps >= 0 for link in state.links)
    paths = Paths(state)
    members = range(state.core.endpoints)
    assert all(paths.path(src, dst).src == src for src in members for dst in members if src != dst)


@pytest.mark.parametrize("name", [TOPOLOGY, SNAPSHOTS])
def test_files_read_whole_are_compared_with_their_digest(name: str) -> None:
    found = files()
    found[name] = found[name].replace(b"s1", b"s3").replace(b'"up"', b'"cp"')
    error = refused(found)
    assert (error.file, "was changed: its SHA-256" in error.what) == (name, True)


@pytest.mark.parametrize("name", form.FILES)
def test_sizes_are_always_checked(name: str) -> None:
    found = files()
    found[name] = found[name][:-1]
    assert (refused(found).file, "bytes instead of the" in refused(found).what) == (name, True)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("extra",), 1, "unknown field 'extra'"),
        (("nodes",), {}, "a list is expected"),
        (("nodes", 0, "name"), "../etc", "node 0 must not be called ../etc"),
        (("nodes", 0, "name"), "server.1", "node 0 must not be called server.1"),
        (("nodes", 0, "name"), "server.00", "node 0 must not be called server.00"),
        (("nodes", 0, "name"), "client.0", "node 0 must not be called client.0"),
        (("nodes", 4, "service"), 1, "comes among bridges"),
        (("nodes", 0), [], "node 0: an object is expected"),
        (("services", 0), 7, "field 'name' is missing"),
        (("services", 0, "replicas"), 3, "holds 5 instances"),
        (("services", 0, "replicas"), "2", "field 'replicas' has another type"),
        (("services", 0, "replicas"), -1, "has -1 instances"),
        (("services", 1, "name"), "server", "service 'server' appears twice"),
        (("links", 0, "src"), 99, "an end that is no node"),
        (("links", 0, "src"), True, "field 'src' has another type"),
        (("links", 0, "src"), 4, "must be neighbours"),
        (("links", 0, "name"), "a->b", "must be called after its ends"),
        (("links", 0, "rate_bps"), -1, "link 0: rate_bps must be an integer from 0"),
    ],
)
def test_bad_topology(path: tuple[str | int, ...], value: object, message: str) -> None:
    error = refused(edited(TOPOLOGY, 1, put(*path, value=value)))
    assert error.file == TOPOLOGY
    assert message in error.what


@pytest.mark.parametrize(
    ("line", "path", "value", "message"),
    [
        (2, ("index",), 2, "epoch 1 with events from 4 is expected"),
        (1, ("at_ns",), 1, "must start at 0"),
        (3, ("at_ns",), SECOND, "a later time"),
        (2, ("nodes",), [[9, "up"]], "not in order of nodes or links"),
        (2, ("nodes",), [[1, "up"], [0, "up"]], "not in order of nodes or links"),
        (2, ("nodes",), [[1, "asleep"]], "state must be one of up, cut, down"),
        (2, ("links", 0, 1), 2, "up must be an integer from 0 to 1"),
        (2, ("links", 0), [4, 1], "a list of 7 is expected"),
    ],
)
def test_bad_snapshots(line: int, path: tuple[str | int, ...], value: object, message: str) -> None:
    error = refused(edited(SNAPSHOTS, line, put(*path, value=value)), 2 * SECOND)
    assert (error.file, error.line) == (SNAPSHOTS, line)
    assert message in error.what


def test_snapshots_of_another_length() -> None:
    found = files()
    found[SNAPSHOTS] = b""
    assert "holds no epoch" in refused(signed(found)).what
    found = files()
    last = b'{"at_ns":9500000000,"first_seq":7,"index":4,"last_seq":8,"links":[],"nodes":[]}\n'
    found[SNAPSHOTS] += last
    assert "holds more than 4 epochs" in refused(signed(found), 10 * SECOND).what


@pytest.mark.parametrize(
    ("offset", "layout", "value", "message"),
    [
        (0, "<B", 0, "not a table of routes"),
        (8, "<I", 4_000_000_000, "4000000000 x 2 cells"),
        (16, "<I", 4_000_000_000, "and 4000000000 epochs"),
        (4 * ENTRY, "<Q", (1 << 64) - 1, "epoch 3: "),
        (4 * ENTRY + 16, "<I", (1 << 32) - 1, "epoch 3: "),
        (4 * ENTRY + 20, "<I", 9, "epoch 3: its base is neither"),
    ],
)
def test_bad_index_of_routes(offset: int, layout: str, value: int, message: str) -> None:
    error = refused(routes_with(offset, layout, value))
    assert error.file == ROUTES
    assert message in error.what


def test_bad_cells() -> None:
    table = 5 * ENTRY
    at_start = refused(routes_with(table + 2, "<H", 9), 0)
    assert (at_start.file, at_start.what) == (ROUTES, "epoch 0: row 0 names link 9 of 1")
    assert "leads away from its destination" in _cell(routes_with(table, "<H", 1), 0)
    start = struct.unpack_from("<Q", files()[ROUTES], 2 * ENTRY)[0]
    assert "cell 9 is beyond the table" in refused(routes_with(start, "<I", 9), SECOND).what
    short = files()
    short[ROUTES] = short[ROUTES][:30]
    assert "shorter than its index" in refused(signed(short)).what


def _cell(found: dict[str, bytes], cell: int) -> str:
    with pytest.raises(PlanError) as caught:
        decode(found).sparse_at(0).table[cell]
    return caught.value.what


def test_changes_out_of_order() -> None:
    events = timeline(listing(), (SECOND, "link_down", "s1->s2"), (SECOND, "link_down", "s2->s1"))
    found = encode(contents(listing(), events))
    start = struct.unpack_from("<Q", found[ROUTES], 2 * ENTRY)[0]
    data = bytearray(found[ROUTES])
    # The block is a base's; its changes are read for the epochs after another base only.
    struct.pack_into("<I", data, 2 * ENTRY + 20, 0)
    struct.pack_into("<Q", data, 2 * ENTRY + 8, struct.unpack_from("<Q", data, ENTRY + 8)[0])
    found[ROUTES] = bytes(data)
    ask(decode(signed(dict(found))).sparse_at(SECOND))
    struct.pack_into("<II", data, start, 2, 1)
    found[ROUTES] = bytes(data)
    assert "out of order" in refused(signed(found), SECOND).what


def test_a_route_through_an_instance() -> None:
    """A multi-homed instance belongs to the core and forwards nothing."""
    wires = [("a", "s1", PLAIN, PLAIN), ("b", "s2", PLAIN, PLAIN)]
    wires += [("m", "s1", PLAIN, PLAIN), ("m", "s2", PLAIN, PLAIN), ("s1", "s2", PLAIN, PLAIN)]
    topology = build([("a", 1), ("b", 1), ("m", 1)], ["s1", "s2"], wires)
    found = encode(contents(topology, timeline(topology)))
    state = decode(found).sparse_at(0)
    core = state.core
    row, column = core.row_of[3], core.column_of[4]
    through = 1 + [topology.links[link].dst for link in core.out[row]].index(2)
    cell = row * len(core.columns) + column
    assert state.table[cell] not in (0, through)
    data = bytearray(found[ROUTES])
    table = struct.unpack_from("<Q", data, ENTRY + 8)[0]
    struct.pack_into("<H", data, table + 2 * cell, through)
    found[ROUTES] = bytes(data)
    assert "leads through an instance" in _cell(found, cell)


def test_a_file_that_shrinks_meanwhile(tmp_path: Path) -> None:
    write_plan(tmp_path / "x.plan", files())
    state = read_plan(tmp_path / "x.plan", lazy=True).sparse_at(0)
    with (tmp_path / "x.plan" / ROUTES).open("r+b") as file:
        file.truncate(40)
    with pytest.raises(PlanError, match="was cut while it was read"):
        ask(state)
    (tmp_path / "x.plan" / ROUTES).unlink()
    with pytest.raises(PlanError, match=r"routes\.bin: is missing"):
        ask(state)
