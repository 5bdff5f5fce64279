"""Why pods do not start, told from what the API shows of them."""

from __future__ import annotations

from typing import Any

from tstorm.k8s import blockers
from tstorm.k8s.blockers import AT_ONCE, LATE, SOON


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
