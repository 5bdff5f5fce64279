"""What a coordinator says to who follows it, for a fake API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.api import SUCCESS, FakeApi

FACTS = {"start_monotonic_ns": 0, "start_unix_ns": 10**18}
SERVICE = {"name": "c", "joined": 1, "cut": 0, "down": 0, "done": 0, "failed": 0, "not_started": 0}


def progress(phase: str = "running", message: str = "") -> dict[str, Any]:
    return {
        "progress": {
            "phase": phase,
            "run_id": "x",
            "directory": "/run/tstorm/run",
            "at_ns": 10**9,
            "end_ns": 2 * 10**9,
            "elapsed_ns": 10**9,
            "applied": 1,
            "total": 2,
            "next_event": None,
            "services": [SERVICE],
            "message": message,
            "warning": False,
        }
    }


def final(outcome: str = "completed", message: str = "") -> dict[str, Any]:
    return {"final": {"outcome": outcome, "message": message, "facts": FACTS, "refused": False}}


@dataclass
class Coordinator:
    """`files` and `messages` are all there is to say; `breaks` ends so many streams in the middle
    of the files. `stays` keeps the stream open until somebody says stop."""

    server: FakeApi
    namespace: str
    files: dict[str, bytes] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    breaks: int = 0
    haves: list[dict[str, int]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def appear(self) -> None:
        """As the Job's pod, when the Job has been applied."""
        self.server.put(
            f"/api/v1/namespaces/{self.namespace}/pods/tstorm-coordinator-x",
            metadata={"labels": {"app.kubernetes.io/component": "coordinator"}},
            spec={"containers": [{"name": "coordinator"}]},
            status={"phase": "Running"},
        )

    def exec(self, _pod: str, argv: list[str]) -> Iterator[tuple[int, bytes]]:
        self.said.append(argv[1])
        if argv[1] == "follow":
            have = json.loads(argv[2])["have"]  # what came on its stdin
            self.haves.append(have)
            yield from ((1, frame) for frame in self._stream(have))
            if self.breaks >= 0 and len(self.haves) <= self.breaks:
                return
        yield 3, json.dumps(SUCCESS).encode()

    def _stream(self, have: dict[str, int]) -> Iterator[bytes]:
        for name, data in self.files.items():
            rest = data[have.get(name, 0) :]
            if len(self.haves) <= self.breaks:
                rest = rest[: len(rest) // 2]
            header = {"file": name, "offset": have.get(name, 0), "bytes": len(rest)}
            yield json.dumps(header).encode() + b"\n" + rest
        if len(self.haves) <= self.breaks:
            return
        place = 0
        for message in self.messages:
            place += len(json.dumps(message)) + 1
            if place > have.get("messages.jsonl", 0):
                yield json.dumps({"message": message, "have": place}).encode() + b"\n"
        yield b'{"end": true}\n'
