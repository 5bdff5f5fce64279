"""Origins of events: the recorder changes nothing, and what it tells follows docs/draws.md."""

from __future__ import annotations

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.expand.recorder import Draw, Origin, Recorder
from compiler.origin import explain_event
from compiler.pipeline import compile_source, elaborate
from compiler.plan.format import PlanError
from compiler.plan.reader import decode
from tdl.diagnostics import Sink, TdlError
from tdl.parser import parse_partial
from tests.compiler.files import files

HEAD = """\
seed 5
service a replicas=6 tags=t
service b replicas=1
bridges s1 s2
link a--s1 latency=1
link b--s2 latency=1
link s1--s2 latency=10 tags=t
"""


def origin(text: str, seq: int) -> Origin:
    recorder = Recorder(seq)
    sink = Sink()
    _, timeline = elaborate(parse_partial(text).file, sink, None, recorder)
    assert not sink.failed, sink.found
    return recorder.origin(timeline.events[seq])


def by_hand(draw: Draw, key: bytes) -> int:
    """The number that the words of a draw give, each word from the hash."""
    bits = (draw.bound - 1).bit_length()
    value = 0
    for i, word in enumerate(draw.words):
        block = hashlib.sha256(key + f"{draw.label}\n".encode() + word.block.to_bytes(8, "big"))
        digest = block.digest()[8 * word.place : 8 * word.place + 8]
        assert int.from_bytes(digest, "big") == word.value
        value = word.value & ((1 << bits) - 1)
        assert (value < draw.bound) == (i == len(draw.words) - 1)
    return value


def all_draws(found: Origin) -> list[Draw]:
    draws = [pick.draw for sample in found.samples for pick in sample.picks]
    return [*draws, *found.coins, *(found.moment.draws if found.moment else ())]


@given(text=files())
@settings(deadline=None, max_examples=60)
def test_every_event_of_a_random_file(text: str) -> None:
    try:
        compilation = compile_source(text)
    except TdlError:
        return
    events, seed = compilation.events, compilation.plan.seed
    for event in events:
        recorder = Recorder(event.seq)
        _, timeline = elaborate(parse_partial(text).file, Sink(), None, recorder)
        assert timeline.events == events  # recording changes nothing
        found = recorder.origin(event)
        assert (found.step is None) == (event.line == 0)
        if found.step is not None:
            assert found.step.statement.span.line == event.line
        if found.identity is None:
            assert all_draws(found) == []
            continue
        key = found.identity.key(seed)
        for draw in all_draws(found):
            assert by_hand(draw, key) == draw.value
        _check_moment(found)
        _check_target(found)


def _check_moment(found: Origin) -> None:
    if found.moment is not None and found.step is not None:
        draw = found.moment.draws[found.moment.chosen]
        assert found.step.statement.start_ns + draw.value == found.event.at_ns
        earlier = sum(other.value < draw.value for other in found.moment.draws)
        equal = sum(other.value == draw.value for other in found.moment.draws)
        assert earlier <= found.moment.rank < earlier + equal


def _check_target(found: Origin) -> None:
    picks = [pick for sample in found.samples for pick in sample.picks]
    taken = {pick.candidate for pick in picks if pick.outcome in ("taken", "listed")}
    event = found.event
    if picks and event.kind not in ("join", "link_up", "link_down"):
        assert event.target in taken
    if picks and event.kind.startswith("link_"):
        called, colon, ends = event.target.rpartition(":")
        both = ends.split("->")
        names = ("--".join(way) for way in (both, both[::-1]))
        assert {event.target, *(f"{called}{colon}{name}" for name in names)} & taken


