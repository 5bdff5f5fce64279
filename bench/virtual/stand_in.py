"""Carries out storms of the small programs of bench/virtual/bugs without a guest.

A storm in virtual time takes seconds of a processor, and a bench of how storms are chosen takes
thousands of them. What is told apart here is which storms are drawn, so this runs the same programs
under the same storms in one process: instances are threads of which one goes on at a time, and
their `socket`, `time`, `sys`, `os`, `pathlib` and `print` are those of a small simulated world.

Input: a request and a storm of a hunt. Output: its StormResult, with what it reached as
tstorm.hunt.novelty has it. Not simulated: queues, rates, what computing costs, disks. Computing
takes no time, as in virtual time.
"""

from __future__ import annotations

import builtins
import heapq
import random
import re
import shlex
import threading
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

from tstorm.hunt import novelty
from tstorm.hunt.hunt_results import FAILED, PASSED, FailedAt, StormResult
from tstorm.hunt.storm_runs import HuntRequest
from tstorm.hunt.storms import Fault, Storm

_EPOCH_S = 1_700_000_000
_STEP_NS = 10_000  # what a program's turn takes
_LIFE = re.compile(r"service (\w+)(?: replicas=(\d+))? exec=\"([^\"]*)\"")
_LINK = re.compile(r"^link ([\w.]+)--([\w.]+) latency=(\d+)ms", re.MULTILINE)
_EXPECTED = re.compile(r"^expect no log (\w+)(?:\.\*)? \"(.*)\"", re.MULTILINE)


@cache
def programs(place: Path) -> dict[str, CodeType]:
    """By their names as modules."""
    files = sorted(place.glob("*.py"))
    return {path.stem: compile(path.read_text(), str(path), "exec") for path in files}


class EndedError(BaseException):
    """Its instance crashed, or the run is over."""


class SimulatedInstance:
    """One life of a program. `files` outlive it."""

    def __init__(self, world: SimulatedWorld, name: str, argv: list[str]) -> None:
        self.world, self.name, self.argv = world, name, argv
        self.files = world.files.setdefault(name, {})
        self.inbox: list[bytes] = []
        self.until_ns = 0  # when it goes on without a message
        self.takes_messages = self.is_over = False
        self.turn = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()

    def _live(self) -> None:
        self.turn.acquire()
        try:
            if not self.is_over:
                self._import(Path(self.argv[0]).stem)
        except EndedError:
            pass
        self.is_over = True
        self.world.turn.release()

    def _import(self, name: str) -> SimpleNamespace:
        """A file of the experiment, carried out with modules of this world."""
        space: dict[str, Any] = {"__name__": name, "__builtins__": self._builtins()}
        exec(self.world.code[name], space)
        return SimpleNamespace(**space)

    def _builtins(self) -> dict[str, Any]:
        ours: dict[str, Any] = {
            "os": SimpleNamespace(environ={"TSTORM_INSTANCE": self.name}),
            "sys": SimpleNamespace(argv=self.argv, maxsize=1 << 62),
            "time": SimpleNamespace(monotonic=self.monotonic, time=self.time, sleep=self.sleep),
            "socket": SimpleNamespace(
                socket=lambda *_: SimulatedSocket(self), AF_INET=0, SOCK_DGRAM=0,
                gethostbyname=lambda name: name,
            ),
            "pathlib": SimpleNamespace(Path=lambda name: SimulatedFile(self.files, name)),
        }  # fmt: skip

        def imported(name: str, *rest: Any) -> Any:
            if name in self.world.code and name not in ours:
                ours[name] = self._import(name)
            return ours[name] if name in ours else builtins.__import__(name, *rest)

        return {**vars(builtins), "__import__": imported, "print": self.say}

    def say(self, *words: object, **_: object) -> None:
        self.world.lines.append((self.world.now_ns, self.name, " ".join(map(str, words))))

    def monotonic(self) -> float:
        return self.world.now_ns / 1e9

    def time(self) -> float:
        offsets = (one.value for one in self.world.going("clock") if self.name in one.targets)
        return _EPOCH_S + (self.world.now_ns + sum(offsets)) / 1e9

    def sleep(self, seconds: float) -> None:
        self.wait(seconds, takes_messages=False)

    def wait(self, seconds: float, *, takes_messages: bool) -> None:
        self.until_ns = self.world.now_ns + max(int(seconds * 1e9), _STEP_NS)
        self.takes_messages = takes_messages
        self.world.at(self.until_ns, lambda: self.world.let_go_on(self))
        self.world.turn.release()
        self.turn.acquire()
        if self.is_over:
            raise EndedError


class SimulatedSocket:
    def __init__(self, instance: SimulatedInstance) -> None:
        self.instance, self.seconds = instance, 0.0

    def bind(self, _place: object) -> None:
        pass

    def settimeout(self, seconds: float) -> None:
        self.seconds = seconds

    def sendto(self, data: bytes, place: tuple[str, int]) -> None:
        self.instance.world.send(self.instance.name, place[0], data)

    def recv(self, _size: int) -> bytes:
        if not self.instance.inbox:
            self.instance.wait(self.seconds, takes_messages=True)
        if not self.instance.inbox:
            raise TimeoutError
        return self.instance.inbox.pop(0)


class SimulatedFile:
    def __init__(self, files: dict[str, str], name: str) -> None:
        self.files, self.name = files, name

    def exists(self) -> bool:
        return self.name in self.files

    def read_text(self) -> str:
        return self.files[self.name]

    def write_text(self, text: str) -> None:
        self.files[self.name] = text

    def touch(self) -> None:
        self.files.setdefault(self.name, "")


