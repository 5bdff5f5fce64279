"""Why pods do not start, told from what the API shows of them."""

from __future__ import annotations

from typing import Any

import pytest

from manifests.kubernetes_labels import component_selector
from runtime.errors import MachineError
from tests.doubles.api import FakeApi
from tstorm.k8s import blockers
from tstorm.k8s.blockers import AT_ONCE, LATE, NEVER, SOON
from tstorm.k8s.connection import ApiConnection
from tstorm.k8s.waiting import Waiting


def pod(name: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name}, "status": {"phase": "Pending", **status}}


def waiting(reason: str, message: str, image: str = "a/b:1", **more: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "instance", "image": image, "state": state, **more}


def event(uid: str, reason: str, message: str, kind: str = "Warning") -> dict[str, Any]:
    return {"involvedObject": {"uid": uid}, "reason": reason, "message": message, "type": kind}


def test_an_image_that_cannot_be_pulled_is_one_reason_for_all_pods_and_both_words_of_kubelet() -> (
    None
):
    pull = "failed to resolve reference a/b:1: not found"
    first = pod("s-0", containerStatuses=[waiting("ErrImagePull", pull)])
    second = pod("s-1", containerStatuses=[waiting("ImagePullBackOff", 'Back-off pulling "a/b:1"')])
    told = event("s-1", "Failed", f"Failed to pull image: {pull}")
    [found] = blockers.find([first, second], [], [told])
    assert found.who == ("s-0", "s-1")
    assert found.text == f"s-0, s-1: ImagePullBackOff: {pull}"
    assert found.kind.patience == SOON
    [again] = blockers.find([second], [], [told])
    assert again == found  # so that it lasts, whatever kubelet says at this moment
    assert pull in again.message


def test_an_image_that_no_node_could_pull_is_not_waited_for() -> None:
    [found] = blockers.find(
        [pod("s-0", initContainerStatuses=[waiting("InvalidImageName", "couldn't parse a/b:1")])],
        [],
        [],
    )
    assert (found.reason, found.kind.patience) == ("InvalidImageName", AT_ONCE)


def test_pods_without_a_node_are_named_and_patience_is_longer_where_nodes_are_being_made() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
    }
    pods = [pod(f"s-{index}", conditions=[condition]) for index in range(5)]
    [found] = blockers.find(pods, [], [])
    assert found.text == (
        "s-0, s-1, s-2 and 2 more: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."
    )
    assert found.kind.patience == SOON
    scaling = event("s-0", "TriggeredScaleUp", "pod triggered scale-up", "Normal")
    [patient] = blockers.find(pods[:1], [], [scaling])
    assert patient.kind.patience > LATE


def test_controllers_that_could_not_make_pods_say_why() -> None:
    """Quota, admission and Pod Security refuse the pod: there is none to look at."""
    message = 'pods "s-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2'
    found_set: dict[str, Any] = {
        "kind": "StatefulSet",
        "metadata": {"name": "s", "uid": "u"},
        "spec": {"replicas": 3},
        "status": {"replicas": 0},
    }
    told = [event("u", "FailedCreate", message)]
    [found] = blockers.find([], [found_set], told)
    assert found.who == ("StatefulSet s",)
    assert "exceeded quota: q" in found.message
    found_set["status"]["replicas"] = 3
    assert blockers.find([], [found_set], told) == []  # it could in the end
    daemons = {
        "kind": "DaemonSet",
        "metadata": {"name": "tstorm-agent", "uid": "u"},
        "status": {"currentNumberScheduled": 1, "desiredNumberScheduled": 3},
    }
    [found] = blockers.find([], [daemons], told)
    assert found.who == ("DaemonSet tstorm-agent",)
    job = {"kind": "Job", "metadata": {"name": "j", "uid": "u"}, "status": {}}
    [found] = blockers.find([], [job], told)
    assert found.who == ("Job j",)


