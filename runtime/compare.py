"""Compares the event logs of two runs: the same events on the same targets in the same order.

Programs that end by themselves are no part of the plan; they are told apart as `exits`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtime.errors import RunError
from runtime.records import EVENTS, read_lines

_COMPARED = ("kind", "target", "args", "planned_ns")


@dataclass(frozen=True, slots=True)
class Difference:
    """`what` is 'event' (part of the plan) or 'exit' (programs that ended by themselves)."""

    what: str
    seq: int  # -1 for exits
    first: str  # what the first run did, '' if nothing
    second: str

    def __str__(self) -> str:
        place = f"event {self.seq}" if self.seq >= 0 else "exit"
        return f"{place}: {self.first or 'nothing'} / {self.second or 'nothing'}"


def _load(run: Path) -> list[dict[str, Any]]:
    try:
        return list(read_lines(run / EVENTS))
    except OSError as error:
        raise RunError(
            f"cannot read the events of {run}: {error.strerror}", "give the directory of a run"
        ) from error
    except ValueError as error:
        raise RunError(f"{run / EVENTS} is damaged: {error}", "run it again") from error


def _events(records: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """By seq: the plan's order. The log itself is in order of completion, which may vary."""
    return {record["seq"]: record for record in records if record.get("seq") is not None}


def _words(record: dict[str, Any] | None) -> str:
    if record is None:
        return ""
    args = "".join(f" {key}={value}" for key, value in sorted(record["args"].items()))
    return f"{record['planned_ns']} ns {record['kind']} {record['target']}{args}".rstrip()


def _exits(records: list[dict[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for record in records:
        if record["kind"] == "exit" and not record.get("asked"):
            how = record.get("error") or (
                f"signal {record['signal']}" if record["signal"] else f"status {record['status']}"
            )
            found[f"{record['target']} ended with {how}"] += 1
    return found


def compare_events(first: str | Path, second: str | Path) -> list[Difference]:
    """All differences, events by number, then exits. Empty: the runs did the same."""
    a, b = _load(Path(first)), _load(Path(second))
    mine, theirs = _events(a), _events(b)
    differences = [
        Difference("event", seq, _words(mine.get(seq)), _words(theirs.get(seq)))
        for seq in sorted(mine.keys() | theirs.keys())
        if _key(mine.get(seq)) != _key(theirs.get(seq))
    ]
    ours, others = _exits(a), _exits(b)
    for text in sorted(ours.keys() | others.keys()):
        if ours[text] != others[text]:
            counts = (f"{count} × {text}" if count else "" for count in (ours[text], others[text]))
            differences.append(Difference("exit", -1, *counts))
    return differences


def _key(record: dict[str, Any] | None) -> list[Any] | None:
    return None if record is None else [record[name] for name in _COMPARED]
