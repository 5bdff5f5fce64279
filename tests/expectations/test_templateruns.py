"""Commands of a test template while a run goes on: which is begun when, what is recorded of it, and
what becomes of a template that is none."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from compiler.pipeline import compile_source
from compiler.plan.parts.expectations import DRIVERS, PlannedExpectation
from runtime.backend.instance import FolderEntry, Instance, Ran, UnreachableError
from runtime.driver.eventbook import EventBook
from runtime.driver.templateruns import templates_of
from runtime.errors import RunError
from runtime.options import DEFAULTS
from runtime.schedule import Schedule

PLAN = (
    "service a img=x\nservice b img=x\nbridge s\nlink a--s latency=1\nlink b--s latency=1\n"
    "at 60s quit\n"
)
Records = list[Mapping[str, Any]]


@dataclass
class Folders:
    """The commands of an instance: by folder what is in it, `*` behind what can be executed."""

    inside: Mapping[str, str]
    takes_s: Mapping[str, float] = field(default_factory=dict)
    status: Mapping[str, int] = field(default_factory=dict)
    beside: list[tuple[str, ...]] = field(default_factory=list)
    running: list[str] = field(default_factory=list)

    def resolved(self, argv: Sequence[str]) -> tuple[str, ...]:
        return tuple(argv)

    def listed(self, _incarnation: object, folder: str, /) -> tuple[FolderEntry, ...]:
        if folder not in self.inside:
            raise RunError(f"{folder} cannot be read: No such file or directory")
        return tuple(
            FolderEntry(name.rstrip("*/"), name.endswith("/"), name.endswith("*"))
            for name in self.inside[folder].split()
        )

    async def run(self, _incarnation: object, argv: Sequence[str]) -> Ran:
        name = argv[0].rpartition("/")[2]
        self.beside.append((name, *self.running))
        self.running.append(name)
        try:
            await asyncio.sleep(self.takes_s.get(name, 0.001))
        finally:
            self.running.remove(name)
        return Ran(self.status.get(name, 0), (f"{name} has run",))


class Jumping(selectors.SelectSelector):
    """Waits no real time: what nobody ends earlier is over at once, at a later time."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now_ns += round((timeout or 0) * 1e9)
        return super().select(0)


class Life:
    def __init__(self) -> None:
        self.gone: asyncio.Future[None] = asyncio.Future()


@dataclass
class FakeInstance:
    runner: Folders | None
    present: Life | None = None
    dead: bool = False
    never: bool = False  # has it a life
    paused_s: tuple[float, float] = (0, 0)  # from, to

    async def goes_on(self, incarnation: Life) -> None:
        """Until it is not paused."""
        begin_s, end_s = self.paused_s
        now_s = asyncio.get_running_loop().time()
        if begin_s <= now_s < end_s:
            await asyncio.wait({incarnation.gone}, timeout=end_s - now_s)


def carried_out(
    *instances: FakeInstance, seed: int = 1, for_s: float = 10, more_s: float = 10
) -> Records:
    """The records of a run that ends `more_s` after the time of drivers."""
    records: Records = []

    async def whole() -> None:
        names = dict(zip(("a.0", "b.0"), instances, strict=False))
        for one in instances:
            one.present = None if one.never else Life()
        plan = compile_source(PLAN, seed=seed).plan
        times = {"to_ns": int(for_s * 1e9), "line": 1, "argv": ("/t",)}
        nodes = tuple(range(len(names)))
        wanted = PlannedExpectation("expect drivers", DRIVERS, nodes=nodes, **times)  # type: ignore[arg-type]
        plan.__dict__["expectations"] = (wanted,)
        book = EventBook(records.append)
        book.begin(1)  # 0 is none yet
        given = cast("Mapping[str, Instance]", names)
        (run,) = templates_of(plan, Schedule(plan, DEFAULTS), given, book)
        task = asyncio.create_task(run.carry_out())
        await asyncio.wait([task], timeout=for_s + more_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled() or task.exception() is None

    clock = Jumping()
    loop = asyncio.SelectorEventLoop(clock)
    loop.time = lambda: clock.now_ns / 1e9  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=lambda: loop) as runner:
        patch.setattr(time, "monotonic_ns", lambda: clock.now_ns)
        runner.run(whole())
    return records


