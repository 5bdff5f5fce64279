"""Pods of a run as the API server tells of them, kept up to date.

Input: objects of the API. Output: `Pod`s with what a run needs of them, and a call for each change.
A watch that ends goes on where it was; one that cannot (410: too old) begins anew with a list. An
API server that is away changes nothing: what was known last stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from runtime.backend.k8s.api import GONE, Api, ApiError

SELECTOR = "app.kubernetes.io/part-of=thunderstorm"
COMPONENT = "app.kubernetes.io/component"
POD_INDEX = "apps.kubernetes.io/pod-index"
SERVICE, DIGEST = "thunderstorm.dev/service", "thunderstorm.dev/plan"
INSTANCE, GATE = "instance", "tstorm-gate"  # containers
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.2, 5.0
AWAY_SECONDS = 5.0  # an API server that is away for longer is told


@dataclass(frozen=True, slots=True)
class Container:
    """`state` is waiting, running or terminated; the rest as far as it is known."""

    name: str
    state: str = "waiting"
    reason: str = ""
    message: str = ""
    restarts: int = 0
    ready: bool = False
    status: int = 0  # how it ended, the last time that it did
    signal: int = 0
    container_id: str = ""
    image: str = ""
    image_id: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """`service` and `index` say which instance it is; '' and -1 for agents and the coordinator."""

    name: str
    uid: str
    component: str
    service: str
    index: int
    digest: str
    node: str  # '' before it is placed
    addresses: tuple[str, ...]
    phase: str
    reason: str  # why it is not placed, or failed
    leaving: bool  # its deletion was asked for
    containers: Mapping[str, Container] = field(default_factory=dict)

    @property
    def instance(self) -> str:
        return f"{self.service}.{self.index}" if self.component == INSTANCE else ""

    def running(self, container: str) -> bool:
        found = self.containers.get(container)
        return found is not None and found.state == "running"

    def waits(self) -> str:
        """Why nothing of it runs yet, '' if the API server does not say."""
        if not self.node:
            return self.reason or "it is not placed on a node yet"
        for one in self.containers.values():
            if one.state == "waiting" and one.reason not in ("", "PodInitializing"):
                return f"{one.name}: {one.reason}" + (f": {one.message}" if one.message else "")
        return self.reason


def pod(shown: Any) -> Pod:
    """Out of an object of the API. ApiError if it is no pod."""
    try:
        return _pod(shown)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ApiError(f"the API server sent a pod that is none: {error!r}") from error


def _pod(shown: Any) -> Pod:
    about, wanted, status = shown["metadata"], shown["spec"], shown.get("status", {})
    labels, notes = about.get("labels", {}), about.get("annotations", {})
    name = str(about["name"])
    component = str(labels.get(COMPONENT, ""))
    index = str(labels.get(POD_INDEX, name.rpartition("-")[2])) if component == INSTANCE else "-1"
    every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    found = [_container(one) for one in every]
    addresses = [str(one["ip"]) for one in status.get("podIPs", []) if one.get("ip")]
    return Pod(
        name=name,
        uid=str(about["uid"]),
        component=component,
        service=str(notes.get(SERVICE, "")),
        index=int(index),
        digest=str(notes.get(DIGEST, "")),
        node=str(wanted.get("nodeName", "")),
        addresses=tuple(addresses),
        phase=str(status.get("phase", "")),
        reason=_reason(status),
        leaving="deletionTimestamp" in about,
        containers={one.name: one for one in found},
    )


def _reason(status: Any) -> str:
    told = [str(status[key]) for key in ("reason", "message") if status.get(key)]
    if told:
        return ": ".join(told)
    for condition in status.get("conditions", []):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    return ""


def _container(shown: Any) -> Container:
    state = shown.get("state", {})
    kind = next(iter(state), "waiting")
    facts = state.get(kind, {})
    last = shown.get("lastState", {}).get("terminated", {})
    ended = facts if kind == "terminated" else last
    return Container(
        name=str(shown["name"]),
        state=str(kind),
        reason=str(facts.get("reason", "")),
        message=str(facts.get("message", "")),
        restarts=int(shown.get("restartCount", 0)),
        ready=bool(shown.get("ready", False)),
        status=int(ended.get("exitCode", 0)),
        signal=int(ended.get("signal", 0)),
        container_id=str(shown.get("containerID", "")),
        image=str(shown.get("image", "")),
        image_id=str(shown.get("imageID", "")),
    )


OnChange = Callable[[Pod | None, Pod | None], None]  # before, after; None: there is none
Notice = Callable[[str], None]


class PodWatch:
    """`pods` by name, as they were told last; `on_change` hears of each that differs."""

    def __init__(self, api: Api, notice: Notice) -> None:
        self.pods: dict[str, Pod] = {}
        self.listed = asyncio.Event()  # once all of them are known
        self.on_change: OnChange = lambda _before, _after: None
        self._api = api
        self._notice = notice
        self._version = ""  # '': a list is needed
        self._away_since: float | None = None
        self._told_away = False

    async def run(self) -> None:
        """Until it is cancelled. ApiError only where the first list is refused for good."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._follow()
                pause = FIRST_PAUSE_SECONDS
            except ApiError as error:
                if error.final and not self.listed.is_set():
                    raise
                heard = self._away_since is None
                self._trouble(error)
                pause = FIRST_PAUSE_SECONDS if heard else min(2 * pause, LAST_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    async def _list(self) -> None:
        listed = await self._api.pods(SELECTOR)
        now = {found.name: found for found in map(pod, listed.items)}
        self._version = listed.version
        self._heard()
        for name in sorted(self.pods.keys() - now.keys()):
            self._change(self.pods[name], None)
        for name in sorted(now):
            self._change(self.pods.get(name), now[name])
        self.listed.set()

    async def _follow(self) -> None:
        async with aclosing(self._api.changes(SELECTOR, self._version)) as changes:
            async for change in changes:
                self._heard()
                self._take(change)

    def _take(self, change: Mapping[str, Any]) -> None:
        kind, shown = change.get("type"), change.get("object")
        try:
            version = str(shown["metadata"]["resourceVersion"])  # type: ignore[index]
        except (KeyError, TypeError) as error:
            raise ApiError(f"the API server sent a change of nothing: {error!r}") from error
        if kind in ("ADDED", "MODIFIED"):
            found = pod(shown)
            self._change(self.pods.get(found.name), found)
        elif kind == "DELETED":
            found = pod(shown)
            self._change(self.pods.get(found.name), None)
        elif kind != "BOOKMARK":
            raise ApiError(f"the API server sent a change of kind {kind!r:.40}")
        self._version = version

    def _change(self, before: Pod | None, after: Pod | None) -> None:
        if before == after:
            return
        if after is not None:
            self.pods[after.name] = after
        elif before is not None:
            del self.pods[before.name]
        self.on_change(before, after)

    def _heard(self) -> None:
        if self._told_away:
            self._notice("the API server answers again")
        self._away_since, self._told_away = None, False

    def _trouble(self, error: ApiError) -> None:
        """A list anew, unless only the connection broke; told if it lasts."""
        if error.status:
            self._version = ""
        if error.status == GONE:
            return
        now = asyncio.get_running_loop().time()
        self._away_since = self._away_since or now
        if now - self._away_since >= AWAY_SECONDS and not self._told_away:
            self._told_away = True
            self._notice(f"{error.message}; the run goes on with what is known of its pods")
