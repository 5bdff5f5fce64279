"""`python -m tests.formats.goldens`: writes anew what files of other tools become. Read the
difference before committing it."""

from __future__ import annotations

from pathlib import Path

from compiler.sources import SourceFolder
from tdl.formats import as_tdl
from tdl.parser import Partial, parse_partial
from tdl.presentation import render_text
from tstorm.topologies.load_topology import load_topology

COMPOSE_NAMES = ("docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml")
TDL, TOLD = "expected.tdl", "expected.txt"


class Goldens:
    """Of the cases in one folder, each in a folder of its own with what is expected of it."""

    def __init__(self, name: str) -> None:
        self.folder = Path(__file__).parent / name
        self.cases = sorted(path.name for path in self.folder.iterdir())

    def file_of(self, case: str) -> str:
        """A Compose file may have others beside it."""
        names = [path.name for path in (self.folder / case).iterdir()]
        wanted = (*COMPOSE_NAMES, *(name for name in names if name not in (TDL, TOLD)))
        return next(name for name in wanted if name in names)

    def statement(self, case: str) -> str:
        """The line of TDL that reads the file."""
        name = self.file_of(case)
        return f'matrix "{name}" rtt\n' if name.endswith(".csv") else f'include "{name}"\n'

    def read(self, case: str) -> Partial:
        return parse_partial(self.statement(case), SourceFolder(self.folder / case, load_topology))

    def documents(self, case: str) -> dict[str, str]:
        """The TDL, and the diagnostics as they are shown."""
        partial = self.read(case)
        told = render_text(partial.diagnostics, "exp.tdl", b"", includes=partial.includes)
        return {TDL: "".join(map(as_tdl.text, partial.translations)), TOLD: told}


COMPOSE, TOPOLOGIES = Goldens("compose"), Goldens("topologies")


def main() -> None:
    for goldens in (COMPOSE, TOPOLOGIES):
        for case in goldens.cases:
            for name, text in goldens.documents(case).items():
                (goldens.folder / case / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
