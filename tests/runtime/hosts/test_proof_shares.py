"""Runs over hosts have the model's shares, and do what the same experiment does on one machine.

Whoever looks at rates over half a second at a time sees the median: a machine that does something
else for a moment does not count, and one that does for longer is tried again (tests.intime). All
combinations, Reno and narrower bounds for round trips are in `python -m bench.hosts`.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable
from pathlib import Path

import pytest

from compiler.plan.paths.path import path
from compiler.plan.reader import Plan, read_plan
from runtime.agent.share.solver import UNLIMITED
from tests.intime import Attempt, exactly, in_time
from tests.runs.delivered import Delivered
from tests.runs.runlog import NS_PER_S, RunLog
from tests.runs.scenes import Scene, model, numbers, random_scene, two_destinations_text
from tests.runs.stages import Stage, dumbbell, sixclients
from tests.runtime.support import ROOT, Compile, User

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]

BOUND = 0.05
MBIT = 1e6
SCALE = 5


def completed(
    attempt: Attempt, user: User, plan: Path, name: str = "out", **options: object
) -> Path:
    """The run directory."""
    out = attempt.name(name)
    result = user.run(plan, out, **options, **attempt.options)
    assert result["outcome"] == "completed", result
    return attempt.saw(user.home / out)


def check(run: Path, stages: Iterable[Stage], pace: int) -> int:
    """From the middle of each stage to its end shares are within the bound of the model's, for
    what was sent: a busy machine may not let a program send as much as it wants to. How many."""
    plan, count = read_plan(run / "plan"), 0
    at = numbers(plan)
    delivered, offered = Delivered(run), Delivered(run, "offered_bytes")
    for stage in stages:
        window = (stage.start_s + stage.end_s) / 2 / pace, stage.end_s / pace
        demands = {
            (at[pair[0]], at[pair[1]]): round(offered.median_bps(pair, *window))
            for pair in stage.shares
        }
        shares, _ = model(plan, round(stage.start_s * NS_PER_S), demands)
        for pair in stage.shares:
            share = shares[at[pair[0]], at[pair[1]]]
            got = delivered.median_bps(pair, *window)
            assert abs(got - share) <= BOUND * share, (stage, pair, got, demands)
            count += 1
    return count


def check_published(plan: Plan, stages: Iterable[Stage], scale: int = 1) -> None:
    """What `check` compares with is what the papers say, if everyone sends enough."""
    at = numbers(plan)
    for stage in stages:
        demands = {(at[source], at[dest]): UNLIMITED for source, dest in stage.shares}
        shares, _ = model(plan, round(stage.start_s * NS_PER_S), demands)
        for (source, dest), share in stage.shares.items():
            assert abs(scale * shares[at[source], at[dest]] / MBIT - share) <= 0.01


def datagrams(example: str, rates: dict[str, str]) -> str:
    """An example with constant rates, all above what is to be had, instead of Reno: that takes
    seconds to fill what it may, and a busy machine makes it lose packets of its own. And all rates
    a fifth: the shares are alike, and a busy machine can carry them."""
    text = (ROOT / f"examples/{example}.tdl").read_text().replace(" --stall 2s", "")
    text = re.sub(r"\b([0-9]+)Mb", lambda rate: f"{int(rate[1]) // SCALE}Mb", text)
    for client, rate in rates.items():
        before, after = text.split(f"service {client} ", 1)
        text = f"{before}service {client} {after.replace('--cc reno', f'--udp {rate}', 1)}"
    assert text.count("--udp") == len(rates)
    return text


def test_six_clients_over_four_hosts(plan_of: Compile, user: User) -> None:
    """The published shares."""
    rates = {f"c{n}": "2500kb" if n in (3, 6) else "7Mb" for n in range(1, 7)}
    made = plan_of(datagrams("sixclients", rates))
    plan = read_plan(made)
    stages = sixclients(plan)
    check_published(plan, stages, SCALE)

    def trial(attempt: Attempt) -> None:
        run = completed(attempt, user, made, hosts=4, pace=5)
        assert check(run, stages, 5) == 2 + 3 + 5 + 6

    exactly(trial)


def test_the_sequence_of_figure_9_over_two_hosts(plan_of: Compile, user: User) -> None:
    made = plan_of(datagrams("dumbbell", dict.fromkeys(("c1", "c2", "c3"), "11Mb")))
    stages = dumbbell(read_plan(made))

    def trial(attempt: Attempt) -> None:
        run = completed(attempt, user, made, hosts=2, pace=4)
        assert check(run, stages, 4) == 1 + 2 + 3 * 4 + 2

    in_time(trial)


@pytest.mark.parametrize("hosts", [1, 4])
def test_one_sender_with_two_destinations(plan_of: Compile, user: User, hosts: int) -> None:
    """Constant rates here too. CUBIC takes an acknowledgement that a busy machine has delayed for a
    full queue (RFC 9406) and then grows for longer than this lasts: `python -m bench.hosts`."""
    text = two_destinations_text(6).replace("up=100Mb", f"up={100 // SCALE}Mb")
    for name, rate in (("near", "20Mb"), ("far", "5Mb")):
        text = text.replace(f"stream {name}.0 --cc cubic", f"stream {name}.0 --udp {rate}")
    assert text.count("--udp") == 2
    made = plan_of(text)
    stages = [Stage(1, 5.8, {("c.0", "near.0"): 250 / 3, ("c.0", "far.0"): 50 / 3})]
    check_published(read_plan(made), stages, SCALE)

    def trial(attempt: Attempt) -> None:
        assert check(completed(attempt, user, made, hosts=hosts), stages, 1) == 2

    exactly(trial)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_network_is_the_same_over_hosts(plan_of: Compile, user: User, seed: int) -> None:
    """Rates of all flows, and the round trip of a probe where it need not wait at a full link."""
    scene = random_scene(seed, 6)
    plan = plan_of(scene.text)

    def trial(attempt: Attempt) -> None:
        exact = completed(attempt, user, plan, "exact")
        check_alike(scene, exact, completed(attempt, user, plan, "spread", hosts=2 + seed % 3))

    exactly(trial)


def check_alike(scene: Scene, exact: Path, spread: Path) -> None:
    rates = [Delivered(run) for run in (exact, spread)]
    for client, share in scene.shares.items():
        pair = f"{client}.0", f"s{client[1:]}.0"
        one, other = (rate.median_bps(pair, 3.2, 5.8) for rate in rates)
        assert abs(other - one) <= BOUND * one, (pair, share)
    trips = [
        [probe.rtt_ms for probe in RunLog(run).probes("p.0") if probe.rtt_ms is not None]
        for run in (exact, spread)
    ]
    planned = planned_round_trip(exact)
    for found in trips:
        assert len(found) >= 20
        # Never early: a clock of microseconds is read before and after.
        assert min(found) >= planned - 0.01
    if not scene.probe_waits:
        best, other_best = map(min, trips)
        assert abs(best - other_best) <= 1.0, "least of 50, so other work does not matter"
        assert statistics.median(trips[1]) >= planned


def planned_round_trip(run: Path) -> float:
    """ms between the probe and its answer, without waiting."""
    plan = read_plan(run / "plan")
    names = [node.name for node in plan.topology.nodes]
    found = path(plan.state_at(5_000_000_000), names.index("p.0"), names.index("q.0"))
    assert found.rtt_ns is not None
    return found.rtt_ns / 1e6
