"""What an agent may say on its own, and whether it is that: nothing of another type gets further.

An agent knows the run's key and is still only believed as far as it makes sense.
"""

from __future__ import annotations

from typing import Any

from runtime.datapath.sampler import PAIR_COLUMNS
from runtime.foreign import COUNT, FLAG, INTEGER, TEXT, Kind


def _rows(value: Any) -> bool:
    width = len(PAIR_COLUMNS)
    return isinstance(value, list) and all(
        isinstance(row, list) and len(row) == width and all(map(COUNT.fits, row)) for row in value
    )


_FORMS: dict[str, dict[str, Kind]] = {
    # an agent's clock may show a step a little before T0
    "applied": {"step": COUNT, "elapsed_ns": INTEGER, "late": FLAG},
    "sample": {"elapsed_ns": COUNT, "pairs": Kind("rows of counters", _rows)},
    # what the agent has done to an instance of its host; status: why not, '' if it has
    "life": {
        "step": COUNT,
        "node": COUNT,
        "what": Kind("join, leave or crash", lambda value: value in ("join", "leave", "crash")),
        "elapsed_ns": INTEGER,
        "status": TEXT,
    },
    "notice": {"text": TEXT},
    "failed": {"text": TEXT},
}


def fault(message: dict[str, Any]) -> str:
    """What is wrong with a message of an agent, '' if it is valid."""
    kind = message["say"]
    form = _FORMS.get(kind) if isinstance(kind, str) else None
    if form is None:
        return f"it sent {kind!r:.40}, which is no message of an agent"
    wrong = sorted({"say", *form} ^ message.keys())
    if not wrong:
        wrong = [name for name, right in form.items() if not right.fits(message[name])]
    return f"its `{kind}` has a wrong {wrong[0]!r:.40}" if wrong else ""
