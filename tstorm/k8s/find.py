"""The runs in a cluster, found by the labels of their namespaces: from any machine, by anybody.

A run owns its namespace, or in one that was given to its user a ConfigMap (`Root`): annotations
of that say which run it is for (tstorm/k8s/apply.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.kubernetes_labels import LABELS
from runtime.errors import RunError
from tstorm.k8s.connection import FORBIDDEN, NOT_FOUND, ApiConnection, ServerError
from tstorm.k8s.documents import path_of

RUN, OWNER, VERSION = f"{LABELS}/run", f"{LABELS}/owner", f"{LABELS}/version"  # annotations
GIVEN = "tstorm-experiment"  # the ConfigMap that owns a run's objects in a namespace of others
OURS = "app.kubernetes.io/part-of=thunderstorm"  # objects that are not somebody else's
SELECTOR = "app.kubernetes.io/managed-by=tstorm,app.kubernetes.io/component=experiment"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@dataclass(frozen=True, slots=True)
class Root:
    """What holds all objects of a run, so that they go when it is deleted: the namespace that the
    run has made, or in one that was `given` the ConfigMap that owns them. Another `uid` is
    another run's."""

    namespace: str
    is_given: bool = False
    uid: str = ""

    @property
    def path(self) -> str:
        if self.is_given:
            return path_of("ConfigMap", self.namespace, GIVEN)
        return path_of("Namespace", name=self.namespace)

    @property
    def text(self) -> str:
        if self.is_given:
            return f"the run's objects in namespace {self.namespace}"
        return f"the run's namespace {self.namespace}"


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """A root of ours. `run_id` is '' where it was applied by hand."""

    namespace: str
    run_id: str
    owner: str
    version: str
    digest: str
    leaving: bool
    root: Root

    @property
    def text(self) -> str:
        """What it is called."""
        return self.run_id or f"in {self.namespace} (applied by hand)"


def myself(connection: ApiConnection) -> str:
    """What the API server calls the user, '' where it does not say."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = connection.create(_WHO, body)
    except ServerError as error:
        if error.status in (FORBIDDEN, NOT_FOUND):
            return ""
        raise
    return str(answer.get("status", {}).get("userInfo", {}).get("username", ""))


def decode(found: Mapping[str, Any]) -> ClusterRun | None:
    """Out of what may be a run's root; None for a namespace or ConfigMap that is not ours."""
    meta = found["metadata"]
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    wanted = dict(pair.split("=") for pair in SELECTOR.split(","))
    if not wanted.items() <= labels.items():
        return None
    is_given = "namespace" in meta
    namespace = str(meta["namespace"] if is_given else meta["name"])
    return ClusterRun(
        namespace=namespace,
        run_id=str(notes.get(RUN, "")),
        owner=str(notes.get(OWNER, "")),
        version=str(notes.get(VERSION, "")),
        digest=str(notes.get(f"{LABELS}/plan", "")),
        leaving="deletionTimestamp" in meta,
        root=Root(namespace, is_given, str(meta["uid"])),
    )


def runs(connection: ApiConnection, namespace: str | None = None) -> list[ClusterRun]:
    """All of the cluster, by namespace, or the one in `namespace`. ServerError."""
    if namespace is not None:
        found = [_in(connection, namespace)]
    else:
        try:
            items = connection.items(path_of("Namespace"), labelSelector=SELECTOR)
        except ServerError as error:
            if error.status == FORBIDDEN:
                error.remedy = "say in which --namespace the run is: you may not list them"
            raise
        found = [decode(one) for one in items]
    return sorted((run for run in found if run), key=lambda run: run.namespace)


def _in(connection: ApiConnection, namespace: str) -> ClusterRun | None:
    """The run that has a namespace, or is in one that was given. ServerError, also where the user
    may look at neither root."""
    refused: list[ServerError] = []
    for root in (Root(namespace), Root(namespace, is_given=True)):
        try:
            found = connection.find(root.path)
        except ServerError as error:
            if error.status != FORBIDDEN:
                raise
            refused.append(error)
        else:
            run = decode(found) if found is not None else None
            if run is not None:
                return run
    if len(refused) > 1:
        raise refused[0]
    return None


def one(connection: ApiConnection, run: str | None, namespace: str | None) -> ClusterRun:
    """A run by its name or local directory; None: the only one. RunError says what there is."""
    wanted = None if run is None else run_name(run)
    there = [known for known in runs(connection, namespace) if not known.leaving]
    found = [known for known in there if wanted is None or known.run_id == wanted]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{known.run_id or '-'} in {known.namespace}" for known in there)
    where = f"namespace {namespace}" if namespace else "the cluster"
    if wanted is not None:
        what = f"{where} has no run {wanted!r}" if not found else f"{wanted} is there twice"
    else:
        what = f"{where} has no run" if not found else f"{where} has more than one run"
    raise RunError(what, f"there are: {names}" if names else "start one: tstorm run --backend k8s")


def run_name(run: str) -> str:
    """A run's name, if a run directory was given."""
    from runtime.rundir import rundir
    from tstorm.loading import is_run

    if not is_run(run):
        return Path(run).name if Path(run).is_dir() else run
    return str(rundir.recorded(run).manifest()["run_id"])
