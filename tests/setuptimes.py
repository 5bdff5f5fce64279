"""Hooks of pytest: a test's JUnit entry says what its set-up took, and what all of it took of
processors: its own and those of the processes that it has waited for (scripts/slowest)."""

from __future__ import annotations

import resource
import sys
from collections.abc import Generator

import pytest

_before = [0.0]  # seconds of processors at the beginning of the test


def pytest_runtest_logstart() -> None:
    _before[0] = _used_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if call.when == "setup":
        item.user_properties.append(("setup_s", f"{call.duration:.3f}"))
    if call.when == "teardown":
        item.user_properties.append(("processors_s", f"{_used_s() - _before[0]:.3f}"))
    return (yield)


def _used_s() -> float:
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    own_s = sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))
    forks = sys.modules.get("tests.cli.warm")  # where somebody has forked a command
    return own_s + (forks.used_s() if forks is not None else 0.0)
