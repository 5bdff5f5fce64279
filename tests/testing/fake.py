"""In the place of `python -m tstorm.testing`: leaves a run that was made by hand, in no time.

The first line of the experiment's text says what the run comes to, as JSON behind a `#`:

    verdict        a state
    expectations   as in summary.json
    events         as in events.jsonl
    start_at_ns    as in manifest.json
    open           it goes on until it is interrupted
    outcome        `completed` unless it is stated; an open one is interrupted
    fails          it ends with this code before it has begun
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

HEADER = {
    "kind": "header",
    "format": "thunderstorm-events",
    "version": 1,
    "start_monotonic_ns": 0,
    "start_unix_ns": 0,
}


def text(**asked: object) -> str:
    """An experiment that comes to this."""
    return f"#{json.dumps(asked)}\nat 1s quit\n"


def main() -> int:
    _parent, _verb, _path, *words = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    asked = json.loads(sys.stdin.readline().removeprefix("#"))
    said = dict(word.removeprefix("--").partition("=")[::2] for word in words)
    if "fails" in asked:
        print("error: the fake was to fail", file=sys.stderr)
        return int(asked["fails"])
    out = Path(said["out"])
    draft = out.with_name(f".{out.name}")
    shutil.copytree(os.environ["FAKE_RUN"], draft)
    (draft / "words.json").write_text(json.dumps(words))
    events = [json.loads(line) for line in _text(draft, "events.jsonl").splitlines()]
    lines = [json.dumps(one) for one in (HEADER, *asked.get("events", events))]
    (draft / "events.jsonl").write_text("".join(f"{line}\n" for line in lines))
    _add(draft, "summary.json", verdict=_verdict(asked), expectations=asked.get("expectations", []))
    options = json.loads(_text(draft, "manifest.json"))["options"]
    options |= {"time": said.get("time", "real"), "start_at_ns": asked.get("start_at_ns", 0)}
    _add(draft, "manifest.json", options=options)
    end = {"seed": int(said.get("seed", 0)), "outcome": asked.get("outcome", "completed")}
    if asked.get("open"):
        whole = json.loads(_text(draft, "manifest.json"))
        del whole["outcome"]
        (draft / "manifest.json").write_text(json.dumps(whole))
        draft.rename(out)
        signal.sigwait([signal.SIGINT])
        _add(out, "manifest.json", **{**end, "outcome": "interrupted"})
    else:
        _add(draft, "manifest.json", **end)
        draft.rename(out)
    return 0


def _verdict(asked: dict[str, Any]) -> dict[str, Any]:
    state = asked.get("verdict", "valid")
    return {"state": state, "reasons": [{"text": "the machine was slow"}] * (state == "degraded")}


def _text(directory: Path, name: str) -> str:
    return (directory / name).read_text()


def _add(directory: Path, name: str, **values: object) -> None:
    """In one step: somebody may be reading."""
    draft = directory / f".{name}"
    draft.write_text(json.dumps({**json.loads(_text(directory, name)), **values}))
    draft.rename(directory / name)


if __name__ == "__main__":
    sys.exit(main())
