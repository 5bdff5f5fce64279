"""The logs of a failed run's agents and of its coordinator, taken into the run directory before
their pods go: agents/NODE.log and coordinator.log. Messages of the run refer to them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from manifests.kubernetes_labels import component_selector
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import AGENTS, COORDINATOR_LOG
from runtime.say import some
from tstorm.k8s.connection import ApiConnection, ServerError
from tstorm.k8s.documents import path_of
from tstorm.k8s.find import OURS

ANSWER_SECONDS = 5.0  # for one log: the kubelet of a node that is away never answers
WHOLE_SECONDS = 30.0
MOST_LINES, MOST_BYTES = "5000", str(4 << 20)
SHOWN = 3
_NODE = re.compile(r"[a-z0-9][a-z0-9.-]*", re.ASCII)


def keep(connection: ApiConnection, namespace: str, directory: HeldDirectory) -> str:
    """Writes them; '' or which are not there, and why. ServerError, OSError."""
    deadline = time.monotonic() + WHOLE_SECONDS
    pods = connection.items(path_of("Pod", namespace), labelSelector=OURS)
    missing: list[str] = []
    why, agents = "", None
    for pod in pods:
        component = next((one for one in ("agent", "coordinator") if _is(pod, one)), "")
        node = str(pod.get("spec", {}).get("nodeName", ""))
        if not component or (component == "agent" and not _NODE.fullmatch(node)):
            continue
        try:
            if time.monotonic() > deadline:
                raise ServerError(f"not within {WHOLE_SECONDS:g} s", 0)
            text = "".join(_texts(connection, pod, component))
        except ServerError as error:
            missing.append(f"the agent on {node}" if component == "agent" else "the coordinator")
            why = why or error.message
            continue
        if component == "coordinator":
            directory.write(COORDINATOR_LOG, text.encode())
        else:
            agents = agents or directory.make(AGENTS)
            agents.write(f"{node}.log", text.encode())
    return f"there is no log of {some(missing, SHOWN)}: {why}" if missing else ""


def _is(pod: Mapping[str, Any], component: str) -> bool:
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    return component_selector(component).items() <= labels.items()


def _texts(connection: ApiConnection, pod: Mapping[str, Any], container: str) -> Iterator[str]:
    """The end of the log, and before it that of a container that was started again. ServerError."""
    meta = pod["metadata"]
    path = f"{path_of('Pod', str(meta['namespace']), str(meta['name']))}/log"
    query = {"container": container, "tailLines": MOST_LINES, "limitBytes": MOST_BYTES}
    if any(one.get("restartCount") for one in pod.get("status", {}).get("containerStatuses", [])):
        with suppress(ServerError):  # kubelet keeps only the last one, or none
            yield connection.text(path, {**query, "previous": "true"}, ANSWER_SECONDS)
    yield connection.text(path, query, ANSWER_SECONDS)
