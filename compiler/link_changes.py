"""Changes of links that programs ask for by the addresses at their ends, as statements.

Input: a line of JSON, one object or a list of them, and the plan of the run. Output: the text of an
action (compiler/extension.py), and the link that each object means: the one between both ends, or
the only one of their path that carries no other pair. Only what an object states is changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.plan.paths.many_pairs import between
from compiler.plan.properties import BY_FIELD, BY_WORD
from compiler.plan.reader import Plan
from compiler.plan.types import Link
from tdl import quantities
from tdl.formats.attributes import each_once
from tdl.suggest import did_you_mean

MOST_CHANGES = 10_000  # of one line
MOST_LINE = 4 << 20
MOST_ENDS = 64  # of a network whose paths are looked through for a link that nobody else uses
_MAX_INT = (1 << 63) - 1
_SHOWN = 6  # links of a path
_SET: Mapping[str, tuple[str, Callable[[int], str]]] = {
    "rate": ("rate", quantities.rate),
    "delay": ("latency", quantities.latency),
    "jitter": ("jitter", quantities.latency),
    "loss": ("loss", quantities.share),
    "queue": ("queue", quantities.size),
}
WORDS = {BY_WORD[word].field: written for word, written in _SET.items()}  # what `set` says
_FLAGS = ("up", "both", "reset")
_KEYS = ("src", "dst", "id", "at_ns", *_FLAGS, *WORDS)
NO_CHANGE, NO_END, NO_LINK = "TS0322", "TS0323", "TS0324"


class ChangeError(Exception):
    """What is wrong with a line; `number` of the object that is guilty, from 0 on; None: it is
    about what none of them states alone."""

    def __init__(self, code: str, message: str, hint: str = "", number: int | None = 0) -> None:
        super().__init__(f"{message}: {hint}" if hint else message)
        self.code = code
        self.number = number


@dataclass(frozen=True, slots=True)
class LinkChange:
    """What one object asks for; `at_ns` None: now."""

    id: object
    src: str
    dst: str
    values: Mapping[str, int]
    at_ns: int | None = None
    up: bool | None = None
    both: bool = False
    reset: bool = False


def ids(line: str) -> list[object]:
    """What the objects of a line are called, as far as that can be told."""
    try:
        items = _items(line)
    except ChangeError:
        return [None]
    names = (one.get("id") if isinstance(one, dict) else None for one in items)
    return [one if _is_id(one) else None for one in names] or [None]


def _is_id(value: object) -> bool:
    return value is None or type(value) in (str, int)


def _items(line: str) -> list[Any]:
    """The objects of a line, whatever they are. ChangeError."""
    try:
        found = json.loads(line, object_pairs_hook=each_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ChangeError(NO_CHANGE, f"this is not JSON: {error}") from None
    return found if isinstance(found, list) else [found]


def _no_number(word: str) -> None:
    raise ValueError(f"it has no {word}")


def read(line: str) -> list[LinkChange]:
    """The changes of a line, which are one commit. ChangeError."""
    items = _items(line)
    if not 0 < len(items) <= MOST_CHANGES:
        raise ChangeError(NO_CHANGE, f"a line has 1 to {MOST_CHANGES:,} changes")
    return [_change(one, number) for number, one in enumerate(items)]


def _change(found: Any, number: int) -> LinkChange:
    if not isinstance(found, dict):
        raise ChangeError(NO_CHANGE, "a change is an object", '{"src": …, "dst": …}', number)
    _check_keys(found, number)
    values = {key: found[key] for key in WORDS if key in found}
    for key, value in values.items():
        if value > BY_FIELD[key].most:
            raise ChangeError(NO_CHANGE, f"{key} is {BY_FIELD[key].most:,} at most", "", number)
    if found.get("reset") and (values or "up" in found):
        raise ChangeError(NO_CHANGE, "reset stands alone", "nothing else is stated", number)
    if not values and "up" not in found and not found.get("reset"):
        hint = f"state one of {', '.join(WORDS)}, up, reset"
        raise ChangeError(NO_CHANGE, "nothing is changed", hint, number)
    up = bool(found["up"]) if "up" in found else None
    both, reset = bool(found.get("both")), bool(found.get("reset"))
    ends = (found["src"], found["dst"])
    return LinkChange(found.get("id"), *ends, values, found.get("at_ns"), up, both, reset)


def _check_keys(found: Mapping[str, Any], number: int) -> None:
    """That each is known, and has a value of its kind."""
    for key, value in found.items():
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS) or f"it has {', '.join(_KEYS)}"
            raise ChangeError(NO_CHANGE, f"a change has no key '{key[:40]}'", hint, number)
        if key in ("src", "dst") and not isinstance(value, str):
            raise ChangeError(NO_CHANGE, f"{key} is an address or a name", "", number)
        if key == "id" and not _is_id(value):
            raise ChangeError(NO_CHANGE, "id is a text or a whole number", "", number)
        if key in _FLAGS and value not in (0, 1):
            raise ChangeError(NO_CHANGE, f"{key} is 0 or 1", "", number)
        if key in (*WORDS, "at_ns") and not (type(value) is int and 0 <= value <= _MAX_INT):
            raise ChangeError(NO_CHANGE, f"{key} is a whole number from 0 on", "", number)
    for key in ("src", "dst"):
        if key not in found:
            raise ChangeError(NO_CHANGE, f"{key} is missing", "an address, or a name", number)


class LinkChanges:
    """What changes mean in the run of this plan, at `now_ns`."""

    def __init__(self, plan: Plan, now_ns: int) -> None:
        self._plan = plan
        self._now_ns = now_ns
        nodes = plan.topology.nodes
        self._ends = {
            word: index
            for index, node in enumerate(nodes)
            if node.service >= 0
            for word in (node.name, node.ipv4, node.ipv6)
            if word
        }
        self._direct: dict[tuple[int, int], list[Link]] = {}
        for link in plan.topology.links:
            self._direct.setdefault((link.src, link.dst), []).append(link)
        self._index = {link.name: number for number, link in enumerate(plan.topology.links)}
        self._users: dict[int, int] | None = None  # how many pairs each link carries

    def is_direct(self, change: LinkChange) -> bool:
        """Whether it is about a link between its two ends, which no state of the network tells."""
        ends = self._ends.get(change.src, -1), self._ends.get(change.dst, -1)
        return len(self._direct.get(ends, ())) == 1

    def links(self, changes: Sequence[LinkChange]) -> list[tuple[Link, ...]]:
        """Of each change, both directions where it says so. ChangeError, also where two of them
        are about one link at one moment: both cannot be told to be in force."""
        found = [self._links(one, number) for number, one in enumerate(changes)]
        taken: set[tuple[str, int | None]] = set()
        for number, (change, own) in enumerate(zip(changes, found, strict=True)):
            for link in own:
                key = (link.name, change.at_ns)
                if key in taken:
                    message = f"{link.name} is changed twice at one moment"
                    raise ChangeError(NO_CHANGE, message, "state it in one object", number)
                taken.add(key)
        return found

    def _links(self, change: LinkChange, number: int) -> tuple[Link, ...]:
        src, dst = (self._end(word, number) for word in (change.src, change.dst))
        pairs = [(src, dst), (dst, src)] if change.both else [(src, dst)]
        return tuple(self._link(*pair, number) for pair in pairs)

    def _end(self, word: str, number: int) -> int:
        if word not in self._ends:
            hint = did_you_mean(word, self._ends) or "`tstorm inspect` has names and addresses"
            message = f"no instance has the name or the address '{word[:60]}'"
            raise ChangeError(NO_END, message, hint, number)
        return self._ends[word]

    def _link(self, src: int, dst: int, number: int) -> Link:
        own = self._direct.get((src, dst), [])
        if len(own) == 1:
            return own[0]
        names = " to ".join(self._plan.topology.nodes[one].name for one in (src, dst))
        if own:
            hint = f"write one of them in TDL: {', '.join(one.name for one in own[:_SHOWN])}"
            raise ChangeError(NO_LINK, f"{names} has several links", hint, number)
        path = self._path(src, dst)
        if not path:
            raise ChangeError(NO_LINK, f"{names} has no path now", "", number)
        alone = [one for one in path if self._carries_no_other(one)]
        links = self._plan.topology.links
        if len(alone) == 1:
            return links[alone[0]]
        shown = ", ".join(links[one].name for one in path[:_SHOWN])
        which = "none of which is its own alone" if not alone else "several of which are its own"
        hint = f'write one in TDL: "{links[path[len(path) // 2]].name} set latency=…"'
        raise ChangeError(NO_LINK, f"{names} goes over {shown}, {which}", hint, number)

    def _path(self, src: int, dst: int) -> tuple[int, ...]:
        state = self._plan.state_at(self._now_ns)
        return next(iter(between(state, [src], [dst]))).links if src != dst else ()

    def _carries_no_other(self, link: int) -> bool:
        """Not known in a large network, and then not so."""
        ends = sorted(set(self._ends.values()))
        if len(ends) > MOST_ENDS:
            return False
        if self._users is None:
            self._users = {}
            for path in between(self._plan.state_at(self._now_ns), ends, ends):
                for one in path.links:
                    self._users[one] = self._users.get(one, 0) + 1
        return self._users.get(link) == 1

    def text(self, changes: Sequence[LinkChange], links: Sequence[Sequence[Link]]) -> str:
        """The action, a statement for each link and what is done to it. ChangeError."""
        return "".join(f"{line}\n" for _, line in self.statements(changes, links))

    def statements(
        self, changes: Sequence[LinkChange], links: Sequence[Sequence[Link]]
    ) -> list[tuple[int, str]]:
        """The lines of that text, each with the number of its change. ChangeError."""
        return [
            (number, f"{_moment(change)}{link.name} {does}")
            for number, (change, own) in enumerate(zip(changes, links, strict=True))
            for link in own
            for does in self._does(change, link, number)
        ]

    def _declared(self, link: Link, number: int) -> dict[str, int]:
        """What `set` takes of what the link has in the text. ChangeError."""
        values = {field: int(getattr(link.state, field)) for field in WORDS}
        if not values["queue_bytes"]:
            del values["queue_bytes"]  # it is full with packets
        if not values["rate_bps"]:
            if self._plan.folded_at(self._now_ns).links[self._index[link.name]].rate_bps:
                message = f"{link.name} is declared without a limit"
                hint = "which no `set` gives back: set a large rate_bps"
                raise ChangeError(NO_CHANGE, message, hint, number)
            del values["rate_bps"]
        return values

    def values(self, change: LinkChange, link: Link, number: int) -> Mapping[str, int]:
        """What `set` is to give it. ChangeError."""
        return self._declared(link, number) if change.reset else change.values

    def _does(self, change: LinkChange, link: Link, number: int) -> Iterator[str]:
        values = self.values(change, link, number)
        if values:
            said = (f"{WORDS[key][0]}={WORDS[key][1](value)}" for key, value in values.items())
            yield f"set {' '.join(said)}"
        if change.up is not None:
            yield "join" if change.up else "leave"


def _moment(change: LinkChange) -> str:
    return "" if change.at_ns is None else f"at {quantities.time(change.at_ns)} "
