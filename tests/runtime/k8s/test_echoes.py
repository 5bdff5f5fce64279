"""Paths of a cluster are measured by echoes, and a run there has a verdict of them."""

from __future__ import annotations

from pathlib import Path

from runtime.certify import certificate
from runtime.judge.verdict import Judge
from runtime.probing.probe_record import read
from runtime.rundir.held_directory import HeldDirectory
from runtime.schedule import Schedule
from tests.runtime.k8s.scene import Scene, act

TEXT = """
service server img=x replicas=2 entrypoint=["/bin/server"]
service client img=x entrypoint=["/bin/client"]
bridge s
link server--s latency=15 up=10Mb symmetric
link client--s latency=15 up=10Mb symmetric
at 2s quit
"""


def test_a_run_in_a_cluster_has_a_verdict(tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        await scene.fill()
        final = await scene.run()
        assert (final.outcome, final.message) == ("completed", "")
        assert final.facts["logs_incomplete"] == {}
        held = HeldDirectory.hold(tmp_path.resolve())
        found = read(held)
        assert found is not None
        assert (found.header.measure, found.header.clock) == ("round-trip", "each")
        assert len(found.header.pairs) == 3
        assert {probe.pair for probe in found.probes} == {0, 1, 2}
        asked = [row for node in scene.nodes for row in node.agent.asked("echo")[0]["echoes"]]
        assert sorted(row[0] for row in asked) == [0, 1, 2]
        judge = Judge()
        timeline = Schedule(scene.plan, scene.options)
        certificate.gather(held, scene.plan, timeline, final.facts, judge)
        verdict = judge.verdict()
        assert (verdict["state"], verdict["measured"]["pairs"]) == ("valid", 3)

    act(TEXT, 2, tmp_path, play)
