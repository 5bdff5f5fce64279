"""The same experiment is the same bytes, whatever surrounds the process that writes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Standard library only, so that any interpreter found can run it.
PROGRAM = """
import hashlib, random, sys
from compiler.plan.properties import LinkState
from compiler.plan.types import Event, Link, Node, Service, Topology
from compiler.plan.writer import PlanContents, write_plan
from compiler.plan.routes.routing import snapshots

rnd = random.Random(3)
service = Service("server", "nginx:latest", (), ("80",), (), 6, ("a", "b"), (("K", "\\u00e9"),),
                  (80,), 0, 0, ())
nodes = [Node(f"server.{i}", 0, f"10.77.0.{i + 1}", f"fd77:7473::{i + 1}", ()) for i in range(6)]
nodes += [Node(name, -1, "", "", ("core",)) for name in "zyxwvutsrq"]
pairs = [(i, 6 + i) for i in range(6)] + [(a, b) for a in range(6, 16) for b in range(6, a)]
links = []
for a, b in pairs:
    for x, y in ((a, b), (b, a)):
        state = LinkState(True, 10**8, rnd.randrange(1, 4) * 10**6, 9, 10**6, 625000, "normal")
        links.append(Link(f"{nodes[x].name}->{nodes[y].name}", x, y, len(links), (), state))
topology = Topology((service,), tuple(nodes), tuple(links), "", "delay")
events = [Event(i, 0, "join", f"server.{i}", {}, 0) for i in range(6)]
for k in range(40):
    link = links[12 + 2 * k].name
    events.append(Event(len(events), k * 10**9, "link_down", link, {}, 20 + k))
    args = {"loss_ppb": k, "delay_ns": 7 * k}
    events.append(Event(len(events), k * 10**9, "set", link, args, 60 + k))
contents = PlanContents("# \\u2014\\n".encode(), 42, topology, events, 10**11,
                        snapshots(topology, events))
digest = write_plan(sys.argv[1], contents)
print(digest)
"""


def written(tmp_path: Path, name: str, python: str, **surroundings: str) -> dict[str, bytes]:
    """What the program writes when run by `python` in these surroundings."""
    folder = tmp_path / name
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **surroundings}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [python, "-W", "error", "-c", PROGRAM, f"{name}.plan"]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {entry.name: entry.read_bytes() for entry in (folder / f"{name}.plan").iterdir()}


def test_surroundings_do_not_show(tmp_path: Path) -> None:
    first = written(tmp_path, "a", sys.executable, PYTHONHASHSEED="0", TZ="UTC", LC_ALL="C")
    others = [
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"},
        {"PYTHONHASHSEED": "4294967295", "TZ": "America/Lima", "LC_ALL": "de_DE.ISO-8859-1"},
        {"HOME": "/", "USER": "somebody", "HOSTNAME": "elsewhere", "PYTHONOPTIMIZE": "1"},
    ]
    for number, surroundings in enumerate(others):
        assert written(tmp_path, f"other-{number}", sys.executable, **surroundings) == first


def interpreter(version: str) -> str | None:
    """A Python of this version that starts: on the PATH, or among those pyenv has built."""
    built = sorted((Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *map(str, built)):
        done = found and subprocess.run([found, "-c", ""], capture_output=True, check=False)
        if done and done.returncode == 0:
            return found
    return None


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_python_versions_agree(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"python{version} is not installed here")
    assert written(tmp_path, "a", python) == written(tmp_path, "b", sys.executable)
