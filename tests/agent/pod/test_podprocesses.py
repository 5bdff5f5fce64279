"""Processes of pods, as the runtimes of the field place them in control groups."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from pathlib import Path

import pytest

from runtime.agent.pod import podprocesses
from runtime.agent.pod.podprocesses import (
    Census,
    Kept,
    Member,
    NotFoundError,
    kept,
    members,
    pod_of,
)
from runtime.errors import MachineError
from tests.agent.pod.planted import BLOCKED, HOST, Planted

UID = "0a1b2c3d-1111-4222-8333-44445555666f"
OTHER = "9f8e7d6c-1111-4222-8333-44445555666f"
LOW = UID.replace("-", "_")
CID = "c" * 64
WAYS = {
    "containerd, cgroupfs, v2": f"0::/kubepods/besteffort/pod{UID}/{CID}",
    "containerd, cgroupfs, guaranteed": f"0::/kubepods/pod{UID}/{CID}",
    "containerd, systemd, v2": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{LOW}.slice"
        f"/cri-containerd-{CID}.scope"
    ),
    "containerd, systemd, guaranteed": (
        f"0::/kubepods.slice/kubepods-pod{LOW}.slice/cri-containerd-{CID}.scope"
    ),
    "v1, every controller": (
        f"12:pids:/kubepods/burstable/pod{UID}/{CID}\n"
        f"4:memory:/kubepods/burstable/pod{UID}/{CID}\n1:name=systemd:/kubepods/pod{UID}/{CID}"
    ),
    "hybrid: the unified hierarchy says nothing": (
        f"9:name=systemd:/\n4:memory:/tsc-n0/kubepods/besteffort/pod{UID}/{CID}\n0::/"
    ),
    "relative to the agent's group": f"0::/../../pod{UID}/{CID}",
    "relative, another class": f"0::/../../../besteffort/pod{UID}/{CID}",
    "relative, systemd": f"0::/../../kubepods-besteffort-pod{LOW}.slice/cri-containerd-{CID}.scope",
    "CRI-O": (
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{LOW}.slice"
        f"/crio-{CID}.scope/container"
    ),
    "kind": (
        "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice"
        f"/kubelet-kubepods-besteffort-pod{LOW}.slice/cri-containerd-{CID}.scope"
    ),
    "k3s in Docker": f"0::/docker/{CID}/kubepods/besteffort/pod{UID}/{CID}",
    "containerd without systemd": (
        f"1:name=systemd:/system.slice/containerd.service/kubepods-besteffort-pod{LOW}.slice"
        f":cri-containerd:{CID}"
    ),
    "nested in a pod of another cluster": (
        f"0::/kubepods/burstable/pod{OTHER}/{CID}/kubepods/besteffort/pod{UID}/{CID}"
    ),
    "the pod's own group": f"0::/kubepods/besteffort/pod{UID}",
}
STRANGERS = (
    "0::/",
    f"0::/kubepods/besteffort/pod{OTHER}/{CID}",
    f"0::/kubepods/besteffort/pod{UID}0/{CID}",
    f"0::/kubepods/besteffort/pod{UID[:-1]}/{CID}",
    f"0::/kubepods/besteffort/tripod{UID}/{CID}",
    f"0::/kubepods/besteffort/pod{UID.upper()}/{CID}",
    f"0::/system.slice/{UID}.service",
)


@pytest.mark.parametrize("groups", WAYS.values(), ids=WAYS)
def test_every_runtime_names_the_pod(groups: str) -> None:
    assert pod_of(groups, {UID}) == UID


@pytest.mark.parametrize("groups", STRANGERS)
def test_others_are_not_of_the_pod(groups: str) -> None:
    assert pod_of(groups, {UID}) == ""


def test_a_group_that_a_container_makes_does_not_count() -> None:
    inside = f"0::/kubepods/besteffort/pod{UID}/{CID}/pod{OTHER}/{CID}"
    assert pod_of(inside, {UID, OTHER}) == UID


GROUP = f"0::/kubepods/besteffort/pod{UID}"


def test_the_processes_of_a_pod(tmp_path: Path) -> None:
    node = Planted(tmp_path)
    node.process(90, f"{GROUP}/sandbox", name="pause", start=5)
    node.hold(30, f"{GROUP}/{CID}")  # a smaller number, and younger
    node.process(40, f"0::/kubepods/pod{OTHER}/{CID}")
    node.process(50, f"{GROUP}/crio-conmon-{CID}.scope", HOST, name="conmon")
    node.process(60, f"{GROUP}/{CID}", "", name="ending")
    (node.proc / "self").mkdir()
    found = members({UID}, node.proc)
    assert [member.pid for member in found[UID]] == [90, 30]
    assert kept(found[UID], node.proc) == Kept(30, 90, "run", "net:[7]")


def test_a_pod_of_crio_without_sandbox(tmp_path: Path) -> None:
    node = Planted(tmp_path)
    node.hold(30, f"{GROUP}/crio-{CID}.scope", "gate")
    assert kept(members({UID}, node.proc)[UID], node.proc) == Kept(30, 30, "gate", "net:[7]")


def test_who_only_looks_like_a_hold_keeps_nothing(tmp_path: Path) -> None:
    """A program may take any name and block any signal."""
    node = Planted(tmp_path)
    node.process(20, f"{GROUP}/s", name="pause")
    look = {"name": "tstorm-hold", "words": ("tstorm-hold", "run")}
    node.process(30, GROUP, inside="7", blocked=BLOCKED, **look)  # type: ignore[arg-type]
    node.process(31, GROUP, inside="1 1", blocked=BLOCKED, **look)  # type: ignore[arg-type]
    node.process(32, GROUP, **look)  # type: ignore[arg-type]
    node.process(33, GROUP, blocked=BLOCKED)
    with pytest.raises(NotFoundError, match="no tstorm-hold of its pod takes orders"):
        kept(members({UID}, node.proc)[UID], node.proc)


def test_why_a_pod_is_not_usable(tmp_path: Path) -> None:
    node = Planted(tmp_path)
    with pytest.raises(NotFoundError, match="no process of its pod is on this node"):
        kept(members({UID}, node.proc)[UID], node.proc)
    node.process(20, f"{GROUP}/s", name="pause")
    node.hold(30, f"{GROUP}/{CID}", network="net:[8]")
    with pytest.raises(NotFoundError, match="is not in the network of its pod"):
        kept(members({UID}, node.proc)[UID], node.proc)


@pytest.mark.parametrize("words", [(), ("tstorm-hold",), ("tstorm-hold", "signal")])
def test_a_hold_that_does_something_else(tmp_path: Path, words: tuple[str, ...]) -> None:
    node = Planted(tmp_path)
    node.process(30, GROUP, name="tstorm-hold", words=words, blocked=BLOCKED)
    with pytest.raises(NotFoundError, match="neither runs a program nor is a gate"):
        kept(members({UID}, node.proc)[UID], node.proc)


def test_without_the_nodes_processes_nothing_is_guessed(tmp_path: Path) -> None:
    node = Planted(tmp_path)
    (node.proc / "1/ns/net").unlink()
    with pytest.raises(MachineError, match="may not look at the node's process 1"):
        members({UID}, node.proc)


def test_one_look_answers_all_who_have_asked_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks while one is under way may want to know of what comes after it: the next is his."""
    looks: list[set[str]] = []
    begun, go_on = threading.Event(), threading.Event()

    def look(wanted: Collection[str]) -> dict[str, list[Member]]:
        looks.append(set(wanted))
        begun.set()
        go_on.wait()
        return {uid: [Member(len(looks), 1, "net:[7]")] for uid in wanted}

    monkeypatch.setattr(podprocesses, "members", look)

    async def play() -> list[int]:
        wanted = {UID}
        census = Census(lambda: set(wanted))
        early = [asyncio.create_task(census.look()) for _ in range(20)]
        await asyncio.to_thread(begun.wait)
        wanted.add(OTHER)
        late = [asyncio.create_task(census.look()) for _ in range(20)]
        await asyncio.sleep(0)
        early[0].cancel()  # and nobody else's look with it
        go_on.set()
        found = await asyncio.gather(*early[1:], *late)
        return [one[UID][0].pid for one in found]

    assert asyncio.run(play()) == [1] * 19 + [2] * 20
    assert looks == [{UID}, {UID, OTHER}]
