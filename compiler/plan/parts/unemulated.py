"""What of an experiment no link carries, in words: lans of the kernel's (docs/nodes.md)."""

from __future__ import annotations

from compiler.plan.types import Topology, kernel_lans

_SHOWN = 3  # lans that a sentence names


def lans_of_the_kernel(topology: Topology) -> str:
    """Which there are, as the subject of a sentence in the singular; '' if there are none."""
    found = [one.name for one in kernel_lans(topology.machines)]
    if not found:
        return ""
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    kind = "a lan of the kernel's" if len(found) == 1 else "lans of the kernel's"
    return f"what passes {', '.join(found[:_SHOWN])}{more} ({kind})"
