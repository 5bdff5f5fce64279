"""Machines that move and route (NestedNet): satellites of a router and four radios each, which ask
for links to whom they see; ways are found by the programs of examples/satellites/mesh, or by
babeld. All in virtual time.

Who should have had an answer is what graph search finds of the links that the run granted. Pings
within 5 s of a change of a link do not count there; how long answers then stay away is told by
itself. A ping leaves each router each 0.2 s with babeld, each second with the example's programs.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench import ROOT
from bench.errors import BenchError
from bench.papers.children import computed_s
from bench.papers.context import SCENES, Context
from bench.papers.rows import ABSOLUTE, LEAST, TOLD, VIRTUAL, goal, row
from bench.tables import Record
from compiler.pipeline import compile_source
from compiler.sources import SourceFolder
from tests.mobility_model import Radios, changes, judged, outages_ns

EXAMPLE = ROOT / "examples/satellites"
CALM_NS = 5 * 10**9
ANSWERED, WITHIN = 100.0, 0.01
SECONDS, LARGE_SECONDS, QUICK_SECONDS = 120, 30, 12
SMALL, LARGE, IN_PLANE = 12, 31, 8  # machines; the large network has planes of so many
RADIOS = 4
OWN, BABEL = "the example's programs", "babeld"
SAME = ("events.jsonl", "samples.jsonl")


def text(machines: int, seconds: int, programs: str, folder: Path) -> str:
    router = "./gnab.py" if programs == OWN else f"./babel.sh {folder / 'pings.py'}"
    return f"""\
