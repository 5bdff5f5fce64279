"""What both datapaths are told in the same words (docs/pktd.md, docs/tcal.md): the properties of a
link or path, nodes, and which port each is at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compiler.plan.properties import NUMBERS, PROPERTIES, LinkState

NOTHING = " ".join(f"{row.word}=0" for row in NUMBERS if not row.rare)


def properties(state: LinkState, *, whole: bool = False) -> str:
    """All but `up`. What is rare only where it is not 0, which it is not at first, or all of it if
    it may have been something else (`whole`)."""
    both = zip(PROPERTIES, state[1:], strict=True)
    return " ".join(
        [
            f"{row.word}={value or 0}"
            for row, value in both
            if row.told and (value or whole or not row.rare)
        ]
    )


def differences(before: LinkState, after: LinkState) -> str:
    """Those that differ."""
    both = zip(PROPERTIES, before[1:], after[1:], strict=True)
    return " ".join([f"{row.word}={new or 0}" for row, old, new in both if new != old and row.told])


def node_line(
    index: int, ipv4: str, ipv6: str, *, hop: bool = False, behind: str = "", mac: str = ""
) -> str:
    """What is '' is not there. `behind`: a network that the node leads to; `mac`: of its device,
    where devices have several."""
    line = [f"node {index}"]
    if ipv4:
        line.append(f"ip={ipv4}")
    if ipv6:
        line.append(f"ip6={ipv6}")
    if hop:
        line.append("hop=1")
    if behind:
        line.append(f"behind={behind}")
    if mac:
        line.append(f"mac={mac}")
    return " ".join(line)


def frame_node_line(index: int, kind: str) -> str:
    """A node at which no address is looked up: an `end`, a `lan` or an `air`."""
    return f"node {index} frames={kind}"


def attach_lines(bound: Mapping[int, int], gone: Iterable[int] = ()) -> list[str]:
    """`bound` maps a node to its port; nodes in `gone` are attached to nothing."""
    lines = [f"unbind {node}" for node in sorted(gone)]
    lines.extend(f"bind {node} {port}" for node, port in sorted(bound.items()))
    return lines


def capture_line(name: str, places: Iterable[tuple[str, bool, str]], *, probes: bool) -> str:
    """Has packets written into a pipe. `places`: a link's number or `SRC>DST` of a path, whether
    before its queue, and the interface."""
    words = (f"{'offered:' * offered}{what}={interface}" for what, offered, interface in places)
    return f"capture {name} pipe=1 probes={probes:d} {' '.join(words)}"
