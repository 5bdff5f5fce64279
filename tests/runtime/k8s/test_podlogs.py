"""Logs of containers are followed line by line, through broken streams and restarts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from runtime.backend.k8s import podlogs
from runtime.backend.k8s.logtimes import LogTimes, unix_ns
from runtime.backend.k8s.podlogs import PodLogs
from runtime.results.loglines import Merger
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.rundir.runfiles import LOG_TIMES
from tests.doubles.api import FakeApi, Trouble, act
from tests.waiting import in_a_loop, until


def line(second: int, text: str) -> bytes:
    return f"2026-01-01T00:00:{second // 10:02d}.{second % 10}00000000Z {text}".encode()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podlogs, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(podlogs, "LAST_PAUSE_SECONDS", 0.1)


@in_a_loop
async def test_every_line_comes_once_whatever_breaks(tmp_path: Path, server: FakeApi) -> None:
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs/server.0.log"
    notices: list[str] = []
    server.trouble.extend([Trouble(status=400), Trouble(status=500), Trouble(cut=True)])
    held = line(0, '{"tstorm_hold":"held","unix_ns":1}')
    server.write("server-0", held, line(1, "one"), line(2, "two"))
    logs = PodLogs(server.api(), tmp_path, {"server.0": "server-0"}, notices.append)
    logs.begin()
    await until(lambda: file.exists() and file.read_bytes() == b"one\ntwo\n", "two lines")
    server.cut()
    server.write("server-0", line(3, "three"), line(4, ""))
    await until(
        lambda: file.read_bytes() == b"one\ntwo\nthree\n\n", lambda: f"{file.read_bytes()!r}", 5
    )
    server.log_ends = True  # as when its container ends; the next one goes on
    server.write("server-0", line(11, "again"))
    await until(lambda: file.read_bytes().endswith(b"\nagain\n"), "the container after it")
    await logs.end()
    assert file.read_bytes() == b"one\ntwo\nthree\n\nagain\n"
    assert len(notices) == 1 and "server.0 is not followed now" in notices[0]
    assert logs.incomplete() == {}


@in_a_loop
async def test_marks_say_where_a_setup_begins_and_ends(tmp_path: Path, server: FakeApi) -> None:
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs/server.0.log"
    start_ns = 10**18
    own = '{"tstorm_hold":"%s","unix_ns":%d,"monotonic_ns":1,%s}'
    ended = own % ("set_up", start_ns + 2_500_000_000, '"status":3')
    server.write(
        "server-0",
        line(0, own % ("setup", start_ns - 1, '"pid":7')),
        line(1, "it says"),
        line(2, ended),
        line(3, own % ("started", start_ns, '"pid":8')),
        line(4, '{"tstorm_hold":"a program may say so"'),
    )
    pods = {"server.0": "server-0"}
    logs = PodLogs(
        server.api(),
        tmp_path,
        pods,
        lambda _: None,
        moment=lambda _, at_ns: (at_ns - start_ns, 0),
    )
    logs.begin()
    lines = [
        "[tstorm] before 0 s: setup",
        "it says",
        "[tstorm] 2.500000000 s: setup ended with 3",
    ]
    await until(lambda: file.exists() and file.read_text().splitlines() == lines, "all lines")
    await logs.end()


@in_a_loop
async def test_what_cannot_be_written_is_told(tmp_path: Path, server: FakeApi) -> None:
    notices: list[str] = []
    server.write("server-0", line(1, "one"))
    logs = PodLogs(server.api(), tmp_path / "none", {"server.0": "server-0"}, notices.append)
    logs.begin()
    await until(lambda: notices, "a word")
    assert "cannot write" in notices[0]
    await logs.end()


@in_a_loop
async def test_where_there_are_many_they_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: FakeApi
) -> None:
    """What is written after the last turn before the end comes with the very last one."""
    monkeypatch.setattr(podlogs, "FOLLOWED", 2)
    (tmp_path / "logs").mkdir()
    pods = {f"server.{n}": f"server-{n}" for n in range(5)}

    def read() -> list[bytes]:
        files = [tmp_path / f"logs/{name}.log" for name in pods]
        return [file.read_bytes() if file.exists() else b"" for file in files]

    notices: list[str] = []
    for pod in pods.values():
        server.write(pod, line(1, "one"))
    logs = PodLogs(server.api(), tmp_path, pods, notices.append)
    logs.begin()
    await until(lambda: read() == [b"one\n"] * 5, "the first line of all")
    server.write("server-3", line(2, "two"))
    await until(lambda: read()[3] == b"one\ntwo\n", "the second line of one")
    monkeypatch.setattr(podlogs, "LOOK_SECONDS", 60.0)
    server.write("server-4", line(3, "three"))
    await logs.end()
    assert read() == [*[b"one\n"] * 3, b"one\ntwo\n", b"one\nthree\n"]
    assert notices == []
    assert logs.incomplete() == {}


REFUSED = {"server.0": "the API server answered with status 500"}


@pytest.mark.parametrize(
    ("trouble", "incomplete", "there"),
    [
        (Trouble(status=500), REFUSED, False),
        (Trouble(status=400), {"server.0": "the API server answered with status 400"}, False),
        (Trouble(status=400, message='container "instance" is waiting to start: x'), {}, True),
    ],
)
@in_a_loop
async def test_a_log_of_which_nothing_was_read_is_incomplete_and_no_empty_file(
    tmp_path: Path, trouble: Trouble, incomplete: dict[str, str], there: bool, server: FakeApi
) -> None:
    """Unless its container has never run: then there is nothing to read."""
    (tmp_path / "logs").mkdir()
    server.log_trouble = trouble
    logs = PodLogs(server.api(), tmp_path, {"server.0": "server-0"}, lambda _: None)
    logs.begin()
    await until(lambda: len(server.requests) > 1, "a second try")
    await logs.end()
    assert logs.incomplete() == incomplete
    assert (tmp_path / "logs/server.0.log").exists() == there


@in_a_loop
async def test_a_log_whose_server_is_away_at_the_end_is_incomplete(
    tmp_path: Path, server: FakeApi
) -> None:
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs/server.0.log"
    notices: list[str] = []
    server.write("server-0", line(1, "one"))
    logs = PodLogs(server.api(), tmp_path, {"server.0": "server-0"}, notices.append)
    logs.begin()
    await until(lambda: file.exists() and file.read_bytes() == b"one\n", "the first line")
    server.close()
    await until(lambda: notices, "a word")
    await logs.end()
    assert "server.0" in logs.incomplete()
    assert file.read_bytes() == b"one\n"


@in_a_loop
async def test_a_log_that_is_asked_for_in_vain_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: FakeApi
) -> None:
    """Nothing comes from the server, not even a refusal."""
    monkeypatch.setattr(podlogs, "LAST_SECONDS", 0.1)
    (tmp_path / "logs").mkdir()
    server.log_trouble = Trouble(hangs=True)
    logs = PodLogs(server.api(), tmp_path, {"server.0": "server-0"}, lambda _: None)
    logs.begin()
    await until(lambda: server.requests, "the request")
    await logs.end()
    assert logs.incomplete() == {"server.0": podlogs.UNANSWERED}


@in_a_loop
async def test_a_stream_that_hangs_is_no_silent_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: FakeApi
) -> None:
    """As that of a kubelet that was stopped: it had begun well. The log of the other is whole."""
    monkeypatch.setattr(podlogs, "LAST_SECONDS", 1.0)
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs/a.0.log"
    path = "/api/v1/namespaces/tstorm-test/pods/a-0/log"
    server.write("a-0", line(1, "one"))
    logs = PodLogs(server.api(), tmp_path, {"a.0": "a-0", "b.0": "b-0"}, lambda _: None)
    logs.begin()
    await until(lambda: file.exists() and file.read_bytes() == b"one\n", "the first line")
    await until((tmp_path / "logs/b.0.log").exists, "the other's stream")
    server.hanging.add(path)  # what was begun says nothing more
    await logs.end()
    assert logs.incomplete() == {"a.0": podlogs.UNANSWERED}


@pytest.mark.parametrize("ended", [False, True])
@in_a_loop
async def test_what_went_before_it_was_read_is_missed_but_not_an_older_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: bool, server: FakeApi
) -> None:
    """In turns kubelet may have thrown a part away since the last look. A stream that ended with
    its container had all of it."""
    monkeypatch.setattr(podlogs, "FOLLOWED", 200 if ended else 0)
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs/server.0.log"
    server.log_ends = ended
    server.write("server-0", line(1, "one"))
    logs = PodLogs(server.api(), tmp_path, {"server.0": "server-0"}, lambda _: None)
    logs.begin()
    await until(lambda: file.exists() and file.read_bytes() == b"one\n", "the first line")
    asked = len(server.requests)
    await until(lambda: len(server.requests) > asked + 1, "another look")
    server.logs["server-0"] = [line(20, "later")]
    await until(lambda: file.read_bytes() == b"one\nlater\n", "what came later")
    await logs.end()
    assert logs.incomplete() == ({} if ended else {"server.0": podlogs.LOST})


@pytest.mark.parametrize(
    ("then", "want"),
    [
        ([line(1, "one"), line(2, "panic: x")], b"one\npanic: x"),
        ([line(1, "one"), line(2, "panic: x of y")], b"one\npanic: x of y"),
        ([line(1, "one"), line(2, "panic: x"), line(3, "on")], b"one\npanic: x\non"),
        ([line(30, "again")], b"one\npanic: x\nagain"),
    ],
)
@in_a_loop
async def test_a_last_line_without_an_end_is_there_once(
    tmp_path: Path, then: list[bytes], want: bytes, server: FakeApi
) -> None:
    """Kubelet sends it so, each time that it is asked; its rest, or another container, may come."""
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs/server.0.log"
    server.log_ends, server.unfinished = True, {"server-0"}
    server.write("server-0", line(1, "one"), line(2, "panic: x"))
    logs = PodLogs(server.api(), tmp_path, {"server.0": "server-0"}, lambda _: None)
    logs.begin()
    await until(lambda: file.exists() and file.read_bytes() == b"one\npanic: x", "both lines")
    server.logs["server-0"] = then
    await until(lambda: file.read_bytes() == want, lambda: f"{file.read_bytes()!r}")
    asked = len(server.requests)
    await until(lambda: len(server.requests) > asked + 1, "another answer")
    await logs.end()
    assert file.read_bytes() == want
    assert logs.incomplete() == {}


@pytest.mark.parametrize(
    ("length", "want", "broken"),
    [
        ("Content-Length: 35", b"half", False),
        ("Content-Length: 99", b"", True),
        ("X: y", b"", False),
    ],
)
@in_a_loop
async def test_half_a_line_of_an_answer_that_breaks_is_none(
    tmp_path: Path, length: str, want: bytes, broken: bool, server: FakeApi
) -> None:
    """One that does not say where it ends may have broken, too."""
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs/server.0.log"
    answer = f"HTTP/1.1 200 OK\r\n{length}\r\n\r\n".encode() + line(1, "half")
    server.log_trouble = Trouble(sends=answer)
    logs = PodLogs(server.api(), tmp_path, {"server.0": "server-0"}, lambda _: None)
    logs.begin()
    await until(lambda: len(server.requests) > 1, "a second try")
    await logs.end()
    assert file.read_bytes() == want
    assert bool(logs.incomplete()) == broken


@in_a_loop
async def test_output_that_does_not_end_with_the_run_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: FakeApi
) -> None:
    monkeypatch.setattr(podlogs, "LAST_SECONDS", 0.1)
    monkeypatch.setattr(podlogs, "QUIET_SECONDS", 1.0)
    (tmp_path / "logs").mkdir()

    async def go_on() -> None:
        for second in range(2, 10_000):
            server.write("server-0", line(second, "more"))
            await asyncio.sleep(0.01)

    logs = PodLogs(server.api(), tmp_path, {"server.0": "server-0"}, lambda _: None)
    logs.begin()
    writing = asyncio.create_task(go_on())
    file = tmp_path / "logs/server.0.log"
    await until(lambda: file.exists() and file.read_bytes(), "the first line")
    await logs.end()
    writing.cancel()
    assert logs.incomplete() == {"server.0": podlogs.LATE}


def followed(tmp_path: Path, first: list[bytes], then: list[bytes], want: bytes) -> list[str]:
    """`first` come in one stream, `then` after it has broken; what was told."""
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs/server.0.log"
    notices: list[str] = []

    async def play(server: FakeApi) -> None:
        server.write("server-0", *first)
        logs = PodLogs(server.api(), tmp_path, {"server.0": "server-0"}, notices.append)
        logs.begin()
        last = first[-1].split(b" ", 1)[1] + b"\n"
        await until(lambda: file.exists() and file.read_bytes().endswith(last), "the first lines")
        server.cut()
        server.write("server-0", *then)
        await until(lambda: file.read_bytes() == want, lambda: f"{file.read_bytes()!r}", 5)
        await logs.end()
        assert file.read_bytes() == want
        assert sum("follow" in query for query in server.queries) == 2  # it was one break

    act(play)
    return notices


def test_lines_of_one_time_all_come(tmp_path: Path) -> None:
    """CRI-O gives all lines of one read the same."""
    burst = [line(1, text) for text in ("a", "a", "b")]
    followed(tmp_path, burst, [line(2, "c")], b"a\na\nb\nc\n")


def test_a_stream_that_breaks_among_lines_of_one_time_goes_on_among_them(tmp_path: Path) -> None:
    before = [line(1, "o"), line(3, "a"), line(3, "b")]
    after = [line(3, "c"), line(3, "d"), line(4, "e")]
    followed(tmp_path, before, after, b"o\na\nb\nc\nd\ne\n")


def test_a_clock_that_steps_back_loses_and_repeats_nothing(tmp_path: Path) -> None:
    before = [line(31, "a"), line(55, "b"), line(12, "c"), line(33, "d")]
    after = [line(31, "e"), line(40, "f"), line(33, "g"), line(60, "h")]
    followed(tmp_path, before, after, b"a\nb\nc\nd\ne\nf\ng\nh\n")


def test_what_kubelet_says_itself_is_told_and_no_output(tmp_path: Path) -> None:
    """Its words have no time, and asking for what came since them would be refused for ever."""
    own = b"unable to retrieve container logs for containerd://x"
    told = followed(tmp_path, [line(1, "a"), own, line(2, "b")], [own, line(3, "c")], b"a\nb\nc\n")
    assert len(told) == 1 and "unable to retrieve container logs" in told[0]


def test_lines_have_the_times_of_their_node(tmp_path: Path) -> None:
    """Its wall clock is 2 s behind, and known within 3 ms; what was written before time 0 is told
    as such, and a clock that steps back moves no line before the one above it."""
    (tmp_path / "logs").mkdir()
    start_ns, ms = unix_ns("2026-01-01T00:00:03Z"), 1_000_000
    assert start_ns is not None
    held = HeldDirectory.hold(tmp_path.resolve())

    def moment(instance: str, at_ns: int) -> tuple[int, int]:
        assert instance == "server.0"
        return at_ns + 2000 * ms - start_ns, 3 * ms

    async def play(server: FakeApi) -> None:
        times = LogTimes(LineFile(held, LOG_TIMES, print), moment)
        pods = {"server.0": "server-0"}
        logs = PodLogs(server.api(), tmp_path, pods, lambda _: None, times, moment)
        lines = [line(5, "early"), line(35, "a"), line(35, "b"), line(60, "c"), line(41, "d")]
        server.write("server-0", *lines)
        logs.begin()
        file = tmp_path / "logs/server.0.log"
        await until(lambda: file.exists() and file.read_bytes().endswith(b"d\n"), "all lines")
        await logs.end()

    act(play)
    found = [(one.text, one.from_ns, one.until_ns) for one in Merger(held).lines("server.0")]
    assert found == [
        ("early", None, -497 * ms),
        *((text, 2397 * ms, 2503 * ms) for text in "ab"),
        *((text, 4897 * ms, 5003 * ms) for text in "cd"),
    ]


def test_what_came_before_time_0_was_known_was_written_before_it(tmp_path: Path) -> None:
    held = HeldDirectory.hold(tmp_path.resolve())
    began_ns: list[int] = []

    def moment(_instance: str, at_ns: int) -> tuple[int, int] | None:
        return (at_ns - began_ns[0], 0) if began_ns else None

    times = LogTimes(LineFile(held, LOG_TIMES, print), moment)
    times.add("a.0", 5, 10)
    times.write()
    assert (tmp_path / LOG_TIMES).read_bytes() == b""
    began_ns.append(1)
    times.write()
    times.add("a.0", 2_000_000_001, 20)
    times.close()
    found = [json.loads(line) for line in (tmp_path / LOG_TIMES).read_text().splitlines()]
    assert found == [
        {"from_ns": 0, "elapsed_ns": 0, "bytes": {"a.0": 10}},
        {"from_ns": 1_900_000_000, "elapsed_ns": 2_000_000_000, "bytes": {"a.0": 20}},
    ]


@pytest.mark.parametrize(
    ("stamp", "found"),
    [
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T02:00:00.000000001+02:00", 1),
        ("2026-13-01T00:00:00Z", None),
        ("2026-01-01", None),
        ("", None),
    ],
)
def test_times_of_kubelet(stamp: str, found: int | None) -> None:
    assert unix_ns(stamp) == found
