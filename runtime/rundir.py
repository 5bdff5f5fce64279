"""The run directory: what is made before a run starts, and the manifest that says what ran where.

Layout in docs/run.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.plan import format as form
from compiler.plan.reader import Plan
from runtime import hosts, machine
from runtime.config import asked
from runtime.errors import RunError
from runtime.options import RunOptions

MANIFEST, SUMMARY, REPORT, DRIVER_LOG = "manifest.json", "summary.json", "report.html", "driver.log"
MAX_NAME = 80
PLAN, LOGS, INSTANCES, HOSTS = "plan", "logs", "instances", "hosts"


def encode(text: str) -> bytes:
    """UTF-8. Bytes of a path that are none appear as JSON's escapes of half a pair (`\\udcff`)."""
    return text.encode("utf-8", "backslashreplace")


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Canonical, and whole or not at all."""
    temporary = path.with_name(f".{path.name}.new")
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    temporary.write_bytes(encode(text))
    temporary.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """RunError if it is missing or not a JSON object."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read {path}: {error}", "give the directory of a run") from error
    if not isinstance(value, dict):
        raise RunError(f"{path} does not hold an object", "give the directory of a run")
    return value


def experiment_name(plan_path: Path, options: RunOptions) -> str:
    """What a run is called after: given, else the plan directory's name; safe as a file's name."""
    name = options.name or plan_path.resolve().name.removesuffix(".plan")
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-")[:MAX_NAME] or "run"


def utc_stamp() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def default_path(name: str, stamp: str, attempt: int) -> Path:
    suffix = f"-{attempt}" if attempt > 1 else ""
    return Path("runs") / f"{name}-{stamp}{suffix}"


@dataclass(frozen=True, slots=True)
class RunDirectory:
    path: Path

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def fill(self, plan_path: Path, plan: Plan) -> None:
        """The plan's copy, the hosts file and the empty folders."""
        (self / PLAN).mkdir()
        for name in (form.HEADER, *form.FILES):
            shutil.copyfile(plan_path / name, self / PLAN / name)
        (self / LOGS).mkdir()
        (self / INSTANCES).mkdir()
        (self / HOSTS).write_text(hosts.text(plan.topology), encoding="ascii")

    def update_manifest(self, **values: object) -> None:
        write_json(self / MANIFEST, {**read_json(self / MANIFEST), **values})


def create(path: Path) -> RunDirectory:
    """Takes an absent or empty directory. FileExistsError if it is in use."""
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise FileExistsError(path)
    return RunDirectory(Path(os.path.realpath(path)))


def manifest(run_id: str, plan: Plan, options: RunOptions, kind: str) -> dict[str, object]:
    """What is known before the start; facts about the engine and the outcome are added later."""
    return {
        "format": "thunderstorm-run",
        "version": 1,
        "run_id": run_id,
        "experiment": kind,
        "plan_digest": plan.digest,
        "plan_tool": plan.tool_version,
        "seed": plan.seed,
        "started": utc_stamp(),
        "options": asked(options),
        "datapath": "user" if options.datapath == "auto" else options.datapath,
        "machine": machine.facts(),
    }
