"""The soak, short: real agents' code on a simulated clock neither leaks nor drifts.

`python -m bench --only sharing-model` makes it two hours long.
"""

from __future__ import annotations

from tests.simulation.soak import soak


def test_five_minutes_neither_leak_nor_drift() -> None:
    found = soak(300, 5)
    assert [each.at_s for each in found] == [60, 120, 180, 240, 300]
    for each in found:
        assert each.worst_error <= 0.05
    # By the second checkpoint every path has been used; after that nothing is kept.
    settled, last = found[1], found[-1]
    assert last.objects <= settled.objects + 300
    # Four agents tick every 25 ms, and at most twice as rarely while they are idle.
    assert 4 * 300 * 20 <= last.ticks <= 4 * 300 * 40 + 4
    # Flows that come and go need limits, but not without end.
    assert last.changes <= 5 * 300


def test_two_soaks_are_the_same() -> None:
    first, second = soak(40, 1, seed=3), soak(40, 1, seed=3)
    assert [(each.worst_error, each.changes, each.ticks) for each in first] == [
        (each.worst_error, each.changes, each.ticks) for each in second
    ]


def test_memory_does_not_grow() -> None:
    found = soak(90, 3, seed=2, trace=True)
    assert found[-1].memory_bytes <= found[1].memory_bytes + 30_000
