"""What is judged of runs: as planned, and with one fault planted in each."""

from __future__ import annotations

import gc
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from compiler.plan.collector import collector_paused
from runtime.certify import interfaces, planned_paths
from runtime.errors import RunError
from runtime.judge.lateness import look_at_events
from runtime.judge.verdict import Judge
from runtime.judge.verdict_text import told
from runtime.options import VIRTUAL, RunOptions
from runtime.probing.probe_intervals import LARGE_BYTES
from runtime.rundir.eventlog import read_events
from runtime.rundir.held_directory import HeldDirectory
from tests.certify.scene import MS, SECOND, TDL, Scene, whats
from tests.expectations.support import happened

JITTERY = TDL.replace("a--s latency=5ms", "a--s latency=50ms jitter=5ms loss=4%")
CHANGING = TDL.replace(
    "at 60s quit\n",
    "at 20s a--s set latency=25ms\nat 30s a--s leave\nat 35s a--s join\nat 60s quit\n",
)


@pytest.mark.parametrize("measure", ["one-way", "round-trip"])
@pytest.mark.parametrize("text", [TDL, JITTERY, CHANGING])
def test_a_run_as_planned_is_valid(tmp_path: Path, text: str, measure: str) -> None:
    scene = Scene(tmp_path, text, measure=measure)
    scene.probe()
    found = scene.judged()
    assert (found["state"], found["reasons"]) == ("valid", [])
    assert found["measured"]["pairs"] == 2
    assert found["evidence"].not_measured[0].startswith("the machine")
    for row in found["evidence"].pairs:
        assert (row["planned"] is None) == (30 * SECOND <= row["epoch"]["from_ns"] < 35 * SECOND)
        assert row["measure"] == measure


def test_chance_alone_raises_no_alarm(tmp_path: Path) -> None:
    """With jitter and loss, two pairs and 600 probes each: at most 2 of 40 runs may."""
    alarms = 0
    for seed in range(40):
        scene = Scene(tmp_path, JITTERY, seed=seed)
        scene.probe()
        alarms += scene.judged()["state"] != "valid"
    assert alarms <= 2


