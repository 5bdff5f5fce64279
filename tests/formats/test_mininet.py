"""Mininet topologies: the program runs without rights, what it says is foreign data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import Compilation, compile_source
from compiler.sources import RecordedFiles, SourceFolder
from runtime.system import compiled_programs, confinement
from tdl.diagnostics import Diagnostic, Sink
from tdl.formats import as_tdl
from tdl.formats.readers import translate
from tdl.parser import parse_partial
from tstorm.topologies.load_topology import load_topology as loaded

ROOT = Path(__file__).resolve().parents[2]
TOPO = "from mininet.topo import *\nfrom mininet.topolib import *\n"
HOST = "class T(Topo):\n  def build(self):\n    self.addHost('h1')\n"


def documented() -> list[str]:
    """The blocks of the documentation's section."""
    section = (ROOT / "docs/import.md").read_text(encoding="utf-8").split("## From Mininet")[1]
    return re.findall(r"^```\w*\n(.*?)^```", section.split("\n## ")[0], re.DOTALL | re.MULTILINE)


def _include(folder: Path, text: str, choice: str = "") -> tuple[Diagnostic, ...]:
    (folder / "t.py").write_text(text)
    sources = SourceFolder(folder, loaded)
    return tuple(parse_partial(f'include "t.py{choice}"\n', sources).diagnostics)


