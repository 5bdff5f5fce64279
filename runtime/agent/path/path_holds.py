"""Which nodes keep their network for a while, although an epoch has taken it: somebody who leaves
says goodbye first.

A hold lasts from the step at which the node leaves until it is cut, or until the step at which it
comes back. The paths from and to such a node keep what they had before.
"""

from __future__ import annotations

from collections.abc import Iterable

NEVER = 1 << 62  # a step that does not come


class PathHolds:
    """Steps are positions in the run's list of steps."""

    def __init__(self) -> None:
        self._spans: dict[int, tuple[int, int]] = {}  # node -> (first step, first one after)

    def hold(self, nodes: Iterable[int], step: int) -> None:
        for node in nodes:
            self._spans[node] = (step, NEVER)

    def come_back(self, nodes: Iterable[int], step: int) -> list[int]:
        """Those of the nodes whose hold ends with that step, in order."""
        found = sorted(node for node in set(nodes) if node in self._spans)
        for node in found:
            self._spans[node] = (self._spans[node][0], step)
        return found

    def coming_back(self, step: int) -> list[int]:
        """Nodes whose hold ends with this step, in order."""
        return sorted(node for node, (_, after) in self._spans.items() if after == step)

    def cut(self, nodes: Iterable[int]) -> list[int]:
        """Ends holds at once. Those of the nodes that were held, in order."""
        found = sorted(node for node in set(nodes) if node in self._spans)
        for node in found:
            del self._spans[node]
        return found

    def held(self, step: int) -> frozenset[int]:
        """The nodes whose paths this step must leave alone."""
        return frozenset(
            node for node, (first, after) in self._spans.items() if first <= step < after
        )

    def forget(self, step: int) -> None:
        """That step is there: holds that ended with it or before are history."""
        for node in [node for node, (_, after) in self._spans.items() if after <= step]:
            del self._spans[node]
