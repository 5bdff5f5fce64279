"""`gateway`: instances reach the outside, here a server on this machine's loopback, through the
links of the experiment."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cli.process import command, environment, tstorm
from tests.runtime.support import DEADLINE_SECONDS, User
from tests.waiting import wait_until

TUN = "/dev/net/tun"
needs_slirp = pytest.mark.skipif(
    not shutil.which("slirp4netns"), reason="slirp4netns is not installed"
)
needs_tun = pytest.mark.skipif(
    not os.access(TUN, os.R_OK | os.W_OK), reason=f"{TUN} is not for this user"
)
# What most distributions do with udev: everybody may open it. Here in a mount namespace of its own.
FOR_ALL = f"""\
mount -t tmpfs none "$0" && mknod "$0/tun" c 10 200 && chmod 666 "$0/tun" &&
mount --bind "$0/tun" {TUN} && exec "$@"
"""

TEXT = """\
service client exec="curl -sS -m 30 -w '%%{time_connect}' http://10.76.0.2:%d/" expect=success
service gate gateway
addresses auto
link client--gate latency=50ms
quit when client exits
"""
# A line for each change of what the outside does.
TRY = """\
answers() { sleep 0.1; curl -sS -m 1 -o /dev/null http://10.76.0.2:%d/; }
until answers; do :; done; echo open
while answers; do :; done; echo cut
until answers; do :; done; echo open
ip route show default
"""
CUT = """\
service client
service gate gateway exec="sh try.sh" files=try.sh expect=success
addresses auto
link client--gate
at 2s gate disconnect for 2s
at 60s quit
quit when gate exits
"""
IDLE = "service client\nservice gate gateway\naddresses auto\nlink client--gate\nat 300s quit\n"


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from the outside\n")

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), _Hello) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def _helpers(space: Path) -> list[str]:
    """Processes of slirp4netns whose log is in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name, log = (process / "comm").read_text().strip(), (process / "fd/2").readlink()
        except OSError:
            continue
        if name == "slirp4netns" and log.is_relative_to(space):
            found.append(process.name)
    return found


def _who_may(user: User, space: Path) -> User:
    """The same one, who can open the device."""
    if Path(TUN).stat().st_mode & 0o006 == 0o006 if user.name == "ordinary" else os.access(TUN, 6):
        return user
    if user.name != "ordinary":
        pytest.skip(f"{TUN} is not for this user")
    (space / "dev").mkdir()
    unshare = ["unshare", "--mount", "sh", "-c", FOR_ALL, str(space / "dev")]
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"{TUN} is for root alone, and another cannot be made: {tried.stderr.strip()}")
    return replace(user, prefix=[*unshare, *user.prefix])


@needs_slirp
@pytest.mark.e2e
def test_the_outside_is_behind_the_links(user: User, workspace: Path, port: int) -> None:
    """Root is not needed, where everybody may open the device."""
    who = _who_may(user, workspace)
    (who.home / "exp.tdl").write_text(TEXT % port)
    process = who.tstorm("run", "exp.tdl", "--out", "run")
    said = "".join(process.communicate(timeout=DEADLINE_SECONDS))
    assert process.returncode == 0, said
    assert "gate leads to the outside" in said
    answer, connected = (who.home / "run/logs/client.0.log").read_text().splitlines()
    assert "hello from the outside" in answer
    assert float(connected.split()[-1]) >= 0.1  # there and back
    assert not _helpers(who.home)


@needs_slirp
@pytest.mark.e2e
def test_who_is_disconnected_has_no_outside(user: User, workspace: Path, port: int) -> None:
    who = _who_may(user, workspace)
    (who.home / "exp.tdl").write_text(CUT)
    (who.home / "try.sh").write_text(TRY % port)
    process = who.tstorm("run", "exp.tdl", "--out", "run")
    said = "".join(process.communicate(timeout=DEADLINE_SECONDS))
    assert process.returncode == 0, said
    lines = (who.home / "run/logs/gate.0.log").read_text().splitlines()
    assert [one for one in lines if one in ("open", "cut")] == ["open", "cut", "open"]
    assert lines[-1].split()[:5] == ["default", "via", "10.76.0.2", "dev", "outside"]


@needs_slirp
@needs_tun
@pytest.mark.e2e
def test_nothing_is_left_when_tstorm_is_killed(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(IDLE)
    argv = command("run", "exp.tdl", "--quiet", "--out", "run")
    with subprocess.Popen(argv, cwd=tmp_path, env=environment(tmp_path)) as process:
        wait_until(lambda: _helpers(tmp_path), "the way to the outside")
        process.kill()
    wait_until(lambda: not _helpers(tmp_path), "the end of slirp4netns")


@needs_slirp
@needs_tun
@pytest.mark.e2e
def test_a_way_that_ends_is_told(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(IDLE)
    events = tmp_path / "run/events.jsonl"
    argv = command("run", "exp.tdl", "--quiet", "--out", "run")
    with subprocess.Popen(
        argv, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: events.exists() and events.stat().st_size, "the beginning of the run")
        os.kill(int(_helpers(tmp_path)[0]), signal.SIGKILL)
        said = ""
        while "no longer" not in said and (line := process.stderr.readline()):
            said = " ".join((said + line).split()) + " "
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert "leads to the outside no longer" in said


@pytest.mark.parametrize("options", [("--time", "virtual"), ("--hosts", "2")])
def test_elsewhere_it_is_refused_with_the_line(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "exp.tdl").write_text(TEXT % 80)
    done = tstorm(tmp_path, "run", "exp.tdl", "--quiet", *options, "--out", "run", code=None)
    assert done.returncode != 0
    said = done.stderr.replace("\n", " ")
    assert "exp.tdl:2: " in said and "gate" in said and "(gateway) is not possible" in said