def of(records: Records, kind: str) -> list[str]:
    return [one["command"] for one in records if one["kind"] == kind]


ALL = "anytime_x* eventually_e* finally_f* first_1* first_2* parallel_driver_p* serial_driver_s*"


def test_one_first_then_drivers_then_one_check() -> None:
    firsts, checks = set(), set()
    for seed in range(8):
        commands = Folders({"/t": f"{ALL} helper_h README"}, {"parallel_driver_p": 0.5})
        records = carried_out(FakeInstance(commands), seed=seed)
        template, *_ = records
        assert (template["template"], template["ignored"]) == ("t", ["README", "helper_h"])
        first, *middle, check = [one for one, *_ in commands.beside]
        firsts.add(first)
        checks.add(check)
        assert {one.partition("_")[0] for one in middle} <= {"anytime", "parallel", "serial"}
        assert {"anytime_x", "parallel_driver_p", "serial_driver_s"} <= set(middle)
        assert of(records, "command") == [one for one, *_ in commands.beside]
        for name, *others in commands.beside:
            beside = {one for one in others if not one.startswith("anytime")}
            assert not beside or name.startswith(("parallel", "anytime")), commands.beside
            assert "serial_driver_s" not in beside or name.startswith("anytime")
            assert not others or name not in (first, check)
    assert firsts == {"first_1", "first_2"}
    assert checks == {"eventually_e", "finally_f"}


def test_the_same_seed_draws_the_same_whatever_commands_take() -> None:
    def begun(seed: int, takes_s: float) -> list[str]:
        commands = Folders({"/t": "serial_driver_1* serial_driver_2* serial_driver_3*"})
        commands.takes_s = dict.fromkeys(("serial_driver_1", "serial_driver_2"), takes_s)
        return of(carried_out(FakeInstance(commands), seed=seed), "command")[:5]

    assert begun(3, 0.001) == begun(3, 0.4)
    assert len({tuple(begun(seed, 0.001)) for seed in range(5)}) > 1


def test_a_singleton_runs_once_and_alone() -> None:
    whole = "parallel_driver_p* singleton_driver_1* singleton_driver_2*"
    seen = set()
    for seed in range(12):
        commands = Folders({"/t": whole}, {"parallel_driver_p": 0.3})
        begun = of(carried_out(FakeInstance(commands), seed=seed, more_s=0), "command")
        alone = [one for one in begun if one.startswith("singleton")]
        assert begun == alone if alone else set(begun) == {"parallel_driver_p"}
        assert len(alone) <= 1
        seen.add(begun[0])
    assert seen == {"parallel_driver_p", "singleton_driver_1", "singleton_driver_2"}


@pytest.mark.parametrize(("check", "lost"), [("eventually_e", True), ("finally_f", False)])
def test_eventually_ends_drivers_and_finally_waits_for_them(check: str, lost: bool) -> None:
    names = f"singleton_driver_d* anytime_x* {check}*"
    commands = Folders({"/t": names}, {"singleton_driver_d": 12, "anytime_x": 11})
    records = carried_out(FakeInstance(commands))
    ends = {one["command"]: one for one in records if one["kind"] == "command_end"}
    assert ("lost" in ends["singleton_driver_d"]) == lost
    assert ends["anytime_x"]["status"] == ends[check]["status"] == 0
    assert (check,) in commands.beside, "it runs by itself"
    assert ends[check]["output"] == [f"{check} has run"]


def test_a_check_waits_no_longer_than_the_run() -> None:
    commands = Folders({"/t": "singleton_driver_d* finally_f*"}, {"singleton_driver_d": 60})
    records = carried_out(FakeInstance(commands))
    assert of(records, "command") == ["singleton_driver_d"]
    assert records[-1]["lost"] == "it was ended with its run or by a check"


