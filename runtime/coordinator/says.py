"""What an agent may say on its own, and whether it is that: nothing of another type gets further.

An agent knows the run's key and is still only believed as far as it makes sense.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.datapath.sampler import PAIR_COLUMNS

Check = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return type(value) is int and value >= 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


def _rows(value: Any) -> bool:
    width = len(PAIR_COLUMNS)
    return isinstance(value, list) and all(
        isinstance(row, list) and len(row) == width and all(map(_number, row)) for row in value
    )


_FORMS: dict[str, dict[str, Check]] = {
    # an agent's clock may show a step a little before T0
    "applied": {"step": _number, "elapsed_ns": lambda value: type(value) is int, "late": _truth},
    "sample": {"elapsed_ns": _number, "pairs": _rows},
    "notice": {"text": _text},
    "failed": {"text": _text},
}


def fault(message: dict[str, Any]) -> str:
    """What is wrong with something said, '' if nothing is."""
    kind = message["say"]
    form = _FORMS.get(kind) if isinstance(kind, str) else None
    if form is None:
        return f"it says {kind!r:.40}, which nobody says"
    wrong = sorted({"say", *form} ^ message.keys())
    if not wrong:
        wrong = [name for name, right in form.items() if not right(message[name])]
    return f"its `{kind}` has a wrong {wrong[0]!r:.40}" if wrong else ""
