"""What a guest is told is the same whatever its run is called and wherever it is: programs see how
long the arguments of others are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from runtime.backend.local.local_backend import LocalSettings
from runtime.driver.driver_messages import DriverConfig
from runtime.launch import starting
from runtime.options import DEFAULTS
from runtime.rundir import rundir
from runtime.virtual import guest
from runtime.virtual.clockpage import ClockPage

Told = tuple[Sequence[str], Mapping[str, str]]


async def begin(*what: Any) -> None:
    starting.in_guest(*what).link.close()


def told(monkeypatch: pytest.MonkeyPatch, place: Path, run_id: str) -> Told:
    """The arguments and the environment of its driver."""
    calls: list[Told] = []

    def start(
        _machine: object,
        _places: object,
        argv: Sequence[str],
        environment: Mapping[str, str],
        _: object,
    ) -> guest.Guest:
        calls.append((argv, environment))
        return guest.Guest(None, ClockPage.create())  # type: ignore[arg-type]

    monkeypatch.setattr(guest, "start", start)
    directory = place / run_id
    config = DriverConfig(run_id, str(directory), str(place / f"{run_id}.sock"), DEFAULTS)
    local = LocalSettings(("pktd",), "/bin/tstorm-ns", str(place), "/experiment", {"TERM": run_id})
    machine = guest.Machine(Path("/linux"), Path("/bin/tstorm-ns"), place / "guest", 0, 1)
    made = rundir.create(directory)
    asyncio.run(begin(config, local, made, machine))
    return calls[0]


def test_a_guest_does_not_learn_what_its_run_is_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = told(monkeypatch, tmp_path / "a", "x-20261123T075208Z")
    assert told(monkeypatch, tmp_path / "another", "x-20261123T075208Z-2") == one
