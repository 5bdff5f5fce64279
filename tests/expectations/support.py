"""What is judged of expectations of runs that never took place (tests/certify/scene.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from compiler.plan.parts.expectations import OF_PAIRS, PlannedExpectation
from runtime.certify import certificate
from runtime.expectations import kept_files
from runtime.expectations.judging import judged
from runtime.judge.lateness import smallest_delay
from runtime.judge.verdict import Judge
from runtime.rundir.held_directory import HeldDirectory
from tests.certify.scene import SECOND, Scene


def expecting(scene: Scene, kind: str, *names: str, **how: Any) -> PlannedExpectation:
    """Over the whole run, unless something else is said. Names are of one pair, or of instances."""
    nodes = tuple(scene.numbers[name] for name in names)
    of_pairs = kind in OF_PAIRS
    given: dict[str, Any] = {
        "text": f"expect {kind}",
        "kind": kind,
        "line": 1,
        "pairs": (nodes,) if of_pairs else (),
        "nodes": () if of_pairs else nodes,
        "to_ns": scene.plan.end_ns,
        "statistic": "median" if kind == "rtt" else "",
    }
    return PlannedExpectation(**{**given, **how})


def findings(
    scene: Scene, *wanted: PlannedExpectation, outcome: str = "completed", verdict: Any = None
) -> list[dict[str, Any]]:
    """`verdict`: another one than the run's own. Files of instances are kept as at the end of a
    run."""
    scene.plan.__dict__["expectations"] = wanted
    held = HeldDirectory.hold(scene.place.resolve())
    judge = Judge(smallest_delay(scene.timeline), thresholds=scene.options.thresholds)
    evidence = certificate.gather(held, scene.plan, scene.timeline, scene.facts, judge)
    summary = {"outcome": outcome, "verdict": verdict or judge.verdict()}
    unkept = kept_files.keep(held, scene.plan, here=scene.options.on_this_machine)
    return judged(held, scene.plan, scene.timeline, evidence, summary, unkept)


def finding(scene: Scene, wanted: PlannedExpectation, **how: Any) -> dict[str, Any]:
    (found,) = findings(scene, wanted, **how)
    return found


def happened(scene: Scene, *records: Mapping[str, Any]) -> None:
    """More lines of events.jsonl."""
    with (scene.place / "events.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def logged(
    scene: Scene, name: str, lines: Iterable[tuple[float, str]], *, ended: bool = True
) -> None:
    """The log of an instance, each line written within 0.1 s before its time (in s). `ended`: so is
    the last one."""
    logs = scene.place / "logs"
    logs.mkdir(exist_ok=True)
    size, text = 0, ""
    rows: list[dict[str, Any]] = []
    for at_s, line in lines:
        text += f"{line}\n"
        size += len(f"{line}\n".encode())
        until_ns = int(at_s * SECOND)
        times = {"from_ns": until_ns - SECOND // 10, "elapsed_ns": until_ns}
        rows.append({**times, "bytes": {name: size}})
    if not ended:
        rows[-1]["bytes"] = {name: size - 1}
    text = text if ended else text[:-1]
    (logs / f"{name}.log").write_text(text, encoding="utf-8")
    with (scene.place / "logs.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
