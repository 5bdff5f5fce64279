"""Progress: plain lines that say what changed and no more, and a live table on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from compiler.plan.types import Node
from runtime.backend.instance import ProgramEnd
from runtime.driver.progress import RUNNING, STARTING, STOPPING, NextEvent, Progress, ServiceState
from runtime.driver.status import services
from tests.doubles.backend import FakeInstance
from tstorm.display import PlainLines, panel, reporter

SECOND = 10**9
RECORD = Progress(
    phase=RUNNING,
    run_id="day-1",
    directory="/runs/day-1",
    at_ns=61 * SECOND + 123,
    end_ns=600 * SECOND,
    elapsed_ns=61 * SECOND,
    applied=3,
    total=9,
    next_event=NextEvent(90 * SECOND, "crash", "server.2"),
    services=(ServiceState("server", 2, 1, 0, 0, 0), ServiceState("client", 1, 0, 3, 4, 1, 2)),
)


def test_a_program_that_ended_well_has_not_failed() -> None:
    def instance(number: int, **more: Any) -> tuple[str, Any]:
        made: Any = FakeInstance(Node(f"a.{number}", 0, "", "", ()), number)
        for name, value in {"state": "up", **more}.items():
            setattr(made, name, value)
        return made.node.name, made

    instances = dict(
        [
            instance(0),
            instance(1, ended=ProgramEnd(0, 0)),
            instance(2, ended=ProgramEnd(1, 0), state="cut"),
            instance(3, ended=ProgramEnd(-1, 9)),
            instance(4, ended=ProgramEnd(0, 0), killed=True),
            instance(5, start_error="no such file"),
            instance(6, ended=ProgramEnd(0, 0), state="down"),
        ]
    )
    nodes = [
        SimpleNamespace(name=name, service=0, is_instance=True) for name in (*instances, "a.7")
    ]
    topology = SimpleNamespace(services=[SimpleNamespace(name="a")], nodes=nodes)
    timeline_runner: Any = SimpleNamespace(
        plan=SimpleNamespace(topology=topology), instances=instances
    )
    (counted,) = services(timeline_runner)
    assert counted == ServiceState("a", 4, 1, 2, done=1, failed=3, not_started=1)


def lines(capsys: pytest.CaptureFixture[str], *records: Progress) -> list[str]:
    show = PlainLines()
    for record in records:
        show(record)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_a_line_tells_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, RECORD) == [
        "1m1s/10m; running; 3/9 events; next: crash server.2 at 1m30s; "
        "server 2 up 1 cut, client 1 up 3 down 4 done 1 failed 2 failed to start"
    ]


def test_a_run_that_is_held_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    held = replace(RECORD, held_ns=5 * SECOND, next_event=None, elapsed_ns=65 * SECOND)
    _, said = lines(capsys, RECORD, held)
    assert said.startswith(
        "1m1s/held; running; 3/9 events; what is planned waits at 5s of the text"
    )


def test_news_are_for_all_and_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    with reporter(quiet=True) as show:
        show(RECORD)
        show(replace(RECORD, message="its page: http://…", news=True))
    assert capsys.readouterr().err == "1m1s: its page: http://…\n"


def test_nothing_new_is_not_told_again(capsys: pytest.CaptureFixture[str]) -> None:
    later = replace(RECORD, at_ns=70 * SECOND, elapsed_ns=70 * SECOND)
    soon = replace(RECORD, applied=4, elapsed_ns=61 * SECOND + SECOND // 2)
    assert len(lines(capsys, RECORD, RECORD, later, soon)) == 1


def test_changes_are_told_at_most_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    records = [
        replace(RECORD, applied=i, elapsed_ns=RECORD.elapsed_ns + i * SECOND // 10)
        for i in range(31)
    ]
    assert len(lines(capsys, *records)) == 4


def test_phases_and_messages_are_always_told(capsys: pytest.CaptureFixture[str]) -> None:
    start = replace(RECORD, phase=STARTING)
    told = replace(RECORD, message="client.0: its program ended by itself with status 1")
    stop = replace(RECORD, phase=STOPPING)
    found = lines(capsys, start, RECORD, told, stop)
    assert len(found) == 4
    assert found[2] == "1m1s: client.0: its program ended by itself with status 1"


def test_the_table_has_a_line_for_everything() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    with console.capture() as capture:
        console.print(panel(RECORD))
    rows = [line.split() for line in capture.get().splitlines()]
    assert rows[0][:2] == ["day-1", "running"]
    assert len(rows[1]) <= 1  # the bar
    assert rows[2] == ["SERVICE", "UP", "CUT", "DOWN", "DONE", "FAILED", "FAILED", "TO", "START"]
    assert rows[3] == ["server", "2", "1", "-", "-", "-", "-"]
    assert rows[4] == ["client", "1", "-", "3", "4", "1", "2"]


def test_warnings_are_told_even_to_who_wants_no_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with reporter(quiet=True) as show:
        show(replace(RECORD, message="server.0: cannot start x: gone", warning=True))
        show(replace(RECORD, message="host1 is back"))
    assert capsys.readouterr().err == "1m1s: warning: server.0: cannot start x: gone\n"


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with reporter(quiet=True) as show:
        show(RECORD)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
