"""A second, slow implementation of the timeline, to compare the compiler with.

It shares nothing with the compiler but the parser, the formatter (for the text that keys the draws)
and the Event type. Names instead of numbers, every statement one coroutine that yields the time it
wants to go on at, every question answered by looking at everything. Written from docs/tdl.md,
docs/timeline.md and docs/draws.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import floor
from typing import Any

from tdl import ast
from tests.compiler.oracle_links import Links
from tests.compiler.oracle_state import SECOND, Direction, More, Problem, Target, named


def expand(file: ast.File, seed: int, skip: frozenset[int] = frozenset()) -> Oracle:
    """Tries with one instance more until the joins are content. `skip`: lines to leave out."""
    statements = (s for s in file.statements if s.span.line not in skip)
    file = ast.File(tuple(statements))
    extra: dict[str, int] = {}
    while True:
        oracle = Oracle(file, seed, extra)
        try:
            oracle.run()
        except More as more:
            extra[str(more)] = oracle.replicas[str(more)] + 1
            continue
        return oracle


TAKES = (ast.Leave, ast.Crash, ast.Churn, ast.Disconnect, ast.Pause, ast.Restart)
THERE = "up cut up! cut!"  # the ones with a mark are paused


class Oracle(Links):
    """The walk, and the statements about members."""

    # --- the walk ---

    def run(self) -> None:
        self._begin()
        waiting: list[list[Any]] = []  # [when, order, story]
        for order, statement in enumerate(self.dynamics):
            story = self.tell(order, statement)
            waiting.append([next(story), order, story])
        ended = False
        while waiting and not ended:
            entry = min(waiting, key=lambda e: (e[0], e[1]))
            self.now, order, story = entry
            statement = self.dynamics[order]
            try:
                entry[0] = next(story)
            except StopIteration:
                waiting.remove(entry)
                ended = isinstance(statement.action, ast.Quit)
            except Problem as problem:
                waiting.remove(entry)
                self.problems.append((statement.span.line, str(problem)))
        self.missed = [self.dynamics[e[1]].span.line for e in waiting]
        last = self.events[-1].at_ns if self.events else 0
        self.end_ns = last if ended else last + 10 * SECOND

    def tell(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        verbs: dict[type, Callable[[int, ast.Dynamic], Iterator[int]]] = {
            ast.Join: self.join,
            ast.Leave: self.leave,
            ast.Crash: self.take,
            ast.Churn: self.churn,
            ast.Disconnect: self.disconnect,
            ast.Reconnect: self.reconnect,
            ast.Pause: self.pause,
            ast.Resume: self.resume,
            ast.Restart: self.restart,
            ast.Flap: self.flap,
            ast.Set: self.set,
            ast.SetClock: self.set_clock,
            ast.SetDisk: self.set_disk,
            ast.Ramp: self.ramp,
            ast.Background: self.background,
            ast.Partition: self.partition,
            ast.Heal: self.heal,
            ast.Quit: self.quit,
        }
        yield s.start_ns
        yield from verbs[type(s.action)](order, s)

    def _begin(self) -> None:
        for bridge in self._bridges():
            if self._joins_first(self._names_bridge, bridge):
                self.move(bridge, "gone", "bridge_down", 0)
        for ends in self.links:
            if self._joins_first(self._names_link, ends):
                self.block(ends, "left", 0)
        for service in self.services:
            if self._starts_with_a_join(service):
                continue
            for node in self._nodes_of(service):
                if not self._joins_first(self._names_instance, node):
                    self.move(node, "up", "join", 0)

    def _starts_with_a_join(self, service: str) -> bool:
        for s in sorted(self.dynamics, key=lambda s: s.start_ns):
            e = s.selector
            if isinstance(s.action, ast.Join) and service in self._services(e):
                return True
            if (
                isinstance(s.action, TAKES)
                and isinstance(e, ast.Element)
                and e.name.text == service
            ):
                return False
        return False

    def _joins_first(self, names: Callable[[ast.Dynamic, Any], bool], what: object) -> bool:
        mine = [s for s in self.dynamics if names(s, what)]
        return bool(mine) and isinstance(min(mine, key=lambda s: s.start_ns).action, ast.Join)

    def _names_bridge(self, s: ast.Dynamic, bridge: str) -> bool:
        if isinstance(s.action, ast.Join) and isinstance(s.selector, ast.Everything):
            return False
        return isinstance(s.action, ast.Join | ast.Leave) and self._covers(
            s.selector, bridge, self.tags[bridge]
        )

    def _names_link(self, s: ast.Dynamic, ends: Direction) -> bool:
        if isinstance(s.action, ast.Join) and isinstance(s.selector, ast.Everything):
            return False
        if not isinstance(s.action, ast.Join | ast.Leave):
            return False
        return any(ends in link for link in self.links_of(s.selector))

    def _names_instance(self, s: ast.Dynamic, node: str) -> bool:
        if not isinstance(s.action, (ast.Join, *TAKES)):
            return False
        e = s.selector
        return isinstance(e, ast.Element) and f"{e.name.text}.{e.index}" == node

    # --- members ---

    def own_service(self, s: ast.Dynamic) -> str | None:
        e = s.selector
        if isinstance(e, ast.Element) and e.index is None and e.name.text in self.services:
            return e.name.text
        return None

    def ask_for(self, service: str, count: int) -> None:
        if count <= self.wanted[service]:
            return
        if self.services[service].replicas is not None:
            raise Problem(f"{service} has no {count}")
        if count > self.replicas[service]:
            raise More(service)
        self.wanted[service] = count

    def bring(self, s: ast.Dynamic, target: Target) -> None:
        line = s.span.line
        if not isinstance(target, str):
            for ends in self.in_order(list(target)):
                if "left" in self.down[ends]:
                    self.owner.pop(("left", str(ends)), None)
                    self.unblock(ends, "left", line)
            return
        if "." not in target:
            self.move(target, "up", "bridge_up", line)
            return
        self.move(target, "up", "join", line)

    def join(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        service = self.own_service(s)
        e = s.selector
        if isinstance(e, ast.Element) and e.index is not None and not self.asked(named(e)):
            raise Problem("not asked for yet")
        if s.end_ns is None:
            count = s.action.count
            if service and count and count.unit is ast.Unit.NUMBER:
                mine = [f"{service}.{i}" for i in range(self.wanted[service])]
                joined = sum(self.state[n] in THERE.split() for n in mine)
                self.ask_for(service, joined + count.value)
            candidates = self.candidates(s.selector, "sbl", every_link=count is None)
            chosen = self.at_once(order, s, candidates, "never gone")
            for target in self.who_joins(s, chosen, candidates):
                self.bring(s, target)
            return
        who = self.draws(order, "who")
        legal = self.legal(self.candidates(s.selector, "sbl"), "never gone")
        for moment in self.moments(order, s, len(legal)):
            yield moment
            legal = self.legal(self.candidates(s.selector, "sbl"), "never gone")
            if not legal and service:
                self.ask_for(service, self.wanted[service] + 1)
            candidates = self.candidates(s.selector, "sbl")
            legal = self.legal(candidates, "never gone")
            if not legal:
                raise Problem("none")
            chosen = who.sample(candidates, legal, 1)
            self.bring(s, self.who_joins(s, chosen, candidates)[0])

    def who_joins(
        self, s: ast.Dynamic, chosen: list[Target], candidates: list[Target]
    ) -> list[Target]:
        """The same number of each service, those that never joined first."""
        found = [c for c in chosen if not isinstance(c, str) or "." not in c]
        for service in self.services:
            mine = [c for c in chosen if isinstance(c, str) and c.split(".")[0] == service]
            if service in self._services(s.selector):
                all_of_it = [f"{service}.{i}" for i in range(self.wanted[service])]
                never = [n for n in all_of_it if self.state[n] == "never"]
                gone = [n for n in all_of_it if self.state[n] == "gone"]
                found += [*never, *gone][: len(mine)]
            else:
                found += mine
        return [c for c in candidates if c in found]

    def remove(self, s: ast.Dynamic, target: Target) -> None:
        line = s.span.line
        if not isinstance(target, str):
            for ends in self.in_order(list(target)):
                if "left" not in self.down[ends]:
                    self.block(ends, "left", line)
        elif "." in target:
            self.move(target, "gone", "leave" if isinstance(s.action, ast.Leave) else "crash", line)
        else:
            self.move(target, "gone", "bridge_down", line)

    def leave(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        if s.end_ns is None or s.action.sometime or self.candidates(s.selector, "s"):
            yield from self.take(order, s)
            return
        every_link = s.action.count is None
        candidates = self.candidates(s.selector, "bl", every_link=every_link)
        chosen = self.at_once(order, s, candidates, THERE)
        gone: list[str | Direction] = []
        for target in chosen:
            gone += [target] if isinstance(target, str) else self.in_order(self.there(target))
            self.remove(s, target)
        for element in gone:
            self.owner["left", str(element)] = order
        if not gone:
            return
        yield s.end_ns
        for element in gone:
            if self.owner.get(("left", str(element))) == order:
                self.bring(s, element if isinstance(element, str) else (element,))
            else:
                self.warned.append(s.span.line)

    def there(self, link: tuple[Direction, ...]) -> list[Direction]:
        return [ends for ends in link if "left" not in self.down[ends]]

    def take(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        kinds = "sbl" if isinstance(s.action, ast.Leave) else "s"
        every_link = s.end_ns is None and s.action.count is None
        candidates = self.candidates(s.selector, kinds, every_link=every_link)
        if s.end_ns is None:
            for target in self.at_once(order, s, candidates, THERE):
                self.remove(s, target)
            return
        who = self.draws(order, "who")
        for moment in self.moments(order, s, len(self.legal(candidates, THERE))):
            yield moment
            candidates = self.candidates(s.selector, kinds)
            legal = self.legal(candidates, THERE)
            if not legal:
                raise Problem("none")
            self.remove(s, who.sample(candidates, legal, 1)[0])

    def churn(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        who, coin = self.draws(order, "who"), self.draws(order, "replace")
        legal = self.legal(self.candidates(s.selector, "s"), THERE)
        for moment in self.moments(order, s, len(legal)):
            yield moment
            candidates = self.candidates(s.selector, "s")
            legal = self.legal(candidates, THERE)
            if not legal:
                raise Problem("none")
            node = who.sample(candidates, legal, 1)[0]
            self.move(str(node), "gone", "crash", s.span.line)
            if coin.below(10**9) < s.action.replace_ppb:
                self.move(str(node), "up", "join", s.span.line)

    def disconnect(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        yield from self.a_while(order, s, "disconnect", "reconnect")

    def reconnect(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        yield from self.a_while(order, s, "reconnect", "")

    def pause(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        yield from self.a_while(order, s, "pause", "resume")

    def resume(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        yield from self.a_while(order, s, "resume", "")

    def a_while(self, order: int, s: ast.Dynamic, verb: str, back: str) -> Iterator[int]:
        changes = {
            "disconnect": {"up": "cut", "up!": "cut!"},
            "reconnect": {"cut": "up", "cut!": "up!"},
            "pause": {"up": "up!", "cut": "cut!"},
            "resume": {"up!": "up", "cut!": "cut"},
        }
        of = "network" if verb in ("disconnect", "reconnect") else "program"
        chosen = self.at_once(order, s, self.candidates(s.selector, "s"), " ".join(changes[verb]))
        for node in map(str, chosen):
            self.owner[of, node] = order
            self.state[node] = changes[verb][self.state[node]]
            self.emit(verb, node, s.span.line)
        end = self.end_of(s) if s.end_ns is not None else None
        if isinstance(s.action, ast.Disconnect | ast.Pause) and s.action.for_ns is not None:
            end = s.start_ns + s.action.for_ns
        if end is None or not chosen:
            return
        yield end
        for node in map(str, chosen):
            if self.owner.get((of, node)) == order:
                self.state[node] = changes[back][self.state[node]]
                del self.owner[of, node]
                self.emit(back, node, s.span.line)
            else:
                self.warned.append(s.span.line)

    def restart(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        chosen = self.at_once(order, s, self.candidates(s.selector, "s"), THERE)
        for node in map(str, chosen):
            self.move(node, "gone", "crash", s.span.line)
            self.owner["life", node] = order
            if not s.action.after_ns:
                self.move(node, "up", "join", s.span.line)
        if chosen and s.action.after_ns:
            yield s.start_ns + s.action.after_ns
            for node in map(str, chosen):
                if self.owner.get(("life", node)) == order:
                    self.move(node, "up", "join", s.span.line)
                else:
                    self.warned.append(s.span.line)

    def set_clock(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        """A pile of clocks for each host: (whose, ns at a moment, that moment, drift)."""
        action, hosts = s.action, [str(one) for one in self.candidates(s.selector, "s")]
        for host in sorted(hosts, key=self._nodes_in_order().index):
            pile = self.clocks.setdefault(host, [(-1, 0, 0, 0)])
            value = self._off(pile[-1])
            if action.offset_ns is not None:
                sign = {"+=": 1, "-=": -1}.get(action.op.value, 0)
                value = value + sign * action.offset_ns if sign else action.offset_ns
            drift = pile[-1][3] if action.drift_ppb is None else action.drift_ppb
            if s.end_ns is None:
                pile.clear()
            pile.append((order, value, self.now, drift))
            self._tell_clock(host, s)
        if s.end_ns is None or not hosts:
            return
        yield s.end_ns
        for host in sorted(hosts, key=self._nodes_in_order().index):
            pile = self.clocks[host]
            mine = [one for one in pile if one[0] == order]
            if not mine:
                self.warned.append(s.span.line)
            elif mine[0] == pile[-1]:
                pile.pop()
                self._tell_clock(host, s)
            else:
                pile.remove(mine[0])

    def set_disk(self, order: int, s: ast.Dynamic) -> Iterator[int]:
        """A pile of what the disk of each host is like: (whose, arguments of its event)."""
        fault, amount = s.action.fault, s.action.amount
        hosts = [str(one) for one in self.candidates(s.selector, "s")]
        hosts.sort(key=self._nodes_in_order().index)
        draws = self.draws(order, "disk")
        for host in hosts:
            args: dict[str, Any] = {"fault": fault}
            if fault == "slow":
                args["delay_ns"] = amount
            elif fault == "error":
                args |= {"error_ppb": amount, "disk_seed": draws.below(2**63 - 1)}
            pile = self.disks.setdefault(host, [(-1, {"fault": "ok"})])
            if s.end_ns is None:
                pile.clear()
            pile.append((order, args))
            self.emit("disk", host, s.span.line, **args)
        if s.end_ns is None or not hosts:
            return
        yield s.end_ns
        for host in hosts:
            pile = self.disks[host]
            mine = [one for one in pile if one[0] == order]
            if not mine:
                self.warned.append(s.span.line)
                continue
            was_last = mine[0] is pile[-1]
            pile.remove(mine[0])
            if was_last:
                self.emit("disk", host, s.span.line, **pile[-1][1] if pile else {"fault": "ok"})

    def _nodes_in_order(self) -> list[str]:
        return [node for service in self.services for node in self._nodes_of(service)]

    def _off(self, clock: tuple[int, int, int, int]) -> int:
        _, value, since, drift = clock
        return value + floor(Fraction((self.now - since) * drift, SECOND))

    def _tell_clock(self, host: str, s: ast.Dynamic) -> None:
        top = self.clocks[host][-1]
        args = {"drift_ppb": top[3], "offset_ns": self._off(top)}
        self.emit("clock", host, s.span.line, **args)

    def quit(self, _order: int, s: ast.Dynamic) -> Iterator[int]:
        self.emit("quit", "", s.span.line)
        return
        yield
