"""Containers that are gone after the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.hold.support import HOLD, ROOT, Container


class Start(Protocol):
    def __call__(self, *arguments: str, prefix: tuple[str, ...] = ()) -> Container: ...


class StartHeld(Protocol):
    def __call__(
        self,
        script: str,
        *arguments: str,
        options: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
    ) -> Container: ...


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Start]:
    """Starts a container; more than one a test share no file."""
    assert HOLD.exists(), f"{HOLD.relative_to(ROOT)} is missing: make -C tcal_c"
    started: list[Container] = []

    def start(*arguments: str, prefix: tuple[str, ...] = ()) -> Container:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Container(folder, list(arguments), prefix))
        return started[-1]

    yield start
    for made in started:
        made.close()


@pytest.fixture
def held(container: Start, tmp_path: Path) -> StartHeld:
    """`tstorm-hold run` with a shell script as its program, held; it reports to `reports`, too."""

    def start(
        script: str,
        *arguments: str,
        options: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
    ) -> Container:
        words = ("--reports", str(tmp_path / "reports"), *options)
        made = container("run", *words, "--", "sh", "-c", script, *arguments, prefix=prefix)
        assert made.init() > 0, made.err.read_text()
        return made

    return start
