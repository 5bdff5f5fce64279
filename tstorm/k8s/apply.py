"""Puts an experiment into a cluster: the rendered objects, and what belongs to one run of it.

The root (tstorm.k8s.find.Root) is created, not applied, so that of two runs with one name only one
begins; it says which run it is for, and whose. Then come the run's key and what its coordinator is
told, then all rendered documents as they are, by server-side apply. In a namespace that was given
they have an owner, the root, with which they go; nothing else there is touched.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compiler.plan.format import TOOL_VERSION
from manifests.kubernetes_labels import common, notes
from runtime.errors import MachineError, RunError
from runtime.rpc.secure import make_key
from tstorm.k8s import find
from tstorm.k8s.connection import (
    CONFLICT,
    FORBIDDEN,
    NOT_FOUND,
    ApiConnection,
    JsonObject,
    ServerError,
)
from tstorm.k8s.documents import Document, path_of
from tstorm.k8s.find import GIVEN, OWNER, RUN, VERSION, Root

KEY_SECRET, RUN_CONFIG = "tstorm-auth", "tstorm-run"
_LEVEL = "pod-security.kubernetes.io/enforce"


@dataclass(frozen=True, slots=True)
class AppliedExperiment:
    """What is applied. `documents`: the rendered ones, the Namespace first. `is_named`: the user
    has said which namespace."""

    namespace: str
    digest: str
    documents: Sequence[Document]
    is_named: bool = False


def begin(
    connection: ApiConnection, experiment: AppliedExperiment, run_id: str, root: Root
) -> Root:
    """Takes the namespace for this run; the root with its uid. RunError if it is taken; nothing was
    changed then."""
    value = _given(experiment) if root.is_given else experiment.documents[0].value
    meta = {**value["metadata"]}
    meta["annotations"] = {
        **meta.get("annotations", {}),
        RUN: run_id,
        OWNER: find.myself(connection),
        VERSION: TOOL_VERSION,
    }
    if root.is_given:
        _demand_room(connection, experiment.namespace)
    try:
        made = connection.create(root.path.rpartition("/")[0], {**value, "metadata": meta})
    except ServerError as error:
        if error.status == CONFLICT:
            raise _taken(connection, root) from error
        if root.is_given and error.status == NOT_FOUND:
            raise RunError(
                f"the cluster has no namespace {root.namespace}, and you may not create one",
                "ask for it, or name one that you were given (docs/kubernetes.md, rights)",
            ) from error
        found = _made(connection, root, run_id) if error.is_passing else None
        if found is None:
            raise
        made = found
    return replace(root, uid=str(made["metadata"]["uid"]))


def _given(experiment: AppliedExperiment) -> dict[str, Any]:
    """The root in a namespace that was given."""
    labels = common("thunderstorm", "experiment", experiment.digest)
    meta = {"name": GIVEN, "namespace": experiment.namespace, "labels": labels}
    about = {"annotations": notes(experiment.digest)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**meta, **about}}


def _demand_room(connection: ApiConnection, namespace: str) -> None:
    """RunError if a namespace is another run's own, or refuses agents."""
    try:
        found = connection.find(path_of("Namespace", name=namespace))
    except ServerError as error:
        if error.status != FORBIDDEN:
            raise
        return  # nobody can know: what is refused will be told
    if found is not None and find.decode(found) is not None:
        raise _taken(connection, Root(namespace))
    labels = found["metadata"].get("labels") or {} if found is not None else {}
    level = labels.get(_LEVEL, "privileged")
    if level != "privileged":
        raise MachineError(
            f"namespace {namespace} takes no pods above the Pod Security level {level}, and agents"
            " need privileged",
            f"have somebody who may do it label it {_LEVEL}=privileged",
        )


def _made(connection: ApiConnection, root: Root, run_id: str) -> JsonObject | None:
    """A root of this run, after the answer to its creation was lost. ServerError."""
    found = connection.find(root.path)
    run = find.decode(found) if found is not None else None
    return found if run is not None and run.run_id == run_id else None


def _taken(connection: ApiConnection, root: Root) -> RunError:
    """Who has a root that could not be created."""
    found, namespace = connection.find(root.path), root.namespace
    if found is None:
        return RunError(f"{root.text} has just been removed", "try again")
    run = find.decode(found)
    if run is None and root.is_given:
        return RunError(f"namespace {namespace} has a ConfigMap {GIVEN} that is not a run's")
    if run is None:
        return RunError(
            f"the cluster has a namespace {namespace} that is not an experiment's",
            "choose another --namespace: a run makes its own and removes it, if you may create one",
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
    root: Root,
) -> None:
    """Everything, after begin(). `check` is called between objects and may raise. ServerError."""
    for value in _of_run(experiment, run_config):
        path = path_of(str(value["kind"]), experiment.namespace)
        connection.create(path, _owned(value, root) if root.is_given else value)
    for document in experiment.documents[1:] if root.is_given else experiment.documents:
        check()
        text = json.dumps(_owned(document.value, root)) if root.is_given else document.text
        connection.apply(document.path, text)


def _owned(value: Mapping[str, Any], root: Root) -> dict[str, Any]:
    """An object that goes when the root does."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": GIVEN, "uid": root.uid}
    owners = [{**owner, "blockOwnerDeletion": True}]
    return {**value, "metadata": {**value["metadata"], "ownerReferences": owners}}


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
