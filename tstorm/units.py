"""Integers with a unit, for people: `90061500000000` ns is `1d1h1m1.5s`.

They print in the language's own form, so that what a table shows can be given back to `--at`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from compiler.plan import packet_class
from compiler.plan.properties import BY_FIELD, BY_WORD, flow_rates
from tdl import aqm
from tdl.quantities import drift, packets, share, signed_time, time
from tdl.quantities import rate as _rate
from tdl.quantities import size as _size


def duration(ns: int) -> str:
    """Exactly: `0s`, `9.1ms`, `1h30m0.5s`."""
    return time(ns)


@lru_cache(4096)
def rate(bps: int) -> str:
    """Exactly: `800Mb`, `1.5Gb`, `999b`; 0 is `unlimited`."""
    return _rate(bps) if bps else "unlimited"


def probability(ppb: int) -> str:
    """Parts per billion as an exact percentage: `1.5%`."""
    return share(ppb)


def size(count: int) -> str:
    """Exactly: `625KB`, `64KiB`, `0B`."""
    return _size(count)


_BY_UNIT: Mapping[str, Callable[[int], str]] = {
    "bps": rate,
    "ns": duration,
    "ppb": probability,
    "bytes": size,
    "milli": packets,
    "packets": "{}pkt".format,
}


_OF_CLOCKS: Mapping[str, Callable[[int], str]] = {"offset_ns": signed_time, "drift_ppb": drift}


def shown(field: str, value: int | str) -> str:
    """Of a field with its unit at the end, `delay_ns`; without a unit that is written here, as it
    is."""
    if field in BY_FIELD and BY_FIELD[field].table:
        rows = flow_rates(str(value))
        return ";".join(f"{n}:{rate(bps)}:{size(queue)}" for n, bps, queue in rows) or "none"
    if field == "aqm":
        return aqm.written(str(value))
    if field == "rtt_ns" and not value:
        return "none"  # the queue of a bottleneck is as it is stated
    if field == "only":
        return _some_packets(str(value))
    form = _OF_CLOCKS.get(field) or _BY_UNIT.get(field.rpartition("_")[2])
    return str(value) if form is None or isinstance(value, str) else form(value)


def _some_packets(text: str) -> str:
    """`tcp:5432;from:a.0 delay=50ms loss=10%`."""
    found = packet_class.parse(text)
    values = [f"{name}={shown(BY_WORD[name].field, one)}" for name, one in found.values.items()]
    return " ".join([found.match, *values]) or "none"


def word(field: str) -> str:
    """What the language or a datapath calls it: `delay` of `delay_ns`, `by` of `reorder_ns`."""
    row = BY_FIELD.get(field)
    if row is not None and row.rare:
        return row.name
    name, _, unit = field.rpartition("_")
    return name if unit in _BY_UNIT else field
