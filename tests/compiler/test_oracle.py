"""The events of random files, compared with a second implementation (oracle.py)."""

from __future__ import annotations

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from compiler.pipeline import elaborate
from tdl.diagnostics import Severity, Sink
from tdl.parser import parse
from tests.compiler import oracle
from tests.compiler.files import files

# A tag that nothing of the right kind carries: for the oracle the line is not there.
STATIC = ("TS0204", "TS0219", "TS0223")
STATE_WARNINGS = ("TS0903", "TS0911", "TS0912", "TS0930")


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=files(), seed=st.integers(0, 3))
def test_events_agree_with_the_oracle(text: str, seed: int) -> None:
    """Same events, same problems, same end: 200 random topologies and timelines."""
    file, _ = parse(text, "random.tdl")
    sink = Sink()
    _, timeline = elaborate(file, sink, seed)
    static = frozenset(d.span.line for d in sink.found if d.code in STATIC)
    expected = oracle.expand(file, seed, static)
    problems = {d.span.line for d in sink.found if d.severity is Severity.ERROR} - static
    event(f"{len(expected.problems)} problems, {len(expected.events) // 10}0 events")
    got = [
        (e.at_ns, e.kind, e.target, tuple(sorted(e.args.items())), e.line) for e in timeline.events
    ]
    assert got == [tuple(e) for e in expected.events]
    assert timeline.end_ns == expected.end_ns
    assert problems <= {line for line, _ in expected.problems}
    if not static and not expected.problems:
        warned = {d.span.line for d in sink.found if d.code in STATE_WARNINGS}
        assert warned == set(expected.warned)
    if expected.problems and not static:
        assert expected.problems[0][0] in problems
