"""The table of docs/limits.md, which property where: a cell says `refused` exactly where a plan
with that property is refused before a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from compiler.plan.properties import PROPERTIES
from compiler.plan.reader import Plan
from compiler.plan.rules.capabilities import KUBERNETES, LOCAL, refusal
from compiler.plan.rules.datapath_fit import misfit
from compiler.plan.rules.property_limits import HOP_EXACT, PATHS
from compiler.sources import SourceFolder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
NETWORK = """\
service a exec=x entrypoint=["x"]
service b exec=x entrypoint=["x"]
bridges s t
link a--s latency=1ms rate=10Mb
link s--t latency=5ms rate=10Mb
link b--t latency=1ms
at 100s quit
"""
TWO = "service a exec=x\nservice b exec=x\n"
ALONE = "service m exec=x\n"
# Of each row of the table what says so in a file: more than NETWORK, or all of it.
STATED: Mapping[str, tuple[str, ...]] = {
    "rate, queue": ("at 1s s--t set rate=5Mb queue=90KB",),
    "latency, loss": ("at 1s s--t set latency=9ms loss=1%",),
    "jitter, `dist=`": ("at 1s s--t set jitter=1ms dist=pareto",),
    "each direction by itself, `a->b`": ("at 1s s->t set latency=7ms rate=1Mb",),
    "`ramp`, `flap`, `leave`, `partition`": (
        "from 1s to 2s s--t ramp latency=50ms",
        "from 1s to 9s s--t flap 1s",
        "from 1s to 2s s--t leave",
        "at 1s partition a;b",
    ),
    "`crash`, `kill`, `disconnect`": ("at 1s a crash", "at 1s a kill", "at 1s a disconnect"),
    "`routing direct`, `routing hops`": ("routing direct", "routing hops"),
    "several links between two elements (`name=`)": (
        TWO + "bridges s t\nlink a--s\nlink b--t\nlink s--t name=fibre\nlink s--t name=radio\n",
    ),
    "`background`": ("at 1s s--t background 2Mb",),
    "`background … flows=`": ("at 1s s--t background 2Mb flows=2",),
    "`path`: `abw=`, `capacity=`, `wmax=`, tables of flows": (
        TWO + "path a--b abw=4Mb rtt=20ms\n",
        TWO + "path a--b abw-flows=1:4Mb;2:6Mb capacity=50Mb wmax=64KB rtt=20ms\n",
    ),
    "`bottleneck`": (
        TWO + "service c exec=x\nbottleneck n\npath a--b abw=4Mb rtt=20ms bottleneck-up=n\n"
        "path a--c abw=4Mb rtt=20ms bottleneck-up=n\n",
    ),
    "`burst=` `burst-pass=` `gap-loss=`": (
        "at 1s s--t set loss=1% burst=8",
        "at 1s s--t set loss=1% burst=8 burst-pass=10%",
        "at 1s s--t set loss=1% burst=8 gap-loss=0.1%",
    ),
    "`duplicate=` `corrupt=` `reorder=` `by=`": (
        "at 1s s--t set duplicate=1%",
        "at 1s s--t set corrupt=1%",
        "at 1s s--t set reorder=1% by=5ms",
    ),
    "`reject=`, `reject`": ("at 1s s--t set reject=100%", "at 1s s--t reject"),
    "`mtu=`": ("at 1s s--t set mtu=1400",),
    "`dist=FILE`": ("at 1s s--t set jitter=1ms dist=rtt.txt",),
    "`trace=FILE`": ("at 1s s--t set trace=lte.up",),
    "`queue=` in packets, `aqm=`": ("at 1s s--t set queue=50pkt", "at 1s s--t set aqm=codel"),
    "`only=` (of `set`, `ramp`, `leave`, `reject`, `partition`)": (
        "at 1s s--t set only=udp loss=1%",
        "at 1s s--t leave only=tcp:80",
    ),
    "`routing ecmp`": ("routing ecmp",),
    "bridges that answer (`traceroute`)": ("hops silent",),
    "`hops answer`": ("hops answer",),
    "multicast, broadcast": ("",),
    "`interfaces`": (
        "service p exec=x interfaces\nlink p--s\nlink p--t\n",
    ),
    "`router`, `lan`": (
        "service r router\nlan l\nlink r--l address=10.2.0.1/24\n",
    ),
    "`air`": (
        "service c router replicas=2\nair w\nlink c--w rate=6Mb address=10.5.0.1/24+\n"
        "mobility c.csv nodes=c range=5000km\n",
    ),
    "`node` (machines with parts)": (
        "node sat {\n    service p exec=x\n    bridge q\n    link p--q\n}\nlink sat.q--s\n",
    ),
    "`lan NAME kernel`": (
        "node sat {\n    service p exec=x\n    lan q kernel\n    link p--q address=10.5.0.1/24\n"
        "}\n",
    ),
    "`external`": ("external pc if=eth1 address=10.1.1.123\nlink pc--s\n",),
    "`gateway`": (TWO + "service out gateway\naddresses auto\nlink a--out\nlink b--out\n",),
    "`mobility` with `latency=TIME` and one rate and loss": (
        ALONE + "mobility m.csv nodes=m range=5000km rate=1Mb latency=1ms\n",
    ),
    "`mobility` whose links follow the distance": (
        ALONE + "mobility m.csv nodes=m range=5000km rate=1Mb\n",
    ),
    "`when`": ("when exit a { s--t leave }",),
    "`after=`": ("start when ready\nservice c exec=x after=a\nlink c--s\n",),
    "`alias=`": ("service c exec=x alias=www\nlink c--s\n",),
    "`publish=`": ("service c exec=x publish=8080:80\nlink c--s\n",),
    "draws repeat with the seed": ("",),
}  # fmt: skip
REFUSED: Mapping[str, Callable[[Plan], object]] = {
    "one machine": lambda plan: misfit(plan, HOP_EXACT) or refusal(plan, LOCAL),
    "`--hosts`, packet engine": lambda plan: misfit(plan, "user") or refusal(plan, LOCAL),
    "`--hosts --datapath kernel`": lambda plan: misfit(plan, "kernel") or refusal(plan, LOCAL),
    "Kubernetes": lambda plan: refusal(plan, KUBERNETES),
}


def _table() -> dict[str, dict[str, str]]:
    """Its cells, by row and column."""
    text = PAGE.read_text(encoding="utf-8").partition("## Which property where\n")[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    head, _, *rows = (re.split(r" *\| *", line.strip("|").strip()) for line in lines)
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


TABLE = _table()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stated")
    (made / "rtt.txt").write_text("1\n2\n3\n")
    (made / "lte.up").write_text("1\n5\n9\n")
    (made / "m.csv").write_text("time,node,x,y\n0,p,0,0\n0,q,3000000,0\n9,p,0,0\n9,q,4000000,0\n")
    (made / "c.csv").write_text("time,node,x,y\n0,c.0,0,0\n0,c.1,30,0\n9,c.0,0,0\n9,c.1,40,0\n")
    return made


def _plans(folder: Path, row: str) -> list[Plan]:
    whole = [text if text.startswith((TWO, ALONE)) else NETWORK + text for text in STATED[row]]
    return [compile_source(text + "\n", sources=SourceFolder(folder)).plan for text in whole]


def test_each_row_is_tried() -> None:
    assert list(TABLE) == list(STATED)
    assert all(list(cells) == list(REFUSED) for cells in TABLE.values())


@pytest.mark.parametrize("row", STATED)
def test_what_is_refused_is_said_to_be(folder: Path, row: str) -> None:
    for plan in _plans(folder, row):
        for column, refused in REFUSED.items():
            assert bool(refused(plan)) == TABLE[row][column].startswith("refused"), column


def test_no_property_of_links_is_missing(folder: Path) -> None:
    """Of those that hosts cannot carry out."""
    found: set[str] = set()
    for row in STATED:
        for plan in _plans(folder, row):
            for link in plan.topology.links:
                found |= {one.field for one in PROPERTIES if getattr(link.state, one.field)}
            for event in plan.events:
                found |= event.args.keys()
    assert {field for field, most in PATHS["user"].items() if not most} <= found
