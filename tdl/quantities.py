"""Exact integers to the canonical text of the language. The inverse of tdl/values.py.

These texts are part of the identity of a statement, and so of what its random draws are: changing
one of them changes every experiment that uses it (docs/draws.md).
"""

from __future__ import annotations

_MINUTE = 60_000_000_000
_TIMES = (("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", _MINUTE))
_SECOND = 1_000_000_000
_FRACTIONS = (("s", _SECOND), ("ms", 1_000_000), ("us", 1_000), ("ns", 1))
_RATES = (("Tb", 10**12), ("Gb", 10**9), ("Mb", 10**6), ("Kb", 10**3), ("b", 1))
_SIZES = (
    ("GiB", 2**30),
    ("GB", 10**9),
    ("MiB", 2**20),
    ("MB", 10**6),
    ("KiB", 2**10),
    ("KB", 10**3),
    ("B", 1),
)


def decimal(value: int, scale: int) -> str:
    """value / scale, exactly; `scale` is a power of ten."""
    whole, rest = divmod(value, scale)
    if not rest:
        return str(whole)
    digits = len(str(scale)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0")


def time(ns: int) -> str:
    """`4h20m`, `1m30.5s`, `930ms`, `0s`."""
    if 0 < ns < _MINUTE:
        return _scaled(ns, _FRACTIONS)
    parts = ""
    for unit, size in _TIMES:
        count, ns = divmod(ns, size)
        if count:
            parts += f"{count}{unit}"
    if not parts:
        return "0s"
    return parts + (f"{decimal(ns, _SECOND)}s" if ns else "")


def latency(ns: int) -> str:
    """Milliseconds, `9.1ms`."""
    return decimal(ns, 1_000_000) + "ms"


def rate(bps: int) -> str:
    """`1.5Gb`."""
    return _scaled(bps, _RATES) if bps else "0"


def distance(mm: int) -> str:
    """`12.5km`, `300m`."""
    return decimal(mm, 10**6) + "km" if mm >= 10**6 else decimal(mm, 10**3) + "m"


def share(ppb: int) -> str:
    """`12.5%`."""
    return decimal(ppb, 10_000_000) + "%"


def size(count: int) -> str:
    """The largest unit that divides it: `64KiB`, `30KB`."""
    for unit, scale in _SIZES:
        if count >= scale and count % scale == 0:
            return f"{count // scale}{unit}"
    return "0B"


def queue(value: int, unit: str) -> str:
    """In the unit that it is in: `64KiB`, `100pkt`, `50ms`."""
    return {"bytes": size, "packets": "{}pkt".format, "ns": time}[unit](value)


def signed_time(ns: int) -> str:
    """`+200ms`, `-3s`, `0s`."""
    return ("+" if ns > 0 else "-" if ns < 0 else "") + time(abs(ns))


def drift(ppb: int) -> str:
    """`50ppm`, `-0.5ppm`, `1%`."""
    sign, size = ("-" if ppb < 0 else ""), abs(ppb)
    return sign + (share(size) if size >= 10_000_000 else decimal(size, 1000) + "ppm")


def disk(fault: str, amount: int) -> str:
    """`slow:20ms`, `error:1%`, `full`, `ok`."""
    form = {"slow": time, "error": share}.get(fault)
    return fault if form is None else f"{fault}:{form(amount)}"


def packets(millis: int) -> str:
    """`2.5`."""
    return decimal(millis, 1000)


def cpu(millis: int) -> str:
    """`0.5`."""
    return decimal(millis, 1000)


def _scaled(value: int, units: tuple[tuple[str, int], ...]) -> str:
    for unit, scale in units:
        if value >= scale:
            return decimal(value, scale) + unit
    raise ValueError(value)
