"""`python -m tests.formats.topology_goldens`: writes anew what the files of this folder become."""

from __future__ import annotations

from pathlib import Path

from compiler.sources import SourceFolder
from tdl.formats import as_tdl
from tdl.parser import parse_partial
from tdl.presentation import render_text

FOLDER = Path(__file__).parent / "topologies"
CASES = sorted(path.name for path in FOLDER.iterdir())
TDL, TOLD = "expected.tdl", "expected.txt"


def file_of(case: str) -> str:
    return next(one.name for one in (FOLDER / case).iterdir() if one.stem != "expected")


def statement(case: str) -> str:
    """The line of TDL that reads the file."""
    name = file_of(case)
    return f'matrix "{name}" rtt\n' if name.endswith(".csv") else f'include "{name}"\n'


def documents(case: str) -> dict[str, str]:
    """The TDL, and the diagnostics as they are shown."""
    partial = parse_partial(statement(case), SourceFolder(FOLDER / case))
    told = render_text(partial.diagnostics, "exp.tdl", b"", includes=partial.includes)
    return {TDL: "".join(map(as_tdl.text, partial.translations)), TOLD: told}


def main() -> None:
    for case in CASES:
        for name, text in documents(case).items():
            (FOLDER / case / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
