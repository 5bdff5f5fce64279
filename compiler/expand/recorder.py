"""Remembers how one event of a timeline came about: its statement, and the draws that chose it.

A walk through time (compiler/expand/walk.py) that is given a `Recorder` tells it about each entry
of its agenda and takes its streams of random words from it; nothing else changes. Input: the number
of an event. Output: `Recorder.origin()`. What is drawn, and what for, is specified in
docs/draws.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from compiler.declare.steps import StatementStep
from compiler.draws import TRIES, Candidates, Stream
from compiler.expand.identity import DrawIdentity
from compiler.plan.types import Event


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a stream: the `place`-th of the four of SHA-256(key, label, block)."""

    block: int
    place: int
    value: int


@dataclass(frozen=True, slots=True)
class Draw:
    """A uniform number below `bound`. The last of `words` gave it, those before were too large."""

    label: str
    bound: int
    words: tuple[Word, ...]  # none where there is but one possibility
    value: int
    seen: int  # events that were there already


@dataclass(frozen=True, slots=True)
class Pick:
    """A draw among candidates, and what came of it."""

    draw: Draw
    candidate: str
    outcome: str  # 'taken' | 'repeated' | 'illegal' | 'listed' (drawn from the legal ones left)


@dataclass(frozen=True, slots=True)
class DrawnSample:
    """Some of the candidates, drawn at one moment."""

    size: int  # candidates
    first: str
    last: str
    legal: int
    word: str  # what the legal ones are: 'joined'
    picks: tuple[Pick, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """The times of an interval's events in the order drawn, and which of them the event has."""

    draws: tuple[Draw, ...]
    chosen: int  # position in draws
    rank: int  # position when sorted


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an event comes from. Without a step: it is there at first, nobody wrote it."""

    event: Event
    step: StatementStep | None
    identity: DrawIdentity | None  # None: the statement draws nothing
    moment: Moment | None
    samples: tuple[DrawnSample, ...]
    coins: tuple[Draw, ...]  # of churn: whether the crashed instance is replaced
    drawn_ns: int = 0  # when the samples were drawn


@dataclass(slots=True)
class _Act:
    """One entry of the agenda."""

    step: StatementStep
    first: int  # events before it
    number: int  # among the entries of its step
    at_ns: int
    samples: list[DrawnSample] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)  # outside samples


class Recorder:
    """Give it to one call of compiler.pipeline.elaborate(), which may walk several times."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self.begin(lambda: 0, {})

    def begin(self, count: Callable[[], int], identities: dict[int, DrawIdentity]) -> None:
        """A new walk; `count` says how many events there are."""
        self._count = count
        self._identities = identities
        self._numbers: dict[int, int] = {}
        self._begins: dict[int, _Act] = {}
        self._sampled: dict[int, _Act] = {}  # the first entry of a step with samples
        self._act: _Act | None = None
        self._found: _Act | None = None
        self._mark = 0  # draws of the act when a sample began

    def act(self, step: StatementStep, at_ns: int) -> None:
        """The next entry of the agenda begins."""
        self._settle()
        number = self._numbers.get(step.order, 0)
        self._numbers[step.order] = number + 1
        self._act = _Act(step, self._count(), number, at_ns)
        if number == 0:
            self._begins[step.order] = self._act

    def _settle(self) -> None:
        act = self._act
        if self._found is None and act is not None and act.first <= self._wanted < self._count():
            self._found = act

    def stream(self, key: bytes, label: str) -> Stream:
        return _Recorded(self, key, label)

    def origin(self, event: Event) -> Origin:
        """After the walk, of the event that was wanted."""
        assert event.seq == self._wanted
        self._settle()
        act = self._found
        if act is None:
            return Origin(event, None, None, None, (), ())
        begin = self._begins[act.step.order]
        samples = [sample for sample in act.samples if _seen(sample) <= event.seq]
        coins = [draw for draw in act.draws if draw.label == "replace" and draw.seen <= event.seq]
        drawn_ns = event.at_ns
        first = self._sampled.get(act.step.order, begin)
        if not samples and act is not first:
            samples = first.samples  # the end of what was drawn at the beginning
            drawn_ns = first.at_ns
        identity = self._identities.get(act.step.order)
        moment = _moment(begin, act)
        drawn = bool(samples or moment)
        return Origin(
            event,
            act.step,
            identity if drawn else None,
            moment,
            tuple(samples),
            tuple(coins),
            drawn_ns,
        )

    # --- told by the streams -------------------------------------------------------------------

    def drew(self, label: str, bound: int, words: list[Word], value: int) -> None:
        assert self._act is not None
        self._act.draws.append(Draw(label, bound, tuple(words), value, self._count()))

    def begin_sample(self) -> None:
        assert self._act is not None
        self._mark = len(self._act.draws)

    def end_sample(self) -> list[Draw]:
        """The draws since its beginning, which are no draws of the act itself."""
        assert self._act is not None
        made = self._act.draws[self._mark :]
        del self._act.draws[self._mark :]
        return made

    def sampled(self, sample: DrawnSample) -> None:
        assert self._act is not None
        self._act.samples.append(sample)
        self._sampled.setdefault(self._act.step.order, self._act)


def _seen(sample: DrawnSample) -> int:
    return sample.picks[0].draw.seen


def _moment(begin: _Act, act: _Act) -> Moment | None:
    """Entries after the first are the moments in order of time, equal ones as drawn."""
    draws = tuple(draw for draw in begin.draws if draw.label == "when")
    if not draws or act is begin or any(draw.label == "again" for draw in begin.draws):
        return None  # or some were drawn again, by another seed: nobody can tell which
    rank = act.number - 1
    if rank >= len(draws):
        return None  # what follows from it, after some time
    order = sorted(range(len(draws)), key=lambda i: draws[i].value)
    return Moment(draws, order[rank], rank)


class _Recorded(Stream):
    """A stream that tells its recorder what it does."""

    __slots__ = ("_label", "_recorder", "_taken")

    def __init__(self, recorder: Recorder, key: bytes, label: str) -> None:
        super().__init__(key, label)
        self._recorder = recorder
        self._label = label
        self._taken: list[Word] = []

    def word(self) -> int:
        value = super().word()
        self._taken.append(Word(self._block - 1, 3 - len(self._words), value))
        return value

    def below(self, bound: int) -> int:
        self._taken = []
        value = super().below(bound)
        self._recorder.drew(self._label, bound, self._taken, value)
        return value

    def sample(
        self,
        size: int,
        legal: Callable[[int], bool],
        count: int,
        candidates: Candidates | None = None,
    ) -> list[int]:
        assert candidates is not None
        before = candidates.count_legal()
        self._recorder.begin_sample()
        chosen = super().sample(size, legal, count, candidates)
        made = self._recorder.end_sample()
        picks = tuple(_picks(made, chosen, candidates))
        name = candidates.name
        sample = DrawnSample(size, name(0), name(size - 1), before, candidates.word, picks)
        self._recorder.sampled(sample)
        return chosen


def _picks(made: list[Draw], chosen: list[int], candidates: Candidates) -> list[Pick]:
    """What came of each draw: `Stream.sample` once more, knowing the result."""
    picks: list[Pick] = []
    taken = misses = 0
    for draw in made:
        if misses >= TRIES:
            picks.append(Pick(draw, candidates.name(chosen[taken]), "listed"))
            taken += 1
            continue
        name = candidates.name(draw.value)
        if draw.value == chosen[taken]:
            picks.append(Pick(draw, name, "taken"))
            taken, misses = taken + 1, 0
        else:
            outcome = "repeated" if draw.value in chosen[:taken] else "illegal"
            picks.append(Pick(draw, name, outcome))
            misses += 1
    return picks
