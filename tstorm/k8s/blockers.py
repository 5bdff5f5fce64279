"""Why an experiment that was applied does not start: what its pods and their controllers wait for.

Input: pods that do not run, DaemonSets, StatefulSets and Jobs, and warning events of a namespace,
as the API shows them. Output: one Blocker a reason, with the pods it holds up. Agents are needed
where instances are; what holds up others is told, and never ends a start. Nothing here asks a
cluster or a clock: tstorm/k8s/waiting.py does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from manifests.kubernetes_labels import component_selector
from runtime.say import some

AT_ONCE, SOON, LATE = 0.0, 20.0, 120.0  # seconds that a reason may last before the run gives up
NEVER = math.inf
SHOWN_PODS = 3
_AGENT = "tstorm-agent"  # the name of their DaemonSet

_IMAGE = "push it, load it onto the nodes, or name a registry secret (docs/kubernetes.md, images)"
_NO_ROOM = "free room, choose more nodes (--nodes), or ask for less (cpu=, mem=, replicas=)"
_NO_ROOM_FOR_AGENT = "free room, ask for less (--agent-cpu), or leave the node out (--nodes)"
_REFUSED = "the cluster's rules refuse the pods: docs/kubernetes.md, what the cluster must provide"


@dataclass(frozen=True, slots=True)
class Treatment:
    """How a reason is dealt with."""

    patience: float
    remedy: str = ""


_WAITING = {  # of a container, the words of kubelet
    "InvalidImageName": Treatment(AT_ONCE, "write it such as nginx:1.27"),
    "ErrImageNeverPull": Treatment(AT_ONCE, _IMAGE),
    "ErrImagePull": Treatment(SOON, _IMAGE),
    "ImagePullBackOff": Treatment(SOON, _IMAGE),
    "ImageInspectError": Treatment(SOON, _IMAGE),
    "RegistryUnavailable": Treatment(SOON, _IMAGE),
    "CreateContainerConfigError": Treatment(SOON),
    "CreateContainerError": Treatment(SOON),
    "RunContainerError": Treatment(SOON),
    "CrashLoopBackOff": Treatment(SOON),
}
_FAILED = {  # of a pod
    "SysctlForbidden": "have kubelet's --allowed-unsafe-sysctls name it, or leave out that sysctl=",
}
CRASHING = "CrashLoopBackOff"
_SCALING = "TriggeredScaleUp"  # of a cluster's autoscaler: new nodes take minutes


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason. `key` tells it from others; its message may change while it lasts.

    `who`: pods and controllers that it holds up, sorted. `elsewhere`: they are agents of nodes
    without instances, and nothing waits for them.
    """

    reason: str
    key: str
    message: str = field(compare=False)
    who: tuple[str, ...] = field(compare=False)
    kind: Treatment = field(compare=False)
    container: str = field(default="", compare=False)  # '' where it is not one container's
    elsewhere: bool = False

    @property
    def text(self) -> str:
        needless = " (no instance is there: the run does not wait for it)" if self.elsewhere else ""
        return f"{some(self.who, SHOWN_PODS)}: {self.reason}: {self.message}{needless}"


