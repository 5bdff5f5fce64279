"""The interface of the page's server as an OpenAPI 3.1 document; docs/openapi.json is this.

`python -m tstorm.ui.openapi` prints it.
"""

from __future__ import annotations

import json
from typing import Any

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_JSON, _EVENTS = "application/json", "text/event-stream"
_TEXT = {"type": "string"}
_SAID = {"type": "string", "description": "The same for people."}


def _named(schema: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{schema}"}


def _taken(ok: dict[str, Any], warnings: dict[str, Any]) -> dict[str, Any]:
    """What is answered where something was done; all of `ok` is there."""
    return {
        "type": "object",
        "required": ["ok", "warnings", "text"],
        "properties": {
            "ok": {"type": "object", "required": list(ok), "properties": ok},
            "warnings": {"type": "array", **warnings},
            "text": _SAID,
        },
    }


_ERROR = _named("Error")
_DONE = _taken(
    {
        "action": {"type": "integer", "description": "Its number: 1, 2, ..."},
        "text": _TEXT,
        "planned_ns": {"type": "integer", "description": "When, in ns of the run."},
        "events": {"type": "integer", "description": "How many it makes."},
        "first": {"type": "array", "items": {"type": "object"}},
    },
    {"items": _named("Diagnostic")},
)
_TIME_HELD = _taken(
    {
        "time_held_ns": {
            "type": ["integer", "null"],
            "description": "Where time stands, in ns of the run; null: it goes on.",
        }
    },
    {"maxItems": 0},
)
_DIAGNOSTIC = {
    "type": "object",
    "required": ["severity", "code", "message", "line", "col"],
    "properties": {
        "severity": {"enum": ["error", "warning"]},
        "code": {"type": "string", "description": "As in docs/errors.md."},
        "message": _TEXT,
        "hint": _TEXT,
        "line": {"type": "integer"},
        "col": {"type": "integer"},
        "file": {"type": "string", "description": "Only of what is about the plan."},
    },
}
_REFUSED = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": _TEXT,
        "code": _TEXT,
        "diagnostics": {"type": "array", "items": _named("Diagnostic")},
        "text": _SAID,
    },
}
_STREAM = """Server-sent events. First `state`, with all that is known; then `update`s, whose keys
take the place of what was there, or are added to it (`events`, `links`, `pairs`, `logs`, unless
`anew` names them); at last `end`, with the whole page of the run that is over. Whoever does not
take what comes is hung up on, and begins again with `state`. Keys are those of docs/page.md."""


def _answer(words: str, schema: dict[str, Any], kind: str = _JSON) -> dict[str, Any]:
    return {"description": words, "content": {kind: {"schema": schema}}}


def _get(
    name: str, words: str, kind: str = _JSON, schema: dict[str, Any] | None = None
) -> dict[str, Any]:
    answers = {"200": _answer(words.partition(".")[0] + ".", schema or {"type": "object"}, kind)}
    answers["503"] = _answer("It cannot be read, or too many look at it.", _ERROR)
    return {"get": {"operationId": name, "description": words, "responses": _usual(answers)}}


def _post(
    name: str, words: str, body: dict[str, Any], example: dict[str, Any], done: str = "Done"
) -> dict[str, Any]:
    schema = {"type": "object", "properties": body, "additionalProperties": False}
    if body:
        schema["required"] = list(body)
    answers = {
        "200": _answer("The run has taken it.", _named(done)),
        "409": _answer("Nothing was changed.", _ERROR),
        "413": _answer("It is too long.", _ERROR),
        "422": _answer("The body is another than this.", _ERROR),
        "429": _answer("Too many wait for their action.", _ERROR),
    }
    return {
        "post": {
            "operationId": name,
            "description": words,
            "requestBody": {
                "required": True,
                "content": {_JSON: {"schema": schema, "example": example}},
            },
            "responses": _usual(answers),
        }
    }


def _usual(answers: dict[str, Any]) -> dict[str, Any]:
    return {
        **answers,
        "401": _answer("Without the secret.", _ERROR),
        "403": _answer("From a page of another origin, or by another name.", _ERROR),
    }


def document() -> dict[str, Any]:
    """All of it."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "A run of Thunderstorm",
            "version": "1",
            "description": "What `tstorm ui` serves of one run, as docs/live.md has it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"secret": []}],
        "paths": {
            "/api/v1/state": _get("state", "All that is known of the run. Keys: docs/page.md."),
            "/api/v1/stream": _get("stream", _STREAM.replace("\n", " "), _EVENTS, _TEXT),
            "/api/v1/do": _post(
                "do",
                "Statements of the language, one a line: all of them, or nothing.",
                {"text": {"type": "string", "maxLength": 32768}},
                {"text": "client--s1 set latency=100ms"},
            ),
            "/api/v1/hold": _post("hold", "What is planned waits.", {}, {}),
            "/api/v1/hold-time": _post(
                "holdTime", "In virtual time: everything stands still.", {}, {}, "TimeHeld"
            ),
            "/api/v1/go": _post(
                "go", "Time goes on where it is held, else what is planned does.", {}, {}, "Went"
            ),
            "/api/v1/skip": _post(
                "skip",
                "All up to a time of the text, or its next event, happens at once.",
                {"to": {"type": "string"}},
                {"to": "next"},
            ),
            "/api/v1/openapi.json": _get("openapi", "This document."),
            "/metrics": _get("metrics", "The last value of each series.", OPENMETRICS, _TEXT),
        },
        "components": {
            "securitySchemes": {
                "secret": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "What is behind `#` in the link that `tstorm ui` prints.",
                }
            },
            "schemas": {
                "Done": _DONE,
                "TimeHeld": _TIME_HELD,
                "Went": {"anyOf": [_named("Done"), _named("TimeHeld")]},
                "Diagnostic": _DIAGNOSTIC,
                "Error": _REFUSED,
            },
        },
    }


def text() -> str:
    """As it is in docs."""
    return json.dumps(document(), indent=2) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(text())
