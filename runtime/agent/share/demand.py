"""What one path's flow would like to send, inferred from what it did send.

Input: the path's counters at every tick and the limit that was in force meanwhile. Output: greedy
(it would take more than its limit) or a demand in b/s. No clock: times are arguments.

A flow is greedy as long as there is evidence that its limit holds it: its queue was never empty
between two ticks, packets found no room, or it sent all that the limit allows over a window. Then
its demand is unknown, and unlimited as far as sharing goes. Otherwise it has what it wants, and its
demand is what it sends: over the window, so that the grain of packets, super-packets and short
bursts averages out, but at once when it sent much more in each of the last two ticks, or much less
for longer than it ever paused lately (a stop is told from a pause by that).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

WINDOW_TICKS = 8
MOST_WINDOW_NS = 10_000_000_000  # longer round trips are not waited for
MOST_PAUSE_NS = 500_000_000  # a longer one is a stop
SAMPLES = 12  # kept of a window, whatever its length
FULL_PERCENT = 97  # of what was allowed: nothing is left that it could have sent
LEAVE_PERCENT = 95  # less than that, over the window: it has stopped being greedy
BUSY_PERCENT = 50  # less than that on average: a queue that overflows is a burst, not greed
GRAIN_BYTES = 3000  # two full packets: how far counters can be off what is sent steadily
MOST_GRAIN_BYTES = 65_536  # a super-packet, which some datapaths count as a whole
GRAINS = 6  # a window has so many of them at least
SURE_GRAINS = 8  # so much must have been allowed before full use of it says anything
OVER_PERCENT = 130
OVER_TICKS = 4
GRAIN_MEMORY = 64  # ticks
PAUSE_MEMORY = 8  # a pause is remembered for so many times its length
MOST_RATE_BPS = 10**14  # more cannot be: counters or clocks have jumped
BITS = 8_000_000_000  # bytes per ns in b/s


class PathCounters(NamedTuple):
    """Of one path, as `usage` tells them."""

    sent_bytes: int
    drops: int  # no room in the queue
    backlog_bytes: int


class Sample(NamedTuple):
    """Counters at one time; `allowed` is what the limits would have let through by then."""

    at_ns: int
    sent_bytes: int
    allowed_bytes: int
    drops: int


class Meter:
    """Follows one flow from the tick at which it was first seen."""

    __slots__ = (
        "_age",
        "_backlog",
        "_blocked_from",
        "_full",
        "_grain",
        "_last",
        "_last_bps",
        "_least_window_ns",
        "_longest_low_ns",
        "_low_from",
        "_over",
        "_period_ns",
        "_samples",
        "_window_ns",
        "demand_bps",
        "greedy",
        "quiet_ticks",
        "rate_bps",
        "used_percent",
    )

    def __init__(self, at_ns: int, sent_bytes: int, drops: int, period_ns: int) -> None:
        """Counters as they were at the tick before."""
        self._period_ns = period_ns
        self._last = Sample(at_ns, sent_bytes, 0, drops)
        self._samples = deque([self._last])  # what the window is measured from comes first
        self._least_window_ns = self._window_ns = WINDOW_TICKS * period_ns
        self._grain = GRAIN_BYTES  # of its counters, as far as limits have shown it
        self._age = 0  # ticks since it was quiet last
        self._backlog = 0
        self._blocked_from: Sample | None = None  # since when every tick has found a queue
        self._last_bps = 0  # over the last tick
        self._low_from: Sample | None = None  # since when it has sent much less than before
        self._longest_low_ns = 0  # of the pauses that ended, the long ago ones forgotten
        self._full = False  # whether it sent all that was allowed, over the window
        self._over = 0  # ticks in a row that sent far more than allowed
        self.quiet_ticks = 0
        self.greedy = False
        self.demand_bps = 0  # of one that is not greedy; sticky: follows the rate in steps
        self.rate_bps = 0  # what it sends, over the window
        self.used_percent = 0  # of what was allowed, over the window

    def update(
        self,
        now_ns: int,
        counters: PathCounters,
        limit_bps: int,
        rtt_ns: int,
        *,
        known: bool = True,
    ) -> None:
        """One tick: counters as they are now, and the limit since the last tick (not 0).

        If that is not `known` it may have been lower: then who waits has sent all that it could.
        """
        last = self._last
        passed_ns = max(now_ns - last.at_ns, 1)
        allowed = limit_bps * passed_ns // BITS
        sent = counters.sent_bytes - last.sent_bytes
        rate_bps = min(sent * BITS // passed_ns, MOST_RATE_BPS)
        waiting = counters.backlog_bytes
        if not known and (waiting or counters.drops > last.drops):
            allowed = min(allowed, sent)
        now = Sample(now_ns, counters.sent_bytes, last.allowed_bytes + allowed, counters.drops)
        if self._blocked_from is None or not (self._backlog and waiting):
            self._blocked_from = last if self._backlog and waiting else None
        self._backlog = waiting
        self._size_window(sent - allowed, limit_bps, rtt_ns)
        if self._age == 1 and rate_bps > self._last_bps:
            self._samples = deque([last])  # it began somewhere within its first tick
        self._note_pause(now, rate_bps, rtt_ns)
        self._measure(now)
        self._over = (
            self._over + 1 if 100 * (sent - 2 * GRAIN_BYTES) > OVER_PERCENT * allowed else 0
        )
        busy = sent > 0 and 100 * sent >= BUSY_PERCENT * allowed
        overflowed = busy and now.drops > last.drops
        self._judge(now, limit_bps, overflowed=overflowed)
        self._follow(rate_bps, passed_ns)
        self._last, self._last_bps = now, rate_bps
        self._age += 1
        if self.rate_bps or waiting:
            self.quiet_ticks = 0
        else:
            self.quiet_ticks += 1
            self._age = 0
            self._samples = deque([now])

    @property
    def quiet(self) -> bool:
        """It sends nothing and nothing of it waits."""
        return self.quiet_ticks > 0

    @property
    def overrun(self) -> bool:
        """The limit is not in force: the datapath must have missed it, or was told otherwise."""
        return self._over > 0 and self._over % OVER_TICKS == 0

    def _size_window(self, excess_bytes: int, limit_bps: int, rtt_ns: int) -> None:
        """Long enough for round trips, pauses, and the grain: a tick that counts more than the
        limit lets through has counted what left in others."""
        if excess_bytes > self._grain:
            self._grain = min(excess_bytes, MOST_GRAIN_BYTES)
        elif self._grain > GRAIN_BYTES:
            self._grain = max(self._grain - self._grain // GRAIN_MEMORY - 1, GRAIN_BYTES)
        elif not self._longest_low_ns:
            self._window_ns = min(max(self._least_window_ns, rtt_ns), MOST_WINDOW_NS)
            return
        grains_ns = GRAINS * (self._grain - GRAIN_BYTES) * BITS // limit_bps
        wanted = max(self._least_window_ns, rtt_ns, grains_ns, 2 * self._longest_low_ns)
        self._window_ns = min(wanted, MOST_WINDOW_NS)

    def _note_pause(self, now: Sample, rate_bps: int, rtt_ns: int) -> None:
        """Forgets what was before a pause that is longer than any lately."""
        last = self._last
        passed_ns = now.at_ns - last.at_ns
        if self._backlog or 2 * rate_bps >= self.rate_bps:
            if self._low_from is not None:
                paused_ns = min(last.at_ns - self._low_from.at_ns, MOST_PAUSE_NS)
                self._longest_low_ns = max(self._longest_low_ns, paused_ns)
                self._low_from = None
            if self._longest_low_ns:
                self._longest_low_ns = max(self._longest_low_ns - passed_ns // PAUSE_MEMORY, 0)
            return
        if self._low_from is None:
            self._low_from = last
        patience_ns = max(2 * self._period_ns, min(rtt_ns, self._window_ns) * 3 // 4)
        if now.at_ns - self._low_from.at_ns >= patience_ns + 2 * self._longest_low_ns:
            self._samples = deque([self._low_from])

    def _measure(self, now: Sample) -> None:
        """The rate over the window; of its samples enough are kept, and not more."""
        samples = self._samples
        while len(samples) > 1 and samples[1].at_ns <= now.at_ns - self._window_ns:
            samples.popleft()
        first = samples[0]
        rate_bps = (now.sent_bytes - first.sent_bytes) * BITS // max(now.at_ns - first.at_ns, 1)
        self.rate_bps = min(rate_bps, MOST_RATE_BPS)
        sent, allowed = now.sent_bytes - first.sent_bytes, now.allowed_bytes - first.allowed_bytes
        self.used_percent = 100 * sent // max(allowed, 1)
        extra = self._grain - GRAIN_BYTES  # may have been counted here and sent before
        self._full = len(samples) > 1 and 100 * (sent - extra) >= FULL_PERCENT * allowed
        if SAMPLES * (now.at_ns - samples[-1].at_ns) >= self._window_ns:
            samples.append(now)

    def _judge(self, now: Sample, limit_bps: int, *, overflowed: bool) -> None:
        if overflowed or self._full or self._held(now, limit_bps):
            self.greedy = True
        elif self.greedy:
            lost = now.drops > self._samples[0].drops and self.used_percent >= BUSY_PERCENT
            self.greedy = lost or self.used_percent >= LEAVE_PERCENT

    def _held(self, now: Sample, limit_bps: int) -> bool:
        """Whether it is the limit that makes it wait, and not only a packet or burst of its own."""
        since = self._blocked_from
        if since is None or not self.rate_bps:
            return False
        lasting = max(2 * self._period_ns * limit_bps // BITS, 2 * self._grain)
        if self._backlog >= lasting:
            return True
        sent = now.sent_bytes - since.sent_bytes
        allowed = now.allowed_bytes - since.allowed_bytes
        enough = allowed >= SURE_GRAINS * self._grain or now.at_ns - since.at_ns >= self._window_ns
        return enough and 100 * sent >= LEAVE_PERCENT * allowed

    def _follow(self, rate_bps: int, passed_ns: int) -> None:
        """Moves the demand if it is not what the flow sends, give or take."""
        grain_bps = self._grain * BITS // self._window_ns
        base = self.rate_bps
        steady = min(rate_bps, self._last_bps)  # more than before, and not for one tick only
        pausing = self._longest_low_ns >= 2 * self._period_ns  # then it has bursts as well
        more = 4 * steady > 5 * base and (steady - base) * passed_ns > self._grain * BITS
        if more and not pausing:
            base = steady
        if not 98 * base <= 100 * self.demand_bps <= 105 * base + 100 * grain_bps:
            self.demand_bps = (1015 * base + 250 * grain_bps) // 1000 if base else 0
