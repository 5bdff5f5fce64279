"""What is said of machines: processors, limits, memory and clocks, of the driver and of agents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runtime.judge.machine_load import MachineRecord, OwnMachine, look_at_machine
from runtime.judge.verdict import Judge
from runtime.system import hostfigures
from runtime.system.hostfigures import HostReading

SECOND = 10**9
START = HostReading(0, 0, 0, 0, 0, 0, 10**18)


def recorded(readings: Iterable[HostReading]) -> dict[str, Any]:
    record = MachineRecord()
    for reading in readings:
        record.take(reading, reading.at_ns)
    return record.record()


def seconds(**each: int) -> list[HostReading]:
    """A reading a second for 20 s, in each of which so much is added."""
    return [
        replace(
            START,
            at_ns=n * SECOND,
            ticks=n * 200,
            **{name: getattr(START, name) + n * more for name, more in each.items()},
        )
        for n in range(20)
    ]


def reasons(readings: Iterable[HostReading], **thresholds: int) -> list[str]:
    judge = Judge(thresholds=thresholds)
    look_at_machine(judge, "host1", recorded(readings))
    return [reason["text"] for reason in judge.verdict()["reasons"]]


@pytest.mark.parametrize(
    ("each", "said"),
    [
        ({"busy": 200}, ""),
        ({"stolen": 10}, ""),
        ({"stolen": 60}, "30 % of the processor time of host1 was taken by its host for 10 s"),
        ({"throttled_ns": SECOND // 5}, "the run was kept from the processors of host1 for 200 ms"),
        ({"swapped_bytes": 64 << 20}, "host1 swapped 64 MiB in a second"),
        ({"ahead_ns": 500_000}, ""),  # the kernel slews a clock by no more
        ({"ahead_ns": 50_000_000}, "the clock of host1 was set by 50 ms"),
    ],
)
def test_a_starved_machine_is_told(each: dict[str, int], said: str) -> None:
    found = reasons(seconds(**each))
    assert len(found) == bool(said)
    assert all(text.startswith(said) for text in found)


def test_all_of_a_processor_may_be_used_unless_somebody_says_otherwise() -> None:
    assert reasons(seconds(busy=190), cpu=900_000)


def test_a_clock_that_is_set_while_an_agent_watches() -> None:
    for step_ns, said in ((0, 0), (-2 * SECOND, 1)):
        readings = (replace(START, at_ns=second * SECOND) for second in range(100))
        machine = OwnMachine(step_ns, partial(next, readings))
        for second in range(10):
            machine.look(second * SECOND)
            machine.look(second * SECOND + SECOND // 2)
        judge = Judge()
        look_at_machine(judge, "host0", machine.record())
        assert machine.record()["samples"] == 10
        assert len(judge.verdict()["reasons"]) == said


def test_counters_of_either_version_of_control_groups_are_read(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/stat").write_text("cpu  10 0 20 60 10 0 0 5 0 0\ncpu0 1\n")
    (tmp_path / "proc/vmstat").write_text("pswpin 3\npswpout 4\n")
    (tmp_path / "proc/self/cgroup").write_text("3:cpu,cpuacct:/lab\n0::/\n")
    for folder, line in (("cpu,cpuacct/lab", "throttled_time 7"), ("cpu/lab", "throttled_time 7")):
        (tmp_path / "sys/fs/cgroup" / folder).mkdir(parents=True)
        (tmp_path / "sys/fs/cgroup" / folder / "cpu.stat").write_text(f"nr_throttled 1\n{line}\n")
    (tmp_path / "sys/fs/cgroup/cpu.stat").write_text("throttled_usec 5\n")
    found = hostfigures.read(tmp_path)
    assert (found.ticks, found.busy, found.stolen) == (105, 35, 5)
    assert found.throttled_ns in (5000, 5007)
    assert found.swapped_bytes % 7 == 0
    assert found.swapped_bytes > 0
    nothing = hostfigures.read(tmp_path / "nowhere")
    assert (nothing.ticks, nothing.throttled_ns, nothing.swapped_bytes) == (0, 0, 0)


def test_what_is_no_record_of_a_machine_says_nothing() -> None:
    judge = Judge()
    for worst in (None, 7, {"steal": 3}, {"steal": [1]}, {"steal": ["a", 1]}, {"other": [1, 1]}):
        look_at_machine(judge, "host0", {"worst": worst})
    assert judge.verdict()["judged"] == []


def test_a_figure_that_reads_as_its_bound_says_by_how_much_it_is_beyond() -> None:
    judge = Judge()
    look_at_machine(judge, "host0", {"worst": {"steal": [100_040, 1]}})
    (reason,) = judge.verdict()["reasons"]
    assert reason["text"].endswith("the bound is 10 %, exceeded by 0.004 %")