def find(
    pods: Iterable[Mapping[str, Any]],
    controllers: Iterable[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
) -> list[Blocker]:
    """Of all that is not there yet; what holds up most pods first, and last what nothing needs."""
    pods, latest = list(pods), _latest(events)
    where = _Agents(pods)
    every = (*_of_pods(pods, latest), *_of_sets(controllers, latest))
    found: dict[tuple[object, ...], tuple[_Found, set[str]]] = {}
    for one in map(where.judged, every):
        group = (one.reason, one.key, one.elsewhere, one.kind.remedy)
        found.setdefault(group, (one, set()))[1].add(one.who)
    blockers = [
        Blocker(
            one.reason,
            one.key,
            one.message,
            tuple(sorted(who)),
            one.kind,
            one.container,
            one.elsewhere,
        )
        for one, who in found.values()
    ]
    return sorted(blockers, key=lambda one: (one.elsewhere, -len(one.who), one.reason, one.key))


class _Found(NamedTuple):
    who: str
    reason: str
    key: str
    message: str
    kind: Treatment
    container: str = ""
    elsewhere: bool = False


class _Agents:
    """Which agents a run needs, as far as its instances have nodes."""

    def __init__(self, pods: Iterable[Mapping[str, Any]]) -> None:
        there = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        self._nodes = {
            str(pod["metadata"]["name"]): _node(pod) for pod in there if _is(pod, "agent")
        }
        self._needed = {_node(pod) for pod in there if _is(pod, "instance")} - {""}

    def judged(self, one: _Found) -> _Found:
        if one.who == f"DaemonSet {_AGENT}":
            needless = bool(self._needed) and self._needed <= set(self._nodes.values())
        elif one.who in self._nodes:
            node = self._nodes[one.who]
            needless = node != "" and node not in self._needed
            if one.kind.remedy == _NO_ROOM:
                one = one._replace(kind=replace(one.kind, remedy=_NO_ROOM_FOR_AGENT))
        else:
            needless = False
        if not needless:
            return one
        return one._replace(kind=replace(one.kind, patience=NEVER), elsewhere=True)


def _is(pod: Mapping[str, Any], component: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return bool(component_selector(component).items() <= labels.items())


def _node(pod: Mapping[str, Any]) -> str:
    """Where it is, or is to be: a DaemonSet names one node for each of its pods; '' if none."""
    spec = pod.get("spec", {})
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for wanted in term.get("matchFields") or []:
            if wanted.get("key") == "metadata.name" and wanted.get("values"):
                return str(wanted["values"][0])
    return ""


_Latest = Mapping[str, Mapping[str, Mapping[str, Any]]]  # UID -> reason -> event


def _latest(events: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for event in sorted(events, key=_time):
        uid = str(event.get("involvedObject", {}).get("uid", ""))
        reason = str(event.get("reason", ""))
        found.setdefault(uid, {}).pop(reason, None)  # the latest is the last
        found[uid][reason] = event
    return found


def _time(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _of_pods(pods: Iterable[Mapping[str, Any]], latest: _Latest) -> Iterator[_Found]:
    for pod in pods:
        name, status = str(pod["metadata"]["name"]), pod.get("status", {})
        if "deletionTimestamp" in pod["metadata"]:
            continue
        of_pod = latest.get(str(pod["metadata"].get("uid")), {})
        if status.get("phase") == "Failed":
            message = str(status.get("message") or _ended(status) or "it ended")
            reason = str(status.get("reason") or "Failed")
            remedy = _FAILED.get(reason, "")
            yield _Found(name, reason, _plain(message, name), message, Treatment(AT_ONCE, remedy))
            continue
        told = list(_containers(name, status, of_pod)) or list(_unscheduled(name, status, of_pod))
        yield from told
        if not told and status.get("phase") == "Pending" and of_pod:
            yield from _warned(name, of_pod)


def _containers(
    name: str, status: Mapping[str, Any], of_pod: Mapping[str, Mapping[str, Any]]
) -> Iterator[_Found]:
    every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    for container in every:
        waiting = container.get("state", {}).get("waiting") or {}
        reason, image = str(waiting.get("reason", "")), str(container.get("image", ""))
        if _keeps_ending(container):
            message, which = _last_words(container), str(container["name"])
            yield _Found(name, CRASHING, image, message, _WAITING[CRASHING], which)
        elif reason in _WAITING:
            message = _detail(str(waiting.get("message") or ""), of_pod)
            text = message if image in message else f"{image}: {message}"
            yield _Found(name, _same(reason), image, _plain(text, name), _WAITING[reason])


def _keeps_ending(container: Mapping[str, Any]) -> bool:
    """Also while it runs for a moment."""
    ended = container.get("lastState", {}).get("terminated") or {}
    often = int(container.get("restartCount", 0)) >= 2
    return bool(often and ended.get("exitCode") and not container.get("ready"))


def _same(reason: str) -> str:
    """kubelet alternates between two words for an image that cannot be pulled."""
    return "ImagePullBackOff" if reason == "ErrImagePull" else reason


def _detail(message: str, of_pod: Mapping[str, Mapping[str, Any]]) -> str:
    """Why an image could not be pulled, where kubelet only says that it waits to try again."""
    failed = of_pod.get("Failed")
    if message.lower().startswith("back-off pulling") and failed is not None:
        said = str(failed.get("message") or "")
        return said if "Failed to pull" in said else message
    return message


def _last_words(container: Mapping[str, Any]) -> str:
    ended = container.get("lastState", {}).get("terminated") or {}
    lines = str(ended.get("message") or "").strip().splitlines()
    words = f": {lines[-1]}" if lines else ""
    return f"{container['name']} ended with {ended.get('exitCode')} again and again{words}"


def _ended(status: Mapping[str, Any]) -> str:
    for container in status.get("containerStatuses", []):
        ended = container.get("state", {}).get("terminated") or {}
        if ended.get("exitCode"):
            lines = str(ended.get("message") or "").strip().splitlines()
            words = f": {lines[-1]}" if lines else ""
            return f"container {container['name']} ended with {ended['exitCode']}{words}"
    return ""


def _unscheduled(
    name: str, status: Mapping[str, Any], of_pod: Mapping[str, Mapping[str, Any]]
) -> Iterator[_Found]:
    for condition in status.get("conditions", []):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            patience = LATE * 5 if _SCALING in of_pod else SOON
            reason = str(condition.get("reason") or "Unschedulable")
            message = _plain(str(condition.get("message") or ""), name)
            yield _Found(name, reason, message, message, Treatment(patience, _NO_ROOM))


def _warned(name: str, of_pod: Mapping[str, Mapping[str, Any]]) -> Iterator[_Found]:
    """A pod on a node whose containers do not start for a reason that is none of theirs."""
    event = list(of_pod.values())[-1]
    if event.get("type") == "Warning":
        reason, message = str(event.get("reason")), _plain(str(event.get("message") or ""), name)
        yield _Found(name, reason, message, message, Treatment(LATE))


def _of_sets(controllers: Iterable[Mapping[str, Any]], latest: _Latest) -> Iterator[_Found]:
    """Controllers that lack pods, and have said why they could not make them."""
    for one in controllers:
        who = f"{one['kind']} {one['metadata']['name']}"
        event = latest.get(str(one["metadata"].get("uid")), {}).get("FailedCreate")
        if event is not None and _lacks_pods(one):
            message = _plain(str(event.get("message") or ""), who)
            yield _Found(who, "FailedCreate", message, message, Treatment(SOON, _REFUSED))


def _lacks_pods(one: Mapping[str, Any]) -> bool:
    status = one.get("status", {})
    if one["kind"] == "DaemonSet":
        return int(status.get("currentNumberScheduled", 0)) < int(
            status.get("desiredNumberScheduled", 0)
        )
    if one["kind"] == "StatefulSet":
        return int(status.get("replicas", 0)) < int(one["spec"].get("replicas", 1))
    return not any(status.get(key) for key in ("active", "succeeded", "failed"))


def _plain(message: str, who: str) -> str:
    """Without what differs between pods that wait for the same."""
    name = re.escape(who.rpartition(" ")[2])
    text = re.sub(rf"\b{name}(-\d+|-[a-z0-9]{{5}})?(?![\w-])", "…", message)
    return " ".join(text.split())
