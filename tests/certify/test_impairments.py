"""What is judged of paths whose losses come in bursts, and whose packets are damaged or late."""

from __future__ import annotations

import random
from pathlib import Path

from tests.certify.scene import MS, TDL, Fault, Scene, as_planned, whats

SEEDS = 30


def planned(more: str) -> str:
    """Both ways, on the link of `a`."""
    return TDL.replace("link a--s latency=5ms up=100Mb", f"link a--s latency=5ms up=100Mb {more}")


def reasons(place: Path, more: str, fault: Fault) -> list[str]:
    """Over a network without impairments, what they do to a probe being the fault's."""
    scene = Scene(place, planned(more))
    scene.probe(fault, Scene(place / "plain").plan)
    return whats(scene.judged())


class Bursts:
    """Two states, drawn for each probe as docs/pktd.md has it; the two pairs take turns."""

    def __init__(self, seed: int, loss: float, burst: float) -> None:
        self._random = random.Random(seed)
        self._ends = 1 / burst
        self._begins = loss / (burst * (1 - loss))
        self._in_burst = [self._random.random() < loss for _ in range(2)]

    def __call__(self, _sent_ns: int, delay_ns: int | None) -> int | None:
        mine, other = self._in_burst
        turns = self._ends if mine else self._begins
        mine ^= self._random.random() < turns
        self._in_burst = [other, mine]
        return None if mine else delay_ns


def test_losses_in_bursts_raise_no_alarm(tmp_path: Path) -> None:
    for loss, burst in ((0.02, 8), (0.2, 5), (0.3, 20)):
        more = f"loss={loss} burst={burst}"
        for seed in range(SEEDS):
            place = tmp_path / f"{burst}-{seed}"
            assert reasons(place, more, Bursts(seed, loss, burst)) == []


def test_losses_in_bursts_that_are_missing_or_too_many_do(tmp_path: Path) -> None:
    more = "loss=20% burst=5"
    assert "path_loss" in reasons(tmp_path / "missing", more, as_planned)
    assert "path_loss" in reasons(tmp_path / "more", more, Bursts(1, 0.7, 5))


def test_what_is_damaged_counts_as_lost(tmp_path: Path) -> None:
    draw = random.Random(4)

    def damaged(_sent_ns: int, delay_ns: int | None) -> int | None:
        return None if draw.random() < 0.3 else delay_ns

    assert reasons(tmp_path / "planned", "corrupt=30%", damaged) == []
    assert "path_loss" in reasons(tmp_path / "missing", "corrupt=30%", as_planned)


def test_what_leaves_the_order_may_be_so_much_later_and_no_more(tmp_path: Path) -> None:
    draw = random.Random(5)

    def later(by_ns: int, share: float) -> Fault:
        def fault(_sent_ns: int, delay_ns: int | None) -> int | None:
            return delay_ns and delay_ns + by_ns * (draw.random() < share)

        return fault

    for share in (0.2, 0.9):
        more = f"reorder={share} by=30ms"
        place = tmp_path / f"planned-{share}"
        assert reasons(place, more, later(30 * MS, share)) == []
        place = tmp_path / f"much-{share}"
        assert "path_tail" in reasons(place, more, later(60 * MS, share))
    assert "path_late" in reasons(tmp_path / "most", "reorder=20% by=30ms", later(30 * MS, 0.9))
    assert "path_tail" in reasons(tmp_path / "unplanned", "", later(30 * MS, 0.2))


def test_a_mean_beside_jitter_has_it_too(tmp_path: Path) -> None:
    draw = random.Random(6)
    jitter = "latency=50ms jitter=2ms"
    text = TDL.replace("link a--s latency=5ms", f"link a--s {jitter} reorder=50% by=20ms")
    plain = TDL.replace("link a--s latency=5ms", f"link a--s {jitter}")

    def later(_sent_ns: int, delay_ns: int | None) -> int | None:
        return delay_ns and delay_ns + 20 * MS * (draw.random() < 0.5)

    for name, fault, wanted in (("planned", later, False), ("missing", as_planned, True)):
        scene = Scene(tmp_path / name, text)
        scene.probe(fault, Scene(tmp_path / f"{name}-plain", plain).plan)
        found = set(whats(scene.judged()))
        assert ("path_early" in found) == wanted, found
        assert found <= {"path_early"}


def test_a_queue_that_drops_early_explains_losses_beside_traffic_and_no_others(
    tmp_path: Path,
) -> None:
    draw = random.Random(7)

    def lost(_sent_ns: int, delay_ns: int | None) -> int | None:
        return None if draw.random() < 0.3 else delay_ns

    def found(name: str, more: str, bps: int) -> list[str]:
        scene = Scene(tmp_path / f"{name}-{bps}", planned(more), pairs=(("a.0", "b.0"),))
        if bps:
            scene.flow("a.0", "b.0", bps)
        scene.probe(lost)
        return whats(scene.judged())

    for kind in ("codel", "fq_codel", "pie", "red"):
        assert "path_loss" not in found(kind, f"aqm={kind}", 40_000_000)
        assert "path_loss" in found(kind, f"aqm={kind}", 0)
    assert "path_loss" in found("tail", "queue=10MB", 4_000_000)
    assert "path_loss" not in found("few", "queue=10pkt", 40_000_000)
