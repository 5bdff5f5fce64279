"""tprobe in a namespace of its own: what it prints, and how it fails."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.process import ended

pytestmark = pytest.mark.e2e


def shell(script: str, tprobe: str) -> subprocess.CompletedProcess[str]:
    """Runs a fixed script in new namespaces that end with it; $T is tprobe."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    argv = ["unshare", *user, "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ended(
        [*argv, "sh", "-c", f"ip link set lo up; {script}"],
        env={**os.environ, "T": tprobe},
        timeout=60,
    )


def served(words: str, tprobe: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit status, JSON lines and errors of tprobe beside a listening `tprobe serve`."""
    script = (
        "mkfifo /tmp/ready.$$; $T serve >/tmp/ready.$$ & exec 3</tmp/ready.$$; rm /tmp/ready.$$;"
        f" read line <&3; $T {words}"
    )
    done = shell(script, tprobe)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("mode", ["icmp", "icmp --probe", "udp"])
def test_rtt_answers_every_probe(tprobe: str, host: str, mode: str) -> None:
    words = f"rtt {host} --count 5 --interval 10ms --each --mode {mode}"
    status, lines, errors = served(words, tprobe)
    assert status == 0, errors
    summary = lines.pop()
    assert [line["seq"] for line in lines] == [0, 1, 2, 3, 4]
    assert (summary["sent"], summary["received"], summary["mode"]) == (5, 5, mode.split()[0])
    assert 0 < summary["min_us"] <= summary["p50_us"] <= summary["p99_us"] <= summary["max_us"]


def test_no_route_is_a_result_and_not_an_error(tprobe: str) -> None:
    words = "rtt 10.9.9.9 --count 2 --interval 10ms --timeout 50ms --each"
    status, lines, errors = served(words, tprobe)
    assert status == 1
    assert errors == ""
    assert [line.get("lost") for line in lines] == [True, True, 2]


def test_a_stream_is_counted_at_both_ends(tprobe: str) -> None:
    status, lines, errors = served("stream ::1 --seconds 1 --interval 500ms", tprobe)
    assert status == 0, errors
    summary = lines.pop()
    assert len(lines) == 2
    assert sum(line["bytes"] for line in lines) == summary["bytes"]
    assert summary["receiver"]["bytes"] >= summary["bytes"] > 0


def test_a_stream_in_reverse(tprobe: str) -> None:
    status, lines, errors = served("stream 127.0.0.1 --seconds 1 --reverse", tprobe)
    assert status == 0, errors
    assert lines[-1]["bytes"] > 0 and lines[-1]["reverse"] is True


def test_datagrams_are_paced_and_counted(tprobe: str) -> None:
    words = "stream 127.0.0.1 --seconds 1 --interval 1s --udp 12Mb --size 1500"
    status, lines, errors = served(words, tprobe)
    assert status == 0, errors
    summary = lines[-1]
    assert summary["sent"] == summary["received"] + summary["lost"]
    assert 0 < summary["sent"] <= 1001


def test_a_session_can_be_blasted(tprobe: str) -> None:
    status, lines, errors = served("blast ::1 --seconds 1 --pps 1000 --size 64", tprobe)
    assert status == 0, errors
    assert lines[-1]["ip_size"] == 80  # 48 of headers and the 32 that tprobe needs
    assert lines[-1]["received"] > 0


def test_one_way_delay_needs_no_server(tprobe: str) -> None:
    done = shell("$T owd 127.0.0.1 --count 20 --interval 2ms", tprobe)
    summary = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert summary["received"] == 20
    assert summary["min_us"] > 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("", 2, "usage: tprobe"),
        ("trace", 2, "no command 'trace'"),
        ("rtt", 2, "no host given"),
        ("rtt a b", 2, "one argument too many: b"),
        ("rtt a --speed 3", 2, "no option --speed"),
        ("rtt a --count", 2, "a value is missing after --count"),
        ("rtt a --count 0", 2, "not a whole number in range: 0"),
        ("rtt a --interval 5parsec", 2, "not a duration"),
        ("stream a --udp 10MB", 2, "not a rate"),
        ("stream a --udp 1Mb --cc bbr", 2, "--udp goes without"),
        ("rtt no.such.host.invalid", 1, "looking up no.such.host.invalid"),
        ("stream 127.0.0.1 --wait 10ms", 1, "connecting to 127.0.0.1: Connection refused"),
        ("stream 127.0.0.1 --cc none-such", 1, "choosing congestion control none-such"),
        ("owd 127.0.0.1 --rx-netns /nowhere", 1, "opening network namespace /nowhere"),
        ("serve --bind here", 1, "--bind wants an address, not here"),
    ],
)
def test_mistakes_are_named(tprobe: str, words: str, status: int, said: str) -> None:
    done = shell(f"$T {words}", tprobe)
    assert done.returncode == status
    assert said in done.stderr
    assert done.stdout == ""


@pytest.fixture
def server(tprobe: str) -> Iterator[int]:
    """`tprobe serve` on loopback only; its port, which must be free in UDP and TCP: what somebody
    else takes meanwhile is not asked for again."""
    for _ in range(20):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        argv = [tprobe, "serve", "--bind", "127.0.0.1", "--port", str(port), "--seconds", "30"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            line = process.stdout.readline()
            if not line and b"already in use" in process.stderr.read():
                continue
            assert json.loads(line) == {"event": "listening", "port": port}
            yield port
            process.terminate()
            assert process.wait(timeout=10) == 0
            return
    pytest.fail("no port was free twice in 20 tries")


def header(kind: int, session: int = 1) -> bytes:
    """struct wire_header of tcal_c/probe/wire.h."""
    return struct.pack("=IHHIIqq", 0x54505232, kind, 0, session, 0, 0, 0)


def answer(port: int, datagram: bytes) -> bytes | None:
    """What comes back before the answer to an echo sent after it; None = nothing did."""
    echo = header(1, session=99) + b"last"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        client.settimeout(10)
        client.send(datagram)
        client.send(echo)
        first = client.recv(65536)
        return None if first == echo else first


@pytest.mark.parametrize(
    "datagram",
    [b"", b"hello", b"\0" * 32, header(7), header(4), header(3), header(2)],
    ids=["empty", "text", "no magic", "unknown", "report", "short question", "data"],
)
def test_the_server_answers_nothing_but_what_it_should(server: int, datagram: bytes) -> None:
    assert answer(server, datagram) is None


def test_an_answer_is_no_larger_than_the_question(server: int) -> None:
    question = header(3).ljust(80, b"\0")
    found = answer(server, question)
    assert found is not None
    assert len(found) == len(question)


@pytest.mark.parametrize("beginning", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2, header(9)])
def test_a_foreign_connection_is_closed(server: int, beginning: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server), timeout=10) as client:
        client.sendall(beginning)
        # A reset when it was closed with some of what was sent unread.
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(100) == b""
    assert answer(server, b"") is None, "it serves on"


def test_the_server_ends_by_itself(tprobe: str) -> None:
    done = shell("$T serve --seconds 200ms", tprobe)
    assert done.returncode == 0
    assert json.loads(done.stdout)["event"] == "listening"
