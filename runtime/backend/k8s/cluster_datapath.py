"""Which datapath a run over nodes has: the kernel's where every node can, else the engine on all.

Two datapaths in one run would mean two models of the same network, so they are never mixed. What is
decided is told with its reason. Input: the supervisors' facts, in the order of the hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.agent.pod.pod_messages import KERNEL, USER, NodeFacts
from runtime.errors import MachineError, RunError
from runtime.say import some

NAMES = 3  # nodes in one sentence
PACKAGES = {
    "netem": "sch_netem: on Debian and Ubuntu in linux-modules-extra, on Fedora and RHEL in"
    " kernel-modules-extra",
    "htb": "sch_htb",
    "tbf": "sch_tbf",
    "u32": "cls_u32",
}


@dataclass(frozen=True, slots=True)
class DatapathChoice:
    """`name` is user or kernel; `why` is for the user."""

    name: str
    why: str


def chosen(wanted: str, found: Sequence[NodeFacts], unfit: str = "") -> DatapathChoice:
    """`wanted` is auto, user or kernel; `unfit` is what of the plan the kernel's cannot do.
    MachineError that names nodes and what they lack."""
    lacking = [_lacks(facts) for facts in found if facts.kernel]
    if wanted == KERNEL and not lacking:
        return DatapathChoice(KERNEL, "it was asked for")
    if wanted != USER and not lacking and not unfit:
        return DatapathChoice(KERNEL, f"all {len(found)} nodes have what it needs")
    if wanted == KERNEL:
        raise MachineError(
            f"the kernel's datapath does not work on {len(lacking)} of {len(found)} nodes:"
            f" {some(lacking, NAMES, '; ')}",
            _remedy(found),
        )
    refused = [f"{facts.node}: {facts.user.why}" for facts in found if facts.user.why]
    if refused:
        raise MachineError(
            f"the packet engine cannot shape on {len(refused)} of {len(found)} nodes:"
            f" {some(refused, NAMES, '; ')}",
            "it needs cls_u32, act_mirred and sch_ingress in the nodes' kernels",
        )
    if wanted == USER:
        return DatapathChoice(USER, "it was asked for")
    if not lacking:
        return DatapathChoice(USER, f"the kernel's cannot do what the plan has: {unfit}")
    return DatapathChoice(USER, f"the kernel's does not work on {some(lacking, NAMES, '; ')}")


def refused_real_time(found: Sequence[NodeFacts]) -> str:
    """Where the packet engine may not go before other programs, and what helps; '' if nowhere."""
    nodes = [facts.node for facts in found if facts.user.scheduling == "other"]
    if not nodes:
        return ""
    return (
        f"{some(nodes, NAMES, word='node')} may not give pods the real-time class: where processors"
        " are busy, packets leave the engine milliseconds late, and the run may not be VALID; keep"
        " a processor free on each node. Mostly it is the kernel (CONFIG_RT_GROUP_SCHED: boot with"
        " rt_group_sched=0 from Linux 6.16 on, or one built without it), or a cluster in a user"
        " namespace"
    )


def check(found: Sequence[NodeFacts], digest: str, version: str) -> None:
    """RunError if a node has another plan, or programs of another release."""
    for facts in found:
        if facts.digest != digest:
            raise RunError(
                f"{facts.node} has another plan: its digest is {facts.digest!r:.80}, the run's is"
                f" {digest!r:.80}",
                "delete the namespace and run again",
            )
        if facts.version != version:
            raise RunError(
                f"the programs on {facts.node} are of release {facts.version!r:.40}, the"
                f" coordinator's of {version!r:.40}",
                "all nodes need the same image: give it a tag of its own",
            )


def _lacks(facts: NodeFacts) -> str:
    reasons = ", ".join(f"{name}: {why}" for name, why in sorted(facts.kernel.items()))
    return f"{facts.node} ({reasons})"


def _remedy(found: Sequence[NodeFacts]) -> str:
    names = sorted({name for facts in found for name in facts.kernel})
    modules = "; ".join(PACKAGES[name] for name in names if name in PACKAGES)
    load = f", or load on these nodes {modules}" if modules else ""
    return f"use --datapath user, which needs none of it{load}"
