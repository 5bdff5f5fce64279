"""Names of services and bridges for things that another file calls as it likes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tdl.tokens.words import MAX_NAME, RESERVED

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*", re.ASCII)

NAME_HINT = "names are letters, digits, '_' and single '-', and no word such as join"


def is_name(text: str) -> bool:
    return len(text) <= MAX_NAME and bool(NAME.fullmatch(text)) and text not in RESERVED


class ElementNames:
    """One name for each key, none of them twice. `labels`: of all that will be asked for; one that
    is a name as it stands is nobody else's."""

    def __init__(self, labels: Iterable[str] = ()) -> None:
        self._by_key: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}  # the number that the next one alike tries first
        self._kept = {one for one in labels if is_name(one)}

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def __getitem__(self, key: str) -> str:
        return self._by_key[key]

    def take(self, key: str, wanted: str) -> str:
        """The name of what the file knows by this key; `wanted` if that can be a name."""
        name = nearest = _nearest(wanted)
        number = self._next.get(nearest, 2)
        while name in self._taken or (name in self._kept and name != wanted):
            name = f"{nearest[: MAX_NAME - 8]}_{number}"
            number += 1
        self._next[nearest] = number
        self._taken.add(name)
        self._by_key[key] = name
        return name


def _nearest(wanted: str) -> str:
    if is_name(wanted):
        return wanted
    name = re.sub(r"[^A-Za-z0-9_]+", "_", wanted).strip("_") or "n"
    name = name if not name[0].isdigit() else f"n{name}"
    name = name[: MAX_NAME - 8]
    return name if is_name(name) else f"{name}_"
