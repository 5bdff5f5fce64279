"""The example at the end of docs/plan.md is a real plan, byte for byte; its Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.plan.parts.expectations import PlannedExpectation
from compiler.plan.properties import LinkState
from compiler.plan.reader import decode
from compiler.plan.routes.routing import snapshots
from compiler.plan.types import Event, Link, Node, Service, Topology
from compiler.plan.writer import PlanContents, encode, write_plan

DOC = Path(__file__).resolve().parents[2] / "docs" / "plan.md"
STATE = LinkState(True, 10_000_000, 1_000_000, 0, 0, 62_500, "normal")
ENDS = ((0, 2), (2, 0), (2, 3), (3, 2), (1, 3), (3, 1))


def _service(name: str) -> Service:
    return Service(name, "img", (), (), (), 1, (), (), (), 0, 0, ())


def example() -> dict[str, bytes]:
    services = tuple(_service(name) for name in ("a", "b"))
    nodes = (
        Node("a.0", 0, "10.77.0.1", "fd77:7473::1", ()),
        Node("b.0", 1, "10.77.0.2", "fd77:7473::2", ()),
        Node("s1", -1, "", "", ()),
        Node("s2", -1, "", "", ()),
    )
    links = tuple(
        Link(f"{nodes[src].name}->{nodes[dst].name}", src, dst, seed, (), STATE)
        for seed, (src, dst) in enumerate(ENDS)
    )
    topology = Topology(services, nodes, links, "", "delay")
    second = 1_000_000_000
    events = (
        Event(0, 0, "join", "a.0", {}, 0),
        Event(1, 0, "join", "b.0", {}, 0),
        Event(2, second, "link_down", "s1->s2", {}, 7),
        Event(3, second, "link_down", "s2->s1", {}, 7),
        Event(4, 2 * second, "quit", "", {}, 8),
    )
    expectation = PlannedExpectation(
        text="expect rtt a b < 10ms to 1s",
        kind="rtt",
        line=9,
        pairs=((0, 1),),
        op="<",
        value=10_000_000,
        statistic="median",
        to_ns=second,
    )
    return encode(
        PlanContents(
            b"seed 5\n",
            5,
            topology,
            events,
            2 * second,
            snapshots(topology, events),
            expectations=(expectation,),
        )
    )


def block(name: str) -> str:
    """The first fenced text after a line that begins with `name` in back quotes."""
    text = DOC.read_text(encoding="utf-8").partition("## An example, whole")[2]
    found = re.search(rf"^`{re.escape(name)}`[^`]*\n```\n(.*?)```$", text, re.DOTALL | re.MULTILINE)
    assert found, f"no block for {name}"
    return found.group(1)


@pytest.mark.parametrize(
    "name",
    ["plan.json", "timeline.jsonl", "snapshots.jsonl", "expectations.json", "figures.json"],
)
def test_json_of_the_example(name: str) -> None:
    assert block(name).encode() == example()[name]


def test_topology_of_the_example() -> None:
    assert re.sub(r"\s", "", block("topology.json")) + "\n" == example()["topology.json"].decode()


def test_routes_of_the_example() -> None:
    text = re.search(r"^`routes\.bin`:.*?```\n(.*?)```$", DOC.read_text(), re.DOTALL | re.MULTILINE)
    assert text
    hexadecimal = "".join(line.partition("|")[0] for line in text.group(1).splitlines())
    assert bytes.fromhex(hexadecimal) == example()["routes.bin"]
    decode(example(), lazy=False).verify(deep=True)


def test_python_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    write_plan(tmp_path / "quickstart.plan", example())
    monkeypatch.chdir(tmp_path)
    printed: list[tuple[object, ...]] = []
    for block in blocks:
        exec(block, {"print": lambda *words: printed.append(words)})
    assert printed[0] == (1, b"seed 5\n")
    assert printed[1][:2] == (decode(example()).digest, 5)
    assert printed[2:4] == [(0, [0, 0], [0, 0]), (1, [0, 0], [0, 0])]
    assert printed[4:] == [(2, (), ((1, 1),)), (3, (), ((0, 0),))]
