"""What a test asks for, as words of `tstorm run`.

An experiment is a path, or its text: a text has more than one line, a path has not.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tdl import values
from tdl.ast import When
from tdl.diagnostics import TdlError
from tdl.parser import parse
from tstorm.testing.experiment_errors import ReactionError

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
    when: Sequence[str] = ()  # reactions that stand at the end of the text

    def __post_init__(self) -> None:
        if isinstance(self.options, str):
            raise TypeError(f'options are a list of words: options=["{self.options}"]')
        for word in self.options:
            remedy = _NOT_HERE.get(word.partition("=")[0])
            if remedy:
                raise ValueError(f"{word.partition('=')[0]} is not for tests: {remedy}")
        if isinstance(self.when, str):
            raise TypeError("when is a list of texts: when=['when log a.* \"up\" { … }']")
        for number, text in enumerate(self.when, 1):
            check_reaction(number, text)
        if self.when and not self._is_text:
            raise ValueError("when= is for an experiment that is given as a text, not as a path")

    @property
    def text(self) -> str | None:
        """What `tstorm run` reads from its standard input; None: it reads a file."""
        if not self._is_text:
            return None
        return "\n".join((str(self.source), *self.when, "")) if self.when else str(self.source)

    @property
    def _is_text(self) -> bool:
        return isinstance(self.source, str) and "\n" in self.source

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


def check_reaction(number: int, text: str) -> None:
    """ReactionError unless the text is a reaction, with the place in it. Whether its names are
    those of the experiment is told when that begins."""
    try:
        found, _ = parse(text)
    except TdlError as error:
        raise ReactionError(number, error.diagnostics) from error
    if not found.statements or not all(isinstance(one, When) for one in found.statements):
        raise ValueError(f"reaction {number} is to be `when … {{ … }}` and nothing else: {text!r}")


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
