"""How a command in a container ended, by the Status object that the API server's exec ends with
(channel 3 of v4.channel.k8s.io)."""

from __future__ import annotations

import json
from dataclasses import dataclass

STDIN, STDOUT, STDERR, ENDED, SIZE = range(5)  # channels: the first byte of each message
ENTER_FAILED, NOT_EXECUTABLE, NO_COMMAND = 125, 126, 127  # as `tstorm exec` on one machine
_MISSING = ("executable file not found", "no such file or directory", "not found in $PATH")


@dataclass(frozen=True, slots=True)
class How:
    """How a command ended: its exit status, or why it was never started."""

    status: int
    refusal: str = ""


def how_ended(data: bytes) -> How:
    try:
        said = json.loads(data)
        if said["status"] == "Success":
            return How(0)
        for cause in (said.get("details") or {}).get("causes") or []:
            if cause.get("reason") == "ExitCode":
                return How(int(cause["message"]))
        return _refused(str(said.get("message", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return How(ENTER_FAILED, f"no Status object: {data[:200]!r}")


def _refused(message: str) -> How:
    """The container runtime says in words only why it could not start a command."""
    _, _, inner = message.rpartition("unable to start container process: ")
    message, low = inner or message, message.lower()
    if any(words in low for words in _MISSING):
        return How(NO_COMMAND, message)
    if "permission denied" in low:
        return How(NOT_EXECUTABLE, message)
    return How(ENTER_FAILED, message)
