"""Files in which every expected diagnostic stands on the guilty line.

`at 5s a leave 3   #! TS0302 only 2 of 2` expects that code on that line, with that text somewhere
in its message or hint. Files are separated by lines of `---`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from compiler.declare.nodes.machines import with_parts
from compiler.expect.compile_reactions import reactions
from compiler.pipeline import elaborate
from tdl.diagnostics import Diagnostic, Sink, TdlError, sort
from tdl.parser import parse

EXPECTED = re.compile(r"#! (TS\d{4}) ?(.*)$")


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    expected: tuple[tuple[int, str, str], ...]  # line, code, text


def load(path: Path) -> list[Case]:
    found = []
    for number, text in enumerate(path.read_text().split("\n---\n")):
        lines = text.splitlines()
        title = lines[0].removeprefix("# ") if lines and lines[0].startswith("# ") else ""
        expected = []
        for line, words in enumerate(lines, 1):
            for part in words.split(" #! ")[1:]:
                match = EXPECTED.match("#! " + part.strip())
                assert match, words
                expected.append((line, match[1], match[2]))
        found.append(Case(f"{path.stem}-{number}: {title}", text + "\n", tuple(expected)))
    return found


def diagnose(text: str, seed: int | None = None) -> tuple[Diagnostic, ...]:
    """Everything that compiling says."""
    try:
        file, warnings = parse(text, "case.tdl")
    except TdlError as error:
        return error.diagnostics
    sink = Sink()
    sink.found += warnings
    file = with_parts(file, sink)
    if sink.failed:
        return sort(sink.found)
    model, _ = elaborate(file, sink, seed)
    reactions(model, sink)
    return sort(sink.found)
