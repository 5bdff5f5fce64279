"""What a test asks for, as words of `tstorm run`.

An experiment is a path, or its text: a text has more than one line, a path has not.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tdl import values

STDIN = "-"
_NOT_HERE = {  # options of `tstorm run` that a handle of a run has no use for
    "--out": "say it as out=",
    "--backend": "experiments in tests run on this machine",
    "--seeds": "start a run for each seed (pytest --tstorm-seeds)",
    "--format": "read the run that finish() gives",
}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run. `source` is a path or a text; `folder` is where relative names in it begin; `out`
    becomes the run directory."""

    source: str | Path
    folder: Path
    out: Path
    seed: int | None = None
    time: str | None = None
    hosts: int | None = None
    until: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.options, str):
            raise TypeError(f'options are a list of words: options=["{self.options}"]')
        for word in self.options:
            remedy = _NOT_HERE.get(word.partition("=")[0])
            if remedy:
                raise ValueError(f"{word.partition('=')[0]} is not for tests: {remedy}")

    @property
    def text(self) -> str | None:
        """What `tstorm run` reads from its standard input; None: it reads a file."""
        found = isinstance(self.source, str) and "\n" in self.source
        return str(self.source) if found else None

    @property
    def name(self) -> str:
        """Of the experiment, in messages."""
        return "the experiment" if self.text is not None else str(self.source)

    def words(self) -> list[str]:
        """What follows `tstorm`."""
        path = STDIN if self.text is not None else str(self.folder / self.source)
        stated = {
            "--seed": self.seed,
            "--time": self.time,
            "--hosts": self.hosts,
            "--until": self.until,
        }
        found = ["run", path, f"--out={self.out}", "--quiet"]
        found += [f"{name}={value}" for name, value in stated.items() if value is not None]
        found += [f"--param={name}={value}" for name, value in sorted(self.params.items())]
        return [*found, *self.options]


def nanoseconds(at: str | int) -> int:
    """A time as the language writes it (`20s`), or in ns already. ValueError."""
    if isinstance(at, int):
        return at
    try:
        return values.time(at)
    except values.ValueProblem as problem:
        hint = f" ({problem.hint})" if problem.hint else ""
        raise ValueError(f"{problem.message}{hint}") from None


def replay(directory: Path) -> str:
    """A command that repeats the run in `directory`."""
    return shlex.join(["tstorm", "replay", str(directory)])