def _slowly(seed: int, sent_ns: int, _delay: int | None) -> int:
    """Another delay each 8 s, of 4005 +- 1000 ms."""
    return int(random.Random(seed * 100 + sent_ns // (8 * SECOND)).gauss(4005, 1000) * MS)


def test_jitter_that_takes_its_time_raises_no_alarm(tmp_path: Path) -> None:
    """80 probes in a row meet the same second of jitter: that is one, however many they are."""
    slow = TDL.replace("a--s latency=5ms", "a--s latency=4s jitter=1s")
    for seed in range(10):
        scene = Scene(tmp_path, slow, seed=seed)
        scene.probe(partial(_slowly, seed))
        found = scene.judged()
        assert (found["state"], whats(found)) == ("unknown", [])


def test_jitter_is_measured_beside_traffic(tmp_path: Path) -> None:
    """But not netem's: each packet draws there, and those that keep the order are late."""
    for kernel, state in ((False, "valid"), (True, "unknown")):
        options = RunOptions(datapath="kernel", hosts=1) if kernel else RunOptions()
        scene = Scene(tmp_path, JITTERY, pairs=(("a.0", "b.0"),), options=options)
        scene.flow("a.0", "b.0", 8_000_000)
        scene.probe()
        assert scene.judged()["state"] == state


def test_a_path_that_is_longer_than_planned(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.probe(lambda _sent, delay: delay and delay + 5 * MS)
    found = scene.judged()
    assert found["state"] == "degraded"
    assert whats(found) == ["path_late"]
    [reason] = [one for one in found["reasons"] if one["subject"] == "a.0 to b.0"]
    assert 4 * MS < reason["figure_ns"] < 6 * MS
    assert reason["threshold_ns"] == MS
    assert "a.0 to b.0: packets came 5" in reason["text"]


def test_a_link_whose_value_is_another_than_the_plans(tmp_path: Path) -> None:
    """The network of another plan was there: later by 30 ms, or earlier by 3."""
    for latency, what in (("35ms", "path_late"), ("2ms", "path_early")):
        scene = Scene(tmp_path)
        scene.probe(
            plan=compile_source(TDL.replace("a--s latency=5ms", f"a--s latency={latency}")).plan
        )
        found = scene.judged()
        assert found["state"] == "invalid"
        assert what in whats(found)


def test_a_discipline_that_was_removed_halfway(tmp_path: Path) -> None:
    """From 30 s on nothing is delayed, lost or shaped any more."""
    scene = Scene(tmp_path, JITTERY)
    scene.probe(lambda sent, delay: delay if sent < 30 * SECOND else 50_000)
    found = scene.judged()
    assert found["state"] == "invalid"
    assert "path_early" in whats(found)


@pytest.mark.parametrize(("seconds", "begin_s", "end_s"), [(5, 2, 5), (10, 3, 9), (60, 40, 48)])
def test_a_value_that_was_another_for_a_part_of_an_epoch(
    tmp_path: Path, seconds: int, begin_s: int, end_s: int
) -> None:
    """190 ms in the place of 10, for most of a short epoch or some seconds of a long one."""
    text = TDL.replace("at 60s", f"at {seconds}s")
    scene = Scene(tmp_path, text, pairs=(("a.0", "b.0"),))
    begin, end = begin_s * SECOND, end_s * SECOND
    scene.probe(lambda sent, delay: delay and delay + 180 * MS * (begin <= sent < end))
    found = scene.judged()
    assert found["state"] == "invalid"
    first = found["reasons"][0]
    assert (first["what"], first["subject"]) == ("path_late", "a.0 to b.0")
    assert first["figure_ns"] >= 180 * MS
    assert begin <= first["at_ns"] < end
    assert first["text"] == (
        f"a.0 to b.0: packets came 180 ms later than planned (10 ms) at the median, at"
        f" {first['at_ns'] / 1e9:.3f} s; the bound is 1 ms"
    )


def test_an_engine_that_was_slow_for_a_while(tmp_path: Path) -> None:
    """For 8 of 60 s every packet waits up to 20 ms: as one that is stopped again and again."""
    source = random.Random(5)

    def slow(sent: int, delay: int | None) -> int | None:
        waits = source.randrange(20 * MS) if 30 * SECOND <= sent < 38 * SECOND else 0
        return delay and delay + waits

    scene = Scene(tmp_path)
    scene.probe(slow)
    found = scene.judged()
    assert found["state"] == "degraded"
    assert "path_late" in whats(found)
    assert any(23 * SECOND < reason["at_ns"] < 38 * SECOND for reason in found["reasons"])


def test_packets_that_come_where_there_is_no_path(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CHANGING)
    scene.probe(lambda _sent, delay: 10 * MS if delay is None else delay)
    found = scene.judged()
    assert (found["state"], whats(found)) == ("invalid", ["path_open"])


def test_packets_that_reach_an_instance_that_is_cut_off(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TDL.replace("at 60s", "from 30s to 35s b disconnect\nat 60s"))
    scene.probe()
    assert scene.judged()["state"] == "valid"
    scene.probe(lambda _sent, delay: 10 * MS if delay is None else delay)
    found = scene.judged()
    assert (found["state"], whats(found)) == ("invalid", ["path_open"])


def test_what_changes_too_often_to_be_followed_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last network that was followed is not held against the rest of the run."""
    scene = Scene(tmp_path, TDL.replace("at 60s", "from 10s to 50s a--s flap 1s\nat 60s"))
    scene.probe()
    monkeypatch.setattr(planned_paths, "MOST_STRETCHES", 20)
    found = scene.judged()
    assert (found["state"], whats(found)) == ("degraded", ["unseen"])
    assert "nobody has judged the run from " in found["reasons"][0]["text"]
    assert any("too much changes" in text for text in found["evidence"].not_measured)


def test_probes_that_stop_before_the_run_does(tmp_path: Path) -> None:
    """After 20 of 60 s, or most of them all the time, or of one pair from the start on; not after
    55 s, when lost ones are not told any more, nor while there is no path."""
    for unknown, first in (
        (lambda sent, _delay: sent > 20 * SECOND, "from 20.000 s on: 201 of 574 probes are known"),
        (lambda sent, _delay: sent % SECOND != 0, "from 0.000 s on: 58 of 574 probes are known"),
        (lambda _sent, _delay: True, "from 0.000 s on: 0 of 574 probes are known"),
    ):
        scene = Scene(tmp_path)
        scene.flow("a.0", "b.0", 1_000_000)
        scene.probe()
        scene.forget(unknown)
        found = scene.judged()
        assert (found["state"], whats(found)) == ("degraded", ["unseen"])
        text = found["reasons"][0]["text"]
        assert "2 of 2 pairs were not probed all the time, first a.0 to b.0 " in text
        assert first in text
    scene.probe()
    scene.forget(lambda sent, _delay: sent > 55 * SECOND)
    assert scene.judged()["state"] == "valid"
    scene = Scene(tmp_path, TDL.replace("at 60s", "from 20s to 40s b disconnect\nat 60s"))
    scene.flow("a.0", "b.0", 1_000_000)
    scene.probe()
    scene.forget(lambda _sent, delay: delay is None)
    assert scene.judged()["state"] == "valid"


def test_nothing_after_an_early_end_is_judged(tmp_path: Path) -> None:
    """Programs have ended it at 8 s, and one of them took its grace, in which nobody probes; what
    was planned for 10 s never came."""
    scene = Scene(tmp_path, TDL.replace("at 60s", "at 10s a--s set latency=50ms\nat 60s"))
    scene.probe()
    scene.forget(lambda sent, _delay: sent > 8 * SECOND)
    scene.flow("a.0", "b.0", 10**6, end_s=40)
    ended = {"kind": "quit", "target": "", "applied_ns": 8 * SECOND, "planned_ns": 8 * SECOND}
    assert whats(scene.judged()) == ["unseen"]
    happened(scene, {**ended, "reason": "the programs of a have ended"})
    found = scene.judged()
    assert (found["state"], found["reasons"]) == ("valid", [])
    assert {row["epoch"]["to_ns"] for row in found["evidence"].pairs} == {8 * SECOND}


def test_cycles_are_looked_for_again_after_results() -> None:
    with pytest.raises(RunError), collector_paused():
        assert not gc.isenabled()
        raise RunError("a damaged record")
    assert gc.isenabled()


def lost(_delay_ns: int | None) -> None:
    return None


@pytest.mark.parametrize(
    ("text", "what", "got"),
    [
        (TDL, "path_loss", lost),
        (TDL.replace("a--s latency=5ms", "a--s latency=5ms loss=20%"), "path_loss", lost),
        (TDL, "path_early", lambda _delay_ns: 8 * MS),
        (TDL, "path_tail", lambda delay_ns: delay_ns and delay_ns + 30 * MS),
    ],
)
def test_the_time_of_a_reason_is_that_of_the_first_probe_beyond_its_bound(
    tmp_path: Path, text: str, what: str, got: Any
) -> None:
    scene = Scene(tmp_path, text.replace("at 60s", "at 9s"))
    scene.probe(lambda sent, delay: got(delay) if sent >= 3_500 * MS else delay)
    (first, *_) = [one for one in scene.judged()["reasons"] if one["what"] == what]
    assert 3_500 * MS <= first["at_ns"] < 3_700 * MS


def test_time_that_nobody_looked_at_is_named_and_much_is_degraded(tmp_path: Path) -> None:
    """A hole of 2.5 s in a minute is named, one of 4 s is too much; the share is the user's."""
    for until_s, share, state in ((22.5, 0, "valid"), (24, 0, "degraded"), (24, 10**5, "valid")):
        options = RunOptions(thresholds={"unseen": share} if share else {})
        scene = Scene(tmp_path, options=options)
        scene.probe()
        until_ns = int(until_s * SECOND)
        scene.forget(lambda sent, _delay, ns=until_ns: 20 * SECOND < sent < ns)  # type: ignore[misc]
        found = scene.judged()
        assert (found["state"], whats(found)) == (state, ["unseen"] * (state == "degraded"))
        text = f"from 20.000 s to {until_s:.3f} s nobody looked at a.0 to b.0; 2 of 2 pairs"
        assert any(one.startswith(text) for one in found["evidence"].not_measured)


def test_a_prober_that_died_is_a_reason(tmp_path: Path) -> None:
    """Whatever the part of the run that it did not see."""
    scene = Scene(tmp_path)
    scene.probe()
    died = {"kind": "unprobed", "target": "", "applied_ns": 59 * SECOND, "reason": "killed"}
    with (tmp_path / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(died) + "\n")
    judge = Judge()
    look_at_events(judge, read_events(HeldDirectory.hold(tmp_path.resolve())))
    found = judge.verdict()
    assert (found["state"], whats(found)) == ("degraded", ["missing"])
    assert found["reasons"][0]["text"] == "nobody looked at paths from 59.000 s on: killed"


def test_what_is_under_way_for_long_is_not_missing_at_the_end(tmp_path: Path) -> None:
    """Over 15 s of delay nobody can know of what was sent in the last 15 s."""
    far = TDL.replace("a--s latency=5ms", "a--s latency=15s").replace("at 60s", "at 45s")
    scene = Scene(tmp_path, far)
    scene.probe()
    scene.forget(lambda sent, _delay: sent > 29 * SECOND)
    found = scene.judged()
    assert (found["state"], found["reasons"]) == ("valid", [])
    scene.forget(lambda sent, _delay: sent > 20 * SECOND)
    assert whats(scene.judged()) == ["unseen"]


def test_the_last_probes_say_nothing_of_loss(tmp_path: Path) -> None:
    """Those that arrived are told, and those that were lost are not any more: as if the planned
    loss were missing."""
    text = TDL.replace("a--s latency=5ms", "a--s latency=5ms loss=60%")
    scene = Scene(tmp_path, text.replace("at 60s", "at 2s"))
    scene.probe()
    scene.forget(lambda _sent, delay: delay is None)
    found = scene.judged()
    assert "path_loss" not in whats(found)


def test_what_waited_in_a_queue_went_with_its_link(tmp_path: Path) -> None:
    """900 kB wait at a link of 1 Mb/s from 13 s on, and all of it goes when it goes at 15 s."""
    text = TDL.replace("a--s latency=5ms up=100Mb", "a--s latency=5ms up=1Mb queue=1MB")
    text = text.replace("at 60s", "at 15s a--s leave\nat 20s a--s join\nat 60s")
    scene = Scene(tmp_path, text, pairs=(("a.0", "b.0"),))
    scene.flow("a.0", "b.0", 7_200_000, 12, 13)
    scene.probe(
        lambda sent, delay: None if 13 * SECOND <= sent < 15 * SECOND or delay is None else delay
    )
    found = scene.judged()
    assert "path_loss" not in whats(found)


def test_loss_that_is_missing_or_too_much(tmp_path: Path) -> None:
    source = random.Random(7)
    scene = Scene(tmp_path, JITTERY)
    scene.probe(lambda _sent, delay: None if source.random() < 0.15 else delay)
    found = scene.judged()
    assert whats(found) == ["path_loss"]
    lossless = compile_source(JITTERY.replace("loss=4%", "")).plan
    scene = Scene(tmp_path, JITTERY)
    scene.probe(plan=lossless)
    found = scene.judged()
    assert (found["state"], whats(found)) == ("invalid", ["path_loss"])


def test_jitter_that_is_missing_or_too_much(tmp_path: Path) -> None:
    for jitter in ("1ms", "15ms"):
        scene = Scene(tmp_path, JITTERY)
        scene.probe(plan=compile_source(JITTERY.replace("jitter=5ms", f"jitter={jitter}")).plan)
        assert "path_jitter" in whats(scene.judged())


def test_what_a_queue_explains_is_no_fault(tmp_path: Path) -> None:
    """Beside a flow that fills the link, probes wait in its queue, and some find it full; beside
    none, that is one."""
    slow = TDL.replace("a--s latency=5ms up=100Mb", "a--s latency=5ms up=10Mb queue=100KB")
    source = random.Random(3)

    def queued(sent: int, delay: int | None) -> int | None:
        if sent < 5 * SECOND or delay is None:
            return delay
        return None if source.random() < 0.1 else delay + source.randrange(70 * MS)

    scene = Scene(tmp_path, slow, pairs=(("a.0", "b.0"),))
    scene.flow("a.0", "b.0", 10_000_000)
    scene.probe(queued)
    assert scene.judged()["state"] == "valid"
    scene.sample([])
    found = scene.judged()
    assert {"path_late", "path_loss"} <= set(whats(found))


def test_more_than_a_path_carries(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.flow("a.0", "b.0", 99_000_000)
    scene.probe()
    assert scene.judged()["state"] == "valid"
    scene.flow("a.0", "b.0", 120_000_000)
    found = scene.judged()
    assert (found["state"], whats(found)) == ("invalid", ["path_rate"])


def test_an_agent_that_lies_about_its_counters(tmp_path: Path) -> None:
    """Devices of the instances have counted something else, in either direction."""
    scene = Scene(tmp_path)
    scene.flow("a.0", "b.0", 8_000_000)  # 1,000 packets of 1,000 bytes a second
    scene.probe()

    def seen(part: float) -> dict[str, list[int]]:
        packets = int(50_000 * part)
        row = [5 * SECOND, 55 * SECOND, 0, 0, packets * 1014, packets]
        return {"a.0": row, "b.0": [*row[:2], *row[4:], *row[2:4]]}

    scene.facts = {"interfaces": seen(1.0)}
    assert scene.judged()["state"] == "valid"
    for part in (0.5, 2.0):
        scene.facts = {"interfaces": seen(part)}
        found = scene.judged()
        assert (found["state"], whats(found)) == ("invalid", ["counters"])
        assert any(reason["subject"].startswith("b.0: ") for reason in found["reasons"])


def test_what_eth0_sent_and_no_engine_was_given_was_lost_at_the_boundary(tmp_path: Path) -> None:
    """Half of it; what the engines have counted as of no pair does not count."""
    scene = Scene(tmp_path)
    scene.flow("a.0", "b.0", 8_000_000)  # 1,000 packets of 1,000 bytes a second
    scene.probe()
    span = [5 * SECOND, 55 * SECOND]
    devices = {
        "a.0": [*span, 0, 0, 100_000 * 1014, 100_000],
        "b.0": [*span, 50_000 * 1014, 50_000, 0, 0],
    }
    totals = dict.fromkeys(interfaces.UNPAIRED, "0")
    scene.facts = {"interfaces": devices, "totals": totals}
    found = scene.judged()
    assert (found["state"], whats(found)) == ("degraded", ["counters"])
    [reason] = found["reasons"]
    assert reason["subject"] == "the boundary"
    assert "packets that eth0 had sent, most of a.0, reached no engine" in reason["text"]
    scene.facts = {"interfaces": devices, "totals": {**totals, "drop_unknown": "50000"}}
    assert scene.judged()["state"] == "valid"


def test_nothing_measured_is_no_verdict(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    found = scene.judged()
    assert (found["state"], found["unmeasured"]) == ("unknown", "there were no probes")
    scene.interval_ns = 10 * SECOND
    scene.probe()
    found = scene.judged()
    assert found["state"] == "unknown"
    assert "no pair had enough probes" in found["unmeasured"]


def test_in_virtual_time_one_probe_measures_a_path(tmp_path: Path) -> None:
    """Its delay has no chance in it."""
    short = TDL.replace("at 60s", "at 200ms")
    scene = Scene(tmp_path, short, options=RunOptions(time=VIRTUAL), late_ns=1000)
    scene.probe()
    found = scene.judged()
    assert (found["state"], found["measured"]["pairs"]) == ("valid", 2)
    scene.probe(lambda _sent, delay: delay and delay + 2 * MS)
    found = scene.judged()
    assert (found["state"], whats(found)) == ("degraded", ["path_late"])
    scene.options = RunOptions()
    assert scene.judged()["state"] == "unknown"


def test_a_run_without_probes_has_no_verdict_and_says_why(tmp_path: Path) -> None:
    found = Scene(tmp_path, options=RunOptions(probes=False)).judged()
    assert found["state"] == "unknown"
    assert "(--no-probes)" in found["unmeasured"]
    [first, *_] = told(found)
    assert first.startswith("UNKNOWN: ") and found["unmeasured"] in first


def test_probes_that_prove_nothing_make_nothing_valid(tmp_path: Path) -> None:
    """All were lost where a queue was full; too few for a mean; to an instance that was not there;
    or over jitter as large as the delay."""
    slow = TDL.replace("up=100Mb", "up=10Mb queue=20KB")
    scene = Scene(tmp_path / "full", slow, pairs=(("a.0", "b.0"),))
    scene.flow("a.0", "b.0", 10_000_000, 0)
    scene.probe(lambda _sent, _delay: None)
    states = [scene.judged()["state"]]
    scene = Scene(tmp_path / "few", JITTERY, interval_ns=2500 * MS)
    scene.probe()
    states.append(scene.judged()["state"])
    scene = Scene(tmp_path / "away", TDL.replace("at 60s", "at 10ms b leave\nat 60s"))
    scene.probe(lambda _sent, _delay: None)
    states.append(scene.judged()["state"])
    scene = Scene(tmp_path / "wide", TDL.replace("latency=5ms", "latency=5ms jitter=5ms"))
    scene.probe()
    states.append(scene.judged()["state"])
    assert states == ["unknown"] * 4


def test_an_idle_direction_says_nothing_of_the_busy_one(tmp_path: Path) -> None:
    """All probes there were lost in a full queue; it has no room for any; or what it carried went
    in an epoch of a second."""
    slow = TDL.replace("up=100Mb", "up=10Mb queue=20KB")
    scene = Scene(tmp_path / "full", slow)
    scene.flow("a.0", "b.0", 10_000_000, 0)
    scene.probe()
    scene.change(lambda row: [*row[:2], None] if row[0] == 0 else row)
    found = scene.judged()
    assert (found["state"], found["measured"]) == ("unknown", None)
    why = "of 599 probes that met one network 0 arrived; it takes 15"
    said = f"a.0 to b.0 carried traffic, and its delay was not judged: {why}"
    assert found["unmeasured"] == said
    assert f"delays of 1 of 2 pairs (a.0 to b.0: {why})" in found["evidence"].not_measured

    scene = Scene(tmp_path / "narrow", pairs=(("b.0", "a.0"),), not_probed=(("a.0", "b.0"),))
    scene.flow("a.0", "b.0", 5_000)
    scene.probe()
    found = scene.judged()
    assert found["state"] == "unknown"
    assert found["unmeasured"] == "a.0 to b.0 carried traffic, and has no room for probes"

    change = "at 20s a--s set latency=25ms\nat 21s a--s set latency=5ms\n"
    brief = TDL.replace("at 60s", f"{change}at 60s")
    scene = Scene(tmp_path / "brief", brief)
    scene.flow("a.0", "b.0", 8_000_000, 20, 21)
    scene.probe()
    found = scene.judged()
    assert found["state"] == "unknown"
    assert found["unmeasured"].endswith("its delay was not judged: not while most of it went")


@pytest.mark.parametrize("both", [False, True])
def test_probes_are_no_traffic(tmp_path: Path, both: bool) -> None:
    """Of an idle pair that cannot be judged samples have counted the probes: small and large ones,
    or echoes both ways."""
    third = TDL.replace("at 60s", "link c--s latency=5ms jitter=4ms\nat 60s")
    pairs = (("a.0", "b.0"), ("a.0", "c.0"))
    measure = "round-trip" if both else "one-way"
    scene = Scene(tmp_path, f"service c img=x\n{third}", pairs=pairs, measure=measure)
    scene.flow("a.0", "c.0", 8 * 10 * (2 * 84 if both else 28 + LARGE_BYTES // 5), 0)
    scene.probe()
    if not both:
        scene.enlarge()
    found = scene.judged()
    assert (found["state"], found["measured"]["pairs"]) == ("valid", 1), found["unmeasured"]


def test_that_a_cut_path_stayed_closed_proves_nothing_of_it_while_it_was_open(
    tmp_path: Path,
) -> None:
    """Its jitter is too much to be judged: cut for a while, it is as little measured as without."""
    cut = "at 20s a--s leave\nat 40s a--s join\nat 60s quit"
    for name, end in (("open", "at 60s quit"), ("cut", cut)):
        text = TDL.replace("a--s latency=5ms", "a--s latency=5ms jitter=4ms")
        scene = Scene(tmp_path / name, text.replace("at 60s quit", end))
        scene.probe()
        found = scene.judged()
        assert (found["state"], found["measured"]) == ("unknown", None)
        assert "no pair had enough probes" in found["unmeasured"]


def test_the_datapath_that_was_chosen_says_how_jitter_is_drawn(tmp_path: Path) -> None:
    for datapath, crowded in (("kernel", True), ("user", False)):
        scene = Scene(tmp_path / datapath, JITTERY)
        scene.facts["datapath"] = datapath
        scene.flow("a.0", "b.0", 20_000_000)
        scene.probe()
        met = scene.judged()["evidence"].met
        assert any(probe.wait.crowded for visit in met for probe in visit.probes) == crowded


def test_traffic_of_pairs_that_nobody_probes_counts(tmp_path: Path) -> None:
    """Where it crosses a link that no probe of another pair was judged on."""
    third = "service c img=x\n" + TDL.replace("at 60s", "link c--s latency=5ms\nat 60s")
    scene = Scene(tmp_path / "aside", third)
    scene.flow("c.0", "b.0", 5_000_000)
    scene.probe()
    found = scene.judged()
    said = "c.0 to b.0 carried 100 % of all bytes over links that no probe was judged on"
    assert (found["state"], found["measured"], found["unmeasured"]) == ("unknown", None, said)
    assert said in found["evidence"].not_measured

    much = RunOptions(thresholds={"unseen": 10**6})
    scene = Scene(tmp_path / "allowed", third, options=much)
    scene.flow("c.0", "b.0", 5_000_000)
    scene.probe()
    found = scene.judged()
    assert found["state"] == "valid"
    assert said in found["evidence"].not_measured

    scene = Scene(tmp_path / "beside", third, pairs=(("a.0", "b.0"), ("c.0", "a.0")))
    scene.flow("c.0", "b.0", 5_000_000)
    scene.probe()
    found = scene.judged()
    assert found["state"] == "valid"
    assert not any("carried" in text for text in found["evidence"].not_measured)


def test_packets_that_are_large_are_not_lost_beside_the_plan(tmp_path: Path) -> None:
    """Small ones all pass; large ones are lost from 30 s on, or take a little longer."""
    scene = Scene(tmp_path)
    scene.probe()
    scene.enlarge(lambda _sent, delay: delay and delay + MS)
    found = scene.judged()
    assert (found["state"], found["reasons"]) == ("valid", [])
    assert not any("large packets" in text for text in found["evidence"].not_measured)
    scene.enlarge(lambda sent, delay: delay if sent < 30 * SECOND else None)
    found = scene.judged()
    assert (found["state"], whats(found)) == ("invalid", ["path_loss"])
    assert found["reasons"][0]["subject"] == "a.0 to b.0 (packets of 1500 bytes)"
    scene.probe()
    assert any("2 of 2 pairs have no" in text for text in scene.judged()["evidence"].not_measured)


def test_probes_while_a_change_was_late_are_of_no_network(tmp_path: Path) -> None:
    """It was due at 20 s, and there half a second later, on one side earlier than on the other."""
    scene = Scene(tmp_path, CHANGING)
    late_ns = 500 * MS
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    for event in events:
        if event.get("due_ns") == 20 * SECOND:
            event["network_ns"] += late_ns
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))

    def torn(sent: int, delay: int | None) -> int | None:
        meanwhile = 20 * SECOND <= sent < 20 * SECOND + late_ns
        return MS if meanwhile else delay

    scene.probe(torn)
    found = scene.judged()
    assert (found["state"], found["reasons"]) == ("valid", [])


@pytest.mark.parametrize("step", [1, 99, "1", None])
def test_a_host_that_did_a_change_when_it_was_back_is_waited_for(
    tmp_path: Path, step: object
) -> None:
    """Its agent was lost when the step took effect on the others. Steps of somebody else are
    checked."""
    scene = Scene(tmp_path, CHANGING)
    due_ns, late_ns = scene.timeline.steps[1].due_ns, 2 * SECOND
    late = {"kind": "late", "target": "host1", "step": step, "applied_ns": due_ns + late_ns}
    with (tmp_path / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(late) + "\n")
    scene.probe(lambda sent, delay: 10 * MS if due_ns <= sent < due_ns + late_ns else delay)
    found = scene.judged()
    assert found["state"] == ("valid" if step == 1 else "invalid"), found["reasons"]


def test_samples_that_are_late_are_no_fault(tmp_path: Path) -> None:
    """From 30 s on a busy driver wrote none for 1.5 s, then what had flowed meanwhile as one; the
    probes had waited in a queue meanwhile."""
    slow = TDL.replace("up=100Mb", "up=10Mb queue=100KB")
    scene = Scene(tmp_path, slow, pairs=(("a.0", "b.0"),))
    scene.flow("a.0", "b.0", 9_900_000)
    lines = (tmp_path / "samples.jsonl").read_text().splitlines()
    kept = [
        line
        for line in lines
        if not 30 * SECOND < json.loads(line).get("elapsed_ns", 0) < 31_500 * MS
    ]
    (tmp_path / "samples.jsonl").write_text("".join(line + "\n" for line in kept))

    def queued(sent: int, delay: int | None) -> int | None:
        meanwhile = 30 * SECOND <= sent < 31 * SECOND
        return delay and delay + (60 * MS if meanwhile else 0)

    scene.probe(queued)
    found = scene.judged()
    assert (found["state"], found["reasons"]) == ("valid", [])


def test_thresholds_are_the_users(tmp_path: Path) -> None:
    late = lambda _sent, delay: delay and delay + 5 * MS  # noqa: E731
    scene = Scene(tmp_path, options=RunOptions(thresholds={"path_late": 8 * MS}))
    scene.probe(late)
    assert scene.judged()["state"] == "valid"
    with pytest.raises(RunError, match="there is no threshold 'path_lat'"):
        RunOptions(thresholds={"path_lat": 1})


@pytest.mark.parametrize(
    "line",
    [
        '{"at_ns":1,"probes":[[9,1,1]]}',
        '{"at_ns":1,"probes":[[0,1]]}',
        '{"at_ns":1,"probes":[[0,null,1]]}',
        '{"at_ns":1,"probes":[["0",1,1]]}',
        '{"probes":[]}',
        "[]",
    ],
)
def test_probes_of_somebody_else_are_checked(tmp_path: Path, line: str) -> None:
    scene = Scene(tmp_path)
    scene.probe()
    with (tmp_path / "probes.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(RunError, match=r"probes\.jsonl"):
        scene.judged()
