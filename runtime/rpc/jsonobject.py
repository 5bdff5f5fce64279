"""Messages as bytes: each is one JSON object in ASCII, of numbers that JSON has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn


def encode(message: Mapping[str, object]) -> bytes:
    """What many peers get needs this once. ValueError for what is not JSON."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def decode(data: bytes) -> dict[str, Any]:
    """ValueError for anything else."""
    try:
        value = json.loads(data, parse_constant=_not_a_number)
    except RecursionError:
        value = None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _not_a_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
