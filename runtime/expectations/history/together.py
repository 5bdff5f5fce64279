"""Which keys of a history are searched together.

Input: operations by their begin. Output: groups of keys. Orders of single keys and what is known of
order between keys could be in a circle only at one moment: where one operation comes before another
in the order of their key, it begins no later than that ends; where it does so by times or by their
process, it ends no later than that begins. So round the circle all these moments are the same, and
what is known is the order of processes, of at least two. At each moment the keys are therefore a
graph, with an edge where a process has ended an operation of the one and begins one of the other,
and keys of a strongly connected component are searched together. By a fine clock there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.plan.graph_search import components
from runtime.expectations.history.operations import OK, Operation

_Process = tuple[str, str]
_Following = tuple[str, str, _Process]  # a key, that of what comes next, and who does them


def keys_together(operations: Sequence[Operation]) -> list[list[str]]:
    """Sorted, each with its keys sorted. Those of a process are in their order, and without what
    has failed."""
    groups: dict[str, list[str]] = {}
    for followings in _by_moment(operations).values():
        for keys in _circles(followings):
            whole = sorted({one for key in keys for one in groups.get(key, [key])})
            groups.update(dict.fromkeys(whole, whole))
    return sorted({id(one): one for one in groups.values()}.values())


def _by_moment(operations: Iterable[Operation]) -> dict[int, list[_Following]]:
    found: dict[int, list[_Following]] = {}
    last: dict[_Process, Operation] = {}
    for one in operations:
        process = one.instance, one.process
        before = last.get(process)
        if before is not None and before.end_ns == one.begin_ns and before.key != one.key:
            found.setdefault(one.begin_ns, []).append((before.key, one.key, process))
        if one.ended == OK:
            last[process] = one
    return found


def _circles(followings: Sequence[_Following]) -> Iterable[list[str]]:
    if len({process for _, _, process in followings}) < 2:
        return
    keys = sorted({key for before, after, _ in followings for key in (before, after)})
    number = {key: at for at, key in enumerate(keys)}
    out: dict[int, list[int]] = {}
    for before, after, _ in followings:
        out.setdefault(number[before], []).append(number[after])
    for component in components(range(len(keys)), lambda at: out.get(at, ())):
        if len(component) > 1:
            yield [keys[at] for at in component]
