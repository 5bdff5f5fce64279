"""What a run in a cluster is doing: asked of its coordinator, through the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.errors import RunError, no_instance
from runtime.json_schema import parse
from tstorm.k8s import coordinator_follower, find, podexec
from tstorm.k8s.connection import ApiConnection
from tstorm.k8s.coordinator_follower import PROGRAM
from tstorm.k8s.find import ClusterRun
from tstorm.k8s.waiting import reasons


def inspect(connection: ApiConnection, run: str | None, namespace: str | None) -> dict[str, Any]:
    """As runtime.launch.run_status.inspect of a live run, with where it is. RunError."""
    found = find.one(connection, run, namespace)
    return {"live": True, "namespace": found.namespace, **state(connection, found)}


def state(connection: ApiConnection, run: ClusterRun) -> dict[str, Any]:
    """What the coordinator says. RunError that names why it says nothing."""
    pod = coordinator_follower.pod_of(connection, run.namespace)
    phase = pod.get("status", {}).get("phase") if pod else None
    if pod is None or phase == "Pending":
        why = "; ".join(one.text for one in reasons(connection, run.namespace))
        raise RunError(f"run {run.text} has not begun: {why or 'its pods are being made'}")
    if phase in ("Failed", "Succeeded"):
        how = coordinator_follower.how_ended(pod)
        remedy = f"tstorm destroy --backend k8s --namespace {run.namespace} removes what is left"
        raise RunError(f"run {run.text} is over: {how}", remedy)
    data = podexec.answer(connection, coordinator_follower.place_of(pod), [PROGRAM, "state"])
    answer = parse(data, f"the answer of run {run.text}")
    if type(answer) is not dict:
        raise RunError(f"the answer of run {run.text} is none")
    if "error" in answer:
        raise RunError(str(answer["error"]), str(answer.get("remedy", "")))
    return answer


def instance_state(shown: Mapping[str, Any], name: str) -> str:
    """Of an instance, as state() has it; RunError if the run has none of this name."""
    known = [one["name"] for one in shown["instances"]]
    for one in shown["instances"]:
        if one["name"] == name:
            return str(one["state"])
    raise no_instance(name, known)
