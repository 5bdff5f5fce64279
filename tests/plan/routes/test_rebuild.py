"""What a plan leaves out can be made again: the same bytes, or an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from compiler.pipeline import compile_source
from compiler.plan import format as form
from compiler.plan.format import REBUILT, PlanError
from compiler.plan.reader import decode
from compiler.plan.storage.delivery import complete, rebuild
from compiler.plan.types import Event, Topology
from compiler.plan.writer import encode
from tests.plan.networks import SECOND, contents, listing, networks, timeline

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.tdl"))
Files = dict[str, bytes]


def slim(files: Files) -> Files:
    return {name: data for name, data in files.items() if name not in REBUILT}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_complete_again(example: Path) -> None:
    files = dict(compile_source(example.read_bytes()).files)
    assert complete(slim(files)) == files
    made = rebuild(decode(files).topology, decode(files).events)
    assert (made.snapshots, made.routes) == (files[form.SNAPSHOTS], files[form.ROUTES])


@settings(max_examples=50, deadline=None)
@given(networks(services=4, bridges=8, length=20))
def test_any_plan_is_complete_again(case: tuple[Topology, tuple[Event, ...]]) -> None:
    files = dict(encode(contents(*case)))
    assert complete(slim(files)) == files


@pytest.fixture
def files() -> Files:
    topology = listing()
    events = timeline(topology, (SECOND, "link_down", "s1->s2"), (2 * SECOND, "bridge_down", "s2"))
    return dict(encode(contents(topology, events)))


def test_what_is_there_already_is_made_anew(files: Files) -> None:
    assert complete(files) == files
    assert complete({**files, form.ROUTES: b"not a table"}) == files


@pytest.mark.parametrize("name", [form.HEADER, form.SOURCE, form.TIMELINE, form.TOPOLOGY])
def test_a_missing_part_is_named(files: Files, name: str) -> None:
    partial = slim(files)
    del partial[name]
    with pytest.raises(PlanError, match=f"{name}: is missing"):
        complete(partial)


@pytest.mark.parametrize("name", [form.SOURCE, form.TIMELINE, form.TOPOLOGY])
def test_a_changed_part_is_named(files: Files, name: str) -> None:
    changed = files[name].replace(b"s", b"t", 1)
    assert changed != files[name]
    with pytest.raises(PlanError, match=f"{name}: was changed"):
        complete({**slim(files), name: changed})


def test_another_outcome_is_an_error(files: Files) -> None:
    """As if a release that routes differently had written the plan."""
    header = files[form.HEADER]
    digest = form.parse(header, form.HEADER)["files"][form.ROUTES]["sha256"].encode()
    other = {**slim(files), form.HEADER: header.replace(digest, digest[::-1])}
    with pytest.raises(PlanError, match=r"routes\.bin: made anew .* not what plan\.json says"):
        complete(other)
