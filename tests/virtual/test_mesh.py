"""Satellites whose programs ask for links and find ways: who is joined by the links that a run says
it granted gets answers, and nobody else; and the same in each run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.mobility_model import changes, judged

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

PROGRAMS = Path(__file__).parents[2] / "examples/satellites/mesh"
NODES, SECONDS = 4, 16
CALM_NS = 1_000_000_000  # after a change
# Four in a row reach their neighbours; the last is out of reach from 6 s to 10 s.
MOVES = "time,node,x,y\n" + "".join(
    f"{t},s{node},{node * 2000 + (9000 if node == NODES - 1 and 6 <= t < 10 else 0)},0\n"
    for t in range(SECONDS)
    for node in range(NODES)
)
TEXT = f"""\
node sat replicas={NODES} {{
    service gnab router env=COUNT:{NODES} exec="./gnab.py"
    service radio replicas=2 exec="./radio.py"
    lan inner
    link gnab--inner address=192.168.0.1/24
    link radio--inner address=192.168.0.11/24+
}}
mobility moves.csv nodes=sat.gnab range=2500m rate=50Mb latency=5ms transceivers=2 allocate=program
at {SECONDS}s quit
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("mesh")
    (folder / "exp.tdl").write_text(TEXT)
    (folder / "moves.csv").write_text(MOVES)
    for program in ("gnab.py", "radio.py"):
        (folder / program).write_bytes((PROGRAMS / program).read_bytes())
        (folder / program).chmod(0o755)
    for name in ("one", "two"):
        tstorm(folder, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", name)
    return [folder / "one", folder / "two"]


def test_who_is_joined_gets_answers_and_nobody_else(runs: list[Path]) -> None:
    (answered, lost, by_nobody, none), _ = judged(runs[0], NODES, SECONDS * 10**9, CALM_NS)
    assert (lost, by_nobody) == (0, 0)
    assert answered > 10 * NODES / 2
    assert none > 0


def test_links_are_those_that_radios_ask_for(runs: list[Path]) -> None:
    links: set[frozenset[int]] = set()
    for _, ends, up in changes(runs[0]):
        assert (ends in links) != up
        (links.add if up else links.discard)(ends)
        assert max(ends) - min(ends) == 1  # who reaches each other
        assert all(sum(node in link for link in links) <= 2 for node in range(NODES))
    lost = [at_ns for at_ns, ends, up in changes(runs[0]) if not up]
    assert [round(at_ns / 1e9, 3) for at_ns in lost] == [6.0]
    assert len(links) == NODES - 1


def test_the_network_was_the_planned_one(runs: list[Path]) -> None:
    assert json.loads((runs[0] / "certificate.json").read_text())["verdict"]["state"] == "valid"


def test_two_runs_are_one(runs: list[Path]) -> None:
    one, two = runs
    names = ["samples.jsonl", "events.jsonl"]
    names += [f"logs/{path.name}" for path in sorted((one / "logs").iterdir())]
    assert len(names) > 3 * NODES
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_who_was_linked_when_is_a_table(runs: list[Path]) -> None:
    folder = runs[0].parent
    rows = tstorm(folder, "report", "one", "--table", "contacts", "-o", "-").stdout.splitlines()
    ends = {"sat.2.gnab.0", "sat.3.gnab.0"}
    spans = [row.split(",")[2:] for row in rows if ends == set(row.split(",")[:2])]
    assert [to for _, to in spans][1:] == [""]
    assert [int(spans[0][1]) // 10**6, int(spans[1][0]) // 10**6] == [6000, 10000]