def test_a_container_that_ends_again_and_again_is_named_with_its_last_words() -> None:
    ended = {"terminated": {"exitCode": 3, "message": "one\nno CAP_SYS_ADMIN\n"}}
    container = {
        "name": "agent",
        "image": "i",
        "restartCount": 2,
        "ready": False,
        "state": {"running": {}},
        "lastState": ended,
    }
    [found] = blockers.find([pod("tstorm-agent-x", containerStatuses=[container])], [], [])
    assert found.reason == "CrashLoopBackOff"
    assert found.message == "agent ended with 3 again and again: no CAP_SYS_ADMIN"


def test_a_pod_that_failed_for_good_is_not_waited_for() -> None:
    ended = {"name": "coordinator", "state": {"terminated": {"exitCode": 1, "message": "why"}}}
    [found] = blockers.find([pod("c", phase="Failed", containerStatuses=[ended])], [], [])
    assert found.message == "container coordinator ended with 1: why"
    assert found.kind.patience == AT_ONCE


def test_a_sysctl_that_kubelet_refuses_is_said_with_what_to_do() -> None:
    words = {"reason": "SysctlForbidden", "message": "forbidden sysctl: net.core.somaxconn"}
    [found] = blockers.find([pod("s-0", phase="Failed", **words)], [], [])
    assert "net.core.somaxconn" in found.message
    assert "--allowed-unsafe-sysctls" in found.kind.remedy and found.kind.patience == AT_ONCE


def test_the_latest_warning_stands_for_a_pod_that_nothing_else_explains() -> None:
    creating = pod("s-0", containerStatuses=[waiting("ContainerCreating", "")])
    old = {**event("s-0", "FailedMount", 'secret "x" not found'), "lastTimestamp": "1"}
    new = {**event("s-0", "FailedCreatePodSandBox", "no runtime"), "lastTimestamp": "2"}
    [found] = blockers.find([creating], [], [new, old])
    assert (found.reason, found.message) == ("FailedCreatePodSandBox", "no runtime")
    pulling = {**event("s-0", "Pulling", "Pulling image", "Normal"), "lastTimestamp": "3"}
    assert blockers.find([creating], [], [new, old, pulling]) == []


def test_pods_that_run_or_are_being_removed_hold_nothing_up() -> None:
    gone = pod("s-0", containerStatuses=[waiting("ErrImagePull", "x")])
    gone["metadata"]["deletionTimestamp"] = "now"
    running = pod("s-1", phase="Running", containerStatuses=[{"name": "i", "state": {}}])
    assert blockers.find([gone, running], [], [event("s-1", "Unhealthy", "probe failed")]) == []


# -- agents are needed where instances are ---------------------------------------------------------

NO_ROOM = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match."


def instance(name: str, node: str) -> dict[str, Any]:
    found = pod(name, phase="Running")
    found["metadata"]["labels"] = component_selector("instance")
    return {**found, "spec": {"nodeName": node, "containers": []}}


def agent(name: str, node: str) -> dict[str, Any]:
    """One that its node has no room for, as the DaemonSet makes it and the scheduler marks it."""
    condition = {"type": "PodScheduled", "status": "False", "message": NO_ROOM}
    found = pod(name, conditions=[{**condition, "reason": "Unschedulable"}])
    found["metadata"]["labels"] = component_selector("agent")
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {**found, "spec": {"affinity": affinity, "containers": []}}


def test_agents_of_nodes_without_instances_end_no_start() -> None:
    pods = [instance("s-0", "n0"), agent("tstorm-agent-a", "n0"), agent("tstorm-agent-b", "n1")]
    needed, needless = blockers.find(pods, [], [])
    assert (needed.who, needed.kind.patience) == (("tstorm-agent-a",), SOON)
    assert "--agent-cpu" in needed.kind.remedy
    assert "leave the node out (--nodes)" in needed.kind.remedy
    assert (needless.who, needless.kind.patience) == (("tstorm-agent-b",), NEVER)
    assert needless.text.endswith("(no instance is there: the run does not wait for it)")
    pods.append(instance("s-1", "n1"))
    [both] = blockers.find(pods, [], [])
    assert both.who == ("tstorm-agent-a", "tstorm-agent-b")
    assert both == needed != needless  # so that its time begins when an instance is there


