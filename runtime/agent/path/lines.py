"""Lines of the path protocol (docs/tcal.md) for the figures of a path.

Node numbers are the plan's indices, so nothing is translated. The seed of a path is drawn from the
plan's seed and the names of both ends, and so stays with the pair whatever route it takes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from compiler.plan.properties import LinkState
from runtime.datapath import dialect

SEED_MASK = (1 << 63) - 1  # as the seeds of links


def path_seed(seed: int, src: str, dst: str) -> int:
    """63 bits: the first 8 bytes, big-endian, of the SHA-256 of this text, without the top bit."""
    text = f"thunderstorm path 1\n{seed}\n{src}\n{dst}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") & SEED_MASK


def whole_line(src: int, dst: int, figures: LinkState, seed: int) -> str:
    """Everything about a path: good for its first declaration and for any later one."""
    return f"path {src} {dst} {dialect.properties(figures)} seed={seed} up=1"


def changed_line(src: int, dst: int, before: LinkState, after: LinkState) -> str:
    """What differs between two figures of a path that are not the same."""
    return f"path {src} {dst} {dialect.differences(before, after)}"


def rate_line(src: int, dst: int, rate_bps: int, queue_bytes: int) -> str:
    return f"path {src} {dst} rate={rate_bps} queue={queue_bytes}"


def delay_line(src: int, dst: int, delay_ns: int) -> str:
    return f"path {src} {dst} delay={delay_ns}"


def down_line(src: int, dst: int) -> str:
    """For a path that was declared before."""
    return f"path {src} {dst} up=0"


def closed_line(src: int, dst: int) -> str:
    """For a path of which nobody knows whether it was declared."""
    return f"path {src} {dst} {dialect.NOTHING} up=0"


def attach_line(port: int, netns: str, interface: str, networks: Sequence[str]) -> str:
    return f"attach {port} netns={netns} if={interface} prefix={','.join(networks)}"
