"""Hears of files in the containers of this node's instances, for `when file` (docs/tdl.md).

A container's root is looked into through /proc/PID/root of its tstorm-hold, step by step and
without following links, so nothing outside of it is ever watched; it takes no right beside those
with which reports are read, and the rights of the directories count (runtime/system/inotify.py has
the rules).
A path begins at the service's cwd=, which need not be there yet.

A program may change its files as often as it likes: of an instance MOST changes are told, and the
agent's other work comes between two reads.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence

from compiler.plan.types import Topology
from runtime.agent.pod.podprocesses import PROC
from runtime.errors import RunError
from runtime.system.inotify import FileWatch

MOST = 20_000  # of an instance in a run; a `when` happens 10,000 times at most


def waited_for(topology: Topology, own: Sequence[int]) -> dict[int, list[str]]:
    """By node, the paths that a `when file` of the plan is about."""
    found: dict[int, set[str]] = {}
    for one in topology.reactions:
        for node in one.nodes if one.kind == "file" else ():
            if node in own:
                found.setdefault(node, set()).add(one.pattern)
    return {node: sorted(paths) for node, paths in sorted(found.items())}


class ContainerFiles:
    """`wanted`: paths by node; `folders`: the cwd= of each. `changed` is told of a change: node,
    path, how; `warn` of what is not told any more; `broken` why nothing can be heard."""

    def __init__(
        self,
        wanted: Mapping[int, Sequence[str]],
        folders: Mapping[int, str],
        changed: Callable[[int, str, str], None],
        warn: Callable[[int, str], None],
        broken: Callable[[RunError], None],
    ) -> None:
        self._wanted = wanted
        self._before = {node: folders[node].strip("/").split("/") for node in wanted}
        self._changed, self._warn, self._broken = changed, warn, broken
        self._told = dict.fromkeys(wanted, 0)
        self._watch: FileWatch | None = None
        self._begun = False

    def open(self, node: int, pid: int) -> None:
        """From now on those of the container of this process, if any are waited for."""
        if node not in self._wanted or self._told[node] > MOST:
            return
        before = "/".join(filter(None, self._before[node]))
        paths = [f"{before}/{path}".lstrip("/") for path in self._wanted[node]]
        try:
            if self._watch is None:
                self._watch = FileWatch({}, {})
                if self._begun:
                    self._listen()
            self._watch.add(str(node), os.fspath(PROC / str(pid) / "root"), paths)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended in this moment, which is told as ever
        except OSError as error:
            self._broken(_unheard(error))

    def close_one(self, node: int) -> None:
        """Its container has ended."""
        if self._watch is not None:
            self._watch.forget(str(node))

    def begin(self) -> None:
        """At time 0: what has happened by then does not count."""
        self._begun = True
        if self._watch is not None:
            try:
                for _ in self._watch.changes():
                    pass
            except (OSError, OverflowError) as error:
                self._broken(_unheard(error))
                return
            self._listen()

    def _listen(self) -> None:
        asyncio.get_running_loop().add_reader(self._fileno(), self._look)

    def _fileno(self) -> int:
        assert self._watch is not None
        return self._watch.fileno()

    def _look(self) -> None:
        assert self._watch is not None
        try:
            for one in self._watch.changes(most=1):
                self._take(int(one.owner), one.path, one.how)
        except (OSError, OverflowError) as error:
            asyncio.get_running_loop().remove_reader(self._fileno())
            self._broken(_unheard(error))

    def _take(self, node: int, path: str, how: str) -> None:
        before = "/".join(filter(None, self._before[node]))
        self._told[node] += 1
        if self._told[node] <= MOST:
            self._changed(node, path.removeprefix(f"{before}/") if before else path, how)
        elif self._told[node] == MOST + 1:
            self._warn(
                node, f"its files have changed {MOST:,} times: later changes are not heard of"
            )

    def close(self) -> None:
        if self._watch is not None:
            if self._begun:
                asyncio.get_running_loop().remove_reader(self._fileno())
            self._watch.close()
            self._watch = None


def _unheard(error: OSError | OverflowError) -> RunError:
    reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
    return RunError(f"files that a `when file` waits for cannot be heard of: {reason}")
