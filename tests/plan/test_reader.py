"""What is wrong with a plan is a PlanError that names the file, the line and the fault."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from compiler.plan import format as form
from compiler.plan.format import FORMAT_VERSION, PlanError
from compiler.plan.reader import decode, read_plan
from compiler.plan.writer import encode, write_plan
from tests.plan.networks import SECOND, contents, listing, timeline

HEADER, TOPOLOGY, TIMELINE = form.HEADER, form.TOPOLOGY, form.TIMELINE
SNAPSHOTS, ROUTES = form.SNAPSHOTS, form.ROUTES


def files() -> dict[str, bytes]:
    events = timeline(
        listing(),
        (SECOND, "link_down", "s1->s2"),
        (2 * SECOND, "crash", "server.0"),
        (9 * SECOND, "quit", ""),
    )
    return encode(contents(listing(), events))


def signed(found: dict[str, bytes]) -> dict[str, bytes]:
    """With sizes and digests put right, so that what is inside is what gets read."""
    header = json.loads(found[HEADER])
    for name in form.FILES:
        data = found[name]
        header["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    found[HEADER] = form.canonical(header)
    return found


def edited(name: str, line: int, edit: Callable[[Any], object]) -> dict[str, bytes]:
    """A plan with one JSON line changed by hand, canonical and signed again."""
    found = files()
    lines = found[name].splitlines(keepends=True)
    value = json.loads(lines[line - 1])
    edit(value)
    lines[line - 1] = form.canonical(value)
    found[name] = b"".join(lines)
    return found if name == HEADER else signed(found)


def refused(found: Mapping[str, bytes]) -> PlanError:
    with pytest.raises(PlanError) as caught:
        decode(found, lazy=False).verify(deep=True)
    assert caught.value.hint
    return caught.value


def test_the_untouched_plan_is_fine() -> None:
    plan = decode(files(), lazy=False)
    plan.verify(deep=True)
    assert decode(signed(files())).digest == plan.digest


@pytest.mark.parametrize("name", (HEADER, *form.FILES))
def test_missing_file(name: str, tmp_path: Path) -> None:
    write_plan(tmp_path / "x.plan", files())
    (tmp_path / "x.plan" / name).unlink()
    for lazy in (False, True):
        with pytest.raises(PlanError, match="is missing") as caught:
            read_plan(tmp_path / "x.plan", lazy=lazy)
        assert name in str(caught.value)


@pytest.mark.parametrize("name", form.FILES)
def test_truncated_and_edited_files(name: str) -> None:
    found = files()
    found[name] = found[name][:-1]
    assert "bytes instead of the" in str(refused(found))
    found = files()
    found[name] = found[name][:-1] + bytes([found[name][-1] ^ 1])
    error = refused(found)
    assert (error.file, "was changed: its SHA-256" in error.what) == (name, True)


def test_newer_plan_names_the_release_that_wrote_it() -> None:
    def newer(header: dict[str, Any]) -> None:
        header.update(version=FORMAT_VERSION + 1, tool="9.1.4", novelty=1)

    error = refused(edited(HEADER, 1, newer))
    assert f"format {FORMAT_VERSION + 1}, newer than {FORMAT_VERSION}" in error.what
    assert "'9.1.4'" in error.what
    assert "use that release" in error.hint


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_plan_says_what_to_do(version: int) -> None:
    error = refused(edited(HEADER, 1, lambda header: header.update(version=version, tool="0.0.9")))
    assert f"format {version}, older than {FORMAT_VERSION}" in error.what
    assert "compile the source again (source.tdl in it)" in error.hint


@pytest.mark.parametrize("data", [b"", b"[]\n", b"{}\n", b'{"format":"something"}\n', b"\x00\n"])
def test_not_a_plan(data: bytes) -> None:
    assert refused({**files(), HEADER: data}).file == HEADER


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"seed":1', b'"seed":1.0', "the number 1.0 is not an integer"),
        (b'"seed":1', b'"seed":1e3', "not an integer"),
        (b'"seed":1', b'"seed":-0', "canonical"),
        (b'"seed":1', b'"seed":NaN', "not an integer"),
        (b'"seed":1', b'"seed":true', "seed must be an integer from 0"),
        (b'"seed":1', b'"seed":-1', "seed must be an integer from 0"),
        (b'"seed":1', b'"seed":9223372036854775808', "seed must be an integer from 0"),
        (b'"seed":1', b'"seed":' + b"9" * 5000, "not valid JSON"),
        (b'"seed":1', b'"seed": 1', "canonical"),
        (b'"seed":1', b'"seed":1,"seed":1', "canonical"),
        (b'"seed":1', b'"seed":"1"', "seed must be an integer"),
        (b'"seed":1,', b"", "field 'seed' is missing"),
        (b'"seed":1', b'"seed":1,"sees":1', "unknown field 'sees'"),
        (b'"delay"', b'"shortest"', "routing must be one of delay, hops, direct"),
        (b"}\n", b"}", "canonical"),
        (b"}\n", b"}\n\n", "canonical"),
        (b'"tool":"0.1.0"', b'"tool":"\\ud800"', "not valid JSON"),
        (b'"tool":"0.1.0"', b'"tool":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_bad_header(old: bytes, new: bytes, message: str) -> None:
    found = files()
    assert old in found[HEADER]
    end = found[HEADER].endswith(old)
    parts = found[HEADER].rsplit(old, 1) if end else found[HEADER].split(old, 1)
    found[HEADER] = new.join(parts)
    error = refused(found)
    assert error.file == HEADER
    assert message in error.what


def put(*path: str | int, value: object) -> Callable[[Any], None]:
    def edit(tree: Any) -> None:
        for step in path[:-1]:
            tree = tree[step]
        tree[path[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("extra",), 1, "unknown field 'extra'"),
        (("nodes", 0, "name"), "server.1", "appears twice"),
        (("nodes", 0, "name"), "../etc", "must be instance server.0"),
        (("nodes", 4, "name"), "../etc", "is not a name"),
        (("nodes", 4, "name"), "s--1", "is not a name"),
        (("nodes", 4, "name"), "s2", "'s2' appears twice"),
        (("nodes", 4, "name"), "server", "'server' appears twice"),
        (("nodes", 4, "ipv4"), "10.77.0.1", "appears twice"),
        (("nodes", 4, "ipv6"), "FD77::1", "not an address"),
        (("hops",), "loud", "hops"),
        (("hops_at",), ["", "1"], "hops_at"),
        (("nodes", 4, "service"), 1, "comes among bridges"),
        (("nodes", 0, "service"), 1, "must be instance server.0"),
        (("nodes", 0, "ipv4"), "10.77.0.02", "not an address"),
        (("nodes", 0, "ipv4"), "10.77.0.2", "appears twice"),
        (("nodes", 0, "ipv6"), "FD77::1", "not an address"),
        (("nodes", 0, "ipv6"), "::ffff:10.77.0.1", "not an address"),
        (("nodes", 0, "ipv6"), "fe80::1%eth0", "not an address"),
        (("nodes", 0, "tags"), "t", "a list is expected"),
        (("nodes", 0), [], "node 0: an object is expected"),
        (("services", 0, "replicas"), 3, "must be instance server.2"),
        (("services", 1, "replicas"), 1, "is not an instance and comes among bridges"),
        (("services", 0, "entrypoint"), ["", "x"], "entrypoint of service server names no program"),
        (("services", 0, "entrypoint"), "x", "a list is expected"),
        (("services", 0, "ports"), [0], "port must be an integer from 1 to 65535"),
        (("services", 0, "env"), [["a"]], "a list of 2 is expected"),
        (("links", 0, "src"), 99, "an end that is no other node"),
        (("links", 0, "src"), 4, "an end that is no other node"),
        (("links", 0, "name"), "a->b", "must be called after its ends"),
        (("links", 0, "name"), "fast:server.0->s1", "are not the directions of one link"),
        (("links", 0, "name"), "s2:server.0->s1", "is called 's2', which is no name for a link"),
        (("links", 0, "name"), "a:b:server.0->s1", "is called 'a:b', which is no name"),
        (("links", 0, "name"), ":server.0->s1", "must be called after its ends"),
        (("links", 0, "rate_bps"), -1, "link 0: rate_bps must be an integer from 0"),
        (("links", 0, "loss_ppb"), 10**9 + 1, "loss_ppb must be an integer from 0 to 1000000000"),
        (("links", 0, "distribution"), "gauss", "distribution must be one of normal"),
        (("routing",), "hops", "routing is not the one in plan.json"),
        (("bootstrapper",), None, "bootstrapper must be a string"),
    ],
)
def test_bad_topology(path: tuple[str | int, ...], value: object, message: str) -> None:
    error = refused(edited(TOPOLOGY, 1, put(*path, value=value)))
    assert error.file == TOPOLOGY
    assert message in error.what


def test_links_come_in_pairs_and_once() -> None:
    def swap(tree: Any) -> None:
        tree["links"][1], tree["links"][3] = tree["links"][3], tree["links"][1]

    assert "are not the directions of one link" in refused(edited(TOPOLOGY, 1, swap)).what
    error = refused(edited(TOPOLOGY, 1, lambda tree: tree["links"].pop()))
    assert "only one direction" in error.what
    error = refused(edited(TOPOLOGY, 1, lambda tree: tree["links"].extend(tree["links"][:2])))
    assert "server.0->s1 appears twice" in error.what

    def beside(*names: str) -> Callable[[Any], None]:
        def edit(tree: Any) -> None:
            for name in names:
                for one in (dict(link) for link in tree["links"][:2]):
                    tree["links"].append({**one, "name": f"{name}{one['name']}"})

        return edit

    error = refused(edited(TOPOLOGY, 1, beside("fast:", "slow:")))
    assert "fast:server.0->s1 is one of several between its ends" in error.what
    error = refused(edited(TOPOLOGY, 1, lambda tree: tree["links"].__delitem__(slice(0, 2))))
    assert "holds 8 links instead of the 10" in error.what


@pytest.mark.parametrize(
    ("line", "path", "value", "message"),
    [
        (5, ("seq",), 5, "event 5 where 4 is expected"),
        (6, ("at_ns",), 1, "before the event above it"),
        (7, ("at_ns",), 8 * SECOND, "is not the end at"),
        (6, ("at_ns",), 99 * SECOND, "after the end"),
        (5, ("kind",), "explode", "kind must be one of join"),
        (5, ("target",), "s1->s9", "names no link"),
        (5, ("args",), {"rate_bps": 1}, "unknown field 'rate_bps'"),
        (5, ("line",), -1, "line must be an integer"),
        (5, ("kind",), "set", "set needs at least one property"),
        (5, ("kind",), "background", "field 'rate_bps' is missing"),
        (6, ("kind",), "join", "the target is up"),
    ],
)
def test_bad_timeline(line: int, path: tuple[str, ...], value: object, message: str) -> None:
    error = refused(edited(TIMELINE, line, put(*path, value=value)))
    assert (error.file, error.line) == (TIMELINE, line)
    assert message in error.what
    assert str(error).startswith(f"timeline.jsonl:{line}: ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"up": 1}, "set cannot change 'up'"),
        ({"loss_ppb": 10**9 + 1}, "loss_ppb must be"),
        ({"delay_ns": "5ms"}, "delay_ns must be an integer"),
        ({"distribution": "gauss"}, "distribution must be one of"),
        ([], "at least one property"),
    ],
)
def test_bad_set(args: object, message: str) -> None:
    def edit(event: Any) -> None:
        event.update(kind="set", args=args)

    assert message in refused(edited(TIMELINE, 5, edit)).what


@pytest.mark.parametrize(
    ("line", "path", "value", "message"),
    [
        (2, ("index",), 2, "epoch 1 with events from 4 is expected"),
        (2, ("first_seq",), 3, "epoch 1 with events from 4 is expected"),
        (1, ("at_ns",), 1, "must start at 0"),
        (3, ("at_ns",), SECOND, "a later time"),
        (2, ("nodes",), [[0, "up"]], "is not what timeline.jsonl makes of it"),
        (2, ("nodes",), [[9, "up"]], "node (each once, ascending) must be an integer"),
        (2, ("nodes",), [[1, "up"], [0, "up"]], "must be an integer from 2 to 5"),
        (2, ("nodes",), [[0, "asleep"]], "state must be one of up, cut, down"),
        (2, ("links",), [], "is not what timeline.jsonl makes of it"),
        (2, ("links", 0, 0), 10, "must be an integer from 0 to 9"),
        (2, ("links", 0, 1), 2, "up must be an integer from 0 to 1"),
        (2, ("links", 0), [4, 1], "a list of 7 is expected"),
        (4, ("last_seq",), 8, "does not account for every event"),
    ],
)
def test_bad_snapshots(line: int, path: tuple[Any, ...], value: object, message: str) -> None:
    error = refused(edited(SNAPSHOTS, line, put(*path, value=value)))
    assert error.file == SNAPSHOTS
    assert message in error.what


def test_snapshots_end_early() -> None:
    found = files()
    found[SNAPSHOTS] = found[SNAPSHOTS].splitlines(keepends=True)[0]
    assert "does not account for every event" in refused(signed(found)).what
    found[SNAPSHOTS] = b""
    assert "holds no epoch" in refused(signed(found)).what


def routes_with(offset: int, layout: str, *values: int) -> dict[str, bytes]:
    found = files()
    data = bytearray(found[ROUTES])
    struct.pack_into(layout, data, offset, *values)
    found[ROUTES] = bytes(data)
    return signed(found)


ENTRY = 24  # bytes of the head, and of each index entry


@pytest.mark.parametrize(
    ("offset", "layout", "value", "message"),
    [
        (0, "<B", 0, "not a table of routes"),
        (8, "<I", 4_000_000_000, "4000000000 x 2 cells"),
        (12, "<I", 1, "2 x 1 cells"),
        (16, "<I", 4_000_000_000, "and 4000000000 epochs"),
        (20, "<I", 1, "has groups, with routing delay"),
        (20, "<I", 1 << 30, "its groups lie outside the file"),
        (ENTRY + 8, "<Q", 1 << 63, "epoch 0: its routes lie outside the file"),
        (ENTRY + 16, "<I", 1, "epoch 0: 1 changes are too many"),
        (ENTRY + 20, "<I", 1, "epoch 0: its base is neither"),
        (2 * ENTRY, "<Q", (1 << 64) - 1, "epoch 1: its routes lie outside the file"),
        (2 * ENTRY + 16, "<I", (1 << 32) - 1, "epoch 1: its routes lie outside the file"),
        (2 * ENTRY + 20, "<I", 3, "epoch 1: its base is neither"),
        (5 * ENTRY + 2, "<H", 9, "table of epoch 0: row 0 names link 9 of 1"),
        (5 * ENTRY, "<H", 1, "table of epoch 0: column 0 leads away from its destination"),
    ],
)
def test_bad_routes(offset: int, layout: str, value: int, message: str) -> None:
    error = refused(routes_with(offset, layout, value))
    assert error.file == ROUTES
    assert message in error.what


def test_bad_route_changes() -> None:
    found = files()
    start = struct.unpack_from("<Q", found[ROUTES], 2 * ENTRY)[0]
    assert "cell 0 leads away from" in refused(routes_with(start, "<IH", 0, 1)).what
    assert "cell 9 is beyond the table" in refused(routes_with(start, "<I", 9)).what
    assert "names link 7 of 1" in refused(routes_with(start + 4, "<H", 7)).what
    assert (
        "is listed as changed and has not changed" in refused(routes_with(start + 4, "<H", 1)).what
    )
    found[ROUTES] = found[ROUTES][:-1]
    assert refused(signed(found)).file == ROUTES
    found[ROUTES] = found[ROUTES][:30]
    assert "shorter than its index" in refused(signed(found)).what


def test_route_changes_ascend() -> None:
    events = timeline(listing(), (SECOND, "link_down", "s1->s2"), (SECOND, "link_down", "s2->s1"))
    found = encode(contents(listing(), events))
    start = struct.unpack_from("<Q", found[ROUTES], 2 * ENTRY)[0]
    data = bytearray(found[ROUTES])
    assert struct.unpack_from("<II", data, start) == (1, 2)
    struct.pack_into("<II", data, start, 2, 1)
    found[ROUTES] = bytes(data)
    assert "cell 1 is out of order" in refused(signed(found)).what


def test_a_size_is_never_trusted(tmp_path: Path) -> None:
    """A header that claims a terabyte is refused before anything is read."""
    huge = put("files", ROUTES, "size", value=1 << 40)
    assert "size of routes.bin must be an integer" in refused(edited(HEADER, 1, huge)).what
    write_plan(tmp_path / "x.plan", files())
    with (tmp_path / "x.plan" / HEADER).open("r+b") as file:
        file.truncate(1 << 40)  # sparse
    with pytest.raises(PlanError, match="too many for a header"):
        read_plan(tmp_path / "x.plan")


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """A named pipe would make the reader wait for ever."""
    write_plan(tmp_path / "x.plan", files())
    (tmp_path / "x.plan" / TIMELINE).unlink()
    os.mkfifo(tmp_path / "x.plan" / TIMELINE)
    with pytest.raises(PlanError, match="is not a regular file"):
        read_plan(tmp_path / "x.plan")


@pytest.mark.parametrize("make", [None, "file", "directory"])
def test_what_is_not_a_plan_directory(tmp_path: Path, make: str | None) -> None:
    path = tmp_path / "x.plan"
    if make == "file":
        path.write_text("at 0s quit")
    elif make == "directory":
        path.mkdir()
    wanted = {None: "does not exist", "file": "is not a directory", "directory": "is missing"}
    with pytest.raises(PlanError, match=wanted[make]):
        read_plan(path)


def test_lazy_reading_checks_what_it_uses(tmp_path: Path) -> None:
    write_plan(tmp_path / "x.plan", files())
    path = tmp_path / "x.plan" / SNAPSHOTS
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"down"', b'"dawn"'))
    plan = read_plan(tmp_path / "x.plan", lazy=True)
    assert len(plan.events) == 7
    with pytest.raises(PlanError, match=r"snapshots\.jsonl: was changed"):
        plan.state_at(0)


def test_a_plan_that_is_replaced_is_never_mixed_with_the_new_one(tmp_path: Path) -> None:
    """What was not read yet is gone, even where the new plan has files of the same size."""
    target, old = tmp_path / "x.plan", files()
    write_plan(target, old)
    plan = read_plan(target, lazy=True)
    assert plan.raw(form.SOURCE) == old[form.SOURCE]
    target.rename(tmp_path / "aside")
    write_plan(target, old)
    assert plan.sparse_at(0).epoch == 0  # it is still there, under another name
    write_plan(tmp_path / "aside", old)
    with pytest.raises(PlanError, match=r"x\.plan: was replaced or removed while it was read; try"):
        plan.sparse_at(0)
    with pytest.raises(PlanError, match="was replaced or removed"):
        plan.verify()


def test_a_directory_is_open_as_long_as_its_plan_lives(tmp_path: Path) -> None:
    write_plan(tmp_path / "x.plan", files())
    before = set(Path("/proc/self/fd").iterdir())
    plan = read_plan(tmp_path / "x.plan", lazy=True)
    assert set(Path("/proc/self/fd").iterdir()) != before
    del plan
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_what_the_plan_before_has_too_is_as_if_it_was_read_again() -> None:
    first, longer = decode(files()), signed(_longer())
    first = decode(files(), before=first)
    _ = first.events, first.epochs
    found, alone = decode(longer, before=first), decode(longer, lazy=False)
    assert (found.events, found.epochs) == (alone.events, alone.epochs)
    assert found.events[0] is first.events[0]
    for name in (TIMELINE, SNAPSHOTS):
        for lines in (slice(1, None), slice(None, -1)):
            data = dict(longer)
            data[name] = b"".join(data[name].splitlines(keepends=True)[lines])
            broken = decode(signed(data), before=first)
            with pytest.raises(PlanError):
                _ = broken.events, broken.epochs


def _longer() -> dict[str, bytes]:
    events = timeline(
        listing(),
        (SECOND, "link_down", "s1->s2"),
        (2 * SECOND, "crash", "server.0"),
        (3 * SECOND, "link_up", "s1->s2"),
        (9 * SECOND, "quit", ""),
    )
    return encode(contents(listing(), events))
