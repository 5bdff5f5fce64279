"""`tstorm paths PLAN|EXP.tdl [--at T]`: end-to-end properties between the instances joined at T."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from compiler.plan.format import PPB
from compiler.plan.properties import COMPOSED, Totals
from tstorm import output, units
from tstorm.options import option_types
from tstorm.options.shared import params, seed, source, table_or_json

if TYPE_CHECKING:
    from compiler.plan.paths.path import PathProperties
    from compiler.plan.reader import Plan
    from compiler.plan.sparse import Outline, SparseState
    from compiler.plan.types import Link, Node


SHOWN_LINKS = 10  # in notes
MOST_EQUAL = 64  # paths between two instances that are listed
FEW = 1000  # pairs that are composed one by one, without reading the rest of the plan


def _named(topology: Outline, name: str | None, option: str) -> list[int]:
    """The end points that `name` (an instance or a service, an interface, or nothing = all) stands
    for: those of an instance are all its interfaces."""
    for node in topology.owners:
        if topology.nodes[node].name == name:
            return [node]
    found = _instances(topology.members, name, option)
    return [*found, *(node for node, owner in topology.owners.items() if owner in found)]


def _instances(members: Mapping[str, range], name: str | None, option: str) -> Sequence[int]:
    if name is None:
        return range(sum(map(len, members.values())))
    if name in members:
        return members[name]
    service, _, number = name.rpartition(".")
    instances = members.get(service, range(0))
    if number.isdecimal() and number == str(int(number)) and int(number) < len(instances):
        return instances[int(number) : int(number) + 1]
    from tstorm.instance_names import stands_for, unknown

    labels = {node: f"{one}.{i}" for one, mine in members.items() for i, node in enumerate(mine)}
    several = [node for node, label in labels.items() if stands_for(name, label)]
    if several:
        return several
    known = [*members, *(f"{one}.{i}" for one, mine in members.items() for i in range(len(mine)))]
    raise unknown(name, known, option)


def _joined(states: Sequence[str], wanted: Iterable[int], name: str | None) -> list[int]:
    """Those of `wanted` that are joined. Says so when what was named is not."""
    found = [node for node in wanted if states[node] != "down"]
    if name is not None and not found:
        output.note(f"note: no instance of '{name}' is joined at that time")
    return found


def _paths(
    plan: Plan, state: SparseState, starts: Sequence[int], ends: Sequence[int]
) -> Iterator[PathProperties]:
    """All pairs of different instances, by start and end."""
    owners = state.topology.owners
    found = _any_paths(plan, state, starts, ends)
    if owners:
        found = (one for one in found if not _is_own(owners, one.src, one.dst))
    if state.topology.frames:
        found = _planned(state, found)
    return found


def _planned(state: SparseState, found: Iterable[PathProperties]) -> Iterator[PathProperties]:
    """Without the pairs between which routers decide; says how many these are."""
    from compiler.plan.frame_domains import FrameDomains

    topology, hidden = state.topology, 0
    ends = ((link.src, link.dst) for link in topology.links)
    domains = FrameDomains(topology.nodes, ends)
    for path in found:
        if domains.by_programs(path.src, path.dst):
            hidden += 1
        else:
            yield path
    if hidden:
        output.note(
            f"note: {hidden:,} pairs are not listed: programs of routers between them decide"
        )


def _is_own(owners: Mapping[int, int], src: int, dst: int) -> bool:
    """What an instance sends to itself does not leave it, whatever the interface."""
    return owners.get(src, src) == owners.get(dst, dst)


def _any_paths(
    plan: Plan, state: SparseState, starts: Sequence[int], ends: Sequence[int]
) -> Iterator[PathProperties]:
    if len(starts) * len(ends) <= FEW:
        from compiler.plan.paths.path import Paths

        paths = Paths(state)
        return (paths.path(a, b) for a in starts for b in ends if a != b)
    from compiler.plan.paths.many_pairs import between

    return between(plan.state_at(state.at_ns), starts, ends)


def _equal(
    state: SparseState, starts: Sequence[int], ends: Sequence[int]
) -> Iterator[tuple[Fraction, PathProperties]]:
    """The same where flows are shared out: each of the equal paths, with its share. Says so where
    they are too many."""
    from compiler.plan.paths.path import Paths

    paths, owners = Paths(state), state.topology.owners
    for src, dst in ((a, b) for a in starts for b in ends if not _is_own(owners, a, b)):
        count, found = paths.equal(src, dst, MOST_EQUAL)
        if count > len(found):
            names = (state.topology.nodes[node].name for node in (src, dst))
            what = f"{' to '.join(names)}: {count:,} equal paths, of which {MOST_EQUAL} are listed"
            output.note(f"note: {what}")
        yield from ((one.share, one.path) for one in found)


class _Names(dict[int, str]):
    """Index -> name of a node or a link, in the form asked for; made when it is first used."""

    def __init__(
        self, records: Sequence[Node] | Sequence[Link], form: Callable[[str], str] = str
    ) -> None:
        super().__init__()
        self._records = records
        self._form = form

    def __missing__(self, index: int) -> str:
        self[index] = found = self._form(self._records[index].name)
        return found


def _tell_more(plan: Plan, at_ns: int) -> None:
    """What a table does not have. The whole plan is read only where its text has a word of it: that
    takes three times as long as all the rest."""
    from compiler.plan.format import TIMELINE, TOPOLOGY
    from compiler.plan.parts.unemulated import lans_of_the_kernel

    topology = plan.raw(TOPOLOGY)
    if b'"traces"' in topology:
        _tell_traces(plan, at_ns)
    if b'"only"' in topology or b'"only"' in plan.raw(TIMELINE):
        _tell_classes(plan, at_ns)
    past = lans_of_the_kernel(plan.topology) if b'"machines"' in topology else ""
    if past:
        output.note(f"note: {past} is not emulated: no path leads over it")


def _tell_traces(plan: Plan, at_ns: int) -> None:
    """Of links that follow a trace a table has the mean."""
    from compiler.plan.parts.traces import of_plan
    from tstorm.text.pathtext import followed

    known = of_plan(plan)
    until = next((one.at_ns for one in plan.epochs if one.at_ns > at_ns), plan.end_ns)
    links = zip(plan.topology.links, plan.folded_at(at_ns).links, strict=True)
    traced = [(link.name, state) for link, state in links if state.trace]
    for name, state in traced[:SHOWN_LINKS]:
        one = known.between(state, at_ns, until)
        assert one is not None
        output.note(f"note: until {units.duration(until)} {followed(name, one)}")
    if len(traced) > SHOWN_LINKS:
        output.note(f"note: and {len(traced) - SHOWN_LINKS:,} more links follow traces")


def _tell_classes(plan: Plan, at_ns: int) -> None:
    """A table has what packets meet that are of no further class."""
    links = zip(plan.topology.links, plan.folded_at(at_ns).links, strict=True)
    found = [(link.name, state.only) for link, state in links if state.only]
    for name, some in found[:SHOWN_LINKS]:
        output.note(f"note: {name} has another class of packets: only {units.shown('only', some)}")
    if len(found) > SHOWN_LINKS:
        output.note(f"note: and {len(found) - SHOWN_LINKS:,} more links have one")


_KEYS = (*Totals._fields, "dst", "links", "reachable", "rtt_ns", "src")
_RECORD = "{{" + ",".join(f'"{key}":{{{_KEYS.index(key)}}}' for key in sorted(_KEYS)) + "}}"


def _json_of(
    share: Fraction, path: PathProperties, nodes: Mapping[int, str], links: Mapping[int, str]
) -> str:
    """One of several equal paths."""
    return f'{_json(path, nodes, links)[:-1]},"share_ppb":{round(share * PPB)}}}'


def _json(path: PathProperties, nodes: Mapping[int, str], links: Mapping[int, str]) -> str:
    """One record, written directly: for millions of pairs a dictionary each takes too long."""
    totals = path.totals
    return _RECORD.format(
        *(["null"] * len(COMPOSED) if totals is None else totals),
        nodes[path.dst],
        f"[{','.join([links[link] for link in path.links])}]",
        "false" if totals is None else "true",
        "null" if path.rtt_ns is None else path.rtt_ns,
        nodes[path.src],
    )


def _row(
    path: PathProperties, nodes: Mapping[int, str], links: Mapping[int, str]
) -> tuple[str, ...]:
    figures = ["unreachable", *"-" * (len(COMPOSED) - 1)]
    if path.totals is not None:
        figures = [units.shown(*pair) for pair in zip(Totals._fields, path.totals, strict=True)]
    return (
        nodes[path.src],
        nodes[path.dst],
        *figures,
        "-" if path.rtt_ns is None else units.duration(path.rtt_ns),
        " ".join([links[link] for link in path.links]) or "-",
    )


def _with_share(share: Fraction, row: tuple[str, ...]) -> tuple[str, ...]:
    src, dst, *rest = row
    return (src, dst, str(share), *rest)


@click.command()
@source
@click.option("--at", "at_ns", metavar="T", type=option_types.DURATION, help="When (default 0s).")
@click.option("--from", "src", metavar="X", help="Only from this instance or service.")
@click.option("--to", "dst", metavar="Y", help="Only to this instance or service.")
@seed
@params
@table_or_json
def command(
    source: str,
    at_ns: int | None,
    src: str | None,
    dst: str | None,
    seed: int | None,
    params: dict[str, str],
    form: str,
) -> None:
    """List the properties of the paths between all instances joined at T.

    T is a duration of the language (90s, 1h30m), or 0s without --at; events at T are included. A
    row is one direction; RTT adds the way back. Rates count bits at layer 3.

    Of an instance with `interfaces` there are rows for each of them. What packets meet behind a
    router its programs decide: of pairs with one between them there are none.

    With `routing ecmp` there is a row for each of the equal paths, with its share of the flows;
    tstorm explain --flow says which of them a flow takes.

    JSON is an array of {"src", "dst", "reachable", "rtt_ns", "links"} and the properties, each by
    its field ("delay_ns"). A rate of 0 is unlimited; an unreachable pair has null for numbers.

    \b
    Examples:
      tstorm paths quickstart.tdl
      tstorm paths quickstart.plan --at 1m --from client --to server.0 --format json
    """
    from compiler.plan.collector import collector_paused
    from tstorm.loading import load_plan, plan_errors_shown

    with plan_errors_shown(source):
        with collector_paused():
            plan = load_plan(source, seed, params)
            state = plan.sparse_at(at_ns or 0)
        topology = state.topology
        everyone = _instances(topology.members, None, "")
        if at_ns is None:
            joined = f"{len(_joined(state.nodes, everyone, None))} of {len(everyone)}"
            output.note(f"note: at 0s, when {joined} instances are joined; --at T is another time")
        sources = _named(topology, src, "--from")
        targets = _named(topology, dst, "--to")
        if (at_ns or 0) > plan.end_ns:
            output.note(f"note: the experiment ends at {units.duration(plan.end_ns)}")
        starts = _joined(state.nodes, sources, src)
        ends = _joined(state.nodes, targets, dst)
        quoted = output.to_json if form == "json" else str
        nodes, links = _Names(topology.nodes, quoted), _Names(topology.links, quoted)
        equal = _equal(state, starts, ends) if plan.routing == "ecmp" else None
        found = _paths(plan, state, starts, ends) if equal is None else iter(())
        _tell_more(plan, at_ns or 0)
        if form == "json" and equal is not None:
            output.emit_json_texts(_json_of(*one, nodes, links) for one in equal)
        elif form == "json":
            output.emit_json_texts(_json(path, nodes, links) for path in found)
        else:
            rows = (_row(path, nodes, links) for path in found)
            if equal is not None:
                rows = (_with_share(share, _row(path, nodes, links)) for share, path in equal)
            share = () if equal is None else ("SHARE",)
            output.emit_table(
                ("FROM", "TO", *share, *(row.word.upper() for row in COMPOSED), "RTT", "LINKS"),
                rows,
                right=tuple(range(2, 3 + len(share) + len(COMPOSED))),
            )
