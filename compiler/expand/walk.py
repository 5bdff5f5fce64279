"""The agenda of the walk through time, and how its statements report.

Entries run by (time, order of the statement in the file, order of scheduling): a total order that
does not depend on anything else. `quit` stops the walk; what is left is reported, not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from functools import cached_property
from heapq import heappop, heappush

from compiler.declare.model import Model
from compiler.declare.selectors import Selection
from compiler.declare.steps import StatementStep
from compiler.draws import Stream
from compiler.expand import identity
from compiler.expand.bystanders import CutOff
from compiler.expand.recorder import Recorder
from compiler.expand.targets import JOIN, MachineTargets, Targets, Verb
from compiler.expand.world import MAX_EVENTS, TooManyEvents, World
from compiler.phrases import moment
from compiler.plan.parts import action_texts
from compiler.plan.types import Topology
from tdl import ast
from tdl.diagnostics import Sink

_TRACE_STEPS = 4  # fewer are written by hand, where one that changes nothing is a slip
LEFT_OUT = "is left out"  # how TS0904 ends: in an action by hand it is an error, and says another
_FEWER_EVENTS = "shorten the interval, lengthen the period or lower the number"

Groups = tuple[tuple[int, ...], ...]  # of a partition: nodes
# Pairs of links, the directions of these from the first group, who else is cut off, exact.
Cut = tuple[list[int], list[int], tuple[CutOff, ...], bool]


class BoundError(Exception):
    """Something is under way whose state is its own, and not that of the walk."""


class Walk:
    """State of one walk. `run` executes everything that is on the agenda."""

    def __init__(
        self,
        model: Model,
        sink: Sink,
        recorder: Recorder | None = None,
        unplaced: Callable[[], frozenset[int]] = frozenset,
    ) -> None:
        """`unplaced`: the instances that no join of an action draws."""
        self.model = model
        self.world = World(model)
        self.sink = sink
        self.partitions: list[tuple[int, tuple[int, ...]]] = []  # in force: order, directions cut
        self.class_cuts: list[tuple[int, ast.Set, tuple[int, ...]]] = []  # of some packets
        self.cuts: dict[tuple[Groups, bytes], Cut] = {}  # known ones
        self.cut_off: dict[int, tuple[CutOff, ...]] = {}  # beside the groups, by order
        self.seeds = identity.Seeds(model.seed, model.reseeds)
        self._identities = identity.identities(model.steps, model.declared.whens)
        self._agenda: list[tuple[int, int, int, StatementStep, bool, Act]] = []
        self._bound: set[int] = set()  # entries of the agenda, by order of scheduling
        self._scheduled = 0
        self._quit = False
        self.begun: set[int] = set()  # by order
        self.drawn: dict[int, list[int]] = {}  # events at drawn moments, by order
        # By identity of the selection, verb, whether there is a count, and whether an action joins.
        self._targets: dict[tuple[int, str, bool, bool], Targets] = {}
        self._doubts = list(reversed(model.doubts))
        self._doubtful_kinds: set[str] = set()
        self._doubtful_marks: set[tuple[str, int]] = set()
        self._unplaced = unplaced
        self._recorder = recorder
        if recorder is not None:
            recorder.begin(lambda: len(self.world.events), self._identities)

    @property
    def topology(self) -> Topology:
        return self.model.topology

    # --- agenda --------------------------------------------------------------------------------

    def later(
        self,
        at_ns: int,
        step: StatementStep,
        act: Act,
        *,
        closing: bool = False,
        bound: bool = False,
    ) -> None:
        """`closing`: ends an interval; not missed when the experiment quits at that instant.
        `bound`: what `act` does depends on more than on the walk that it is given."""
        self._scheduled += 1
        if bound:
            self._bound.add(self._scheduled)
        entry = (at_ns, step.order, self._scheduled, step, closing, act)
        heappush(self._agenda, entry)

    def take(self, steps: Sequence[StatementStep]) -> None:
        """Further steps, after those of the model."""
        self._identities.update(identity.identities(steps, self.model.declared.whens))

    def copied(self, sink: Sink) -> Walk:
        """One that goes on from here by itself, and reports to this sink. BoundError."""
        if self._bound:
            raise BoundError
        found = copy(self)
        found.world, found.sink = self.world.copied(), sink
        found.partitions, found.class_cuts = self.partitions[:], self.class_cuts[:]
        found.cut_off, found.begun = dict(self.cut_off), set(self.begun)
        found.drawn = {order: events[:] for order, events in self.drawn.items()}
        found._identities, found._agenda = dict(self._identities), self._agenda[:]
        found._bound, found._targets = set(), {}
        found._doubts = self._doubts[:]
        found._doubtful_kinds = set(self._doubtful_kinds)
        found._doubtful_marks = set(self._doubtful_marks)
        return found

    def run(self, until_ns: int | None = None) -> None:
        """`until_ns`: only what is before it."""
        agenda, world = self._agenda, self.world
        while agenda and not self._quit:
            if until_ns is not None and agenda[0][0] >= until_ns:
                return
            at_ns, order, number, step, _, act = heappop(agenda)
            self._bound.discard(number)
            self._begin_doubts(at_ns, order)
            world.now = at_ns
            world.place, world.by = step.statement.span.place, step.order
            if self._recorder is not None:
                self._recorder.act(step, at_ns)
            try:
                act(self)
            except TooManyEvents:
                self.too_many_events(step)
                agenda.clear()
        self._report_missed()

    def fits(self, step: StatementStep, events: int, remedy: str = _FEWER_EVENTS) -> bool:
        """Whether a statement may add so many events; TS0309 if not."""
        if len(self.world.events) + events <= MAX_EVENTS:
            return True
        self.too_many_events(step, remedy)
        return False

    def too_many_events(self, step: StatementStep, remedy: str = _FEWER_EVENTS) -> None:
        message = f"with this the timeline has more than {MAX_EVENTS:,} events"
        self.error(step, "TS0309", message, remedy)

    @cached_property
    def quit_ns(self) -> int | None:
        """When the experiment quits, if it does."""
        quits = (s.statement for s in self.model.steps if isinstance(s.statement.action, ast.Quit))
        return min((statement.start_ns for statement in quits), default=None)

    @cached_property
    def traced(self) -> frozenset[int]:
        """The orders of the steps that a trace consists of."""
        return _traced(self.model.steps)

    @cached_property
    def failed_partition_ns(self) -> int | None:
        """When the first partition is written, if some of them were left out because of errors."""
        made = sum(isinstance(s.statement.action, ast.Partition) for s in self.model.steps)
        written = [
            dynamic.start_ns
            for dynamic in self.model.declared.dynamics
            if isinstance(dynamic.action, ast.Partition)
        ]
        return min(written) if made < len(written) else None

    def quit(self) -> None:
        self.world.emit("quit", "")
        self._quit = True

    def _report_missed(self) -> None:
        now = self.world.now
        for at_ns, _, _, step, closing, _ in sorted(self._agenda, key=lambda entry: entry[:3]):
            if closing and at_ns == now:
                continue
            begun = step.order in self.begun
            what = "the rest of this statement" if begun else "this statement"
            self.sink.warning(
                "TS0904",
                step.statement.span,
                f"the experiment quits at {moment(now)}; {what} {LEFT_OUT}",
                "move it before the quit, or remove it",
            )
        self._agenda.clear()

    def targets(self, step: StatementStep, verb: Verb, *, drawn: bool) -> Targets:
        """The candidates of a step now. Steps with the same selector share them."""
        acts = verb is JOIN and drawn and action_texts.number_of(step.statement.span.file) > 0
        key = (id(step.chosen), verb.name, drawn, acts)
        if key not in self._targets:
            unplaced = self._unplaced() if acts else frozenset()
            whole = drawn and step.chosen.machines
            self._targets[key] = (
                MachineTargets(self.world, step.chosen, verb, unplaced)
                if whole
                else Targets(self.world, step.chosen, verb, drawn=drawn, unplaced=unplaced)
            )
        self._targets[key] = self._targets[key].renewed()
        return self._targets[key]

    def stream(self, step: StatementStep, label: str, at_ns: int | None = None) -> Stream:
        """Its draws by the seed of that moment; None: of now."""
        seed = self.seeds.at(self.world.now if at_ns is None else at_ns)
        key = self._identities[step.order].key(seed)
        return Stream(key, label) if self._recorder is None else self._recorder.stream(key, label)

    # --- reports -------------------------------------------------------------------------------

    def error(
        self,
        step: StatementStep,
        code: str,
        message: str,
        hint: str | None = None,
        *,
        certain: bool = False,
    ) -> None:
        """An error about the state of what the step has chosen.

        Silent where an earlier error may be the reason (unless `certain`: nothing can be); from
        here on this one may be a reason too.
        """
        if certain or not self._doubtful(step):
            self.sink.error(code, step.statement.span, message, hint)
        self._doubtful_marks.update(self._marks(step.chosen))

    def warning(
        self,
        step: StatementStep,
        code: str,
        message: str,
        hint: str | None = None,
        span: ast.Span | None = None,
    ) -> None:
        if not self._doubtful(step):
            self.sink.warning(code, span or step.statement.span, message, hint)

    def _doubtful(self, step: StatementStep) -> bool:
        chosen = step.chosen
        marks = self._marks(chosen) | {("part", service) for service in chosen.services}
        marks -= {("part", self.world.service_of[node]) for node in chosen.instances}
        marks |= {("service", self.world.service_of[node]) for node in chosen.instances}
        return not (
            self._doubtful_marks.isdisjoint(marks) and self._doubtful_kinds.isdisjoint(chosen.kinds)
        )

    def _begin_doubts(self, at_ns: int, order: int) -> None:
        doubts = self._doubts
        while doubts and (doubts[-1].start_ns, doubts[-1].order) <= (at_ns, order):
            doubt = doubts.pop()
            self._doubtful_kinds.update(doubt.kinds)
            self._doubtful_marks.update(self._marks(doubt.selection))

    def _marks(self, selection: Selection) -> set[tuple[str, int]]:
        """What is doubtful after an error about `selection`; ("part", s): some instance of s."""
        service_of = self.world.service_of
        marks = {("service", service) for service in selection.services}
        marks.update(("instance", node) for node in selection.instances)
        marks.update(("part", service_of[node]) for node in selection.instances)
        marks.update(("bridge", node) for node in selection.bridges)
        marks.update(("link", direction) for link in selection.links for direction in link)
        return marks


Act = Callable[[Walk], None]


def half_up(count: int, ppb: int) -> int:
    """`ppb` of `count`, rounded half up."""
    return (count * ppb + 500_000_000) // 1_000_000_000


def asked(count: ast.Count | None, legal: int) -> int:
    """How many a count stands for, when `legal` are possible."""
    if count is None:
        return legal
    return count.value if count.unit is ast.Unit.NUMBER else half_up(legal, count.value)


def _traced(steps: Iterable[StatementStep]) -> frozenset[int]:
    """The orders of statements that are steps of a trace: of many that give the same properties of
    the same link one value after the other. Such files are generated, and a value may repeat the
    one before."""
    series: dict[Hashable, dict[int, Hashable]] = {}
    for step in steps:
        said = None if step.end_ns is not None else _set_to(step.statement.action)
        if said is not None:
            what, value = said
            # Statements with the same selector share their selection.
            series.setdefault((id(step.chosen), what), {})[step.order] = value
    return frozenset(
        order
        for values in series.values()
        if len(values) >= _TRACE_STEPS and len(set(values.values())) > 1
        for order in values
    )


def _set_to(action: ast.Action) -> tuple[Hashable, Hashable] | None:
    """What is set, and to which value; None where it depends on the one before."""
    match action:
        case ast.Background():
            return "background", (action.rate_bps, action.flows)
        case ast.Set(assignments=found) if all(one.op is ast.Op.ASSIGN for one in found):
            words = tuple(one.prop.text for one in found)
            return words, tuple((one.value, one.word, one.rows) for one in found)
    return None
