"""`python -m tests.formats.goldens`: writes anew what the Compose files of this folder become. Read
the difference before committing it."""

from __future__ import annotations

from pathlib import Path

from compiler.sources import SourceFolder
from tdl.formats import as_tdl
from tdl.parser import Partial, parse_partial
from tdl.presentation import render_text

FOLDER = Path(__file__).parent / "compose"
CASES = sorted(path.name for path in FOLDER.iterdir())
NAMES = ("docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml")
TDL, TOLD = "expected.tdl", "expected.txt"


def file_of(case: str) -> str:
    return next(name for name in NAMES if (FOLDER / case / name).exists())


def read(case: str) -> Partial:
    text = f'include "{file_of(case)}"\n'
    return parse_partial(text, SourceFolder(FOLDER / case))


def documents(case: str) -> dict[str, str]:
    """The TDL, and the diagnostics as they are shown."""
    partial = read(case)
    told = render_text(partial.diagnostics, "exp.tdl", b"", includes=partial.includes)
    return {TDL: "".join(map(as_tdl.text, partial.translations)), TOLD: told}


def main() -> None:
    for case in CASES:
        for name, text in documents(case).items():
            (FOLDER / case / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
