"""One of each of the paper's experiments that is quick (all: `python -m bench.virtual.paper`): the
rate of a chain of switches is right, and messages between many programs come when they have to.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.virtual import repeating, scenes
from tests.virtual.catalogue import Experiment

MEMBERS, SIDE = 50, 5

pytestmark = pytest.mark.virtual


def carried_out(name: str, text: str, folder: Path) -> Path:
    """A run of it in virtual time."""
    (folder / f"{name}.tdl").write_text(text)
    ran = repeating.carry_out(Experiment(name, folder), folder)
    assert ran.status == 0, ran.said
    return ran.directory


def test_a_chain_of_40_switches_carries_4_gigabits(tmp_path: Path) -> None:
    run = carried_out("chain", scenes.chain(40, 4 * scenes.GIGA, 0.4), tmp_path)
    got = scenes.goodput_bps(run, "server.0", scenes.RAMP_SECONDS)
    assert got == pytest.approx(4 * scenes.GIGA * scenes.PAYLOAD, rel=0.01)


def test_a_rumour_spreads_exactly_and_twice_the_same(tmp_path: Path) -> None:
    scenes.compile_rumour(tmp_path)
    (tmp_path / "gossip.tdl").write_text(scenes.gossip(MEMBERS, SIDE))
    gossip = Experiment("gossip", tmp_path)
    hosts = (repeating.QUIET, repeating.ELSEWHERE)
    runs = [repeating.carry_out(gossip, tmp_path, how) for how in hosts]
    found = scenes.spread(runs[0].directory, MEMBERS, SIDE)
    assert found["members"] == MEMBERS
    # Less: the clock counts in steps of 256 ns. More: others, the driver too, read it in between.
    assert found["late_min_ns"] >= -2_000
    assert found["late_p99_ns"] <= 10_000
    assert found["late_max_ns"] <= 100_000  # the run's own probes read it as well
    assert len({repeating.contents(run.directory) for run in runs}) == 1


def test_an_instance_may_have_as_many_open_files_as_a_thousand_instances_need(
    tmp_path: Path,
) -> None:
    text = "service one exec=\"sh -c 'ulimit -Hn'\"\nbridge s\nlink one--s\nat 1s quit\n"
    run = carried_out("files", text, tmp_path)
    assert int((run / "logs/one.0.log").read_text()) >= 65_536
