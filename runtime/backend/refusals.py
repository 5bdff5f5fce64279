"""What instances sent that the network would not carry: counted for the summary, told in time.

In: packets more, by instance and reason, whenever somebody has looked. Out: notices for what an
honest program does not do, at the first packet and then whenever it is ten times as much; the sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

TOLD: Mapping[str, str] = {
    "source": "from a source address that is not its own (--allow-spoofing lets them through)",
    "frame": "with a MAC address that is not its own, or to one station in a frame to all",
    "outside": "to addresses outside the experiment's networks",
}
FACTOR = 10


class Refusals:
    """Sums by instance and reason."""

    def __init__(self, notice: Callable[[str], None]) -> None:
        self._notice = notice
        self._sums: dict[str, dict[str, int]] = {}
        self._told_groups = False
        self._next: dict[tuple[str, str], int] = {}  # sum at which the next notice is due

    def add(self, instance: str, more: Mapping[str, int]) -> None:
        sums = self._sums.setdefault(instance, {})
        for reason, packets in sorted(more.items()):
            sums[reason] = total = sums.get(reason, 0) + packets
            if reason in TOLD and total >= self._next.get((instance, reason), 1):
                self._next[instance, reason] = total * FACTOR
                what = "1 packet was" if total == 1 else f"{total} packets were"
                self._notice(f"{instance}: {what} dropped: {TOLD[reason]}")

    def tell_of_groups(self, instance: str) -> None:
        """A program has sent to a group or to all: said once, since whoever looks for others so
        does it again and again."""
        if not self._told_groups:
            self._told_groups = True
            self._notice(
                f"{instance} sends to a group or to all (multicast, broadcast), and nobody hears"
                " it: such packets are dropped; summary.json counts them (refused)"
            )

    def record(self) -> list[dict[str, object]]:
        """For the summary: each instance of which something was dropped."""
        return [
            {"instance": instance, **dict(sorted(sums.items()))}
            for instance, sums in sorted(self._sums.items())
        ]
