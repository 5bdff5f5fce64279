"""What an agent may say on its own, and whether it is that: nothing of another type gets further.

An agent knows the run's key and is still only believed as far as it makes sense.
"""

from __future__ import annotations

import re
from typing import Any

from runtime.datapath.sampler import PAIR_COLUMNS, PAIR_DIGEST_COLUMNS
from runtime.json_schema import (
    COUNT,
    FLAG,
    INTEGER,
    TEXT,
    Form,
    ValueKind,
    message_fault,
)

_DIGEST = re.compile(r"[0-9a-f]{16}", re.ASCII)


def _rows(value: Any) -> bool:
    width = len(PAIR_COLUMNS)
    return isinstance(value, list) and all(
        isinstance(row, list) and len(row) == width and all(map(COUNT.fits, row)) for row in value
    )


def _digests(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, list)
        and len(row) == len(PAIR_DIGEST_COLUMNS)
        and all(map(COUNT.fits, row[:-1]))
        and TEXT.fits(row[-1])
        and _DIGEST.fullmatch(row[-1]) is not None
        for row in value
    )


def _echoes(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, list)
        and len(row) == 3
        and COUNT.fits(row[0])
        and INTEGER.fits(row[1])
        and (row[2] is None or COUNT.fits(row[2]))
        for row in value
    )


LIVES = ("join", "leave", "crash", "pause", "resume")
REPORTS = (
    *("held", "setup", "set_up", "started", "ready", "not_ready", "failed", "ended"),
    *("paused", "resumed", "left", "crashed", "ignored", "released"),
    "gone",  # said by the agent: the process that kept the program has ended
)

_FORMS: dict[str, Form] = {
    # an agent's clock may show a step a little before T0
    "applied": {"step": COUNT, "elapsed_ns": INTEGER, "late": FLAG},
    "sample": {
        "elapsed_ns": COUNT,
        "pairs": ValueKind("rows of counters", _rows),
        "digests?": ValueKind("digests of paths", _digests),
    },
    # what the agent has done to an instance of its host; status: why not, '' if it has
    "life": {
        "step": COUNT,
        "node": COUNT,
        "what": ValueKind("what happens to an instance", lambda value: value in LIVES),
        "elapsed_ns": INTEGER,
        "status": TEXT,
    },
    # a line of the reports of the tstorm-hold that keeps a program; `line` counts them, from 0
    "report": {
        "node": COUNT,
        "line": COUNT,
        "event": ValueKind("an event of tstorm-hold", lambda value: value in REPORTS),
        "elapsed_ns": INTEGER,
        "pid?": COUNT,
        "status?": COUNT,
        "signal?": COUNT,
        "program?": TEXT,
        "error?": TEXT,
        "order?": TEXT,
    },
    # [pair, when it was sent (ns since T0), the round trip or null if it was lost]
    "echoes": {"rows": ValueKind("rows of echoes", _echoes)},
    "notice": {"text": TEXT},
    "failed": {"text": TEXT},
}


def fault(message: dict[str, Any]) -> str:
    """What is wrong with a message of an agent, '' if it is valid."""
    return message_fault(message, _FORMS, "an agent")
