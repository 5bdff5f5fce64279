"""Removes experiments from a cluster: their roots (tstorm.k8s.find.Root), and all in them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from runtime.errors import RunError
from tstorm.k8s import find
from tstorm.k8s.connection import ApiConnection, ServerError
from tstorm.k8s.find import ClusterRun, Root
from tstorm.k8s.waiting import until_gone

GONE_SECONDS = 180.0  # agents have ten to leave the nodes as they were


@dataclass(frozen=True, slots=True)
class Removed:
    """`kept`: why its namespace may still be there, '' if it is gone. `is_foreign`: somebody else
    began it, or nobody knows who; `is_left`: nothing was done about it."""

    run: ClusterRun
    kept: str = ""
    is_foreign: bool = False
    is_left: bool = False


def remove(
    connection: ApiConnection, root: Root, rest: Callable[[float], bool], say: Callable[[str], None]
) -> str:
    """Deletes a root and waits until it is gone; '' or why it may be there. `rest`, `say`: see
    until_gone. ServerError."""
    unasked = _ask(connection, root, rest)
    return unasked or until_gone(connection, root, GONE_SECONDS, rest, say)


def _ask(connection: ApiConnection, root: Root, rest: Callable[[float], bool]) -> str:
    """Has a root deleted. '' or why nobody knows whether it is; ServerError if refused."""
    deadline = time.monotonic() + GONE_SECONDS
    while True:
        try:
            connection.delete(root.path, root.uid, after_owned=root.is_given)
        except ServerError as error:
            if not error.is_passing:
                raise
            if time.monotonic() > deadline or not rest(0.5):
                return error.message
        else:
            return ""


def destroy(
    connection: ApiConnection,
    run: str | None,
    namespace: str | None,
    *,
    everything: bool,
    say: Callable[[str], None],
) -> list[Removed]:
    """One run, or all that the user began. If neither run nor namespace is named, only runs of the
    user count. A run that is unknown is destroyed already; one that is leaving is waited for.
    `say`: see until_gone. RunError."""
    there = find.runs(connection, namespace)
    me = find.myself(connection) if there else ""
    if run is None and (everything or namespace is None):
        own = _own(there, me)
        found = own if everything else _single(own)
        others = [one for one in there if one not in own] if everything or not own else []
    else:
        wanted = None if run is None else find.run_name(run)
        found, others = _single([one for one in there if wanted in (None, one.run_id)]), []
    unasked = [_ask(connection, one.root, _sleep) for one in found]
    kept = [
        why or until_gone(connection, one.root, GONE_SECONDS, _sleep, say)
        for one, why in zip(found, unasked, strict=True)
    ]
    done = [
        Removed(one, why, is_foreign=one.owner != me) for one, why in zip(found, kept, strict=True)
    ]
    return [*done, *(Removed(one, is_foreign=True, is_left=True) for one in others)]


def _own(there: list[ClusterRun], me: str) -> list[ClusterRun]:
    if there and not me:
        raise RunError(
            "the cluster does not say who you are: nobody knows which runs are yours",
            "give RUN, or without --all the --namespace of one",
        )
    return [one for one in there if one.owner == me]


def _single(found: list[ClusterRun]) -> list[ClusterRun]:
    """What goes on, else what is leaving."""
    live = [one for one in found if not one.leaving]
    if len(live) > 1:
        names = ", ".join(f"{one.run_id or '-'} in {one.namespace}" for one in live)
        raise RunError(
            "there is more than one run", f"name one or its --namespace, or say --all: {names}"
        )
    return live or found


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True
