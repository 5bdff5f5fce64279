"""Experiments in tests: start one, wait, look into it, read what it came to (docs/testing.md).

`run` starts an Experiment, whose `finish` gives a Run; `Run` reads a finished one as well. With
pytest the fixture `tstorm` does the same and ends what a test leaves open.

Nothing is imported before it is used: pytest loads this package in every session of everybody who
has it installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tstorm.testing.child import Executed
    from tstorm.testing.experiment import Experiment, run
    from tstorm.testing.experiment_errors import (
        DeadlineError,
        ExpectationsError,
        ExperimentError,
        NotTrustedError,
        ReactionError,
        StartError,
    )
    from tstorm.testing.finished import Expectation, Run, Verdict
    from tstorm.testing.fixture import Tstorm
    from tstorm.testing.pair_series import Series

__all__ = [
    "DeadlineError",
    "Executed",
    "Expectation",
    "ExpectationsError",
    "Experiment",
    "ExperimentError",
    "NotTrustedError",
    "ReactionError",
    "Run",
    "Series",
    "StartError",
    "Tstorm",
    "Verdict",
    "run",
]
_ROOMS = {
    **dict.fromkeys(("Experiment", "run"), "experiment"),
    **dict.fromkeys(("Expectation", "Run", "Verdict"), "finished"),
    "Executed": "child",
    "Series": "pair_series",
    "Tstorm": "fixture",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_ROOMS.get(name, 'experiment_errors')}"), name)
