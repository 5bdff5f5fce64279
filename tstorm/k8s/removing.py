"""Removes experiments from a cluster: their namespaces, with everything in them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from runtime.errors import RunError
from tstorm.k8s import find
from tstorm.k8s.connection import ApiConnection, ServerError
from tstorm.k8s.documents import path_of
from tstorm.k8s.find import ClusterRun
from tstorm.k8s.waiting import until_gone

GONE_SECONDS = 180.0  # agents have ten to leave the nodes as they were


@dataclass(frozen=True, slots=True)
class Removed:
    """`kept`: why its namespace may still be there, '' if it is gone; `another`: whose it is."""

    run: ClusterRun
    kept: str = ""
    another: str = ""


def remove(
    connection: ApiConnection, namespace: str, rest: Callable[[float], bool], uid: str = ""
) -> str:
    """Deletes a namespace and waits until it is gone; '' or why it may be there. `uid`: only the
    one that has it. `rest`: see until_gone. ServerError."""
    unasked = _ask(connection, namespace, rest, uid)
    return unasked or until_gone(connection, namespace, GONE_SECONDS, rest, uid)


def _ask(connection: ApiConnection, namespace: str, rest: Callable[[float], bool], uid: str) -> str:
    """Has a namespace deleted. '' or why nobody knows whether it is; ServerError if refused."""
    deadline = time.monotonic() + GONE_SECONDS
    while True:
        try:
            connection.delete(path_of("Namespace", name=namespace), uid)
        except ServerError as error:
            if not error.is_passing:
                raise
            if time.monotonic() > deadline or not rest(0.5):
                return error.message
        else:
            return ""


def destroy(
    connection: ApiConnection, run: str | None, namespace: str | None, *, everything: bool
) -> list[Removed]:
    """One run, or all that the user began. RunError."""
    if not everything:
        try:
            found = [find.one(connection, run, namespace)]
        except RunError:
            if run is None and not find.runs(connection, namespace):
                return []
            raise
        others: list[Removed] = []
    else:
        me = find.myself(connection)
        there = find.runs(connection, namespace)
        found = [one for one in there if not me or one.owner == me]
        others = [Removed(one, another=one.owner or "?") for one in there if one not in found]
    unasked = [_ask(connection, one.namespace, _sleep, one.uid) for one in found]
    kept = [
        why or until_gone(connection, one.namespace, GONE_SECONDS, _sleep, one.uid)
        for one, why in zip(found, unasked, strict=True)
    ]
    return [*map(Removed, found, kept), *others]


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True
