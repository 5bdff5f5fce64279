"""The bugs that hunts are measured with: each fails with a storm that was chosen by hand, in the
stand-in for virtual time, and passes without."""

from __future__ import annotations

import pytest

from bench.virtual import hunt, stand_in
from tstorm.hunt import storm_runs
from tstorm.hunt.hunt_results import FAILED, PASSED
from tstorm.hunt.storms import Fault, Storm

MS = 1_000_000


def fault(word: str, begin_ms: int, end_ms: int, target: str, value: int = 0) -> Fault:
    return Fault(begin_ms * MS, end_ms * MS, word, (target,), value)


BY_HAND = {
    "clock_ordered_log": (
        fault("clock", 500, 3500, "node.0", 2500 * MS),
        fault("partition", 1000, 2500, "node.0"),
    ),
    "intersecting_masters": (fault("loss", 1000, 2500, "node.0--node.2", 950 * MS),),
    "lost_lease": (
        fault("latency", 900, 4500, "client.0--s", 100 * MS),
        fault("disconnect", 2800, 3400, "client.1"),
    ),
    "newest_wins": (
        fault("clock", 1000, 3500, "node.0", 1500 * MS),
        fault("disconnect", 2000, 3000, "node.0"),
    ),
    "read_index": (fault("disconnect", 3363, 4200, "node.0"),),
    "rolled_log": (fault("pause", 2420, 3577, "server.0"),),
    "truncated_log": (
        fault("crash", 1000, 1300, "broker.1"),
        fault("crash", 1200, 2400, "broker.0"),
    ),
    "unsynced_mirror": (
        fault("crash", 1000, 1100, "node.1"),
        fault("crash", 1400, 3400, "node.0"),
    ),
}


def test_each_bug_has_a_storm_here() -> None:
    assert sorted(BY_HAND) == hunt.BUGS


@pytest.mark.parametrize("bug", hunt.BUGS)
def test_a_bug_takes_its_storm_and_is_small(bug: str) -> None:
    request = hunt.requested(bug)
    assert "hunt {" not in request.base
    assert len((hunt.PLACE / f"{bug}.py").read_text().splitlines()) <= 150
    assert stand_in.carried_out(request, Storm(0, 1, ())).outcome == PASSED
    assert stand_in.carried_out(request, Storm(0, 1, BY_HAND[bug])).outcome == FAILED


@pytest.mark.virtual
def test_it_fails_in_virtual_time_as_well() -> None:
    found = storm_runs.carried_out(
        hunt.requested("unsynced_mirror"), Storm(0, 1, BY_HAND["unsynced_mirror"])
    )
    assert found is not None
    assert [one.name for one in found.failed] == ['expect no log client "LOST"']


def test_trials_without_a_find_count_as_more_than_were_made() -> None:
    row = hunt.row("a", {"blind": [3, None, 9, 4], "guided": [3, None, None]}, 60)
    assert (row["trials"], row["blind_median"], row["guided_median"]) == (3, 9, 61)
    assert (row["blind_without"], row["guided_without"]) == (1, 2)