class SimulatedWorld:
    """The instances of an experiment, its links, and a storm."""

    def __init__(self, request: HuntRequest, storm: Storm) -> None:
        self.faults, self.random = storm.faults, random.Random(storm.seed)
        self.now_ns, self.end_ns, self.count = 0, request.end_ns, 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.turn = threading.Semaphore(0)
        self.files: dict[str, dict[str, str]] = {}
        self.lines: list[tuple[int, str, str]] = []
        self.received: dict[str, list[tuple[int, str]]] = {}
        self.lost: Counter[tuple[str, str]] = Counter()
        self.instances: dict[str, SimulatedInstance] = {}
        self.code = programs(Path(request.source).parent)
        self.latency_ns = {
            frozenset(one[:2]): int(one[2]) * 1_000_000 for one in _LINK.findall(request.base)
        }
        for service, replicas, command in _LIFE.findall(request.base):
            for index in range(int(replicas or 1)):
                self.begin(f"{service}.{index}", shlex.split(command)[2:])
        for fault in self.faults:
            self._schedule(fault)

    def _schedule(self, fault: Fault) -> None:
        for name in fault.targets:
            if fault.word in ("crash", "kill"):
                argv = self.instances[name].argv
                self.at(fault.begin_ns, partial(self.end, name))
                self.at(fault.end_ns, partial(self.begin, name, argv))
            elif fault.word == "pause":
                self.at(fault.end_ns, partial(self.resume, name))

    def resume(self, name: str) -> None:
        self.let_go_on(self.instances[name])

    def at(self, when_ns: int, act: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (when_ns, self.count, act))

    def going(self, *words: str) -> list[Fault]:
        """Faults of these kinds that are going on."""
        now = self.now_ns
        return [
            one for one in self.faults if one.word in words and one.begin_ns <= now < one.end_ns
        ]

    def begin(self, name: str, argv: list[str]) -> None:
        self.instances[name] = SimulatedInstance(self, name, argv)
        self.at(self.now_ns, partial(self.resume, name))

    def end(self, name: str) -> None:
        instance = self.instances[name]
        if not instance.is_over:
            instance.is_over = True
            self.give_turn(instance)

    def give_turn(self, instance: SimulatedInstance) -> None:
        instance.turn.release()
        self.turn.acquire()

    def let_go_on(self, instance: SimulatedInstance) -> None:
        """If it has something to do, and is not made to stand still."""
        if instance.is_over or any(instance.name in one.targets for one in self.going("pause")):
            return
        if self.now_ns >= instance.until_ns or (instance.takes_messages and instance.inbox):
            self.give_turn(instance)

    def send(self, src: str, dst: str, data: bytes) -> None:
        delay_ns = sum(self._delays(src, dst))
        if self._is_cut(src, dst) or self._is_lost(src, dst):
            self.lost[dst, src] += 1
        else:
            self.at(self.now_ns + delay_ns, lambda: self.arrive(src, dst, data))

    def _links(self, src: str, dst: str) -> list[frozenset[str]]:
        """The link between the two, or the two links to the bridge."""
        if frozenset((src, dst)) in self.latency_ns:
            return [frozenset((src, dst))]
        return [frozenset((name.split(".")[0], "s")) for name in (src, dst)]

    def _delays(self, src: str, dst: str) -> list[int]:
        more = [one.value for one in self.going("latency") if self._is_on_path(one, src, dst)]
        return [self.latency_ns[one] for one in self._links(src, dst)] + more

    def _is_on_path(self, fault: Fault, src: str, dst: str) -> bool:
        ends = fault.targets[0].split("--")
        return set(ends) == {src, dst} or (ends[1] == "s" and ends[0] in (src, dst))

    def _is_lost(self, src: str, dst: str) -> bool:
        shares = [one.value for one in self.going("loss") if self._is_on_path(one, src, dst)]
        return any(self.random.random() * 1e9 < one for one in shares)

    def _is_cut(self, src: str, dst: str) -> bool:
        ends = {src, dst}
        return any(ends & {*one.targets} for one in self.going("disconnect")) or any(
            len(ends & {*one.targets}) == 1 for one in self.going("partition")
        )

    def arrive(self, src: str, dst: str, data: bytes) -> None:
        instance = self.instances[dst]
        if instance.is_over or self._is_cut(src, dst):
            self.lost[dst, src] += 1
            return
        self.received.setdefault(dst, []).append((self.now_ns, src))
        instance.inbox.append(data)
        self.let_go_on(instance)

    def run(self) -> None:
        while self.events and self.events[0][0] < self.end_ns:
            self.now_ns, _, act = heapq.heappop(self.events)
            act()
        for name in self.instances:
            self.end(name)


def carried_out(request: HuntRequest, storm: Storm) -> StormResult:
    world = SimulatedWorld(request, storm)
    world.run()
    expected = _EXPECTED.search(request.base)
    assert expected is not None
    wrong = [
        at_ns
        for at_ns, name, line in world.lines
        if name.split(".")[0] == expected[1] and re.search(expected[2], line)
    ]
    failed = (FailedAt("expect", expected[0], False, wrong[0]),) if wrong else ()
    said = novelty.states_said(world.lines)
    reached = {*novelty.states(said), *novelty.orders(world.received, world.lost)}
    outcome = FAILED if wrong else PASSED
    return StormResult(storm, outcome, failed, tuple(sorted(reached)))
