"""What engines and devices have lost beside the plan is a reason, with its counter and cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from compiler.plan.properties import BY_FIELD
from runtime.certify.drops import CAUSES, IMPAIRMENTS, look_at_drops, look_at_impairments
from runtime.judge import verdict_text
from runtime.judge.verdict import Judge
from tests.certify.scene import TDL, Scene, as_planned, whats


def judged(
    facts: dict[str, Any], stacks: dict[str, dict[str, int]], offered: int = 0
) -> dict[str, Any]:
    judge = Judge()
    look_at_drops(judge, facts, stacks, offered)
    return judge.verdict()


def totals(**more: int) -> dict[str, str]:
    zero = dict.fromkeys([name for name in CAUSES if name.startswith("drop_")], 0)
    return {name: str(count) for name, count in {"rx": 100_000, **zero, **more}.items()}


@pytest.mark.parametrize("name", [name for name in CAUSES if name.startswith("drop_")])
def test_what_an_engine_lost_is_told_with_its_counter_and_cause(name: str) -> None:
    """One of a million is within the bound, three of 100,000 are not."""
    assert judged({"totals": totals(rx=1_000_000, **{name: 1})}, {})["reasons"] == []
    found = judged({"totals": totals(**{name: 3})}, {})
    assert found["state"] == "degraded"
    [reason] = found["reasons"]
    assert (reason["what"], reason["subject"]) == ("drops", name)
    said = f"3 packets were lost beside the plan ({name}): {CAUSES[name]}; the bound is 0.001 %"
    assert reason["text"] == said


def test_the_kernels_datapath_is_judged_by_what_pairs_have_offered() -> None:
    """It does not count what it was given."""
    kernel = {"totals": {"drop_device": "1"}}
    assert judged(kernel, {}, offered=1_000_000)["reasons"] == []
    assert judged(kernel, {}, offered=1_000)["state"] == "degraded"


def test_what_was_lost_while_the_run_was_ended_does_not_count() -> None:
    facts = {"totals": totals(drop_write=40), "lost": {"drop_write": "0"}}
    assert judged(facts, {})["reasons"] == []


@pytest.mark.parametrize(("ports", "whats"), [(["tap"], []), (["packet"], ["drops"])])
def test_what_a_device_did_not_take_is_the_boundarys(ports: list[str], whats: list[str]) -> None:
    """A TAP's is in drop_input already, whose cause names a device that went down."""
    assert "went down" in CAUSES["drop_input"]
    stacks = {"a.0": {"eth0_tx_dropped": 1493}, "b.0": {"UdpRcvbufErrors": 5}}
    found = judged({"totals": totals(), "ports": ports}, stacks)
    assert [reason["what"] for reason in found["reasons"]] == whats
    for reason in found["reasons"]:
        assert "1,493 packets of a.0 were lost beside the plan (eth0_tx_dropped)" in reason["text"]


@pytest.mark.parametrize(("name", "field"), IMPAIRMENTS.items())
def test_what_links_did_and_no_link_of_the_plan_does_is_invalid(name: str, field: str) -> None:
    static = "service a img=x\nservice b img=x\nlink a--b latency=5ms jitter=1ms\n"
    word = BY_FIELD[field].word

    def states(text: str, count: int) -> str:
        judge = Judge()
        look_at_impairments(judge, {"totals": {name: str(count)}}, compile_source(text).plan)
        verdict = judge.verdict()
        return str(verdict["reasons"][0]["what"] if verdict["reasons"] else verdict["state"])

    assert states(static + "at 5s quit\n", 3) == "drops"
    assert states(static + "at 5s quit\n", 0) != "drops"
    assert states(static + f"at 2s a--b set {word}=5%\nat 5s quit\n", 3) != "drops"
    declared = static.replace("latency", f"{word}=5% latency")
    assert states(declared + "at 5s quit\n", 3) != "drops"


# Classes of packets that no probe is like: nothing is judged by them, and the run says so.

SOME = "from 10s to 50s a--s set loss=90% latency=500ms only=tcp:5432;to:b\n"
SAID = "what links do to only=tcp:5432;to:b.0: probes are none of these packets"


def test_probes_are_judged_by_what_all_other_packets_meet(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TDL + SOME)
    scene.probe(as_planned)
    told = scene.judged()
    assert whats(told) == []
    assert (told["state"], told["unprobed"]) == ("valid", SAID)
    assert SAID in told["evidence"].not_measured
    assert f"  not probed: {SAID}" in list(verdict_text.told(told))


def test_a_probe_that_meets_what_is_for_the_class_is_a_fault(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TDL + SOME)
    scene.probe(lambda sent_ns, delay_ns: delay_ns and delay_ns + 495_000_000)
    assert "path_late" in whats(scene.judged())


def test_refusals_of_a_class_are_planned(tmp_path: Path) -> None:
    for more, wanted in ((SOME, 1), (SOME.replace("loss", "reject"), 0)):
        judge = Judge()
        facts = {"totals": {"rejected": "5"}}
        look_at_impairments(judge, facts, Scene(tmp_path, TDL + more).plan)
        assert len(judge.verdict()["reasons"]) == wanted
