"""One frame of `tstorm top`: what a run does now, as text of so many lines.

Input: two states of a run as `tstorm inspect --format json` gives them, one after the other; rates
are the growth of counters between the moments at which the run has asked for them. Without the
first state there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runtime import say
from tstorm import units

State = Mapping[str, Any]
Row = Mapping[str, Any]

_SECOND = 10**9
_NONE = "-"
_EVENTS, _PROGRAMS = 3, 3  # lines of each at most
_BARE = 2  # lines of a table without rows: its head and an empty line before it
_LINKS = (
    ("IN/s", "bytes"),
    ("OUT/s", "out_bytes"),
    ("LOST/s", "drop_loss"),
    ("FULL/s", "drop_queue"),
    ("CUT/s", "drop_down"),
)
_PAIRS = (
    ("SENT/s", "offered_bytes"),
    ("GOT/s", "delivered_bytes"),
    ("LOST/s", "drop_loss"),
    ("FULL/s", "drop_queue"),
    ("CUT/s", "drop_down"),
)
Table = tuple[Sequence[str], Sequence[Sequence[str]]]  # head and rows; the first column is a name


def frame(before: State | None, now: State, width: int, height: int) -> list[str]:
    """At most `height` lines of at most `width` characters. Links and pairs with most traffic come
    first; what does not fit is counted."""
    lines = [*_head(now), *_programs(now)]
    free = height - len(lines)
    names = max(10, width - 58)
    links = _table("LINK", _LINKS, before, now, "links", names)
    pairs = _table("PAIR", _PAIRS, before, now, "pairs", names)
    for_links = max(free // 2, free - len(pairs[1]) - _BARE - 1)
    shown = _lines(links, for_links)
    shown += _lines(pairs, free - len(shown))
    return [line[:width] for line in (*lines, *shown)][:height]


def _head(now: State) -> Iterator[str]:
    at = units.duration(now["at_ns"] - now["at_ns"] % (_SECOND // 10))
    held_ns = now.get("held_ns")
    until = f"of {units.duration(now['end_ns'])}" if held_ns is None else "held"
    up = sum(one["state"] == "up" for one in now["instances"])
    yield (
        f"{now['run_id']}  {at} {until}"
        f"  {now['applied']}/{now['total']} events  {up}/{len(now['instances'])} instances up"
    )
    for event in now["next_events"][:_EVENTS]:
        yield f"next: {units.duration(event['at_ns'])} {event['kind']} {event['target']}".rstrip()


def _programs(now: State) -> Iterator[str]:
    """Those that do not run: there is nothing to say of the others."""
    found = [f"{one['name']} {why}" for one in now["instances"] if (why := _why_not(one))]
    yield from found[:_PROGRAMS]
    if found[_PROGRAMS:]:
        yield f"… and {len(found) - _PROGRAMS} more that do not run"


def _why_not(instance: Row) -> str:
    if instance.get("start_error"):
        return f"cannot start: {instance['start_error']}"
    if instance.get("exit_signal"):
        return f"was ended by signal {instance['exit_signal']}"
    if instance.get("exit_status"):
        return f"ended with {instance['exit_status']}"
    if instance.get("paused"):
        return "is paused"
    return "" if instance["state"] in ("up", "done") else f"is {instance['state']}"


def _table(
    title: str,
    columns: Sequence[tuple[str, str]],
    before: State | None,
    now: State,
    which: str,
    names: int,
) -> Table:
    seconds = (now["counted_ns"] - before["counted_ns"]) / _SECOND if before else 0.0
    old = {_name(row): row for row in before[which]} if before else {}
    queues = which == "links"
    rows: list[tuple[float, list[str]]] = []
    for row in now[which]:
        name = _name(row)
        grown = [
            (row[field] - old[name][field]) / seconds if seconds > 0 and name in old else None
            for _, field in columns
        ]
        cells = [_rate(value) for value in grown[:2]] + [_count(value) for value in grown[2:]]
        waiting = [f"{row['backlog_bytes']:,}"] if queues else []
        rows.append((-(grown[0] or 0.0), [_cut(name, names), *cells, *waiting]))
    rows.sort()
    head = [title, *(name for name, _ in columns), *(["WAITING"] if queues else [])]
    return head, [cells for _, cells in rows]


def _name(row: Row) -> str:
    return str(row["link"]) if "link" in row else f"{row['src']} > {row['dst']}"


def _rate(bytes_per_second: float | None) -> str:
    """In bits, to three digits."""
    if bytes_per_second is None:
        return _NONE
    bits = 8 * bytes_per_second
    for word, size in (("Gb", 1e9), ("Mb", 1e6), ("Kb", 1e3)):
        if bits >= size:
            return f"{say.digits(bits / size)} {word}"
    return f"{bits:.0f} b"


def _count(value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:.1f}" if 0 < value < 10 else f"{value:,.0f}"


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _lines(table: Table, height: int) -> list[str]:
    """An empty line, the head and as many rows as there is room for; nothing without rows."""
    head, rows = table
    if not rows or height < _BARE + 1:
        return []
    fit = height - _BARE
    more = len(rows) - fit
    shown = rows if more <= 0 else rows[: fit - 1]
    widths = [max(map(len, column)) for column in zip(head, *shown, strict=True)]
    text = [_aligned(cells, widths) for cells in (head, *shown)]
    return ["", *text, *([f"… and {more + 1} more"] if more > 0 else [])]


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = cells
    return "  ".join([f"{first:<{widths[0]}}", *map("{:>{}}".format, rest, widths[1:])])
