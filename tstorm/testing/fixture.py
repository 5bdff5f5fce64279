"""The fixture `tstorm`: experiments of one test, where their files are, and what a report of its
failure says of them.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.judge.verdict import UNKNOWN, VALID
from tstorm.testing.experiment import START_SECONDS, Experiment, run
from tstorm.testing.experiment_errors import ExperimentError, NotTrustedError
from tstorm.testing.finished import PASSED, Run

__tracebackhide__ = True  # pytest shows the test, not how this was found out
MOST_NAME = 80
_DOUBTFUL = "what failed may come from this machine, not from what was tested"
_UNMEASURED = "nothing says that packets met the planned network"


@dataclass(frozen=True, slots=True)
class FixtureRequest:
    """What the test, the command line and the ini file say.

    test        its name, as pytest is given it
    folder      of the test's file
    temporary   its own directory
    artifacts   where directories of runs are kept; None: they are in `temporary`
    seed, time  of the command line; None: it says nothing of them
    required    the verdict that runs must have, a word of `--require`
    """

    test: str
    folder: Path
    temporary: Path
    artifacts: Path | None
    seed: int | None
    time: str | None
    required: str


class Tstorm:
    """`failed` is set by whoever knows that the test has."""

    def __init__(self, asked: FixtureRequest) -> None:
        self._asked = asked
        self._place: Path | None = None
        self._names = 0
        self.experiments: list[Experiment] = []
        self.failed = False

    @property
    def seed(self) -> int | None:
        """That of --tstorm-seeds, by which experiments run that state no other; None: their own."""
        return self._asked.seed

    def run(
        self,
        source: str | Path,
        *,
        seed: int | None = None,
        time: str | None = None,
        hosts: int | None = None,
        until: str | None = None,
        params: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        when: Sequence[str] = (),
        timeout: float = START_SECONDS,
    ) -> Experiment:
        """As tstorm.testing.run; relative names begin in the folder of the test's file."""
        self._names += 1
        found = run(
            source,
            seed=self._asked.seed if seed is None else seed,
            time=time or self._asked.time,
            hosts=hosts,
            until=until,
            params=params,
            options=options,
            when=when,
            folder=self._asked.folder,
            out=self._directory() / (f"run-{self._names}" if self._names > 1 else "run"),
            timeout=timeout,
        )
        self.experiments.append(found)
        return found

    def end(self) -> None:
        """Every run that goes on."""
        for one in self.experiments:
            if one.is_running:
                with suppress(ExperimentError):
                    one.stop()

    def judge(self, error: BaseException | None) -> None:
        """NotTrustedError if the runs are not what is required; `error` is what the test found."""
        required = self._asked.required
        if not required:
            return
        self.end()
        for one in self.experiments:
            try:
                found = _finished(one)
            except _Missing as missing:
                verdict = f"UNKNOWN: there are no results: {missing}"
                raise _untrusted(verdict, required, f"run: {one.directory}", error) from error
            if not found.verdict.is_enough(required):
                raise _untrusted(str(found.verdict), required, found.page_line, error) from error

    def tidy(self) -> None:
        """A directory without a run in it says nothing."""
        if self._place is not None:
            with suppress(OSError):
                self._place.rmdir()

    def discard(self) -> None:
        """The artefacts, which nobody has asked for."""
        if self._place is not None and self._asked.artifacts is not None:
            shutil.rmtree(self._place, ignore_errors=True)

    def sections(self) -> list[tuple[str, str]]:
        """For the report of a failure: a heading and a text for each run."""
        self.end()
        return list(map(self._section, self.experiments))

    def pages(self) -> Iterator[str]:
        """Addresses of those that have results; '' for one without a page."""
        for one in self.experiments:
            with suppress(_Missing):
                yield _finished(one).page_address

    # -- places -----------------------------------------------------------------------------------

    def _directory(self) -> Path:
        """Of all runs of this test; one that no other session has."""
        if self._place is None:
            base = self._asked.artifacts
            found = self._asked.temporary / "tstorm" if base is None else base / self._file_name()
            self._place = _make(found)
        return self._place

    def _file_name(self) -> str:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", self._asked.test).strip(".-")
        if len(name) > MOST_NAME:
            digest = hashlib.sha256(self._asked.test.encode()).hexdigest()[:8]
            name = f"{name[-MOST_NAME:].lstrip('.-')}-{digest}"
        return name

    # -- words ------------------------------------------------------------------------------------

    def _section(self, one: Experiment) -> tuple[str, str]:
        try:
            found = _finished(one)
        except _Missing as error:
            return "tstorm: no verdict", f"run: {one.directory}\n{error}"
        return f"tstorm: {found.verdict.state.upper()}", "\n".join(self._lines(found))

    def _lines(self, found: Run) -> Iterator[str]:
        yield found.page_line
        yield f"verdict: {found.verdict}"
        if found.verdict.state != VALID:
            doubt = _UNMEASURED if found.verdict.state == UNKNOWN else _DOUBTFUL
            yield f"The run is {found.verdict.state.upper()}, not VALID: {doubt}."
        yield f"outcome: {found.outcome}" + (f": {found.message}" if found.message else "")
        missed = [one for one in found.expectations if one.state != PASSED]
        if missed:
            yield f"expectations: {len(missed)} of {len(found.expectations)} did not pass"
            yield from (f"  {one}" for one in missed)
        yield f"the same run: {found.replay}"
        yield f"the same test: {self._again()}"

    def _again(self) -> str:
        """Options of other plugins are not known here."""
        words = ["pytest", self._asked.test]
        seed, time = self._asked.seed, self._asked.time
        words += [] if seed is None else ["--tstorm-seeds", f"{seed}..{seed}"]
        words += [] if time is None else ["--tstorm-time", time]
        return shlex.join(words)


def _untrusted(
    verdict: str, required: str, place: str, error: BaseException | None
) -> NotTrustedError:
    said = "" if error is None else f"\nthe test failed in it: {type(error).__name__}: {error}"
    return NotTrustedError(f"not to be trusted: {verdict}\nrequired: {required}{said}\n{place}")


class _Missing(Exception):  # noqa: N818 (nothing failed: there is nothing to say)
    """A run without results."""


def _finished(one: Experiment) -> Run:
    try:
        found = Run(one.directory)
        found.expectations  # noqa: B018 (read now: what is damaged is told here)
    except ExperimentError as error:
        raise _Missing(str(error)) from error
    return found


def _make(wanted: Path) -> Path:
    """A new directory of this name, or with a number after it."""
    for number in range(1, 100_000):
        found = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            found.mkdir(parents=True)
        except FileExistsError:
            continue
        return found
    raise ExperimentError(f"{wanted.parent} has too many directories {wanted.name}")
