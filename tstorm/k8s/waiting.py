"""Waits with reasons: looks at what does not start, names every reason once, gives up in time.

A reason that lasts longer than its kind allows (tstorm/k8s/blockers.py) ends the run; where nothing
is wrong and still nothing moves, what is waited for is said every 30 s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from runtime.errors import MachineError
from runtime.say import some
from tstorm.k8s import admitted, blockers
from tstorm.k8s.blockers import Blocker, Treatment
from tstorm.k8s.connection import ApiConnection, JsonObject, ServerError
from tstorm.k8s.documents import path_of
from tstorm.k8s.find import OURS, Root
from tstorm.k8s.preflight import runtime_classes

QUIET_SECONDS = 30.0
REMOVING_SECONDS = 15.0  # of a removal, until it is said what keeps it, and from then on
_SETS = ("DaemonSet", "StatefulSet", "Job")


class Waiting:
    """Of one namespace. `say` is called with a line and whether it is a warning."""

    def __init__(
        self,
        connection: ApiConnection,
        namespace: str,
        say: Callable[[str, bool], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._say = say
        self._clock = clock
        self._since: dict[Blocker, float] = {}
        self._named: set[Blocker] = set()
        self._warned: set[str] = set()
        self._quiet_since = clock()

    def look(self) -> None:
        """Once. MachineError if something has stood in the way for too long; ServerError."""
        found, pods = _find(self._connection, self._namespace)
        now = self._clock()
        self._since = {one: self._since.get(one, now) for one in found}
        for one in found:
            if one not in self._named:
                self._named.add(one)
                self._tell(one.text, warning=True)
        self._warn(pods)
        lasting = [one for one in found if now - self._since[one] >= one.kind.patience]
        if lasting:
            raise _given_up(lasting, self._last_words(lasting))
        if now - self._quiet_since >= QUIET_SECONDS:
            needless = {who for one in found if one.elsewhere for who in one.who}
            self._tell(_waits_for(pods, needless))

    def _warn(self, pods: list[JsonObject]) -> None:
        """Of what the run bears and the user may not have meant."""
        services = self._connection.items(path_of("Service", self._namespace))
        for text in admitted.unshaped(services, pods):
            if text not in self._warned:
                self._warned.add(text)
                self._tell(text, warning=True)

    def _last_words(self, found: Iterable[Blocker]) -> str:
        """Of a container that keeps ending, as far as it has said any."""
        for one in found:
            if one.reason == blockers.CRASHING:
                path = f"{path_of('Pod', self._namespace, one.who[0])}/log"
                with suppress(ServerError):
                    query = {"container": one.container, "previous": "true", "tailLines": "1"}
                    return self._connection.text(path, query).strip()
        return ""

    def _tell(self, text: str, *, warning: bool = False) -> None:
        self._quiet_since = self._clock()
        self._say(text, warning)


def reasons(connection: ApiConnection, namespace: str) -> list[Blocker]:
    """Of a namespace, now. ServerError."""
    return _find(connection, namespace)[0]


def _find(connection: ApiConnection, namespace: str) -> tuple[list[Blocker], list[JsonObject]]:
    """And the pods. A list does not say of each object what kind it is."""

    def ours(kind: str) -> list[JsonObject]:
        return connection.items(path_of(kind, namespace), labelSelector=OURS)

    pods = ours("Pod")
    sets = [{**one, "kind": kind} for kind in _SETS for one in ours(kind)]
    refused = [
        Blocker("refused", one.text, one.message, one.pods, Treatment(blockers.AT_ONCE, one.remedy))
        for one in admitted.refusals(pods, _classes(connection, pods))
    ]
    events = connection.items(path_of("Event", namespace))
    return [*refused, *blockers.find(pods, sets, events)], pods


def _classes(connection: ApiConnection, pods: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """RuntimeClasses, where pods have one: what it is may not be told by its name."""
    if not any(pod["spec"].get("runtimeClassName") for pod in pods):
        return []
    return runtime_classes(connection) or []


def _given_up(lasting: list[Blocker], words: str) -> MachineError:
    said = f"; it said: {words}" if words else ""
    remedies = dict.fromkeys(one.kind.remedy for one in lasting if one.kind.remedy)
    return MachineError(
        f"the experiment cannot start: {'; '.join(one.text for one in lasting)}{said}",
        "; ".join(remedies),
    )


def _waits_for(pods: Sequence[Mapping[str, Any]], needless: Container[str]) -> str:
    if not pods:
        return "waiting for the cluster to make pods: there are none yet"
    every = sorted(str(pod["metadata"]["name"]) for pod in pods if not _runs(pod))
    names = [name for name in every if name not in needless]
    if not names:
        return "all pods run; waiting for the coordinator"
    return f"waiting for {some(names, blockers.SHOWN_PODS, word='pod')}"


def _runs(pod: Mapping[str, Any]) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Running")


def until_gone(
    connection: ApiConnection,
    root: Root,
    seconds: float,
    rest: Callable[[float], bool],
    say: Callable[[str], None],
) -> str:
    """Waits until a deleted root is gone; '' or why it may be there. `rest` waits so many seconds;
    it returns False to stop the waiting. `say` is told what is waited for, if that takes long. An
    API server that is away meanwhile is asked again. ServerError."""
    now = time.monotonic()
    deadline, told = now + seconds, now
    while True:
        try:
            found = connection.find(root.path)
            if found is None or (root.uid and found["metadata"]["uid"] != root.uid):
                return ""
            kept = _kept_by(found)
        except ServerError as error:
            if not error.is_passing:
                raise
            kept = error.message
        now = time.monotonic()
        if now - told >= REMOVING_SECONDS:
            told, left = now, _left(connection, root.namespace)
            say(f"waiting for the end of {root.text}: {left or kept}")
        if now > deadline or not rest(0.5):
            return kept


def _left(connection: ApiConnection, namespace: str) -> str:
    """The pods of a run that are still there, with their nodes; '' if none is, or nobody knows."""
    with suppress(ServerError):
        pods = connection.items(path_of("Pod", namespace), labelSelector=OURS)
        names = sorted(
            f"{pod['metadata']['name']} on {pod.get('spec', {}).get('nodeName') or 'no node'}"
            for pod in pods
        )
        if names:
            away = "a node that is away keeps its pods until it is back"
            return f"{some(names, blockers.SHOWN_PODS, word='pod')} ({away})"
    return ""


def _kept_by(root: Mapping[str, Any]) -> str:
    conditions = root.get("status", {}).get("conditions", [])
    said = [
        str(one.get("message"))
        for one in conditions
        if one.get("status") == "True" and one.get("message")
    ]
    return "; ".join(said) or "the cluster has not removed it yet"
