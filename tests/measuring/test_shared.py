"""Which paths share a bottleneck: from figures, with stand-ins, and on an emulated network."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.parts import necks
from tests.cli.process import ROOT
from tests.cli.process import tstorm as in_a_process
from tests.cli.support import status
from tests.cli.support import tstorm as in_process
from tests.measuring.stand_ins import lay_out, report
from tests.runs.layout import executables
from tstorm.measuring import measure_pairs, measured_hosts, paths_text, shared_bottlenecks
from tstorm.measuring.measure_state import (
    REPETITIONS,
    FlowResult,
    MeasureRequest,
    MeasureState,
    PingResult,
    RoundTrips,
    SharedResult,
    StateFile,
)
from tstorm.measuring.shared_bottlenecks import SharedTest, SharedVerdict, Way

MB = 1_000_000
AT = "2026-11-28T16:00:00Z"
TABLE = (1_000_000, 1_400_000)  # of one flow and of two, on every path
PROGRAMS = Path(__file__).parent / "programs"


def state_of(
    hosts: tuple[measured_hosts.MeasuredHost, ...], table: tuple[int, int], rtt_ns: int
) -> MeasureState:
    """All pairs alike; nothing was measured of two at once."""
    state = MeasureState(MeasureRequest(hosts, 2_000_000_000, 2, 12, True))
    names = [host.name for host in hosts]
    for a, b in combinations(names, 2):
        state.pings[a, b] = PingResult(a, b, RoundTrips(rtt_ns, rtt_ns, rtt_ns, 9, 9), AT)
        for ends in ((a, b), (b, a)):
            for flows, bps in enumerate(table, 1):
                for number in range(REPETITIONS):
                    one = FlowResult(*ends, flows, number, bps, True, 12, AT)
                    state.flows[one.key] = one
    return state


def figures(names: Sequence[str]) -> MeasureState:
    hosts = tuple(measured_hosts.MeasuredHost(name, name, 5201, ()) for name in names)
    return state_of(hosts, TABLE, 30 * MB)


def put(state: MeasureState, one: Way, other: Way, *rates: int) -> SharedTest:
    ends = (one[0], other[0]), (one[1], other[1])
    for number, bps in enumerate(rates):
        result = SharedResult(*ends, 1, number, bps, AT)
        state.shared[result.key] = result
    return SharedTest(one, other, 1)


@given(st.integers(2, 9))
def test_rounds_have_every_test_once_and_no_host_twice(count: int) -> None:
    names = [f"h{number}" for number in range(count)]
    tests = shared_bottlenecks.tests(names, 2)
    assert len(tests) == count * (count - 1) * (count - 2)
    found = list(shared_bottlenecks.rounds(tests))
    assert sorted(test for together in found for test in together) == sorted(tests)
    for together in found:
        hosts = [host for test in together for host in test.hosts]
        assert len(hosts) == len(set(hosts))


@pytest.mark.parametrize(
    ("rates", "found", "following"),
    [
        ((), "unknown", 0),
        ((1_390_000,), "shared", None),  # 1.4 Mb/s, what two flows get in one queue
        ((1_590_000,), "shared", None),
        ((1_700_000,), "unknown", 1),  # between that and 2 Mb/s
        ((1_700_000, 1_450_000, 1_410_000), "shared", None),
        ((1_700_000, 1_650_000, 1_720_000), "unknown", None),
        ((1_810_000,), "apart", None),
        ((2_100_000,), "apart", None),
    ],
)
def test_what_two_get_at_once_tells(rates: tuple[int, ...], found: str, following: int) -> None:
    state = figures("abc")
    test = put(state, ("a", "b"), ("a", "c"), *rates)
    known = shared_bottlenecks.verdict(state, test)
    assert (known.found, known.if_apart_bps, known.if_shared_bps) == (found, 2 * MB, 1_400_000)
    assert shared_bottlenecks.next_repetition(state, test) == following


def test_what_would_be_alike_is_not_measured() -> None:
    """Where two flows get twice what one gets, a queue that is shared shows nowhere."""
    hosts = figures("abc").asked.hosts
    state = state_of(hosts, (MB, 1_900_000), 30 * MB)
    test = SharedTest(("a", "b"), ("a", "c"), 1)
    assert shared_bottlenecks.next_repetition(state, test) is None
    assert shared_bottlenecks.verdict(state, test).found == "unknown"


def found(one: str, other: str, said: str, bps: int = 14) -> SharedVerdict:
    test = SharedTest((one[0], one[1]), (other[0], other[1]), 1)
    return SharedVerdict(test, bps, 20, 14, said)


def test_what_shares_is_united_and_never_against_what_is_apart() -> None:
    united = [found("ab", "ac", "shared"), found("ac", "dc", "shared"), found("ab", "ad", "apart")]
    assert shared_bottlenecks.groups(united) == [(("a", "b"), ("a", "c"), ("d", "c"))]
    against = [*united, found("ad", "dc", "shared", 15)]
    assert shared_bottlenecks.groups(against) == [(("a", "b"), ("a", "c"), ("d", "c"))]
    both = [found("ab", "ac", "shared"), found("ac", "bc", "shared"), found("bc", "ba", "shared")]
    for group in shared_bottlenecks.groups(both):
        assert not {way[::-1] for way in group} & set(group)


def test_names_are_nobody_elses() -> None:
    taken = {"a", "a-out"}
    assert shared_bottlenecks.name([("a", "b"), ("a", "c")], taken) == "a-out-2"
    assert shared_bottlenecks.name([("a", "b"), ("c", "b")], taken) == "b-in"
    assert shared_bottlenecks.name([("a", "b"), ("c", "d")], taken) == "shared"


def test_they_become_bottlenecks_of_the_text() -> None:
    state = figures("abc")
    for test in shared_bottlenecks.tests("abc", 2):
        joint = {test.one, test.other} == {("a", "b"), ("a", "c")}
        put(state, test.one, test.other, 1_400_000 if joint else 1_990_000)
    put(state, ("b", "a"), ("b", "c"), *[1_700_000] * 3)
    pairs, shared = list(paths_text.results(state)), paths_text.shared_ways(state)
    text = paths_text.text(state, pairs, shared, only_paths=False)
    assert "# a to b and a to c at once, 1 flow each: 1.4Mb (apart 2Mb, shared 1.4Mb)" in text
    assert "whether they share a bottleneck is not known" in text
    links = compile_source(text).topology.links
    shares = {name: [links[i].name for i in ways] for name, ways in necks.members(links).items()}
    assert shares == {"a-out": ["a.0->b.0", "a.0->c.0"]}
    document = json.loads(json.dumps(paths_text.to_json(state.asked, pairs, shared)))
    assert document["bottlenecks"] == [{"name": "a-out", "paths": [["a", "b"], ["a", "c"]]}]
    assert [one["found"] for one in document["at_once"]].count("apart") == 4


def test_it_is_asked_for_with_flows_that_can_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure_pairs, "_FAST", math.inf)
    reports = {"1 12": report([6 * MB] * 12), "2 12": report([6 * MB] * 12, flows=2)}
    hosts = lay_out(tmp_path, reports, ("h0", "h1", "h2"))
    words = ("measure", hosts.name, "--rtt", "1s", "--seconds", "12", "--bottlenecks", "--flows")
    assert status(in_process(*words, "1")) == 2
    done = in_process(*words, "1..2")
    assert status(done) == 0, done.output
    calls = (tmp_path / "programs/calls").read_text().splitlines()
    assert sum(" -p 5202" in line for line in calls) == 2 * 3  # server and client, at each host
    assert json.loads((tmp_path / "paths.json").read_text())["bottlenecks"] == []
    hosts.write_text(hosts.read_text() + "port = 65535\n")
    assert "give it a port below" in str(in_process(*words, "1..2", "-o", "b.tdl").exception)


# What a sends shares a queue, and nothing else does.
EXPERIMENT = """\
network ipv4
quit when a exits
bottleneck narrow capacity=2Mb
service a files=there.py;hosts.toml;paths.state.json env=PYTHONPATH:{root} \
exec="{python} -m tstorm measure hosts.toml {options}"
service b files=there.py exec="./there.py"
service c files=there.py exec="./there.py"
path a--b abw-flows=1:400Kb;2:560Kb rtt=30ms wmax=16KB bottleneck-up=narrow capacity=2Mb
path a--c abw-flows=1:400Kb;2:560Kb rtt=30ms wmax=16KB bottleneck-up=narrow capacity=2Mb
path b--c abw-flows=1:400Kb;2:560Kb rtt=30ms wmax=16KB capacity=2Mb
at 0s b join
at 0s c join
at 1s a join
at 900s quit
"""
HOSTS = """\
[hosts.a]
here = true
address = "a"
[hosts.b]
command = ["./there.py", "b"]
address = "b"
[hosts.c]
command = ["./there.py", "c"]
address = "c"
"""


@pytest.mark.virtual
@pytest.mark.e2e
def test_a_known_bottleneck_is_found(tmp_path: Path) -> None:
    """The paths by themselves are as measured before, so that only flows at once remain."""
    options = "--rtt 2s --flows 1..2 --seconds 12 --bottlenecks --resume"
    text = EXPERIMENT.format(root=ROOT, python=sys.executable, options=options)
    for name, data in (("exp.tdl", text), ("hosts.toml", HOSTS)):
        (tmp_path / name).write_text(data)
    executables(tmp_path, {"there.py": (PROGRAMS / "there.py").read_text()})
    with measured_hosts.opened(str(tmp_path / "hosts.toml")) as hosts:
        before = state_of(hosts, (400_000, 560_000), 30 * MB)
        StateFile(tmp_path / "paths.state.json").save(before)
    in_a_process(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    left = tmp_path / "run/instances/a.0"
    print((left / "paths.tdl").read_text())  # where something is wrong
    document = json.loads((left / "paths.json").read_text())
    assert document["bottlenecks"] == [{"name": "a-out", "paths": [["a", "b"], ["a", "c"]]}]
    assert [one["found"] for one in document["at_once"]].count("apart") == 5
