"""Removes experiments from a cluster: their namespaces, with everything in them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from runtime.errors import RunError
from tstorm.k8s import find
from tstorm.k8s.connection import ApiConnection
from tstorm.k8s.documents import path_of
from tstorm.k8s.find import ClusterRun
from tstorm.k8s.waiting import until_gone

GONE_SECONDS = 180.0  # agents have ten to leave the nodes as they were


@dataclass(frozen=True, slots=True)
class Removed:
    """`kept`: why its namespace is still there, '' if it is gone; `another`: whose it is."""

    run: ClusterRun
    kept: str = ""
    another: str = ""


def remove(connection: ApiConnection, namespace: str, rest: Callable[[float], bool]) -> str:
    """Deletes a namespace and waits until it is gone; '' or what still keeps it. ServerError."""
    connection.delete(path_of("Namespace", name=namespace))
    return until_gone(connection, namespace, GONE_SECONDS, rest)


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
    for one in found:
        connection.delete(path_of("Namespace", name=one.namespace))
    gone = [until_gone(connection, one.namespace, GONE_SECONDS, _sleep) for one in found]
    return [*(Removed(one, kept) for one, kept in zip(found, gone, strict=True)), *others]


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True
