"""`tstorm explain --from --to`: a story (compiler/analysis/path_explanation.py) as text and as
JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from compiler.analysis.path_explanation import MOST_EQUAL
from compiler.plan.properties import (
    COMPOSED,
    PROPERTIES,
    Property,
    Totals,
    shown,
)
from tstorm import output, units
from tstorm.text import measuredtext

if TYPE_CHECKING:
    from compiler.analysis.obstacles import Obstacle
    from compiler.analysis.path_explanation import (
        Direction,
        Hop,
        PathDifference,
        SharedQueue,
        Story,
    )
    from compiler.plan.parts.traces import Followed
    from compiler.plan.types import Event
    from tstorm.notes import Statements

# A queue in packets stands where queues do, another class of packets below the table.
_ELSEWHERE = ("queue_packets", "only")
_SHOWN = [row for row in PROPERTIES if not row.words and row.field not in _ELSEWHERE]
_TOTALS = ("TOTAL RATE", *(row.word.upper() for row in COMPOSED[1:]), "")


# --- text ----------------------------------------------------------------------------------------


def show(story: Story, statements: Statements, whose: str = "") -> None:
    """Prints it. `whose`: the packets whose way it is, where others may take another."""
    write = output.line
    there, back = story.there, story.back
    rtt = "-" if story.rtt_ns is None else units.duration(story.rtt_ns)
    write(f"{there.src} to {there.dst} at {units.duration(story.at_ns)}: round trip {rtt}")
    for direction in (there, back):
        write("")
        _direction(direction, statements, whose)
    measuredtext.show(story)
    write("")
    for text in _changes(story, statements):
        write(text)


def _direction(direction: Direction, statements: Statements, whose: str) -> None:
    names = f"{direction.src} -> {direction.dst}"
    for lan in direction.lans:
        output.line(f"{names}: also over {lan}, a lan of the kernel's, which is not emulated")
    if direction.reachable:
        rate, *others = zip(COMPOSED, _shown(direction.hops[-1].total), strict=True)
        output.line(f"{names}: " + ", ".join([rate[1], *(f"{row.word} {v}" for row, v in others)]))
        columns = [row for row in _SHOWN if not row.rare or _any(direction.hops, row)]
        head = ("HOP", "LINK", *(row.name.upper() for row in columns), *_TOTALS)
        rows = (_hop(number, hop, columns) for number, hop in enumerate(direction.hops, 1))
        output.emit_table(head, rows, right=(0, *range(2, len(head) - 1)))
        for hop in direction.hops:
            if hop.follows is not None:
                output.line(f"  {followed(hop.link, hop.follows)}")
            if hop.delays:
                output.line(f"  {hop.link} draws its jitter from {hop.delays}")
            if hop.state.only:
                some = units.shown("only", hop.state.only)
                output.line(f"  {hop.link} has another class of packets: only {some}")
        if direction.equal > 1:
            more = " or more" if direction.equal == MOST_EQUAL else ""
            output.line(f"one of {direction.equal:,}{more} equal paths: that of {whose}")
        return
    if direction.by_programs:
        output.line(f"{names}: programs of the routers between them decide")
        return
    output.line(f"{names}: unreachable")
    if not direction.obstacles:
        output.line("  no links lead from one to the other, up or not")
    for obstacle in direction.obstacles:
        for text in _obstacle(obstacle, statements):
            output.line(text)


def followed(link: str, found: Followed) -> str:
    """`a->s follows lte.up: rate 4.8Mb on average, 2.1Mb to 7Mb in single seconds`."""
    since = f" from {units.duration(found.begin_ns)} on" if found.begin_ns else ""
    texts = []
    for field, (mean, least, most) in found.ranges.items():
        show = _rate if field == "rate_bps" else partial(units.shown, field)
        text = f"{units.word(field)} {show(mean)} on average, {show(least)} to {show(most)}"
        texts.append(text + (" in single seconds" if found.seconds else ""))
    return f"{link} follows {found.name}{since}: {'; '.join(texts)}"


def _rate(bps: int) -> str:
    return units.rate(bps) if bps else "0b"


def followed_record(found: Followed) -> dict[str, Any]:
    ranges = {field: one._asdict() for field, one in found.ranges.items()}
    return {"name": found.name, "begin_ns": found.begin_ns, **ranges}


def _any(hops: Sequence[Hop], row: Property) -> bool:
    return any(getattr(hop.state, row.field) for hop in hops)


def _hop(number: int, hop: Hop, rows: Sequence[Property]) -> tuple[str, ...]:
    own = {row.field: _cell(row, getattr(hop.state, row.field)) for row in rows}
    if hop.state.queue_packets:
        own["queue_bytes"] = units.shown("queue_packets", hop.state.queue_packets)
    if not hop.state.rate_bps:
        own["queue_bytes"] = "-"
    if hop.shares is not None:
        own["queue_bytes"] = units.size(hop.shares.rows[0][1].queue_bytes)
    return (
        str(number),
        hop.link,
        *own.values(),
        *_shown(hop.total),
        "bottleneck" if hop.bottleneck else "",
    )


def _cell(row: Property, value: int) -> str:
    return units.shown(row.field, value) if value or not row.rare else "-"


def _shown(total: Totals[int]) -> list[str]:
    return [units.shown(field, value) for field, value in total._asdict().items()]


def _obstacle(obstacle: Obstacle, statements: Statements) -> Iterator[str]:
    state = "disconnected" if obstacle.state == "cut" else "down"
    if obstacle.since is None and obstacle.until is None:
        yield f"  {obstacle.kind} {obstacle.element} never joins"
        return
    if obstacle.since is None:
        yield f"  {obstacle.kind} {obstacle.element} has not joined yet"
    else:
        since = units.duration(obstacle.since.at_ns)
        yield f"  {obstacle.kind} {obstacle.element} is {state} since {since}"
        yield from statements.tell((obstacle.since,), "    ")
    if obstacle.until is None:
        yield "    and does not come back"
    else:
        yield f"    until {units.duration(obstacle.until.at_ns)}"
        yield from statements.tell((obstacle.until,), "    ")


def _changes(story: Story, statements: Statements) -> Iterator[str]:
    if story.there.by_programs or story.back.by_programs:
        yield "changes: programs decide; tstorm events has what happens to links and routers"
        return
    of = f"of {story.total:,}"
    if story.last is None:
        yield "changed last: never, this is how it is from 0s on"
    else:
        yield f"changed last at {units.duration(story.last.at_ns)}, change {story.number:,} {of}"
        yield from statements.tell(story.last.events)
    if story.next is None:
        yield "changes next: never again"
    else:
        at = units.duration(story.next.at_ns)
        yield f"changes next at {at}, change {story.number + 1:,} {of}"
        yield from statements.tell(story.next.events)
    if any(hop.shares for way in (story.there, story.back) for hop in way.hops):
        yield "what other paths of the bottleneck change is not among these, and may change it too"


# --- JSON ----------------------------------------------------------------------------------------


def record(story: Story, statements: Statements, *, shares: bool) -> dict[str, Any]:
    """The whole story as one object. `shares`: with how many equal paths there are."""
    return {
        "at_ns": story.at_ns,
        "rtt_ns": story.rtt_ns,
        "there": _direction_record(story.there, statements, shares=shares),
        "back": _direction_record(story.back, statements, shares=shares),
        "measured": [_measured_record(path) for path in measuredtext.paths(story)],
        "last_change": _change_record(story.last, statements),
        "next_change": _change_record(story.next, statements),
        "changes": {"until_now": story.number, "all": story.total},
    }


def _direction_record(
    direction: Direction, statements: Statements, *, shares: bool
) -> dict[str, Any]:
    total: dict[str, int | None] = dict.fromkeys(Totals._fields)
    if direction.reachable:
        total = direction.hops[-1].total._asdict()
    return {
        "src": direction.src,
        "dst": direction.dst,
        "reachable": direction.reachable,
        **total,
        "hops": [_hop_record(hop) for hop in direction.hops],
        "obstacles": [_obstacle_record(one, statements) for one in direction.obstacles],
        **({"lans": list(direction.lans)} if direction.lans else {}),
        **({"equal_paths": direction.equal} if shares else {}),
    }


def _measured_record(path: measuredtext.MeasuredPath) -> dict[str, Any]:
    return {**path._asdict(), "rows": [row._asdict() for row in path.rows]}


def _hop_record(hop: Hop) -> dict[str, Any]:
    return {
        "link": hop.link,
        **shown(hop.state),
        "bottleneck": hop.bottleneck,
        "total": hop.total._asdict(),
        **({"follows": followed_record(hop.follows)} if hop.follows else {}),
        **({"delays": hop.delays} if hop.delays else {}),
        **({"shares": _shared_record(hop.shares)} if hop.shares else {}),
    }


def _shared_record(queue: SharedQueue) -> dict[str, Any]:
    rows = [
        {"flows_each": each, "rate_bps": row.rate_bps, "queue_bytes": row.queue_bytes}
        for each, row in queue.rows
    ]
    return {"name": queue.name, "links": queue.links, "rows": rows}


def _obstacle_record(obstacle: Obstacle, statements: Statements) -> dict[str, Any]:
    def of(event: Event | None) -> dict[str, Any] | None:
        return None if event is None else statements.record(event)

    return {
        "element": obstacle.element,
        "kind": obstacle.kind,
        "state": obstacle.state,
        "since": of(obstacle.since),
        "until": of(obstacle.until),
    }


def _change_record(change: PathDifference | None, statements: Statements) -> dict[str, Any] | None:
    if change is None:
        return None
    return {
        "at_ns": change.at_ns,
        "events": [statements.record(event) for event in change.events],
    }
