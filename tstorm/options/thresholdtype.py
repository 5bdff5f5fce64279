"""`--threshold NAME=VALUE`: what the verdict of a run is decided by, said by the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class ThresholdType(click.ParamType[tuple[str, int]]):
    """A name of runtime.thresholds, and a value in its unit: a time, a part in percent, a size."""

    name = "threshold"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        from runtime.thresholds import THRESHOLDS

        name, sign, text = value.partition("=")
        if not sign or not text:
            self.fail(f"{value!r} is not NAME=VALUE, such as path_late=2ms", param, ctx)
        if name not in THRESHOLDS:
            known = ", ".join(sorted(THRESHOLDS))
            self.fail(f"there is no threshold {name!r}; known: {known}", param, ctx)
        return name, self._read(THRESHOLDS[name].unit, text, param, ctx)

    def _read(
        self, unit: str, text: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        from runtime.thresholds import BYTES, NS, PPM
        from tdl import values

        try:
            if unit == NS:
                return values.time(text)
            if unit == BYTES:
                return values.size(text)
            found = values.probability(text, "a threshold")
        except values.ValueProblem as problem:
            hint = f" ({problem.hint})" if problem.hint else ""
            self.fail(f"{problem.message}{hint}", param, ctx)
        return found // 1000 if unit == PPM else found


def gathered(
    _context: click.Context, _option: click.Parameter, value: Sequence[tuple[str, int]]
) -> dict[str, int] | None:
    """All that were said as one; None for none. The last one of a name counts."""
    return dict(value) or None


THRESHOLD = ThresholdType()
