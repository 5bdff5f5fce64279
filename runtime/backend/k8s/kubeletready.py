"""Whether a program behind a gate is ready, as kubelet finds out by the probe that the manifests
state, and the API server tells: for the records of the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from runtime import say
from runtime.backend.base import Log
from runtime.backend.k8s.pods import Container


class KubeletReadiness:
    """`timeout_ns` is from the container's start on; `t0_ns` gives 0 before the start, and what
    comes before it is recorded when `begin` is called."""

    def __init__(
        self,
        name: str,
        timeout_ns: int,
        t0_ns: Callable[[], int],
        record: Log,
        warn: Callable[[str], None],
    ) -> None:
        self._name = name
        self._timeout_ns = timeout_ns
        self._t0_ns = t0_ns
        self._record = record
        self._warn = warn
        self._since_ns = 0  # 0: its container does not run
        self._ready_ns = 0  # and is not recorded yet
        self._timer: asyncio.TimerHandle | None = None

    def changed(self, was: Container | None, now: Container) -> None:
        runs = now.state == "running"
        again = was is not None and was.restarts != now.restarts
        if self._since_ns and (not runs or again):
            self._stop()
        if runs and not self._since_ns:
            self._since_ns = time.monotonic_ns()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._timeout_ns / 1e9, self._not_ready)
        if runs and now.ready and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._ready_ns = time.monotonic_ns()
            self.begin()

    def begin(self) -> None:
        """The start is known, or something is ready after it."""
        if not self._ready_ns or not self._t0_ns():
            return
        at_ns, took_ns = self._ready_ns - self._t0_ns(), self._ready_ns - self._since_ns
        self._ready_ns = 0
        times = {"applied_ns": at_ns, "ready_ns": at_ns, "took_ns": took_ns}
        self._record({"kind": "ready", "target": self._name, **times})

    def _not_ready(self) -> None:
        self._timer = None
        reason = f"not within {say.seconds(self._timeout_ns)} (ready-timeout=)"
        if self._t0_ns():
            at_ns = time.monotonic_ns() - self._t0_ns()
            record = {"target": self._name, "applied_ns": at_ns, "took_ns": self._timeout_ns}
            self._record({"kind": "not_ready", **record, "reason": reason})
        self._warn(f"{self._name} is not ready: {reason}")

    def _stop(self) -> None:
        self._since_ns = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