seed 7
node sat replicas={machines} {{
    service gnab router env=COUNT:{machines} exec="{router}"
    service radio replicas={RADIOS} exec="./radio.py"
    lan inner
    link gnab--inner address=192.168.0.1/24
    link radio--inner address=192.168.0.11/24+
}}
mobility orbits.json nodes=sat.gnab range=9000km rate=50Mb transceivers={RADIOS} allocate=program
at {seconds}s quit
"""


def measure(context: Context) -> list[Record]:
    rows: list[Record] = []
    with context.attempt(rows, "links by Algorithm 1", "plan"):
        rows.append(_allocation(context))
    for place in context.places(VIRTUAL):
        seconds = QUICK_SECONDS if context.quick else SECONDS
        for programs in (OWN, BABEL):
            what = f"{SMALL} machines, {programs}"
            with context.attempt(rows, what, place):
                rows += _routed(context, what, SMALL, seconds, programs, runs=2)
        what = f"{LARGE} machines ({LARGE * (RADIOS + 1)} instances), {OWN}"
        with context.attempt(rows, what, place):
            large = QUICK_SECONDS if context.quick else LARGE_SECONDS
            rows += _routed(context, what, LARGE, large, OWN, runs=1)
    return rows


def _allocation(context: Context) -> Record:
    """Who is linked at each time of the file: as compiled, and request by request."""
    folder = _folder(context, "plan", SMALL, SECONDS)
    words = f"transceivers={RADIOS} allocate=nearest"
    source = f"mobility orbits.json {words}\n"
    plan = compile_source(source, sources=SourceFolder(folder)).plan
    record = json.loads((folder / "orbits.json").read_text())["MobilecomScnDef"]["MobileNodeDef"]
    radios, wrong, all_links = Radios(SMALL, RADIOS), 0, 0
    number = {one["nodeID"]: at for at, one in enumerate(record[:SMALL])}
    for second in range(SECONDS):
        here = record[second * SMALL : (second + 1) * SMALL]
        sees = {(number[one["nodeID"]], number[other["nodeID"]])
                for one in here for other in one["visibilityGraph"] if other["LoS"]}  # fmt: skip
        visible = {(a, b) for a, b in sees if a < b and (b, a) in sees}
        at = [tuple(round(one[f"Pos{axis}"] * 10**6) for axis in "XYZ") for one in here]
        wanted = {frozenset((f"S{a}", f"S{b}")) for a, b in radios.step(visible, at)}
        state = plan.state_at(second * 10**9)
        names = [one.name for one in plan.topology.nodes]
        found = {
            frozenset((names[link.src], names[link.dst]))
            for link, now in zip(plan.topology.links, state.links, strict=True)
            if now.up
        }
        wrong, all_links = wrong + len(found ^ wanted), all_links + len(wanted)
    what = f"{SMALL} machines of {RADIOS} radios at {SECONDS} times: of {all_links:,} links, those "
    what += "that only the plan has, or only Algorithm 1 request by request"
    return row(what, "plan", "", float(wrong), 0.0, goal=goal(ABSOLUTE))


def _folder(context: Context, name: str, machines: int, seconds: int) -> Path:
    """With the programs and the file of orbits."""
    folder = context.folder / name
    folder.mkdir()
    files = [EXAMPLE / "mesh/gnab.py", EXAMPLE / "mesh/radio.py"]
    files += [SCENES / "babel.sh", SCENES / "pings.py"]
    for file in files:
        (folder / file.name).write_bytes(file.read_bytes())
        (folder / file.name).chmod(0o755)
    (folder / "orbits.json").write_text(_orbits(machines, seconds))
    return folder


def _orbits(machines: int, seconds: int) -> str:
    if machines == SMALL:
        return (EXAMPLE / "orbits.json").read_text()
    script = (EXAMPLE / "make_orbits.py").read_text()
    planes = -(-machines // IN_PLANE)
    of_example, ours = "= 3, 4, 120, 10", f"= {planes}, {IN_PLANE}, {seconds}, 10"
    if of_example not in script:
        raise BenchError("make_orbits.py has other constants than it had")
    argv = [sys.executable, "-c", script.replace(of_example, ours)]
    whole = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    outside = {100 + number for number in range(machines, planes * IN_PLANE)}
    about = whole["MobilecomScnDef"]
    about["MobileNodeDef"] = [one for one in about["MobileNodeDef"]
                              if one["nodeID"] not in outside]  # fmt: skip
    for one in about["MobileNodeDef"]:
        one["visibilityGraph"] = [
            other for other in one["visibilityGraph"] if other["nodeID"] not in outside
        ]
    return json.dumps(whole)


def _routed(
    context: Context, what: str, machines: int, seconds: int, programs: str, runs: int
) -> list[Record]:
    folder = _folder(context, f"{machines}-{programs.split()[-1]}", machines, seconds)
    source = folder / "mesh.tdl"
    source.write_text(text(machines, seconds, programs, folder))
    began, before = time.monotonic(), computed_s()
    first, *again = [context.run(source, VIRTUAL) for _ in range(runs)]
    took_s, used_s = (time.monotonic() - began) / runs, (computed_s() - before) / runs
    end_ns = seconds * 10**9
    (answered, lost, by_nobody, _), near = judged(first, machines, end_ns, CALM_NS)
    found = outages_ns(first, machines, end_ns)
    links = sum(up for _, _, up in changes(first))
    share = 100 * answered / (answered + lost)
    told = f"{what}: answers of {answered + lost:,} pings, {near:,} near a change"
    near_all = goal(LEAST, WITHIN)
    rows = [
        row(told, VIRTUAL, "%", share, ANSWERED, goal=near_all),
        row(f"{what}: answers without a way", VIRTUAL, "", float(by_nobody), 0.0,
            goal=goal(ABSOLUTE)),
        row(f"{what}: {links} links granted in {seconds} s, real time", VIRTUAL, "s", took_s, None),
        row(f"{what}: processor time for {seconds} s", VIRTUAL, "s", used_s, None),
    ]  # fmt: skip
    for name, part in (("median", 0.5), ("longest", 1.0)) if found else ():
        value = found[min(int(part * len(found)), len(found) - 1)] / 1e9
        told = f"{what}: without an answer after a loss, {name} of {len(found)}"
        rows.append(row(told, VIRTUAL, "s", value, None, goal=goal(TOLD)))
    if machines == LARGE:
        told = f"{what}: memory of the largest process, the guest's kernel"
        rows.append(row(told, VIRTUAL, "MB", _largest_mb(), None))
    for other in again:
        names = [*SAME, *(f"logs/{one.name}" for one in sorted((first / "logs").iterdir()))]
        differ = sum((first / one).read_bytes() != (other / one).read_bytes() for one in names)
        told = f"{what}: of {len(names)} files of two runs, those that differ"
        rows.append(row(told, VIRTUAL, "", float(differ), 0.0, goal=goal(ABSOLUTE)))
    return rows


def _largest_mb() -> float:
    """Of all that have ended, which the last and largest network's is of."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
