"""Mutated files of other tools, of every format that is read (tdl/formats/readers.py): each ends in
statements or in errors at places of the file, soon.

    python -m tests.fuzz.fuzz_formats [--seconds N] [--seed N]

The files are those of tests/formats; bytes, words and lines of them are changed, repeated and put
in from others, and whole files are replaced by bombs. What is read without an error is TDL that
parses. Prints the seed of the first failure and exits 1.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tdl.diagnostics import Sink
from tdl.formats import as_tdl
from tdl.formats.readers import READERS, format_of, translate
from tdl.parser import parse_partial
from tdl.preprocess.includes import NoTextError, Reader
from tdl.preprocess.translated import Translation, Variable
from tdl.presentation import render_text
from tests.formats.goldens import COMPOSE, TOPOLOGIES
from tests.fuzz.seeds import Words, mutate_bytes, run

SLOW_SECONDS = 10.0  # of a processor
TOLD = json.dumps(
    {
        "nodes": [["h1", "host", 5, {}], ["s1", "switch", 6, {"dpid": "1"}]],
        "links": [["h1", "s1", 7, {"bw": "10", "delay": "5ms", "loss": "1", "jitter": "1ms"}]],
    }
).encode()  # what the program of a Mininet file says
MATRIX = b'{"fra": {"iad": 88.2, "syd": "286ms"}, "iad": {"fra": 90, "syd": null}}'


class Seed(NamedTuple):
    file: str
    data: bytes
    way: str = ""  # of a matrix

    @property
    def statement(self) -> str:
        return f'matrix "{self.file}" {self.way}\n' if self.way else f'include "{self.file}"\n'


@cache
def seeds() -> tuple[Seed, ...]:
    found = [Seed("m.json", MATRIX, "one-way")]
    for goldens in (COMPOSE, TOPOLOGIES):
        for case in goldens.cases:
            file = goldens.file_of(case)
            way = "rtt" if file.endswith(".csv") else ""
            found.append(Seed(file, (goldens.folder / case / file).read_bytes(), way))
    return tuple(found)


@cache
def formats() -> frozenset[str]:
    """Those of which there are seeds."""
    titles = (format_of(one.file, one.data) for one in seeds())
    return frozenset(one.title for one in titles if one is not None)


@cache
def pieces() -> tuple[bytes, ...]:
    words = {word for one in seeds() for word in one.data.split()}
    lines = {line + b"\n" for one in seeds() for line in one.data.splitlines()}
    return (*sorted(words), *sorted(lines))


BOMBS = (
    b"a: &a [1,1]\n" + b"".join(b"b%d: &b%d [*%s,*%s]\n" % (n, n, p, p) for n, p in (
        (n, b"a" if n == 0 else b"b%d" % (n - 1)) for n in range(60))),
    b'<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><experiment>&c;</experiment>',
    b"<a>" * 100_000,
    b"[" * 200_000,
    b'{"a":' * 200_000,
    b"graph [ " * 50_000,
    b"," * 300_000,
    b"\n" * 300_000,
    b'"' * 100_000,
    b"x[0]=" * 50_000,
    b"pc[0]=" + b"A" * 1_000_000,
    b"services: {a: {image: " + b"${A:-" * 20_000 + b"}}",
    b"topology: {nodes: {a: {exec: ['" + b"tc qdisc add dev e netem " * 9000 + b"']}}}",
    b"\xff\xfe" * 50_000,
)  # fmt: skip


def mutant(rnd: random.Random) -> Seed:
    seed = rnd.choice(seeds())
    kind = rnd.randrange(12)
    if kind == 0:
        return seed._replace(data=rnd.choice(BOMBS))
    if kind == 1:  # what another tool reads, under this name
        return seed._replace(data=rnd.choice(seeds()).data)
    data = seed.data
    for _ in range(rnd.choice([1, 1, 2, 3])):
        data = mutate_bytes(rnd, data, pieces())
    if kind == 2:
        lines = data.splitlines(keepends=True)
        rnd.shuffle(lines)
        data = b"".join(lines)
    return seed._replace(data=data)


class _Folder:
    """What the texts of an experiment come from: one file, and what its program says."""

    def __init__(self, seed: Seed, told: bytes) -> None:
        self._seed, self._told = seed, told

    def text(self, path: str) -> bytes:
        if path == self._seed.file:
            return self._seed.data
        if path.startswith(f"{self._seed.file}:"):
            return self._told
        raise NoTextError(f"there is no {path}")

    def translated(
        self, paths: Sequence[str], variable: Variable, read: Reader, sink: Sink
    ) -> Translation | None:
        return translate(paths, variable, read, self.text, sink, "folder")


def attempt(number: int) -> bool:
    """Whether the file was read."""
    rnd = random.Random(number)
    seed = mutant(rnd)
    told = mutate_bytes(rnd, TOLD) if rnd.randrange(2) else TOLD
    started = time.process_time()
    partial = parse_partial(seed.statement, _Folder(seed, told))
    took = time.process_time() - started
    assert took < SLOW_SECONDS, f"{took:.1f} s of a processor for {len(seed.data):,} bytes"
    lines = seed.data.count(b"\n") + seed.data.count(b"\r") + 2
    for one in partial.diagnostics:
        assert 1 <= one.span.line <= lines, one
        assert one.span.col >= 1, one
    told_text = render_text(partial.diagnostics, "x.tdl", b"", includes=partial.includes)
    assert told_text.replace("\n", "").isprintable(), told_text
    if not partial.translations:
        assert partial.failed, "refused without a word"
    if partial.failed:
        return False
    text = "".join(map(as_tdl.text, partial.translations))
    assert not parse_partial(text).failed, text
    return True


def main() -> int:
    words = Words("read", "refused", f"{{count}} files of {len(READERS)} formats, {{true}} read")
    return run("fuzz_formats", __doc__, attempt, words)


if __name__ == "__main__":
    sys.exit(main())
