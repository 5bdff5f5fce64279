"""The catalogue of every diagnostic code of the project, and the generator of docs/errors.md.

Ranges: TS00xx text and syntax, TS01xx declarations, TS02xx selectors and actions, TS03xx the
timeline, TS05xx files of other tools, TS06xx routers, lans and machines, TS07xx machines outside,
TS09xx warnings. A code is never reused for another meaning.
`python -m tdl.codes.catalogue` prints docs/errors.md.
"""

from __future__ import annotations

import sys

from tdl.codes.action_codes import ACTIONS, COMMANDS, WARNINGS
from tdl.codes.code import Code
from tdl.codes.compose_codes import COMPOSE_CODES, TOPOLOGY_CODES
from tdl.codes.expectation_codes import EXPECTATIONS, HUNTS, REACTIONS
from tdl.codes.frame_codes import FRAME_CODES, FRAME_WARNINGS
from tdl.codes.mobility_codes import MOBILITY_CODES
from tdl.codes.node_codes import EXTERNAL_CODES, NODE_CODES
from tdl.codes.running_codes import RUNNING
from tdl.codes.structure_codes import DECLARATIONS, TIMELINE
from tdl.codes.syntax_codes import SYNTAX
from tdl.codes.trace_codes import DELAY_CODES, TRACE_CODES

ALL = (
    *SYNTAX,
    *DECLARATIONS,
    *RUNNING,
    *ACTIONS,
    *TIMELINE,
    *REACTIONS,
    *HUNTS,
    *EXPECTATIONS,
    *WARNINGS,
    *COMMANDS,
    *TRACE_CODES,
    *MOBILITY_CODES,
    *DELAY_CODES,
    *COMPOSE_CODES,
    *TOPOLOGY_CODES,
    *FRAME_CODES,
    *FRAME_WARNINGS,
    *NODE_CODES,
    *EXTERNAL_CODES,
)
CODES: dict[str, Code] = {code.code: code for code in ALL}

_HEADINGS = {
    "TS00": "Text and syntax",
    "TS01": "Declarations",
    "TS02": "Selectors and actions",
    "TS03": "Timeline",
    "TS04": "Expectations",
    "TS05": "Files of other tools",
    "TS06": "Routers, lans and machines",
    "TS07": "Machines outside",
    "TS09": "Warnings",
}


def markdown() -> str:
    """The whole of docs/errors.md."""
    lines = [
        "# Errors and warnings",
        "",
        "Every diagnostic has one of these codes. TS09xx are warnings (errors with `--strict`). "
        "This page is generated: `python -m tdl.codes.catalogue > docs/errors.md`.",
    ]
    heading = ""
    for code in sorted(CODES):
        entry = CODES[code]
        if _HEADINGS[code[:4]] != heading:
            heading = _HEADINGS[code[:4]]
            lines += ["", f"## {heading}"]
        lines += ["", f"### {code}: {entry.title}", "", entry.explanation]
        if entry.example:
            lines += ["", "```", entry.example, "```"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
