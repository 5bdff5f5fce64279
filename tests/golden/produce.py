"""Makes the golden documents of one example, through the command line as a user would.

Output per example NAME: NAME.events.json as `tstorm events` prints it, NAME.paths.json with the
output of `tstorm paths` at a few moments, and NAME.plan.json with the plan's digest and size.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from compiler.plan.reader import Plan, read_plan
from tstorm import units
from tstorm.cli import cli

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).resolve().parent
EXAMPLES = sorted((ROOT / "examples").glob("*.tdl"))
MOMENTS = 4


def tstorm(*arguments: str) -> str:
    """Standard output of one command, which must succeed."""
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    if result.exit_code != 0:
        raise RuntimeError(f"tstorm {' '.join(arguments)}: {result.stderr}")
    return result.stdout


def moments(plan: Plan) -> list[int]:
    """The beginnings of a few epochs, spread over the plan, the first and the last among them."""
    last = len(plan.epochs) - 1
    return [plan.epochs[last * i // (MOMENTS - 1)].at_ns for i in range(MOMENTS)]


def _lines(rows: list[str]) -> str:
    """A JSON object with one member a line, so that a difference is easy to read."""
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _paths(plan_path: Path, plan: Plan) -> str:
    found: dict[str, Any] = {}
    for at_ns in moments(plan):
        at = units.duration(at_ns)
        for path in json.loads(tstorm("paths", str(plan_path), "--at", at, "--format", "json")):
            found[f"{at} {path.pop('src')} {path.pop('dst')}"] = path
    return _lines([f"{json.dumps(key)}:{json.dumps(found[key])}" for key in found])


def documents(example: Path, folder: Path) -> dict[str, str]:
    """The golden files of `example`, by name. Compiles into `folder`."""
    plan_path = folder / f"{example.stem}.plan"
    tstorm("compile", str(example), "-o", str(plan_path))
    plan = read_plan(plan_path)
    summary = {
        "end_ns": plan.end_ns,
        "epochs": len(plan.epochs),
        "events": len(plan.events),
        "seed": plan.seed,
        "sha256": plan.digest,
    }
    return {
        f"{example.stem}.events.json": tstorm("events", str(plan_path), "--format", "json"),
        f"{example.stem}.paths.json": _paths(plan_path, plan),
        f"{example.stem}.plan.json": json.dumps(summary, indent=1) + "\n",
    }
