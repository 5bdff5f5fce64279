"""One datapath for all nodes of a run, and the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime.agent.pod.pod_messages import EngineFacts, NodeFacts
from runtime.backend.k8s.cluster_datapath import check, chosen, refused_real_time
from runtime.errors import MachineError, RunError


def node(name: str, engine: str = "", digest: str = "d1", **kernel: str) -> NodeFacts:
    return NodeFacts(name, digest, "1.0", kernel, EngineFacts(engine), "b", "Linux", "v2", False)


NODES = (("n0", "fifo"), ("n1", "other"))


def test_the_kernels_where_every_node_has_it() -> None:
    choice = chosen("auto", [node("n0"), node("n1")])
    assert (choice.name, choice.why) == ("kernel", "all 2 nodes have what it needs")


def test_one_node_without_netem_means_the_engine_on_all() -> None:
    choice = chosen("auto", [node("n0"), node("n1", netem="No such file or directory")])
    assert choice.name == "user"
    assert choice.why == ("the kernel's does not work on n1 (netem: No such file or directory)")


def test_what_was_asked_for_is_had_or_refused() -> None:
    assert chosen("user", [node("n0")]).name == "user"
    with pytest.raises(MachineError, match=r"on 1 of 2 nodes: n1 .netem: gone") as caught:
        chosen("kernel", [node("n0"), node("n1", netem="gone")])
    assert "kernel-modules-extra" in caught.value.remedy
    with pytest.raises(MachineError, match="cannot shape on 1 of 1 nodes: n0: no u32"):
        chosen("auto", [node("n0", engine="no u32", netem="gone")])


def test_nodes_without_the_real_time_class_are_told_with_what_helps() -> None:
    fast, slow = (replace(node(name), user=EngineFacts("", scheduling=how)) for name, how in NODES)
    assert refused_real_time([fast]) == ""
    told = refused_real_time([fast, slow])
    assert "n1 may not give pods the real-time class" in told
    assert "rt_group_sched=0" in told


def test_a_long_list_is_cut() -> None:
    choice = chosen("auto", [node(f"n{n}", netem="gone") for n in range(9)])
    assert choice.why.endswith("n2 (netem: gone) and 6 more")


def test_nodes_of_another_plan_or_release_are_named() -> None:
    check([node("n0"), node("n1")], "d1", "1.0")
    with pytest.raises(RunError, match="n1 has another plan"):
        check([node("n0"), node("n1", digest="d2")], "d1", "1.0")
    with pytest.raises(RunError, match=r"release '1\.0'"):
        check([node("n0")], "d1", "2.0")
