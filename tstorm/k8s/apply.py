"""Puts an experiment into a cluster: the rendered objects, and what belongs to one run of it.

The Namespace is created, not applied, so that of two runs with one name only one begins; it says
which run it is for, and whose. Then come the run's key and what its coordinator is told, then all
rendered documents as they are, by server-side apply.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.plan.format import TOOL_VERSION
from manifests.kubernetes_labels import common, notes
from runtime.errors import RunError
from runtime.rpc.secure import make_key
from tstorm.k8s import find
from tstorm.k8s.connection import CONFLICT, ApiConnection, JsonObject, ServerError
from tstorm.k8s.documents import Document, path_of
from tstorm.k8s.find import OWNER, RUN, VERSION

KEY_SECRET, RUN_CONFIG = "tstorm-auth", "tstorm-run"


@dataclass(frozen=True, slots=True)
class AppliedExperiment:
    """What is applied. `documents`: the rendered ones, the Namespace first."""

    namespace: str
    digest: str
    documents: Sequence[Document]


def begin(connection: ApiConnection, experiment: AppliedExperiment, run_id: str) -> str:
    """Takes the namespace for this run; its uid. RunError if it is taken; nothing was changed
    then."""
    value = experiment.documents[0].value
    meta = {**value["metadata"]}
    meta["annotations"] = {
        **meta.get("annotations", {}),
        RUN: run_id,
        OWNER: find.myself(connection),
        VERSION: TOOL_VERSION,
    }
    try:
        made = connection.create(path_of("Namespace"), {**value, "metadata": meta})
    except ServerError as error:
        if error.status == CONFLICT:
            raise _taken(connection, experiment.namespace) from error
        found = _made(connection, experiment.namespace, run_id) if error.is_passing else None
        if found is None:
            raise
        made = found
    return str(made["metadata"]["uid"])


def _made(connection: ApiConnection, namespace: str, run_id: str) -> JsonObject | None:
    """A namespace of this run, after the answer to its creation was lost. ServerError."""
    found = connection.find(path_of("Namespace", name=namespace))
    run = find.decode(found) if found is not None else None
    return found if run is not None and run.run_id == run_id else None


def _taken(connection: ApiConnection, namespace: str) -> RunError:
    """Who has a namespace that could not be created."""
    found = connection.find(path_of("Namespace", name=namespace))
    if found is None:
        return RunError(f"the namespace {namespace} has just been removed", "try again")
    run = find.decode(found)
    if run is None:
        return RunError(
            f"the cluster has a namespace {namespace} that is not an experiment's",
            "choose another --namespace: a run makes its own and removes it",
        )
    if run.leaving:
        return RunError(
            f"the namespace {namespace} of run {run.text} is still being removed",
            "wait, or choose another --namespace",
        )
    other = f", of release {run.version}" if run.version not in ("", TOOL_VERSION) else ""
    return RunError(
        f"run {run.text} is in namespace {namespace}{other}",
        f"end it (tstorm destroy --backend k8s --namespace {namespace}) or choose another "
        "--namespace",
    )


def put(
    connection: ApiConnection,
    experiment: AppliedExperiment,
    run_config: Mapping[str, Any],
    check: Callable[[], None],
) -> None:
    """Everything, after begin(). `check` is called between objects and may raise. ServerError."""
    for value in _of_run(experiment, run_config):
        connection.create(path_of(str(value["kind"]), experiment.namespace), value)
    for document in experiment.documents:
        check()
        connection.apply(document.path, document.text)


def _of_run(experiment: AppliedExperiment, run_config: Mapping[str, Any]) -> list[dict[str, Any]]:
    def meta(name: str) -> dict[str, Any]:
        return {
            "name": name,
            "namespace": experiment.namespace,
            "labels": common("thunderstorm", "run", experiment.digest),
            "annotations": {**notes(experiment.digest), RUN: run_config["run_id"]},
        }

    key = base64.b64encode(make_key()).decode("ascii")
    text = json.dumps(run_config, sort_keys=True)
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": meta(KEY_SECRET),
            "type": "Opaque",
            "immutable": True,
            "data": {"key": key},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta(RUN_CONFIG),
            "immutable": True,
            "data": {"run.json": text},
        },
    ]
