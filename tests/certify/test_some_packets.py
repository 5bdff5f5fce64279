"""Classes of packets that no probe is like: nothing is judged by them, and the run says so."""

from __future__ import annotations

from pathlib import Path

from runtime.certify.drops import look_at_impairments
from runtime.judge import verdict_text
from runtime.judge.verdict import Judge
from tests.certify.scene import TDL, Scene, as_planned, whats

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
