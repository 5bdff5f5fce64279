"""Editing one line leaves what the others do alone; the same input gives the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.pipeline import compile_source, elaborate
from compiler.plan.types import Event
from tdl.diagnostics import Sink
from tdl.parser import parse
from tests.compiler.files import files

ROOT = Path(__file__).parents[2]
LISTING = ROOT / "examples" / "listing1.tdl"

Key = tuple[int, str, str, tuple[tuple[str, int | str], ...]]


def bag(events: Iterable[Event]) -> Counter[Key]:
    """Events without their numbers and lines."""
    return Counter((e.at_ns, e.kind, e.target, tuple(sorted(e.args.items()))) for e in events)


@pytest.mark.parametrize(
    "line",
    [
        "at 45m s1--s2 set latency=0.2",
        "at 2h client crash",
        "at 1h db leave 1",
        "at 11h db disconnect 1",
        "at 10m s1--s2 background 1Mb",
        "from 13h to 14h s1--s2 flap 7s",
    ],
)
@pytest.mark.parametrize("where", [15, 19, 22, 26])
def test_a_line_inserted_into_listing_1(line: str, where: int) -> None:
    """Every other event stays, wherever the line is put."""
    lines = LISTING.read_text().splitlines()
    before = compile_source("\n".join(lines) + "\n").events
    after = compile_source("\n".join([*lines[:where], line, *lines[where:]]) + "\n").events
    others = [e for e in after if e.line != where + 1]
    assert bag(others) == bag(before)
    assert len(after) > len(others)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=files(), data=st.data())
def test_an_unrelated_service_changes_nothing(text: str, data: st.DataObject) -> None:
    """A service and its churn, put anywhere: all other events are the same in the same order.

    Statements about everything are left out, as they would be about the new service too.
    """
    parsed, _ = parse(text)
    everything = {s.span.line for s in parsed.statements if "Everything" in repr(s)}
    lines = [t for i, t in enumerate(text.splitlines(), 1) if i not in everything]
    place = data.draw(st.integers(0, len(lines)))
    extra = ["service zz replicas=5", "bridge zs", "link zz--zs", "from 1s to 7s zz churn 4"]
    more = [*lines[:place], *extra, *lines[place:]]
    found = []
    for source in (lines, more):
        file, _ = parse("\n".join(source) + "\n")
        _, timeline = elaborate(file, Sink(), 3)
        found.append([e for e in timeline.events if not e.target.startswith("z")])
    plain = [[(e.at_ns, e.kind, e.target, e.args) for e in events] for events in found]
    assert plain[0] == plain[1]


def test_spaces_and_comments_change_no_draw() -> None:
    text = LISTING.read_text()
    spaced = text.replace("churn 40%", "churn   40%").replace("server join 5", "server join 5  # !")
    assert bag(compile_source(spaced).events) == bag(compile_source(text).events)


def test_identical_statements_draw_differently() -> None:
    head = "service a replicas=50\nbridge s\nlink a--s\n"
    line = "from 1s to 9s a churn 5 replace 100%\n"
    once = compile_source(head + line).events
    twice = compile_source(head + line + line).events
    assert not bag(once) - bag(twice)
    crashes = [(e.at_ns, e.target) for e in twice if e.kind == "crash"]
    assert len(set(crashes)) == 10


def test_another_seed_draws_differently() -> None:
    text = LISTING.read_text()
    assert bag(compile_source(text, seed=1).events) != bag(compile_source(text, seed=2).events)


def test_the_seed_of_the_command_wins_over_the_file() -> None:
    text = LISTING.read_text()
    seeded = text.replace("bootstrapper", "seed 7\nbootstrapper", 1)
    seven = bag(compile_source(text, seed=7).events)
    assert bag(compile_source(seeded).events) == seven
    assert bag(compile_source(seeded, seed=8).events) != seven
    assert compile_source(seeded, seed=8).plan.seed == 8
    assert compile_source(text).plan.seed == 0


SCRIPT = """
import hashlib, sys
from compiler.pipeline import compile_source
files = compile_source(open(sys.argv[1], "rb").read(), filename=sys.argv[1]).files
print({name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())})
"""


def digests(source: Path, folder: Path, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(source)],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


def test_same_bytes_everywhere(tmp_path: Path) -> None:
    copy = tmp_path / "other name.tdl"
    copy.write_bytes(LISTING.read_bytes())
    one = digests(LISTING, ROOT, PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C")
    two = digests(copy, tmp_path, PYTHONHASHSEED="2", TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    assert one == two
    assert one.count("'") > 8