def test_an_agent_that_runs_nowhere_useful_may_fail() -> None:
    """Such as on a node that is none, whose kubelet takes pods and cannot start them."""
    pulled = pod("tstorm-agent-b", containerStatuses=[waiting("ErrImagePull", "no")])
    pulled["metadata"]["labels"] = component_selector("agent")
    pulled["spec"] = {"nodeName": "n1"}
    [found] = blockers.find([instance("s-0", "n0"), pulled], [], [])
    assert found.kind.patience == NEVER
    [found] = blockers.find([instance("s-0", "n1"), pulled], [], [])
    assert found.kind.patience == SOON


def test_agents_that_could_not_be_made_are_waited_for_where_instances_are() -> None:
    daemons = {
        "kind": "DaemonSet",
        "metadata": {"name": "tstorm-agent", "uid": "u"},
        "status": {"currentNumberScheduled": 1, "desiredNumberScheduled": 2},
    }
    told = [event("u", "FailedCreate", "exceeded quota: q")]
    there = agent("tstorm-agent-a", "n0")
    there["status"] = {"phase": "Running"}
    [found] = blockers.find([instance("s-0", "n0"), there], [daemons], told)
    assert found.kind.patience == NEVER
    [found] = blockers.find([instance("s-0", "n1"), there], [daemons], told)
    assert found.kind.patience == SOON


def test_a_start_goes_on_until_an_agent_that_is_needed_has_no_room(
    server: FakeApi, connection: ApiConnection
) -> None:
    now, said = [0.0], list[str]()
    look = Waiting(connection, "x", lambda text, _: said.append(text), lambda: now[0]).look

    def put(one: dict[str, Any]) -> None:
        server.put(f"/api/v1/namespaces/x/pods/{one['metadata']['name']}", **one)

    put(instance("s-0", "n0"))
    put(agent("tstorm-agent-b", "n1"))
    for now[0] in (0.0, 60.0, 3600.0):
        look()
    warning, *quiet = said
    assert warning.startswith("tstorm-agent-b: Unschedulable: 0/2 nodes")
    assert quiet == ["all pods run; waiting for the coordinator"] * 2
    put(instance("s-1", "n1"))
    look()
    now[0] += SOON
    with pytest.raises(MachineError, match="tstorm-agent-b") as found:
        look()
    assert "--agent-cpu" in found.value.remedy


# -- sandboxes -------------------------------------------------------------------------------------

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def test_a_sandbox_is_refused_whatever_its_class_is_called(
    server: FakeApi, connection: ApiConnection
) -> None:
    look = Waiting(connection, "x", lambda *_: None).look
    found = instance("s-0", "n0")
    server.put("/api/v1/namespaces/x/pods/s-0", **found)
    look()
    assert ("GET", CLASSES) not in server.requests  # no pod has a class
    server.put(f"{CLASSES}/safe", handler="runsc")
    found["spec"]["runtimeClassName"] = "safe"
    server.put("/api/v1/namespaces/x/pods/s-0", **found)
    with pytest.raises(MachineError, match="s-0: refused: it runs under gVisor"):
        look()
    server.put(f"{CLASSES}/safe", handler="runc")
    look()


@pytest.mark.parametrize("status", [403, 404])
def test_classes_that_cannot_be_read_are_known_by_name_alone(
    server: FakeApi, connection: ApiConnection, status: int
) -> None:
    look = Waiting(connection, "x", lambda *_: None).look
    server.refused["GET", CLASSES] = (status, "no")
    found = instance("s-0", "n0")
    found["spec"]["runtimeClassName"] = "safe"
    server.put("/api/v1/namespaces/x/pods/s-0", **found)
    look()
    assert ("GET", CLASSES) in server.requests
    found["spec"]["runtimeClassName"] = "kata-qemu"
    server.put("/api/v1/namespaces/x/pods/s-0", **found)
    with pytest.raises(MachineError, match="it runs under Kata Containers"):
        look()