@pytest.mark.parametrize(
    ("text", "code", "line", "said"),
    [
        ("from mininet.topo import Topo\nx = (\n", "TS0035", 2, "SyntaxError"),
        ("import sys\n\nsys.exit(3)\n", "TS0035", 3, "SystemExit: 3"),
        ("import networkx\n", "TS0035", 1, "No module named 'networkx'"),
        ("x = 1\n", "TS0035", 1, "it has no class Topo"),
        (f"{TOPO}{HOST}topos = {{'a': T, 'b': T}}\n", "TS0035", 1, "it has 2 topologies"),
        (f"{TOPO}topos = {{'a': lambda: 5}}\n", "TS0035", 1, "it gives int"),
        (f"{TOPO}{HOST}\nfrom mininet.net import Mininet\nMininet(topo=T())\n", "TS0035", 8,
         "Mininet is used"),
        (f"{TOPO}{HOST}    self.addLink('h1', 'h2')\n", "TS0501", 6, "no node 'h2'"),
        (f"{TOPO}{HOST}    self.addLink('h1', 'h1')\n", "TS0502", 6, "from h1 to itself"),
        (f"{TOPO}{HOST}    self.addHost('1 x\\x1b')\n", "TS0501", 6, "be called '1 x '"),
        (f"{TOPO}class T(Topo): pass\n", "TS0501", 1, "has no node"),
        *(
            (f"{TOPO}{HOST}    self.addSwitch('s')\n    self.addLink('h1', 's', {option})\n",
             code, 7, said)
            for option, code, said in (
                ("bw='fast'", "TS0501", "bw is a number, in Mbit/s, and not 'fast'"),
                ("bw=-1", "TS0501", "not '-1'"),
                ("bw=float('nan')", "TS0501", "not 'nan'"),
                ("delay='5 minutes'", "TS0501", "delay is a time"),
                ("loss='1%'", "TS0501", "loss is a number, in percent"),
                ("loss=1e-8", "TS0501", "0 or at least 0.0000001, and not '1e-08'"),
                ("delay='0.1ns'", "TS0501", "delay is a time, in ns, 0 or at least 1, and not"),
                ("bw=1, max_queue_size=1.5", "TS0501", "a number of packets"),
                ("bw=9, enable_red=True", "TS0502", "enable_red"),
                ("max_queue_size=9", "TS0971", "max_queue_size"),
                ("bw=4000", "TS0973", "bw=4000 limits this link"),
                ("cls=T", "TS0973", "links of the class T"),
            )
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_line(
    tmp_path: Path, text: str, code: str, line: int, said: str
) -> None:
    found = [one for one in _include(tmp_path, text) if one.code == code]
    assert [(one.span.file, one.span.line) for one in found] == [("t.py", line)]
    assert said in found[0].message


@pytest.mark.parametrize(
    ("text", "choice", "lines"),
    [
        (f"{TOPO}topos = {{'a': LinearTopo}}\n", ":a,3", 5),
        (f"{TOPO}topos = {{'a': LinearTopo}}\n", ":a,k=2,n=2", 5),
        (f"{TOPO}topos = {{'a': lambda **kw: TreeTopo(**kw), 'b': TorusTopo}}\n",
         ":a,depth=2,fanout=3", 12),
        (f"{TOPO}topos = {{'b': TorusTopo}}\n", ":b,3,3", 27),
        (f"{TOPO}topos = {{'b': SingleSwitchTopo}}\n", ":b,4", 4),
        (f"{TOPO}topos = {{'b': MinimalTopo}}\n", "", 2),
        (f"{TOPO}{HOST}    self.addLink(self.addNode('s', isSwitch=True), 'h1')\n", ":T", 1),
        ("from mininet.topo import Topo\nfrom size import SIZE\nclass T(Topo):\n"
         "  def __init__(self):\n    Topo.__init__(self, lopts={'bw': 1})\n"
         "    for i in range(SIZE):\n      s = self.addSwitch(f's{i}')\n"
         "      self.addLink(self.addHost(f'h{i}'), s)\n"
         "    assert self.switches() == self.nodes()[SIZE:]\n"
         "    assert all(self.linkInfo(a, b)['bw'] == 1 for a, b in self.links())\n", "", 12),
    ],
)  # fmt: skip
def test_a_topology_is_chosen_as_mininet_does(
    tmp_path: Path, text: str, choice: str, lines: int
) -> None:
    """A number of links; a file beside it can be imported, and what it says is the same."""
    (tmp_path / "size.py").write_text("SIZE = 12\n")
    (tmp_path / "t.py").write_text(text)
    statement = f'include "t.py{choice}"\n'
    partial = parse_partial(statement, SourceFolder(tmp_path, loaded))
    assert partial.diagnostics == ()
    printed = "".join(map(as_tdl.text, partial.translations))
    assert sum(line.startswith("link ") for line in printed.splitlines()) == lines
    one, other = (
        compile_source(f"{words}at 1s quit\n", sources=SourceFolder(tmp_path, loaded)).topology
        for words in (statement, printed)
    )
    assert one.links == other.links
    assert one.nodes == other.nodes


def test_numbers_are_as_a_program_computes_them(tmp_path: Path) -> None:
    """Floats with all their places, and the units of tc(8)."""
    options = "bw=100/3, delay=f'{10/3}msecs', jitter='2e1 usec', loss=.1+.2, max_queue_size=9"
    (tmp_path / "t.py").write_text(f"{TOPO}{HOST}    s = self.addSwitch('s')\n"
                                   f"    self.addLink('h1', s, {options})\n"
                                   "    self.addLink(s, 'h1', bw=1e-5)\n")  # fmt: skip
    partial = parse_partial('include "t.py"\n', SourceFolder(tmp_path, loaded))
    assert partial.diagnostics == (), "two links to one neighbour are no router's"
    printed = "".join(map(as_tdl.text, partial.translations))
    for said in ("up=33.333333Mb ", "up=10b ", "latency=3.333333ms", "jitter=0.02ms", "loss=0.3%"):
        assert said in printed


@pytest.mark.parametrize("name", ["mininet", "random", "my-topo", "json"])
def test_a_file_is_called_as_it_likes_and_imports_as_others_do(tmp_path: Path, name: str) -> None:
    text = ("import random, json\nfrom mininet import log, topo\nfrom mininet.log import lg\n"
            "lg.setLogLevel('info')\nlog.info(json.dumps(random.randrange(9)))\n"
            "class T(topo.Topo):\n  def build(self): self.addHost('h1')\n")  # fmt: skip
    (tmp_path / f"{name}.py").write_text(text)
    partial = parse_partial(f'include "{name}.py"\n', SourceFolder(tmp_path, loaded))
    assert partial.diagnostics == ()


def test_a_plan_knows_what_the_program_said(tmp_path: Path) -> None:
    """Compiling it again runs nothing: the file may be gone, and say something else."""
    (tmp_path / "t.py").write_text(f"{TOPO}topos = {{'a': LinearTopo}}\n")
    text = 'include "t.py:a,4"\nservice h1 exec="sleep 9"\nat 1s quit\n'
    first = compile_source(text, sources=SourceFolder(tmp_path, loaded))
    (tmp_path / "t.py").unlink()
    again: Compilation = compile_source(text, sources=RecordedFiles(first.plan))
    assert again.plan.digest == first.plan.digest
    assert set(first.includes) == {"t.py", "t.py:a,4"}


def test_no_program_from_elsewhere_is_run(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "t.py").write_text("open('x', 'w')")
    sources = SourceFolder(tmp_path / "in", loaded)
    (found,) = parse_partial('include "../t.py"\n', sources).diagnostics
    assert (found.code, "outside of this folder" in found.message) == ("TS0151", True)
    (found,) = parse_partial('include "t.py"\n', SourceFolder(tmp_path)).diagnostics
    assert (found.code, "nothing runs it here" in found.message) == ("TS0151", True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("while True: pass\n", "more than 1 s of a processor"),
        ("import time\ntime.sleep(99)\n", "longer than 3 s"),
        ("import os\nos._exit(0)\n", "no topology"),
        ("import os\nos._exit(7)\n", "ended with status 7"),
        ("import os\nos._exit(126)\n", "ended with status 126"),
        (f"{TOPO}class T(Topo):\n  def build(self):\n"
         "    for i in range(30_000): self.addHost('h' * 150 + str(i))\n", "more than 4 MiB"),
        ("import os\nwhile True: os.write(3, bytes(1 << 16))\n", "says more than 4 MiB"),
    ],
)  # fmt: skip
def test_a_program_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(confinement, "CPU_SECONDS", 1)
    monkeypatch.setattr(confinement, "SECONDS", 3.0 if "sleep" in text else 60.0)
    (found,) = _include(tmp_path, text)
    assert said in found.message


def test_nothing_runs_where_it_cannot_be_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "tstorm-ns"
    words = "tstorm-ns: cannot create a user namespace: no"
    refusing.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 125\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(compiled_programs, "find", lambda _name: refusing)
    (found,) = _include(tmp_path, f"{TOPO}{HOST}")
    assert found.code == "TS0151"
    assert "would not be confined: cannot create a user namespace: no" in found.message
    assert found.hint


def test_the_example_of_the_documentation_is_true(tmp_path: Path) -> None:
    topology, storm, commands, printed = documented()
    (tmp_path / "topo.py").write_text(topology)
    for statement in ('include "topo.py"\n', 'include "topo.py:sites,n=4,delay=80ms"\n'):
        sources = SourceFolder(tmp_path, loaded)
        partial = parse_partial(statement, sources)
        assert partial.diagnostics == ()
        whole = compile_source(statement + storm, sources=sources)
        assert statement[9:-2] in commands
        if "n=4" not in statement:
            assert "".join(map(as_tdl.text, partial.translations)) == printed
            assert [event.at_ns for event in whole.events if event.kind == "quit"] == [3 * 10**9]


WORD = st.sampled_from(["h1", "s1", "host", "switch", "bw", "delay", "5ms", "10", "", "x\n\x1b"])
LEAF = WORD | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
ROW = st.tuples(WORD, WORD, st.integers(-5, 99), st.dictionaries(WORD, WORD, max_size=3))
VALUE = st.recursive(LEAF | ROW, lambda inner: st.lists(inner, max_size=4)
                     | st.dictionaries(WORD, inner, max_size=3), max_leaves=9)  # fmt: skip
SAID = (
    st.fixed_dictionaries({"nodes": st.lists(ROW, max_size=5), "links": st.lists(ROW, max_size=5)})
    | st.fixed_dictionaries({"error": LEAF, "line": LEAF, "hint": LEAF})
    | st.fixed_dictionaries({"nodes": VALUE, "links": VALUE})
    | VALUE
)


@given(st.builds(lambda said: json.dumps(said).encode(), SAID) | st.binary(max_size=40))
def test_whatever_a_program_says_is_read_or_refused(said: bytes) -> None:
    sink = Sink()
    texts = {"t.py": b"x = 1\n\n  y = 2\n", "t.py:": said}
    found = translate(["t.py"], lambda _name: None, texts.__getitem__, texts.__getitem__, sink)
    assert found is not None or sink.failed
    for one in sink.found:
        assert one.span.file == "t.py"
        assert 1 <= one.span.line <= 4
        assert (one.message + (one.hint or "")).isprintable()
