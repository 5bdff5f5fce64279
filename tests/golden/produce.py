"""Makes the golden documents of one example, through the command line as a user would.

Output per example NAME: NAME.events.json as `tstorm events` prints it, NAME.paths.json with the
output of `tstorm paths` at a few moments, and NAME.plan.json with the plan's digest and size. Of
some, NAME.explain.json with what `tstorm explain` says of a pair and of events at a few moments,
and NAME.diff.json with how the plan differs from one with another seed.
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
LARGE = (ROOT / "examples/gossip/gossip.tdl",)  # without paths: there are 90,000 at each moment
EXAMPLES = sorted((ROOT / "examples").rglob("*.tdl"))
MOMENTS = 4
EXPLAINED = ("churn", "quickstart")


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


def _explained(plan_path: Path, plan: Plan) -> str:
    instances = [node.name for node in plan.topology.nodes if node.service >= 0]
    explain = ("explain", str(plan_path), "--format", "json")
    rows = []
    for at_ns in moments(plan):
        at = units.duration(at_ns)
        pair = ("--from", instances[0], "--to", instances[-1])
        rows.append(f"{json.dumps(at)}:{tstorm(*explain, *pair, '--at', at).rstrip()}")
        event = next(event.seq for event in plan.events if event.at_ns == at_ns)
        rows.append(f'"event {event}":{tstorm(*explain, "--event", str(event)).rstrip()}')
    return _lines(rows)


def _difference(example: Path, plan_path: Path) -> str:
    """To the same text with another seed. Digests and paths of files are left out."""
    other = plan_path.with_suffix(".other")
    tstorm("compile", str(example), "-o", str(other), "--seed", "1000")
    shown = CliRunner().invoke(cli, ["diff", str(plan_path), str(other), "--format", "json"])
    found = json.loads(shown.stdout)
    return _lines([f'"{key}":{json.dumps(found[key])}' for key in found if key not in "ab"])


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
    more = {}
    if example not in LARGE:
        more[f"{example.stem}.paths.json"] = _paths(plan_path, plan)
    if example.stem in EXPLAINED:
        more[f"{example.stem}.explain.json"] = _explained(plan_path, plan)
        more[f"{example.stem}.diff.json"] = _difference(example, plan_path)
    return {
        **more,
        f"{example.stem}.events.json": tstorm("events", str(plan_path), "--format", "json"),
        f"{example.stem}.plan.json": json.dumps(summary, indent=1) + "\n",
    }
