"""What is left of a storm that failed, with a stand-in for runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tstorm.hunt import storms
from tstorm.hunt.hunt_results import FAILED, FailedAt, StormResult
from tstorm.hunt.storm_finds import Reseeded, ShrunkStorm, decided_ns, seeds, shrunk
from tstorm.hunt.storms import Fault, Storm
from tstorm.shrink import script
from tstorm.shrink.failures import Failure
from tstorm.shrink.trials import Bounds, Trials

SECOND = 10**9
BASE = (
    "service a replicas=3\nbridge s\nlink a--s latency=1ms\nat 30s quit\nexpect no log a.0 'bad'\n"
)
BAD = Failure("expectation", "expect no log a.0 'bad'")
FAULTS = tuple(
    Fault(at * SECOND, (at + 1) * SECOND, word, ("a.0",))
    for at, word in ((1, "crash"), (4, "pause"), (8, "crash"), (12, "disconnect"), (20, "pause"))
)
Fails = Callable[[str, int], bool]  # a text with a seed


class Shrinking:
    """A search over FAULTS: what is left, and the texts that were run, with their seeds."""

    def __init__(
        self, fails: Fails, at_s: int, *, attempts: int = 60, by_end: bool = False
    ) -> None:
        self.runs: list[tuple[str, int]] = []
        own = [(seed, self._runner(seed, fails)) for seed in (5, 6, 7)]
        reseeded = Reseeded(own, frozenset((BAD,)))
        bounds = Bounds(attempts, 1, len(own))
        trials = Trials(reseeded, (BAD,), bounds, lambda: 0.0, lambda _one: None)
        failed = FailedAt(BAD.what, BAD.name, by_end, at_s * SECOND)
        found = StormResult(Storm(3, 5, FAULTS), FAILED, (failed,))
        self.left: ShrunkStorm | None = shrunk(found, self.text, self.read, trials, reseeded)

    def _runner(self, seed: int, fails: Fails) -> Callable[[str], list[Failure]]:
        def run(text: str) -> list[Failure]:
            self.runs.append((text, seed))
            return [BAD] if fails(text, seed) else []

        return run

    @staticmethod
    def text(faults: Sequence[Fault]) -> str:
        return storms.text(BASE, faults, ("a.0", "a.1", "a.2"))

    @staticmethod
    def read(text: str) -> script.Script:
        return script.read(text.encode())


def test_what_is_not_needed_goes_and_the_end_comes_forward() -> None:
    found = Shrinking(lambda text, _seed: "at 1s a.0 restart" in text and "to 13s" in text, 13)
    assert found.left is not None
    assert found.left.faults == (FAULTS[0], FAULTS[3])
    assert found.left.seed == 5
    assert "at 13.1s quit" in found.left.text
    assert not found.left.stopped


def test_what_begins_after_the_failure_is_never_tried() -> None:
    found = Shrinking(lambda text, _seed: "at 1s a.0 restart" in text, 2)
    assert found.left is not None
    assert found.left.faults == (FAULTS[0],)
    assert all("at 8s" not in text for text, _ in found.runs)


def test_a_text_fails_if_one_of_its_seeds_does() -> None:
    found = Shrinking(lambda text, seed: "at 1s" in text and ("at 8s" in text or seed == 7), 13)
    assert found.left is not None
    assert found.left.faults == (FAULTS[0],)
    assert found.left.seed == 7


def test_a_failure_without_a_storm_needs_no_fault() -> None:
    found = Shrinking(lambda _text, _seed: True, 13)
    assert found.left is not None
    assert found.left.faults == ()


def test_the_end_stays_where_only_the_end_decides() -> None:
    found = Shrinking(lambda _text, _seed: True, 30, by_end=True)
    assert found.left is not None
    assert found.left.text == BASE


def test_one_that_does_not_fail_again_is_none() -> None:
    assert Shrinking(lambda _text, _seed: False, 13).left is None


def test_bounds_of_attempts_leave_the_shortest_so_far() -> None:
    found = Shrinking(lambda text, _seed: "at 1s" in text and "at 8s" in text, 13, attempts=3)
    assert found.left is not None
    assert "3 attempts were made" in found.left.stopped
    assert found.left.faults == FAULTS[:4]  # what began after the failure has gone


def test_what_was_found_so_far_stays_where_attempts_end() -> None:
    found = Shrinking(lambda text, _seed: "at 1s" in text and "from 4s" in text, 13, attempts=4)
    assert found.left is not None
    assert found.left.faults == FAULTS[:2]


def test_a_moment_is_known_where_all_of_them_are() -> None:
    one = FailedAt("expectation", "x", False, 5)
    assert decided_ns([one, FailedAt("program", "y", False, 9)]) == 9
    assert decided_ns([one, FailedAt("program", "y", False)]) is None
    assert decided_ns([one, FailedAt("program", "y", True, 9)]) is None


def test_seeds_begin_with_the_own_one() -> None:
    assert seeds(9, 3)[0] == 9
    assert len(set(seeds(9, 3))) == 3
    assert seeds(9, 3) == seeds(9, 3)
