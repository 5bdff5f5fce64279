"""Lines as the SDKs of the field write them."""

from __future__ import annotations

import json
from typing import Any

SDK = {"antithesis_sdk": {"language": {"name": "Go", "version": "1.23"}, "sdk_version": "0.5.0"}}
SETUP = {"antithesis_setup": {"status": "complete", "details": {"nodes": 3}}}
DISPLAYED = {
    ("always", True): "Always",
    ("always", False): "AlwaysOrUnreachable",
    ("sometimes", True): "Sometimes",
    ("reachability", True): "Reachable",
    ("reachability", False): "Unreachable",
}


def assertion(
    kind: str, message: object, condition: bool | None, *, must_hit: bool = True, **more: Any
) -> dict[str, Any]:
    """Without a condition it is only declared."""
    place = {"class": "raft", "function": "elect", "file": "raft.go"}
    said = {
        "hit": condition is not None,
        "must_hit": must_hit,
        "assert_type": kind,
        "display_type": DISPLAYED[kind, must_hit],
        "message": message,
        "condition": bool(condition),
        "id": message,
        "location": {**place, "begin_line": 7, "begin_column": 2},
        "details": None,
    }
    return {"antithesis_assert": {**said, **more}}


def guidance(message: str) -> dict[str, Any]:
    said = {"guidance_type": "numeric", "message": message, "id": message, "maximize": True}
    return {"antithesis_guidance": {**said, "guidance_data": {"left": 1, "right": 2}, "hit": True}}


def text(*records: object) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()
