"""The one way to fill a template: jinja2 with every expression serialized.

Nothing in a template is quoted by hand: `{{ x }}` is one YAML value, wherever `x` comes from
(`serialize`). A name that is not defined is an error, never an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

import jinja2

from manifests.refusal import ManifestError

# One value as YAML: what every `{{ expression }}` of a template comes out as.
#
# Strings, integers, booleans, lists and dicts become one line in flow style that YAML 1.1 and 1.2
# read alike, whatever is inside: strings are always between double quotes and pure ASCII. Close to
# JSON, but characters beyond U+FFFF are `\U0001f600`: YAML knows no surrogate pairs (1.2.2, 5.7).

# A key on the line of its value may have 1024 characters (YAML 1.2.2, 7.4); a longer one needs '?'.
_LONGEST_PLAIN_KEY = 1000

_SPECIAL = re.compile(r"[^ !#-\[\]-~]")  # all but printable ASCII without `"` and `\`
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def serialize(value: object) -> str:
    """`value` on one line. Raises ManifestError for a character that YAML has not.

    A type that is not expected is our bug: TypeError.
    """
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(_member(key, item) for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(serialize(item) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} cannot be written as YAML")


def _member(key: object, value: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key must be a string, not {type(key).__name__}")
    text = _string(key)
    mark = "? " if len(text) > _LONGEST_PLAIN_KEY else ""
    return f"{mark}{text}: {serialize(value)}"


@lru_cache(maxsize=4096)  # most texts of a manifest stand in all of them
def _string(value: str) -> str:
    return '"' + _SPECIAL.sub(_escape, value) + '"'


def _escape(found: re.Match[str]) -> str:
    short = _SHORT.get(found[0])
    if short is not None:
        return short
    code = ord(found[0])
    if code == 0:
        raise ManifestError("a text has a NUL character, which no manifest can hold", "remove it")
    if 0xD800 <= code <= 0xDFFF:
        raise ManifestError(
            f"a text has half a surrogate pair (U+{code:04X}), which is no character", "remove it"
        )
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


TEMPLATES = Path(__file__).resolve().parent / "templates"


def _finalize(value: object) -> str:
    if isinstance(value, jinja2.Undefined):
        str(value)  # StrictUndefined raises here, with the name
    return serialize(value)


@cache
def environment() -> jinja2.Environment:
    """The environment of all templates; `kubernetes/agent.yaml` names one in templates/."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        autoescape=False,  # this is no HTML: finalize is what keeps values apart
        auto_reload=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def fill(template: str, values: Mapping[str, object]) -> str:
    """The text of `template` with `values`. Raises ManifestError for characters YAML has not."""
    return environment().get_template(template).render(values)
