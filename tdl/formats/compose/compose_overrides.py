"""Merges one Compose file over another, and a service over the one that it extends.

Maps are merged key by key, lists appended, single values replaced. Lists that stand for maps
(`environment`, `depends_on`, `networks`, …) become maps first, and single values that stand for
lists (`env_file`, `tmpfs`) lists. `!reset` removes a field, `!override` replaces it. Source: the
Compose specification, "Merge and override", and what its reader does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tdl.ast import Span
from tdl.formats.yaml_tree import Value

Entries = dict[str, tuple[Span, Value]]
_WHOLE = ("command", "entrypoint", "test")  # lists that are one value
_ASSIGNED = ("environment", "labels", "annotations", "sysctls", "args")  # `- KEY=value`
_NAMES = ("depends_on", "networks")  # `- NAME`
_LISTS = ("env_file", "label_file", "tmpfs", "dns", "dns_search", "dns_opt")  # or one alone
RESET, OVERRIDE = "!reset", "!override"


def merged(below: Value, above: Value, key: str = "") -> Value:
    """`above` wins. `key`: the field that both are the value of. What is reset stays, with its tag,
    so that it is reset in files below as well (without_resets)."""
    below, above = _as_read(key, below), _as_read(key, above)
    if above.tag == OVERRIDE or key in _WHOLE:
        return above
    if above.entries is not None and below.entries is not None:
        entries = dict(below.entries)
        for name, (span, value) in above.entries.items():
            known = entries.get(name)
            if known is None or RESET in (value.tag, known[1].tag):
                entries[name] = (span, value)
            else:
                entries[name] = (span, merged(known[1], value, name))
        return above.with_entries(entries)
    if above.items is not None and below.items is not None:
        return _appended(below, above, key)
    return above


def _appended(below: Value, above: Value, key: str) -> Value:
    from dataclasses import replace

    items = [*(below.items or ()), *(above.items or ())]
    if key in _SAME:
        kept = {_SAME[key](one): one for one in items}
        items = list(kept.values())
    return replace(above, items=tuple(items))


def _target(volume: Value) -> str:
    """Where a volume is mounted: two on one place are one."""
    if volume.entries is not None:
        found = volume.get("target")
        return (found and found.text) or ""
    parts = (volume.text or "").split(":")
    return parts[1] if len(parts) > 1 else parts[0]


def _written(value: Value) -> str:
    return value.text if value.text is not None else repr(value.entries)


_SAME: Mapping[str, Callable[[Value], str]] = {
    "volumes": _target,
    "ports": _written,
    "expose": _written,
    "profiles": _written,
}


def _as_read(key: str, value: Value) -> Value:
    if key in _LISTS and value.text is not None:
        return Value(value.span, None, items=(value,), tag=value.tag)
    return as_map(key, value)


def as_map(key: str, value: Value) -> Value:
    """A list that stands for a map, as the map; anything else as it is."""
    if value.items is None or key not in (*_ASSIGNED, *_NAMES):
        return value
    entries: Entries = {}
    for item in value.items:
        if item.text is None:
            return value  # whoever reads it says what is wrong
        name, sign, text = item.text.partition("=")
        if key in _NAMES:
            entries[item.text] = (item.span, Value(item.span, None))
        else:
            entries[name] = (item.span, Value(item.span, text if sign else None))
    return value.with_entries(entries)


def without_resets(value: Value) -> Value:
    """When all is merged: what is reset is not there."""
    if value.entries is None:
        return value
    entries = {
        name: (span, without_resets(one))
        for name, (span, one) in value.entries.items()
        if one.tag != RESET
    }
    return value.with_entries(entries)
