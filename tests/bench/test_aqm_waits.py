"""How long packets waited in a queue, from when they were sent and came (bench/virtual/aqm.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.tables import Record
from bench.virtual.aqm import SEGMENT_BYTES, Span, _outcome, judge

MS = 1_000_000
OF = Span(0, 1)


def _judged(
    folder: Path, sent: list[tuple[int, int, int]], got: list[tuple[int, int, int]]
) -> dict[str, float]:
    """Of time in ns, number of the first segment, and how many."""
    for name, rows in (("sent", sent), ("received", got)):
        lines = (f"{at} 9 {n * SEGMENT_BYTES} {k * SEGMENT_BYTES}" for at, n, k in rows)
        (folder / name).write_text("\n".join(lines) + "\n")
    return judge(folder / "sent", folder / "received", OF, 10_000_000, 10 * MS)


def test_segments_that_come_together_left_one_by_one(tmp_path: Path) -> None:
    """Two wait for nothing and for one packet, whether they come in one piece or not."""
    apart = _judged(tmp_path, [(0, 0, 2)], [(10 * MS, 0, 1), (11_200_000, 1, 1)])
    joined = _judged(tmp_path, [(0, 0, 2)], [(11_200_000, 0, 2)])
    assert apart == joined
    assert apart["p99"] == pytest.approx(1.2)


def test_a_packet_that_is_sent_again_waits_from_then_on(tmp_path: Path) -> None:
    found = _judged(tmp_path, [(0, 0, 1), (50 * MS, 0, 1)], [(61_200_000, 0, 1)])
    assert found["p99"] == pytest.approx(1.2)


@pytest.mark.parametrize(("twos", "median"), [(49, 1.7), (51, 1.9)])
def test_a_median_is_between_two_steps_where_as_many_are_on_each(
    tmp_path: Path, twos: int, median: float
) -> None:
    """The plain one would be a whole packet, 1.2 ms, longer or shorter."""
    waits = [1_200_000 if n < 100 - twos else 2_400_000 for n in range(100)]
    sent = [(n * 5 * MS, n, 1) for n in range(100)]
    came = [(n * 5 * MS + 10 * MS + wait, n, 1) for n, wait in enumerate(waits)]
    found = _judged(tmp_path, sent, came)
    assert found["median"] == pytest.approx(median, abs=0.11)


@pytest.mark.parametrize(
    ("medians", "outcome"),
    [((10.0, 12.0), "yes"), ((14.0, 14.2), "not: median"), ((10.0, 15.0), "open: median")],
)
def test_what_chance_may_have_done_is_told_apart(
    medians: tuple[float, float], outcome: str
) -> None:
    """Of two runs each; the kernel's take 10 ms both times, or nearly."""

    def runs(*values: float) -> list[Record]:
        return [{"used": 1.0, "median": value, "p99": 20.0} for value in values]

    assert _outcome(runs(*medians), runs(9.9, 10.1), 0.6) == outcome
    assert _outcome(runs(medians[1]), runs(10.0), 0.6) != "open: median"
