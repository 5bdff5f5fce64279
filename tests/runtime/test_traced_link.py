"""Links that follow a trace, on real packets in real time, and where they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.pktd.mahimahi import MS, departures
from tests.runs.layout import executables
from tests.runtime.support import DEADLINE_SECONDS, User

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]
EXPERIMENT = """\
service rx img=x exec="./receive.py" ready="test -e up"
service tx img=x exec="./send.py"
bridge s
link tx--s latency=5ms trace-up=cell.trace down=unlimited queue=10MB
link rx--s
start when ready
at 2s quit
"""
SEND = """\
#!/usr/bin/python3
import socket, time
to = (socket.gethostbyname("rx.0"), 7000)
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(300):
    print(time.monotonic_ns(), flush=True)
    end.sendto(number.to_bytes(8) + bytes(1464), to)
time.sleep(100)
"""
RECEIVE = """\
#!/usr/bin/python3
import socket, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("", 7000))
open("up", "w").close()
for _ in range(300):
    number = int.from_bytes(end.recv(2000)[:8])
    print(number, time.monotonic_ns(), flush=True)
time.sleep(100)
"""
# One each 2 ms, none in the third tenth of a second, two each ms from then on: 350 in 500 ms.
LINES = [*range(2, 201, 2), *(ms for ms in range(301, 501) for _ in "12")][:500]


def lay_out(folder: Path) -> None:
    (folder / "exp.tdl").write_text(EXPERIMENT)
    (folder / "cell.trace").write_text("".join(f"{ms}\n" for ms in LINES))
    executables(folder, {"send.py": SEND, "receive.py": RECEIVE})


def test_packets_come_when_the_trace_lets_them(user: User) -> None:
    """However busy the machine is: none comes earlier, and all come, one behind the other."""
    lay_out(user.home)
    process = user.tstorm("run", "exp.tdl", "--no-probes", "--quiet", "--out", "run")
    said = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, said
    logs = user.home / "run/logs"
    sent = [int(line) for line in (logs / "tx.0.log").read_text().splitlines()]
    rows = [line.split() for line in (logs / "rx.0.log").read_text().splitlines()]
    got = [(int(number), int(at)) for number, at in rows]
    assert [number for number, _ in got] == list(range(300))
    begin = _begin(user.home / "run")
    wanted = departures(LINES, [(at - begin, 1500) for at in sent])
    early = [at + begin + 5 * MS - came for at, (_, came) in zip(wanted, got, strict=True) if at]
    assert len(early) == 300
    assert max(early) < MS


def _begin(run: Path) -> int:
    import json

    first = json.loads((run / "events.jsonl").read_text().splitlines()[0])
    return int(first["start_monotonic_ns"])


@pytest.mark.parametrize("options", [["--hosts", "2"], ["--hosts", "1", "--datapath", "kernel"]])
def test_between_hosts_they_are_refused_with_the_line(tmp_path: Path, options: list[str]) -> None:
    lay_out(tmp_path)
    done = tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "run", code=None)
    assert done.returncode != 0
    assert "exp.tdl:4: the trace of link tx.0->s is not possible with" in done.stderr
    assert not (tmp_path / "run").exists()


def test_in_a_cluster_they_are_refused(tmp_path: Path) -> None:
    lay_out(tmp_path)
    for form in ("yaml", "compose"):
        done = tstorm(tmp_path, "render", "exp.tdl", "--format", form, "-o", "out", code=1)
        assert "exp.tdl:4: " in done.stderr
        assert "does not carry out trace of link tx.0->s" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_faster_timeline_is_refused(tmp_path: Path) -> None:
    lay_out(tmp_path)
    done = tstorm(tmp_path, "run", "exp.tdl", "--pace", "2", "--out", "run", code=1)
    assert "links follow traces (cell.trace)" in done.stderr
    assert "leave --pace out" in done.stderr
