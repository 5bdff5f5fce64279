"""What the commands of a coordinator's container ask the Job, or the driver in it."""

from __future__ import annotations

from typing import Any

from runtime.driver.control import ask
from runtime.job.container_paths import ContainerPaths


def state(places: ContainerPaths) -> dict[str, Any]:
    """Everything `tstorm inspect` shows. RunError if the run has not begun, or has ended."""
    place = places.control if places.control.exists() else places.socket
    return ask(place, {"ask": "state"})[0]


def stop(places: ContainerPaths) -> None:
    """The run winds down, as after ^C. RunError."""
    ask(places.socket, {"ask": "stop"})


def fetched(places: ContainerPaths) -> None:
    """The results need not be kept any longer. RunError if there are none yet."""
    ask(places.socket, {"ask": "fetched"})
