"""How warnings call sets of instances: `client.0-2, server.0`, `tags=west (12 instances)`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.plan.types import Topology

MOST = 4  # runs of one service that are named; more are counted


class Names:
    """Names of sets of instances of one topology, of which only `present` count."""

    def __init__(self, topology: Topology, present: Iterable[int]) -> None:
        self._topology = topology
        self._tagged: dict[str, set[int]] = {}
        for instance in present:
            for tag in topology.nodes[instance].tags:
                self._tagged.setdefault(tag, set()).add(instance)

    def of(self, instances: Sequence[int]) -> str:
        """`instances` in ascending order, not empty."""
        runs = self._runs(instances)
        if len(runs) > 1:
            tag = self._tag(set(instances))
            if tag is not None:
                return f"tags={tag} ({len(instances)} instances)"
        if len(runs) > MOST:
            named = sum(last - first + 1 for _, first, last in runs[: MOST - 1])
            return f"{', '.join(map(_run, runs[: MOST - 1]))} and {len(instances) - named} more"
        return ", ".join(map(_run, runs))

    def _tag(self, instances: set[int]) -> str | None:
        """The tag that exactly these have; of several the first by name."""
        found = [tag for tag, members in self._tagged.items() if members == instances]
        return min(found, default=None)

    def _runs(self, instances: Sequence[int]) -> list[tuple[str, int, int]]:
        """Service, first and last index of instances that follow one another."""
        runs: list[tuple[str, int, int]] = []
        for instance in instances:
            service, _, number = self._topology.nodes[instance].name.rpartition(".")
            index = int(number)
            if runs and runs[-1][0] == service and runs[-1][2] == index - 1:
                runs[-1] = (service, runs[-1][1], index)
            else:
                runs.append((service, index, index))
        return runs


def _run(run: tuple[str, int, int]) -> str:
    service, first, last = run
    return f"{service}.{first}" if first == last else f"{service}.{first}-{last}"


def and_list(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def lines(places: Iterable[tuple[str, int]]) -> str:
    """`line 3`, `lines 3, 5 and 2 of net.tdl`, of files and lines."""
    words = [f"{line} of {file}" if file else str(line) for file, line in sorted(set(places))]
    return f"line{'s' if len(words) > 1 else ''} {and_list(words)}"
