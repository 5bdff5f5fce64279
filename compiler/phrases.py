"""How messages write times, states and links. Text only, nothing is decided here."""

from __future__ import annotations

from tdl import ast

_UNITS = (
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
)


def moment(at_ns: int) -> str:
    """A time as a TDL file writes it: `4h20m`, `1m0.5s`, `0s`. Exact."""
    if at_ns == 0:
        return "0s"
    if at_ns < 1_000_000_000:
        return _below_a_second(at_ns)
    parts = []
    rest = at_ns
    for unit, size in _UNITS[:3]:
        whole, rest = divmod(rest, size)
        if whole:
            parts.append(f"{whole}{unit}")
    if rest:
        whole, fraction = divmod(rest, 1_000_000_000)
        digits = f".{fraction:09d}".rstrip("0") if fraction else ""
        parts.append(f"{whole}{digits}s")
    return "".join(parts)


def _below_a_second(at_ns: int) -> str:
    for unit, size in _UNITS[4:]:
        if at_ns >= size:
            whole, fraction = divmod(at_ns, size)
            width = len(str(size)) - 1
            digits = f".{fraction:0{width}d}".rstrip("0") if fraction else ""
            return f"{whole}{digits}{unit}"
    raise AssertionError(at_ns)


def number(count: int, word: str) -> str:
    """`1 link`, `2 links`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def end_name(name: ast.Name, index: int | None) -> str:
    """`server`, or `server.3`."""
    return name.text if index is None else f"{name.text}.{index}"


def declared_as(service: str) -> str:
    """What its statement calls a service: a part of a machine has its short name in the block."""
    return service.rpartition(".")[2]


def link_name(link: ast.LinkStatement) -> str:
    """A declared link as events can name it: `server--s1`, `server.3--s1`, `fast:server--s1`."""
    called = "" if link.name is None else f"{link.name.text}:"
    return f"{called}{end_name(link.a, link.a_index)}--{end_name(link.b, link.b_index)}"
