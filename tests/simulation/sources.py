"""What sends in the simulation of agents: fluid models of applications and their transport.

A source is asked what it offers in the next few milliseconds and told what became of it. Rates are
b/s, sizes bytes, times ns. The models keep what sharing can see of the real thing: slow start, a
window that is halved when the queue overflows, pauses, a constant rate.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

NS_PER_S = 1_000_000_000
SEGMENT_BYTES = 1500


class Source(Protocol):
    """What sends over one path."""

    def offer(self, now_ns: int, passed_ns: int, rtt_ns: int) -> float:
        """Bytes that it sends in the time from now - passed to now."""

    def told(self, now_ns: int, delivered: float, dropped: float, rtt_ns: int) -> None:
        """What left the queue meanwhile, and what found no room there."""


@dataclass(slots=True)
class Constant:
    """UDP at a constant rate, whatever is lost; in chunks of `grain` bytes if that is set."""

    rate_bps: float
    grain: int = 0
    _owed: float = 0.0

    def offer(self, now_ns: int, passed_ns: int, rtt_ns: int) -> float:
        self._owed += self.rate_bps * passed_ns / 8 / NS_PER_S
        sent = self._owed // self.grain * self.grain if self.grain else self._owed
        self._owed -= sent
        return sent

    def told(self, now_ns: int, delivered: float, dropped: float, rtt_ns: int) -> None:
        pass


@dataclass(slots=True)
class OnOff:
    """Another source, on for some time and then off for some time, from the start."""

    source: Source
    on_ns: int
    off_ns: int

    def offer(self, now_ns: int, passed_ns: int, rtt_ns: int) -> float:
        on = now_ns % (self.on_ns + self.off_ns) < self.on_ns
        return self.source.offer(now_ns, passed_ns, rtt_ns) if on else 0.0

    def told(self, now_ns: int, delivered: float, dropped: float, rtt_ns: int) -> None:
        self.source.told(now_ns, delivered, dropped, rtt_ns)


@dataclass(slots=True)
class Tcp:
    """A connection that has always something to send, or at most `application_bps` on average.

    Slow start until the first loss; then the window falls to `backoff` of itself, at most once a
    round trip, and grows by `growth` segments a round trip. `loss_ppb` of what is delivered is lost
    on the way besides.
    """

    application_bps: float = 0.0  # 0: no limit
    backoff: float = 0.7
    growth: float = 1.0
    loss_ppb: int = 0
    seed: int = 0
    window: float = 10.0 * SEGMENT_BYTES
    threshold: float = float("inf")
    _recovering_until_ns: int = 0
    _random: random.Random | None = None

    def offer(self, now_ns: int, passed_ns: int, rtt_ns: int) -> float:
        passed_s = passed_ns / NS_PER_S
        wanted = self.window * passed_ns / max(rtt_ns, 1)
        if self.application_bps:
            wanted = min(wanted, self.application_bps * passed_s / 8)
        return wanted

    def told(self, now_ns: int, delivered: float, dropped: float, rtt_ns: int) -> None:
        if (dropped or self._lost(delivered)) and now_ns >= self._recovering_until_ns:
            self.window = max(self.window * self.backoff, 2.0 * SEGMENT_BYTES)
            self.threshold = self.window
            self._recovering_until_ns = now_ns + rtt_ns
            return
        if self.application_bps and 8 * self.window * NS_PER_S > 2 * self.application_bps * rtt_ns:
            return  # the window is not what holds it: it does not grow
        if self.window < self.threshold:
            self.window = min(self.window + delivered, 2 * self.window)
        else:
            self.window += self.growth * SEGMENT_BYTES * delivered / self.window

    def _lost(self, delivered: float) -> bool:
        if not self.loss_ppb:
            return False
        if self._random is None:
            self._random = random.Random(self.seed)
        chance = delivered / SEGMENT_BYTES * self.loss_ppb / 1e9
        return self._random.random() < chance
