"""Runs on links that follow traces are judged by what those let through at the time."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import pytest

from tests.certify.scene import INTERVAL_NS, MS, SECOND, Fault, Scene, whats

TDL = """service a img=x
service b img=x
bridges s
link a--s latency=5ms trace=cell.trace queue=30KB
link b--s latency=5ms
at 60s quit
"""
ONE_WAY = (("a.0", "b.0"),)
# Each 10 ms but in 0.4 s of each second; and 10 s each of 1.2 and 12 Mb/s.
GAPS = [ms for ms in range(10, 1001, 10) if not 200 <= ms < 600]
STEPS = [*range(10, 10_001, 10), *range(10_001, 20_001)]


def scene(place: Path, lines: list[int]) -> Scene:
    (place / "cell.trace").write_text("".join(f"{ms}\n" for ms in lines))
    return Scene(place, TDL, pairs=ONE_WAY)


def next_one(lines: list[int], at_ns: int) -> int:
    rounds, rest = divmod(at_ns, lines[-1] * MS)
    return (rounds * lines[-1] + lines[bisect_right(lines, rest // MS)]) * MS


def behind(lines: list[int], more_ns: int = 0, moved_ns: int = 0, waits_ns: int = 0) -> Fault:
    """As a link does that follows them, or follows them later by `moved_ns`; with so much to wait
    for before that."""

    def fault(sent: int, _delay: int | None) -> int:
        left = next_one(lines, sent + moved_ns + waits_ns) - moved_ns
        return left - sent + 10 * MS + 50_000 + more_ns

    return fault


def test_a_run_that_follows_is_valid(tmp_path: Path) -> None:
    found = scene(tmp_path, GAPS)
    found.probe(behind(GAPS))
    verdict = found.judged()
    assert (verdict["state"], verdict["reasons"]) == ("valid", [])


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (lambda _sent, _delay: 10 * MS, "path_early"),  # nothing waits for a delivery
        (behind(GAPS, more_ns=30 * MS), "path_late"),
        (behind(GAPS, moved_ns=300 * MS), "path_early"),
        (lambda sent, delay: behind(GAPS)(sent, delay) if sent % 3 else None, "path_loss"),
    ],
)
def test_a_run_that_does_not_is_none(tmp_path: Path, fault: Fault, what: str) -> None:
    found = scene(tmp_path, GAPS)
    found.probe(fault)
    verdict = found.judged()
    assert verdict["state"] == "invalid"
    assert what in whats(verdict)


def test_a_full_queue_explains_as_long_as_the_trace_takes_for_it(tmp_path: Path) -> None:
    """30 KB of 1.2 Mb/s are 200 ms, and the gap may come in between."""
    found = scene(tmp_path, GAPS)
    found.flow("a.0", "b.0", 700_000)
    found.probe(behind(GAPS, waits_ns=150 * MS))
    assert "path_late" not in whats(found.judged())
    found.probe(behind(GAPS, more_ns=SECOND))
    assert "path_late" in whats(found.judged())


@pytest.mark.parametrize(
    ("bps", "begin_s", "end_s", "state"),
    [
        (1_150_000, 0, 9, "valid"),
        (3_000_000, 0, 9, "invalid"),  # less than the mean, and more than there was
        (11_500_000, 11, 19, "valid"),
        (14_000_000, 11, 19, "invalid"),
    ],
)
def test_no_pair_gets_more_than_the_trace_lets_through(
    tmp_path: Path, bps: int, begin_s: int, end_s: int, state: str
) -> None:
    found = scene(tmp_path, STEPS)
    found.flow("a.0", "b.0", bps, begin_s, end_s)
    found.probe(behind(STEPS))
    verdict = found.judged()
    assert verdict["state"] == state, verdict["reasons"]
    assert whats(verdict) == ([] if state == "valid" else ["path_rate"])


@pytest.mark.parametrize(("more", "state"), [("aqm=codel", "valid"), ("queue=2MB", "invalid")])
def test_what_drops_early_beside_a_trace_explains_losses(
    tmp_path: Path, more: str, state: str
) -> None:
    """A queue that drops early may do so long before it is full; one that does not, may not."""
    (tmp_path / "cell.trace").write_text("1\n")
    text = TDL.replace("30KB", "2MB").replace(
        "b--s latency=5ms", f"b--s latency=5ms rate=40Mb {more}"
    )
    found = Scene(tmp_path, text, pairs=ONE_WAY)
    found.flow("a.0", "b.0", 4_000_000)
    found.probe(
        lambda sent, delay: (
            behind([1])(sent, delay) if sent % (10 * INTERVAL_NS) < 7 * INTERVAL_NS else None
        )
    )
    verdict = found.judged()
    assert verdict["state"] == state, verdict["reasons"]
    assert whats(verdict) == ([] if state == "valid" else ["path_loss"])
