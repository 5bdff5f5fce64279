"""One epoch as sharing sees it: paths on demand, kept as long as the epoch lasts."""

from __future__ import annotations

from compiler.plan.paths.path import Paths
from compiler.plan.state import NetworkState
from runtime.agent.vocabulary import PathView


class PlanView:
    """A View (runtime.agent.vocabulary) of one state of the network. May raise PlanError."""

    def __init__(self, state: NetworkState) -> None:
        self.epoch = state.epoch
        self._state = state
        self._paths = Paths(state)
        self._known: dict[tuple[int, int], PathView | None] = {}

    def path(self, src: int, dst: int) -> PathView | None:
        """None: unreachable."""
        key = (src, dst)
        if key not in self._known:
            self._known[key] = self._find(src, dst)
        return self._known[key]

    def _find(self, src: int, dst: int) -> PathView | None:
        found = self._paths.path(src, dst)
        if found.totals is None:
            return None
        # Without a way back nobody has measured a round trip; both halves are taken to be alike.
        rtt = 2 * found.totals.delay_ns if found.rtt_ns is None else found.rtt_ns
        return PathView(found.links, found.totals.rate_bps, rtt, found.totals.delay_ns)

    def capacity(self, link: int) -> int:
        """b/s, 0 = unlimited."""
        return self._state.links[link].rate_bps

    def queue(self, link: int) -> int:
        """Bytes."""
        return self._state.links[link].queue_bytes
