"""What one machine is asked to carry, against what it can (`--budget`).

TS0916: a link whose rate is above the budget at some time. TS0917: what all instances together may
send at some instant. That is a limit from above: the rates of the links out of all instances that
are up, as if everybody sent at full rate at once. Links without a rate say nothing about how much
is meant to cross them; they are counted apart.

Input: the topology and its events, in order. One pass, linear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from compiler.declare.model import Model
from compiler.expand.timeline import Timeline
from compiler.feasibility.connected import Connectivity
from compiler.feasibility.statement_places import StatementPlaces
from compiler.phrases import link_name, moment, number
from compiler.plan.types import Event, Topology
from tdl.diagnostics import Sink
from tdl.quantities import rate as rate_text


def warn(
    model: Model, timeline: Timeline, budget_bps: int, places: StatementPlaces, sink: Sink
) -> None:
    _links(model, timeline, budget_bps, places, sink)
    _together(model, timeline, budget_bps, places, sink)


# --- one link -----------------------------------------------------------------------------------


def _links(
    model: Model, timeline: Timeline, budget_bps: int, places: StatementPlaces, sink: Sink
) -> None:
    """One warning a statement: of the declaration, and of every `set` that raises a rate."""
    limit = f"the budget is {rate_text(budget_bps)}"
    hint = "one machine cannot carry it: lower the rate, or raise --budget"
    for statement in model.declared.links:
        back_bps = statement.back.up_bps if statement.back else statement.down_bps
        rate = max(statement.up_bps or 0, back_bps or 0)
        if rate > budget_bps:
            message = f"{link_name(statement)} has {rate_text(rate)}, {limit}"
            half = statement.back if rate > (statement.up_bps or 0) else None
            sink.warning("TS0916", (half or statement).span, message, hint)
    seen: set[tuple[str, int]] = set()
    for event in timeline.events:
        rate = int(event.args.get("rate_bps", 0)) if event.kind == "set" else 0
        if rate > budget_bps and event.place not in seen:
            seen.add(event.place)
            maker = places.maker(event)
            assert maker is not None, "only statements set properties"
            message = f"{event.target!r} gets {rate_text(rate)} at {moment(event.at_ns)}, {limit}"
            sink.warning("TS0916", maker.span, message, hint)


# --- all together -------------------------------------------------------------------------------


class Load:
    """What the links out of instances can carry, as events change them."""

    def __init__(self, topology: Topology) -> None:
        self._net = Connectivity(topology)
        self._rates = [link.state.rate_bps for link in topology.links]
        self._taken = [0] * len(self._rates)
        self.total_bps = 0

    def carriers(self, links: Iterable[int] | None = None) -> Iterator[tuple[int, int]]:
        """Those of `links` that carry something now, with their rates (0 = unlimited)."""
        net = self._net
        for link in range(len(self._rates)) if links is None else links:
            if net.ends[link][0] < net.instances and net.usable(link):
                yield link, self._rates[link] - self._taken[link]

    def apply(self, event: Event) -> None:
        touched = self._touched(event)
        self.total_bps -= sum(rate for _, rate in self.carriers(touched))
        self._net.apply(event)
        if event.kind == "set" and "rate_bps" in event.args:
            self._rates[touched[0]] = int(event.args["rate_bps"])
        elif event.kind == "background":
            self._taken[touched[0]] = int(event.args["rate_bps"])
        self.total_bps += sum(rate for _, rate in self.carriers(touched))

    def _touched(self, event: Event) -> list[int]:
        net = self._net
        if event.target in net.link_of:
            return [net.link_of[event.target]]
        if not event.target:  # quit
            return []
        out = net.out[net.node_of[event.target]]
        return [link for pair in out for link in (pair, pair ^ 1)]


def peak(topology: Topology, events: Sequence[Event]) -> tuple[int, int, Load]:
    """When most can be sent (the first such instant), how much, and from where."""
    load = Load(topology)
    most, peak_ns, count, done = 0, 0, 0, 0
    for at_ns, group in groupby(events, key=lambda event: event.at_ns):
        for event in group:
            load.apply(event)
            done += 1
        if load.total_bps > most:
            most, peak_ns, count = load.total_bps, at_ns, done
    then = Load(topology)
    for event in events[:count]:
        then.apply(event)
    return peak_ns, most, then


def _together(
    model: Model, timeline: Timeline, budget_bps: int, places: StatementPlaces, sink: Sink
) -> None:
    """Placed at the declaration of the links that most of it comes from."""
    peak_ns, most_bps, load = peak(model.topology, timeline.events)
    if most_bps <= budget_bps:
        return
    by_statement: dict[int, list[int]] = {}
    unlimited = 0
    for link, rate in load.carriers():
        by_statement.setdefault(places.link_number(link), []).append(rate)
        unlimited += not rate
    first = min(by_statement, key=lambda number: (-sum(by_statement[number]), number))
    statement, rates = model.declared.links[first], by_statement[first]
    message = (
        f"all instances together can send {rate_text(most_bps)} at {moment(peak_ns)}, the "
        f"budget is {rate_text(budget_bps)}; {rate_text(sum(rates))} of it over "
        f"{number(len(rates), 'link')} of {link_name(statement)}"
    )
    if unlimited:
        message += f"; {number(unlimited, 'link')} without a rate not counted"
    hint = "if they do at once: use more machines, lower the rates, or raise --budget"
    sink.warning("TS0917", statement.span, message, hint)
