"""What a capture is of in a run over hosts or in a cluster, where no datapath has links: a path
from instance to instance is one queue, at the host of the instance that sends.

At an instance it is all paths from it, before their queues, at its host; and at all hosts all paths
to it, behind their ends. At a path, `a.0--b.0` or `a.0->b.0`, it is both places of it. Paths are
those of the network at the moment of asking; of others a datapath may not know yet.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from compiler.plan.paths.path import Paths
from compiler.plan.state import NetworkState
from runtime.datapath.capture_pipe import MOST_PLACES, OFFERED
from runtime.errors import RunError, no_instance


@dataclass(frozen=True, slots=True)
class CapturedPath:
    """A place of a path, by the nodes of its ends."""

    src: int
    dst: int
    name: str  # of the path
    offered: bool

    @property
    def interface(self) -> str:
        return self.name + OFFERED if self.offered else self.name


@dataclass(slots=True)
class CapturedPaths:
    """Places by the host that has them; who is `left_out`, since there is no path now."""

    by_host: dict[int, list[CapturedPath]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def at(
    state: NetworkState, placement: Sequence[int], target: str, *, is_link: bool
) -> CapturedPaths:
    """RunError."""
    names = [node.name for node in state.topology.nodes]
    known = {one.name: n for n, one in enumerate(state.topology.nodes) if one.is_instance}
    wanted = _at_path(known, target) if is_link else _at_instance(known, target)
    paths, found = Paths(state), CapturedPaths()
    for src, dst, places in wanted:
        if not paths.path(src, dst).reachable:
            other = names[dst if names[src] == target else src]
            if other not in found.left_out:
                found.left_out.append(other)
            continue
        name = f"{names[src]}->{names[dst]}"
        rows = [CapturedPath(src, dst, name, offered) for offered in places]
        found.by_host.setdefault(placement[src], []).extend(rows)
    _check(found, target)
    return found


def _at_instance(
    known: Mapping[str, int], target: str
) -> Sequence[tuple[int, int, Sequence[bool]]]:
    if target not in known:
        raise no_instance(target, list(known))
    own = known[target]
    others = [node for node in known.values() if node != own]
    sent = [(own, other, (True,)) for other in others]
    return sent + [(other, own, (False,)) for other in others]


def _at_path(known: Mapping[str, int], target: str) -> Sequence[tuple[int, int, Sequence[bool]]]:
    ways = ways_of(known, target)
    return [(known[src], known[dst], (True, False)) for src, dst in ways]


def ways_of(instances: Container[str], path: str) -> list[tuple[str, str]]:
    """By the names of who sends and who receives: both ways of `a.0--b.0`, the one of `a.0->b.0`.
    RunError."""
    both = "--" in path
    first, _, second = path.partition("--" if both else "->")
    if first not in instances or second not in instances or first == second:
        raise RunError(
            "over hosts and in a cluster a path between two instances is one queue, and"
            f" {path!r} is none",
            "name two instances, such as --link client.0--server.0",
        )
    return [(first, second), (second, first)] if both else [(first, second)]


def _check(found: CapturedPaths, target: str) -> None:
    if not found.by_host:
        raise RunError(f"there is no path at {target} now", "try again when something is joined")
    count = max(map(len, found.by_host.values()))
    if count > MOST_PLACES:
        one = next(iter(found.by_host.values()))[0].name.replace("->", "--")
        raise RunError(
            f"{target!r} is {count} places of one host, and a capture has at most {MOST_PLACES}",
            f"name one path, such as --link {one}",
        )
