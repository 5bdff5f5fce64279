"""How TDL writes what another tool's file has: strings, lists, pairs, images."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tdl.building.static import IMAGE
from tdl.formatter import quoted

_BARE = re.compile(r"[A-Za-z0-9_./@%+,~-]+", re.ASCII)
_BARE_VALUE = re.compile(r"[A-Za-z0-9_./:@%+,~-]+", re.ASCII)


def text(value: str) -> str:
    """A string of the language."""
    return quoted(value).replace("$", "\\$")


def bare(value: str) -> str:
    """Without quotes where that is the same."""
    return value if _BARE_VALUE.fullmatch(value) and ".." not in value else text(value)


def pair(before: str, after: str) -> str:
    """`before:after` of a list."""
    if _BARE.fullmatch(before) and ".." not in before:
        return f"{before}:{bare(after)}" if after else before
    return text(f"{before}:{after}" if after else before)


def variable(name: str, value: str) -> str:
    """`NAME:value` of env=."""
    plain = value == "" or (_BARE_VALUE.fullmatch(value) and ".." not in value)
    return f"{name}:{value if plain else text(value)}"


def array(words: Iterable[str]) -> str:
    return "[" + ", ".join(map(text, words)) + "]"


def image(value: str) -> str:
    return value if IMAGE.fullmatch(value) else text(value)
