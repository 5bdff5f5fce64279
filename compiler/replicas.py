"""How many instances a service has.

`replicas=` says it. Where it is not given it is 1, and joins raise it: `at 0s server join 5` makes
five. Input: the declarations. Output: a number for every service, which for services without
`replicas=` is what their joins certainly need (a lower bound: who has left by then may depend on
draws, so the walk through time has the last word).
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.declared import Declared
from compiler.plan.core import MAX_CELLS
from compiler.plan.format import MAX_INSTANCES, MAX_LINKS, MAX_NODES
from tdl import ast
from tdl.diagnostics import Sink

REMOVES = (ast.Leave, ast.Crash, ast.Churn)


def count(declared: Declared, raised: Mapping[str, int]) -> dict[str, int]:
    """Replicas by service, at least `raised`."""
    needs = _needs(declared)
    found: dict[str, int] = {}
    for name, statement in declared.services.items():
        if statement.replicas is not None:
            found[name] = statement.replicas
        else:
            found[name] = raised.get(name, needs.get(name, 1))
    return found


def _needs(declared: Declared) -> dict[str, int]:
    """Certain needs: joins add up until anything may have been removed."""
    joined = dict.fromkeys(declared.services, 0)
    need = dict.fromkeys(declared.services, 1)
    removed: set[str] = set()
    for dynamic in sorted(declared.dynamics, key=lambda d: d.start_ns):
        action = dynamic.action
        if isinstance(action, REMOVES):
            if len(removed) < len(declared.services):
                removed.update(_may_touch(dynamic.selector, declared))
        elif isinstance(action, ast.Join) and isinstance(dynamic.selector, ast.Element):
            name = dynamic.selector.name.text
            if name in declared.services and dynamic.selector.index is None:
                more = _asked(action, need[name] - joined[name])
                need[name] = max(need[name], more + (0 if name in removed else joined[name]))
                if dynamic.end_ns is None and name not in removed:
                    joined[name] += more
    return need


def _asked(action: ast.Join, absent: int) -> int:
    if action.count is None:
        return max(absent, 0)
    return action.count.value if action.count.unit is ast.Unit.NUMBER else 0


def _may_touch(selector: ast.Selector, declared: Declared) -> list[str]:
    match selector:
        case ast.Element(name=name):
            if name.text in declared.services:
                return [name.text]
            return list(declared.services) if name.text in declared.tags else []
        case ast.LinkSelector():
            return []
        case _:
            return list(declared.services)


def _table(declared: Declared, counts: Mapping[str, int]) -> tuple[int, int]:
    """Rows and columns of the plan's routing table (compiler.plan.core), without making it."""
    ends: dict[str, list[str]] = {name: [] for name in counts}
    for link in declared.links:
        for end, other in ((link.a.text, link.b.text), (link.b.text, link.a.text)):
            if end in ends:
                ends[end].append(other)
    behind = {
        name: others[0]
        for name, others in ends.items()
        if len(others) == 1 and others[0] in declared.bridges
    }
    core = sum(count for name, count in counts.items() if name not in behind)
    return len(declared.bridges) + core, len(set(behind.values())) + core


def too_many(declared: Declared, counts: Mapping[str, int], sink: Sink) -> bool:
    """Reports TS0112 when the address range or the plan's format cannot hold so many."""
    instances = sum(counts.values())
    links = sum(
        2 * counts.get(link.a.text, 1) * counts.get(link.b.text, 1) for link in declared.links
    )
    largest = max(counts, key=lambda name: counts[name], default="")
    hint = f"most instances belong to {largest!r}: {counts[largest]:,}" if largest else ""
    if instances > MAX_INSTANCES or instances + len(declared.bridges) > MAX_NODES:
        message = (
            f"{instances:,} instances and {len(declared.bridges):,} bridges; "
            f"an experiment has at most {MAX_INSTANCES:,} instances and {MAX_NODES:,} nodes"
        )
    elif links > MAX_LINKS:
        message = f"{links:,} link directions; an experiment has at most {MAX_LINKS:,}"
    elif (table := _table(declared, counts))[0] * table[1] > MAX_CELLS:
        hint = "give services one link to a bridge each, or declare fewer bridges"
        message = (
            f"routes from {table[0]:,} bridges and instances with several links to {table[1]:,} "
            f"places of instances; their product is at most {MAX_CELLS:,}"
        )
    else:
        return False
    if largest:
        span = declared.services[largest].name.span
    else:
        span, hint = next(iter(declared.bridges.values())).name.span, "declare fewer bridges"
    sink.error("TS0112", span, message, hint)
    return True