@pytest.mark.parametrize("paused_s", [(0.0, 3.0), (5.0, 15.0)])
def test_no_command_begins_in_a_pause(paused_s: tuple[float, float]) -> None:
    """And none that waited for its end begins when the time of drivers is over."""
    commands = Folders({"/t": "first_f* parallel_driver_p* finally_c*"})
    records = carried_out(FakeInstance(commands, paused_s=paused_s))
    ends = [one for one in records if "began_ns" in one]
    begun = {round(one["began_ns"] / 1e9, 3): one["command"] for one in ends}
    begin_s, end_s = paused_s
    assert not [at for at in begun if begin_s <= at < end_s]
    late = [name for at, name in begun.items() if at >= 10]
    assert late == ["finally_c"]
    assert begun[min(begun)] == "first_f"
    assert (min(begun) >= end_s) == (begin_s == 0)


def test_of_several_templates_one_is_drawn_and_instances_share_it() -> None:
    one = {"/t": "x/ y/ helper_z/", "/t/x": "singleton_driver_ax*", "/t/y": "anytime_ay*"}
    two = {"/t": "x/", "/t/x": "singleton_driver_bx* finally_bx*"}
    drawn: dict[str, set[tuple[str, str]]] = {}
    for seed in range(24):
        pair = FakeInstance(Folders(one)), FakeInstance(Folders(two))
        template, *rest = carried_out(*pair, seed=seed)
        where = {(record["target"], record["command"]) for record in rest}
        drawn.setdefault(template["template"], set()).update(where)
    assert drawn["y"] == {("a.0", "anytime_ay")}
    singles = {("a.0", "singleton_driver_ax"), ("b.0", "singleton_driver_bx")}
    assert drawn["x"] == {*singles, ("b.0", "finally_bx")}


@pytest.mark.parametrize(
    ("inside", "error"),
    [
        ({}, "in a.0 /t cannot be read: No such file or directory"),
        ({"/t": "README helper_x*"}, "there is no command in /t: it needs one of parallel_driver_"),
        ({"/t": "eventually_x* first_y*"}, "there is no driver in /t: it needs one of parallel_"),
        ({"/t": "u/", "/t/u": "finally_x*"}, "there is no driver in /t/u: it needs one of para"),
        ({"/t": "parallel_driver_x anytime_y*"}, "not executable in /t: parallel_driver_x (chmod"),
        (
            {"/t": "anytime_x* parallel_drvier_y*"},
            "no name of a command in /t: parallel_drvier_y; a command begins with first_, parallel",
        ),
    ],
)
def test_what_is_no_template(inside: Mapping[str, str], error: str) -> None:
    (record,) = carried_out(FakeInstance(Folders(inside)))
    assert record["error"].startswith(error), record
    assert (record["kind"], record["commands"]) == ("template", [])


def test_a_template_waits_for_its_instances() -> None:
    instance = FakeInstance(Folders({"/t": "anytime_x*"}))
    instance.never = True
    (record,) = carried_out(instance)
    assert record["error"] == "a.0 was not there as long as drivers had time"


def _away(instance: FakeInstance) -> None:
    instance.present = None


def _killed(instance: FakeInstance) -> None:
    instance.dead = True


def _elsewhere(_incarnation: object, _folder: str, /) -> tuple[FolderEntry, ...]:
    raise UnreachableError("nobody looks")


def test_where_nobody_looks_into_instances() -> None:
    commands = Folders({})
    commands.listed = _elsewhere  # type: ignore[method-assign]
    for one in (FakeInstance(None), FakeInstance(commands)):
        (record,) = carried_out(one)
        assert record["unavailable"] is True


@pytest.mark.parametrize("ends", [_away, _killed])
def test_a_command_ends_with_its_instance(ends: Callable[[FakeInstance], None]) -> None:
    commands = Folders({"/t": "singleton_driver_d*"}, status={"singleton_driver_d": 137})
    instance = FakeInstance(commands)

    async def run(_incarnation: object, argv: Sequence[str]) -> Ran:
        assert argv == ("/t/singleton_driver_d",)
        ends(instance)
        return Ran(137)

    commands.run = run  # type: ignore[method-assign]
    end = carried_out(instance)[-1]
    assert end["lost"] == "its instance ended"
    assert "status" not in end
