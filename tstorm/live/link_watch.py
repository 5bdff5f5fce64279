"""Follows a link simulator's file: what it says otherwise than the run has it becomes one commit.

The file is compiled by itself, and its links are compared with those between the same services in
the plan of the run, as they are at that moment. A file that is wrong changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.link_changes import NO_LINK, ChangeError, LinkChange, LinkChanges
from compiler.pipeline import compile_source
from compiler.plan.format import PlanError
from compiler.plan.properties import BY_WORD
from compiler.plan.reader import Plan
from compiler.plan.types import Link, Topology
from compiler.sources import SourceFolder
from runtime.errors import RunError
from tdl.diagnostics import Diagnostic, TdlError
from tstorm.live import steer
from tstorm.live.steered_runs import life_of
from tstorm.topologies.load_topology import load_topology

if TYPE_CHECKING:
    from tstorm.options.cluster import Where

_PAUSE_SECONDS = 0.1
_FIELDS = tuple(BY_WORD[word].field for word in ("rate", "delay", "loss"))

Stamp = tuple[int, int, int]
Wrong = Callable[[tuple[Diagnostic, ...]], None]


class _AsItIsError(Exception):
    """The run has what the file says."""


class LinkWatch:
    """`done` is told of each commit, `wrong` of what is wrong with the file, `refused` of what the
    run cannot do."""

    def __init__(
        self,
        run: str,
        file: Path,
        done: Callable[[steer.Done], None],
        wrong: Wrong,
        refused: Callable[[Exception], None],
        where: Where | None = None,
    ) -> None:
        self._run, self._file, self._where = run, file, where
        self._done, self._wrong, self._refused = done, wrong, refused

    def follow(self) -> None:
        """Until the run ends. RunError if there is none."""
        goes_on = life_of(self._run, self._where)
        seen: Stamp | None = None
        while goes_on():
            stamp = self._stamp()
            if stamp is not None and stamp != seen:
                self.look()
                seen = stamp
            time.sleep(_PAUSE_SECONDS)

    def _stamp(self) -> Stamp | None:
        """None while another file takes its place."""
        with suppress(OSError):
            found = self._file.stat()
            return found.st_ino, found.st_mtime_ns, found.st_size
        return None

    def look(self) -> None:
        """Once."""
        text = f'include "{self._file.name}"\nat 1s quit\n'
        try:
            sources = SourceFolder(self._file.parent, load_topology)
            wanted = compile_source(text, sources=sources, doubts=False).plan.topology
        except TdlError as error:
            self._wrong(error.diagnostics)
            return

        def make(plan: Plan, now_ns: int) -> str:
            changes = list(differences(plan, now_ns, wanted))
            if not changes:
                raise _AsItIsError
            meaning = LinkChanges(plan, now_ns)
            return meaning.text(changes, meaning.links(changes))

        try:
            said = f"watch {self._file.name}"
            self._done(steer.do_made(self._run, said, make, self._where))
        except _AsItIsError:
            return
        except (ChangeError, RunError, PlanError, steer.ActionError) as error:
            self._refused(error)


def differences(plan: Plan, now_ns: int, wanted: Topology) -> Iterator[LinkChange]:
    """What the run's links are to have otherwise. ChangeError if it has no such link."""
    links, states = plan.topology.links, plan.folded_at(now_ns).links
    present: dict[tuple[str, str], list[int]] = {}
    for number, link in enumerate(links):
        present.setdefault(_services(plan.topology, link), []).append(number)
    for link in wanted.links:
        ends = _services(wanted, link)
        if ends not in present:
            raise ChangeError(NO_LINK, f"the run has no link {'->'.join(ends)}", "declare it first")
        for number in present[ends]:
            now = states[number]
            values = {
                field: getattr(link.state, field)
                for field in _FIELDS
                if getattr(link.state, field) != getattr(now, field)
            }
            if values:
                src, dst = (
                    plan.topology.nodes[n].name for n in (links[number].src, links[number].dst)
                )
                yield LinkChange(None, src, dst, values)


def _services(topology: Topology, link: Link) -> tuple[str, str]:
    """'' for a bridge, at which no file's link begins."""
    ends = (topology.nodes[link.src], topology.nodes[link.dst])
    src, dst = (topology.services[n.service].name if n.service >= 0 else "" for n in ends)
    return src, dst
