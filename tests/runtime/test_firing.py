"""A run takes what a `when` has led to whole, or not at all (runtime/driver/steering.py)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from compiler import firing
from compiler.pipeline import Compilation
from compiler.plan.parts.action_texts import Firing
from compiler.plan.reader import Plan, decode, read_plan
from runtime.driver import steering, timelinerunner
from runtime.driver.steering import Fired
from runtime.options import REAL
from tests.runtime.test_steering import TEXT, Scene
from tests.waiting import in_a_loop, until

MS = 1_000_000
WHEN = TEXT + 'when log a "leads" every { it crash }\n'


def compiled(scene: Scene, at_ns: int, number: int = 1) -> tuple[Compilation, dict[str, Any]]:
    """What is offered, and what the driver is told of it."""
    plan = scene.runner.plan
    (when,) = firing.statements(plan)
    found, text = firing.fire(plan, when, f"a.{number - 1}", Firing(1, number), number, at_ns)
    seen = {"target": f"a.{number - 1}", "seen_ns": at_ns, "after_ns": 0, "line": 9, "text": "x"}
    more = {"firing": number, "reaction": 1, "does": text, "asked_ns": at_ns}
    return found, {**seen, **more, "action": number, "base": plan.digest, "at_ns": at_ns}


async def fired(scene: Scene, at_ns: int, number: int = 1) -> Fired:
    found, offer = compiled(scene, at_ns, number)
    answer = await scene.steering.fire(offer, found.files)
    if answer.digest:
        assert scene.runner.plan.digest == answer.digest == found.plan.digest
        await scene.steering.keep(found.files)
        assert read_plan(scene.folder / "plan").digest == answer.digest
    return answer


@in_a_loop
async def test_it_is_carried_out_at_once_and_stands_in_the_records(tmp_path: Path) -> None:
    scene = Scene(tmp_path, WHEN)

    async def react() -> None:
        await until(lambda: scene.runner.elapsed() > 100 * MS, "it goes on")
        for number in (1, 2):
            answer = Fired("")
            while not answer.digest:  # a slow machine is too late
                answer = await fired(scene, scene.runner.elapsed() + 200 * MS, number)
        await until(lambda: len(scene.of("crash")) == 2, "both are done")

    await scene.play(react)
    crashes = scene.of("crash")
    assert [(one["target"], one["file"]) for one in crashes] == [
        ("a.0", "do@1.1.1"),
        ("a.1", "do@2.1.2"),
    ]
    assert {(one["origin"], one["line"]) for one in crashes} == {("condition", 1)}
    said = scene.of("when")
    assert [(one["action"], one["events"], one["target"]) for one in said] == [
        (1, 1, "a.0"),
        (2, 1, "a.1"),
    ]
    assert [one["late_ns"] for one in said] == [0, 0]
    assert read_plan(tmp_path / "planned").source == WHEN.encode()
    assert scene.runner.applied == scene.runner.planned == len(scene.runner.plan.events)


@in_a_loop
async def test_it_finds_its_place_between_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is asked for half of the time since the one before ahead, and not all at the start."""
    monkeypatch.setattr(timelinerunner, "_REACTING_AHEAD_NS", {REAL: (MS, 100_000 * MS)})
    threads = set()

    def decoded(*of: Any, **more: Any) -> Plan:
        threads.add(threading.current_thread())
        return decode(*of, **more)

    monkeypatch.setattr(steering, "decode", decoded)
    scene = Scene(tmp_path, WHEN.replace("at 1500ms", "at 3s"))

    async def react() -> None:
        answer = Fired("")
        while not answer.digest and scene.runner.elapsed() < 2000 * MS:
            answer = await fired(scene, scene.runner.elapsed() + 200 * MS)
        assert answer.digest

    await scene.play(react)
    assert len(scene.of("crash")) == 1
    assert threading.main_thread() not in threads  # in which events wait for nothing


@in_a_loop
async def test_what_races_is_offered_again_or_refused_and_nothing_is_changed(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, WHEN)

    async def react() -> None:
        await until(lambda: scene.runner.elapsed() > 100 * MS, "it goes on")
        found, offer = compiled(scene, 400 * MS)
        before = scene.runner.plan
        late = await scene.steering.fire({**offer, "base": "another"}, found.files)
        assert (late.digest, late.again) == ("", "another action came first")
        found, offer = compiled(scene, 50 * MS)  # it is over
        late = await scene.steering.fire(offer, found.files)
        assert late.again.startswith("too late")
        scene.runner.is_ending = True
        ending = await scene.steering.fire(offer, found.files)
        scene.runner.is_ending = False
        assert ending.refused == "the run is ending"
        assert scene.runner.plan is before
        assert scene.of("when") == []

    await scene.play(react)
    assert scene.of("crash") == []
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]
