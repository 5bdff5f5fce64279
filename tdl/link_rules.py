"""What the properties of one direction of a link may be together.

Input: their values, by field of a link's state (docs/plan.md); what is not there is 0. Output: the
first rule that does not hold. The same rules hold for what a `link` statement declares and for what
`set` and `ramp` make of it. Source: docs/tdl.md, "Losses in bursts" and "Out of order".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tdl import quantities
from tdl.values import PPB

# Every host of IPv4 takes 576 bytes (RFC 791); no packet has more than 65,535.
LEAST_MTU, MOST_MTU = 576, 65_535


class BrokenRule(NamedTuple):
    """`word` is the property to blame; `why` continues a sentence that begins with it."""

    word: str
    why: str
    hint: str


def broken(values: Mapping[str, int]) -> BrokenRule | None:
    """Of values that contradict each other."""
    return _of_bursts(values) or _of_order(values) or _of_size(values)


def idle(values: Mapping[str, int]) -> BrokenRule | None:
    """Of values that mean nothing without another one."""
    for word, field in (("burst-pass", "burst_pass_ppb"), ("gap-loss", "gap_loss_ppb")):
        if values.get(field) and not values.get("burst_milli"):
            hint = "add burst=PACKETS, the mean length of a burst"
            return BrokenRule(word, "is about bursts of losses, and there are none", hint)
    if values.get("reorder_ns") and not values.get("reorder_ppb"):
        hint = "add reorder=SHARE"
        return BrokenRule("by", "is about packets that keep no order, and all keep it", hint)
    return None


def _of_bursts(values: Mapping[str, int]) -> BrokenRule | None:
    burst, loss, gap = (values.get(k, 0) for k in ("burst_milli", "loss_ppb", "gap_loss_ppb"))
    if not burst:
        return None
    dense = PPB - values.get("burst_pass_ppb", 0)
    if burst < 1000:
        return BrokenRule("burst", "would be shorter than a packet", "it is 0 or at least 1")
    if gap > loss:
        hint = "loss= is the mean of bursts and gaps"
        return BrokenRule("gap-loss", f"is more than the loss of {quantities.share(loss)}", hint)
    if loss > dense:
        why = f"is more than the {quantities.share(dense)} that are lost within bursts"
        return BrokenRule("loss", why, "lower loss= or burst-pass=")
    if loss < dense and 1000 * (loss - gap) > burst * (dense - loss):
        least = -(-1000 * (loss - gap) // (dense - loss))
        why = "is too short for so much loss: gaps would be shorter than a packet"
        return BrokenRule("burst", why, f"at least burst={quantities.packets(least)}")
    return None


def _of_order(values: Mapping[str, int]) -> BrokenRule | None:
    if not values.get("reorder_ppb") or values.get("reorder_ns") or values.get("jitter_ns"):
        return None
    why = "draws delays of their own for some packets, and without by= and jitter= there are none"
    return BrokenRule("reorder", why, "add by=TIME or jitter=TIME")


def _of_size(values: Mapping[str, int]) -> BrokenRule | None:
    mtu = values.get("mtu_bytes", 0)
    if mtu == 0 or LEAST_MTU <= mtu <= MOST_MTU:
        return None
    hint = f"from {LEAST_MTU} to {MOST_MTU:,} bytes; 0 takes packets of any size"
    return BrokenRule("mtu", f"of {mtu:,} bytes is no size that a link has", hint)
