"""`--param NAME=VALUE`: the value of a parameter of the text, said by the user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

MOST = 1000  # characters of a value
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)


class ParamType(click.ParamType[tuple[str, str]]):
    """A name as `param` declares it, and its value as text; what it means the language says."""

    name = "parameter"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, sign, text = value.partition("=")
        if not sign or not _NAME.fullmatch(name):
            self.fail(f"{value!r:.60} is not NAME=VALUE, such as rtt=20ms", param, ctx)
        if not text.isprintable() or len(text) > MOST:
            self.fail(
                f"the value of {name} is not one line of at most {MOST} characters", param, ctx
            )
        return name, text


def gathered(
    _context: click.Context, _option: click.Parameter, value: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """All that were said. The last one of a name counts."""
    return dict(value)


PARAM = ParamType()