def test_a_churn_tells_moment_target_and_replacement() -> None:
    text = HEAD + "from 10s to 20s a churn 3 replace 100%\nat 30s quit\n"
    found = origin(text, 8)
    assert (found.event.kind, found.event.line) == ("join", 8)
    assert found.identity is not None
    assert found.identity.text == "from 10s to 20s a churn 3 replace 100%"
    assert found.moment is not None
    assert (len(found.moment.draws), found.moment.rank) == (3, 0)
    (sample,) = found.samples
    assert (sample.size, sample.first, sample.last, sample.legal) == (6, "a.0", "a.5", 6)
    assert (sample.word, len(found.coins)) == ("joined", 1)
    crash = origin(text, 7)
    assert crash.event.kind == "crash"
    assert crash.coins == ()  # it crashes whether it is replaced or not


def test_the_end_of_an_interval_tells_the_draws_of_its_beginning() -> None:
    text = HEAD + "from 10s to 20s a disconnect 2\nat 30s quit\n"
    first, last = origin(text, 7), origin(text, 9)
    assert (first.event.kind, last.event.kind) == ("disconnect", "reconnect")
    assert first.samples == last.samples != ()
    assert last.moment is None


def test_candidates_that_are_not_legal_are_told() -> None:
    text = HEAD + "".join(f"at {i + 1}s a.{i} crash\n" for i in range(5)) + "at 9s b leave\n"
    text += "from 10s to 11s a crash 1\n"
    found = origin(text, 13)
    outcomes = [pick.outcome for sample in found.samples for pick in sample.picks]
    assert outcomes == ["illegal"] * (len(outcomes) - 1) + ["taken"]
    assert found.samples[0].legal == 1
    assert found.event.target == "a.5"


def test_the_rare_are_drawn_from_a_list() -> None:
    text = HEAD.replace("replicas=6", "replicas=2000")
    text += "at 1s a crash 1998\nat 2s a crash 1\nat 3s quit\n"
    found = origin(text, 2001 + 1998)
    assert [pick.outcome for pick in found.samples[0].picks[-1:]] == ["listed"]
    assert len(found.samples[0].picks) == 65
    assert found.samples[0].picks[-1].candidate == found.event.target


def test_without_a_choice_nothing_is_drawn() -> None:
    text = HEAD + "at 1s a crash\nat 2s s1--s2 leave\nat 3s quit\n"
    for seq in (7, 12, 13, 15):
        found = origin(text, seq)
        assert found.step is not None
        assert (found.identity, found.moment, found.samples) == (None, None, ())
    assert origin(text, 0).step is None


def test_a_file_that_grows_is_recorded_as_it_is_walked_last() -> None:
    """Services without replicas= are walked several times."""
    text = HEAD.replace("service b replicas=1", "service b")
    text += "at 1s b join 3\nat 2s b leave 2\nat 3s b join 4\nat 4s b crash 1\n"
    events = compile_source(text).events
    found = origin(text, len(events) - 1)
    assert found.event.kind == "crash"
    assert found.samples[0].size == 5


def test_a_plan_whose_source_gives_other_events_is_refused() -> None:
    plan = compile_source(HEAD + "at 1s a crash 1\nat 3s quit\n").plan
    for source, what in (
        (HEAD + "at 1s a crash 2\nat 3s quit\n", "other events than the plan has, from event 8 on"),
        (HEAD + "at 1s a crash 1\n", "from event 8 on"),
        (HEAD + "at 1s a frob\n", "does not compile with this release: line 8"),
        (HEAD + "at 1s x crash\n", "does not compile with this release: line 8"),
    ):
        plan.__dict__["source"] = source.encode()
        try:
            explain_event(plan, 7)
        except PlanError as error:
            assert what in str(error)
        else:
            raise AssertionError(what)


@given(seed=st.integers(0, 50))
@settings(deadline=None, max_examples=10)
def test_explaining_uses_the_seed_of_the_plan(seed: int) -> None:
    text = HEAD + "at 1s a crash 1\nat 3s quit\n"
    plan = decode(compile_source(text, seed=seed).files)
    story = explain_event(plan, 7)
    assert story.key is not None
    assert by_hand(story.origin.samples[0].picks[-1].draw, story.key) == int(
        story.event.target.removeprefix("a.")
    )
