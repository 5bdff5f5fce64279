"""Progress of a run as records: the runtime yields them, the command line renders them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

STARTING = "starting"
RUNNING = "running"
STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class ServiceState:
    """How many instances of a service are in which state now."""

    name: str
    joined: int  # present and connected
    cut: int  # present, network cut by a disconnect
    down: int  # not there: not joined yet, left or crashed
    done: int  # present, but the program has ended with status 0 (counted in joined or cut as well)
    failed: int  # the same with another status, by a signal, or killed from outside
    not_started: int = 0  # present, but the program could not start (counted nowhere else)


@dataclass(frozen=True, slots=True)
class NextEvent:
    at_ns: int  # plan time
    kind: str
    target: str


@dataclass(frozen=True, slots=True)
class Progress:
    """One record. All times in ns; `at_ns` and `end_ns` are plan time, `elapsed_ns` is real."""

    phase: str  # STARTING | RUNNING | STOPPING
    run_id: str
    directory: str
    at_ns: int
    end_ns: int
    elapsed_ns: int
    applied: int  # plan events done
    total: int  # plan events to do
    next_event: NextEvent | None = None
    services: tuple[ServiceState, ...] = ()
    message: str = ""  # something happened that the user should see, '' otherwise
    warning: bool = False  # the message is for those, too, who want no progress
    news: bool = False  # so is this one, which warns of nothing
    held_ns: int | None = None  # where the text stands while what is planned is held


Reporter = Callable[[Progress], None]


def ignore(_record: Progress) -> None:
    """A reporter for callers who want none."""
