"""What a capture is of in a run over hosts, where no datapath has links: a path from instance to
instance is one queue, at the host of the instance that sends.

At an instance it is all paths from it, before their queues, at its host; and at all hosts all paths
to it, behind their ends. At a path, `a.0--b.0` or `a.0->b.0`, it is both places of it. Paths are
those of the network at the moment of asking; of others a datapath may not know yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compiler.plan.paths.path import Paths
from compiler.plan.state import NetworkState
from runtime.backend.capture_pipe import MOST_PLACES, OFFERED
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
    return [
        *((own, other, (True,)) for other in others),
        *((other, own, (False,)) for other in others),
    ]


def _at_path(known: Mapping[str, int], target: str) -> Sequence[tuple[int, int, Sequence[bool]]]:
    both = "--" in target
    first, _, second = target.partition("--" if both else "->")
    if first not in known or second not in known or first == second:
        raise RunError(
            f"over hosts a path between two instances is one queue, and {target!r} is none",
            "name two instances, such as --link client.0--server.0",
        )
    ends = known[first], known[second]
    return [(*way, (True, False)) for way in ((ends, ends[::-1]) if both else (ends,))]


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
