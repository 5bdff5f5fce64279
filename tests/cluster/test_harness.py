"""The parts of the harness that need no cluster: which Go builds it, taking it down, images."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from manifests.images import resolved
from tests.cluster.mkimage import Image, write_archive
from tests.cluster.support import DEADLINE_SECONDS, HERE, wait_until

FAKE = """#!/bin/sh
echo "$1" >>"$0.log"
[ "$1" != "$FAILS" ]
"""


def script(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A piece of shell with the harness's functions."""
    return subprocess.run(
        ["bash", "-c", f"set -eu; . {HERE}/lib.sh; . {HERE}/build.sh; {text}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("version", "good"),
    [("1.19.8", False), ("1.23.12", False), ("1.24.0", True), ("1.24.13", True), ("1.100.0", True)],
)
def test_a_go_that_is_too_old_is_not_used(tmp_path: Path, version: str, good: bool) -> None:
    go = tmp_path / "go"
    go.write_text(f"#!/bin/sh\necho go{version}\n")
    go.chmod(0o755)
    assert (script(f"go_suffices {go}").returncode == 0) == good


def test_a_missing_go_is_not_used(tmp_path: Path) -> None:
    assert script(f"go_suffices {tmp_path}/go").returncode != 0


RECORDS = {
    "none": {},
    "one ended": {"tsc-cp": "ended"},
    "all ended": {"tsc-cp": "ended", "tsc-n0": "ended"},
    "an earlier process of that number": {"tsc-cp": "earlier"},
    "one of two runs": {"tsc-cp": "ended", "tsc-n0": "runs"},
    "all run": {"tsc-cp": "runs"},
}


@pytest.mark.parametrize(
    ("records", "dead"),
    list(zip(RECORDS.values(), [False, True, True, True, False, False], strict=True)),
    ids=list(RECORDS),
)
def test_a_cluster_is_dead_if_none_of_its_processes_runs(
    tmp_path: Path, records: dict[str, str], dead: bool
) -> None:
    """Only such a cluster is cleared up by the next `up`: a half-dead one is worth a look."""
    ended = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    began = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    lines = {
        "ended": f"{ended.stdout.strip()} 1",
        "earlier": f"{os.getpid()} 1",
        "runs": f"{os.getpid()} {began}",
    }
    for name, state in records.items():
        (tmp_path / f"{name}.pid").write_text(f"{lines[state]}\n")
    done = script(f". {HERE}/host.sh; RUN={tmp_path}; if all_dead; then echo dead; fi")
    assert (done.returncode, done.stdout) == (0, "dead\n" if dead else "")


@pytest.mark.parametrize(
    ("setting", "address"),
    [
        ("", "https://proxy.golang.org"),
        ("off", "https://proxy.golang.org"),
        ("direct,https://a.example/", "https://a.example"),
        ("https://a.example|http://b.example", "https://a.example"),
    ],
)
def test_the_module_proxy_is_the_callers(setting: str, address: str) -> None:
    assert script("module_proxy", GOPROXY=setting).stdout == f"{address}\n"


def test_a_toolchain_with_other_bytes_is_refused(tmp_path: Path) -> None:
    """The proxy is a folder here; what lies there is not what build.sh names."""
    name = script('echo "v0.0.1-$GO_TOOLCHAIN.zip"').stdout.strip()
    proxy = tmp_path / "proxy/golang.org/toolchain/@v"
    proxy.mkdir(parents=True)
    (proxy / name).write_bytes(b"another")
    home = tmp_path / "home"
    home.mkdir()
    done = script(
        f"module_proxy() {{ echo file://{tmp_path}/proxy; }}; uname() {{ echo x86_64; }}; fetch_go",
        CLUSTER_HOME=str(home),
    )
    assert done.returncode == 1
    assert "is not the toolchain that build.sh names" in done.stderr
    assert not (home / "go").exists()


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """with_cluster.py beside a script that only notes what is asked of it."""
    shutil.copy(HERE / "with_cluster.py", tmp_path)
    cluster = tmp_path / "cluster"
    cluster.write_text(FAKE)
    cluster.chmod(0o755)
    return tmp_path


def with_cluster(folder: Path, command: str, fails: str) -> subprocess.Popen[str]:
    """Signals as on a terminal: in the background of a shell, and under nohup, some are ignored."""
    return subprocess.Popen(
        [
            "env",
            "--default-signal=INT,HUP",
            sys.executable,
            folder / "with_cluster.py",
            "sh",
            "-c",
            command,
        ],
        env={**os.environ, "FAILS": fails},
        stdout=subprocess.DEVNULL,
        text=True,
    )


def asked(folder: Path) -> list[str]:
    return (folder / "cluster.log").read_text().split()


@pytest.mark.parametrize("status", [0, 1, 5])
def test_the_cluster_goes_down_and_the_status_is_the_commands(fake: Path, status: int) -> None:
    assert with_cluster(fake, f"exit {status}", fails="status").wait() == status
    assert asked(fake) == ["status", "up", "down"]


def test_a_cluster_that_does_not_come_up_is_a_failure_and_goes_down(fake: Path) -> None:
    (fake / "cluster").write_text(FAKE.replace('[ "$1" != "$FAILS" ]', '[ "$1" = down ]'))
    assert with_cluster(fake, f"touch {fake}/ran", fails="").wait() == 1
    assert asked(fake) == ["status", "up", "down"]
    assert not (fake / "ran").exists()


def test_a_cluster_that_cannot_be_taken_down_is_a_failure(fake: Path) -> None:
    text = FAKE.replace('[ "$1" != "$FAILS" ]', '[ "$1" = up ]')
    (fake / "cluster").write_text(text)
    assert with_cluster(fake, "true", fails="").wait() == 1
    assert asked(fake) == ["status", "up", "down"]


def test_a_cluster_that_is_up_is_left_alone(fake: Path) -> None:
    assert with_cluster(fake, "exit 3", fails="").wait() == 3
    assert asked(fake) == ["status"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_the_cluster_goes_down(
    fake: Path, number: signal.Signals
) -> None:
    """The command hears SIGTERM; Ctrl-C reaches it through the terminal, so the test sends it."""
    command = f"trap 'echo ended >{fake}/ended; exit 0' TERM INT; touch {fake}/ready; "
    process = with_cluster(fake, command + "while :; do sleep 0.05; done", fails="status")
    wait_until((fake / "ready").exists, "the command")
    if number == signal.SIGINT:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[0]), number)
    process.send_signal(number)
    assert process.wait(DEADLINE_SECONDS) in (
        0,
        130,
    )  # 0 when the command ended before the signal was seen
    assert (fake / "ended").exists()
    assert asked(fake) == ["status", "up", "down"]


def test_the_same_directory_gives_the_same_image(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin/program").write_text("x")
    images = [
        Image(("docker.io/library/a:1", "docker.io/library/b:2"), root, ("/bin/program",)),
        Image(("docker.io/library/c:1",), root, ("/bin/program",), ("A=1",)),
    ]
    write_archive(tmp_path / "one.tar", images)
    os.utime(root / "bin/program", (1, 1))
    write_archive(tmp_path / "two.tar", images)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with tarfile.open(tmp_path / "one.tar") as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        found = json.load(manifest)
        names = archive.getnames()
    assert [image["RepoTags"] for image in found] == [list(image.references) for image in images]
    assert found[0]["Layers"] == found[1]["Layers"]
    assert names.count(found[0]["Layers"][0]) == 1


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("alpine:3", "docker.io/library/alpine:3"),
        ("alpine", "docker.io/library/alpine:latest"),
        ("a/b", "docker.io/a/b:latest"),
        ("quay.io/a/b:v1", "quay.io/a/b:v1"),
        ("localhost/a:1", "localhost/a:1"),
        ("host:5000/a", "host:5000/a:latest"),
    ],
)
def test_names_of_images_are_completed(written: str, whole: str) -> None:
    assert resolved(written) == whole
