"""`tstorm image build`: the image of this machine, small, always the same, and it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from manifests.render_options import DEFAULT_AGENT_IMAGE
from tests.cli.process import ended
from tests.image.support import ROOT
from tstorm.image.rootfs import COMPILED, CONFIG, ENVIRONMENT, HOLD

MAX_BYTES = 42_000_000
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: chroot")


def tstorm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", "tstorm", "image", "build", *arguments]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("image") / "image.tar"
    done = tstorm("-o", out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def rootfs(image: Path) -> Path:
    """The files of the image, as a container engine would unpack them."""
    folder = image.with_name("rootfs")
    folder.mkdir()
    with tarfile.open(image) as tar:
        (listed,) = json.loads(tar.extractfile("manifest.json").read())
        (layer,) = listed["Layers"]
        data = tar.extractfile(layer).read()
    subprocess.run(["tar", "-x", "-p", "-C", folder], input=data, check=True)
    return folder


def inside(rootfs: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """A command with the image as its root, and a /proc, as a container would start it."""
    script = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    return ended(
        ["unshare", "--mount", "sh", "-c", script, rootfs, *argv],
        env=ENVIRONMENT | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )


def test_it_has_the_name_in_the_manifests(image: Path) -> None:
    with tarfile.open(image) as tar:
        (listed,) = json.loads(tar.extractfile("manifest.json").read())
    assert listed["RepoTags"] == [DEFAULT_AGENT_IMAGE]


def test_it_is_the_same_byte_for_byte(image: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.tar"
    assert tstorm("-o", again).returncode == 0
    assert again.read_bytes() == image.read_bytes()


def test_unpacked_it_has_the_same_files(rootfs: Path, tmp_path: Path) -> None:
    done = tstorm("--unpacked", "-o", tmp_path / "files")
    assert done.returncode == 0, done.stderr
    compared = ["diff", "--recursive", "--no-dereference", str(rootfs), str(tmp_path / "files")]
    assert subprocess.run(compared, capture_output=True, check=False).stdout == b""
    modes = [
        {str(path.relative_to(root)): path.lstat().st_mode for path in root.rglob("*")}
        for root in (rootfs, tmp_path / "files")
    ]
    assert modes[0] == modes[1]


def test_it_is_small(rootfs: Path) -> None:
    sizes = [path.lstat().st_size for path in rootfs.rglob("*") if path.is_file()]
    assert sum(sizes) < MAX_BYTES


def test_everything_may_be_read_by_any_user(rootfs: Path) -> None:
    closed = [p for p in rootfs.rglob("*") if not p.is_symlink() and not p.stat().st_mode & 0o004]
    assert closed == []


def test_compiled_programs_are_those_of_the_list_of_sources() -> None:
    lines = (ROOT / "tcal_c/sources").read_text().splitlines()
    listed = {line.split()[0]: line.split()[1] for line in lines if not line.startswith("#")}
    assert listed == COMPILED


@AS_ROOT
def test_the_agent_starts_in_it(rootfs: Path) -> None:
    done = inside(rootfs, "/usr/bin/python3", "-P", "-m", "runtime.agent", "--help")
    assert done.stdout.startswith("usage: runtime.agent"), done.stderr


@AS_ROOT
@pytest.mark.parametrize(
    ("launcher", "words"),
    [
        (["tstorm-agent"], "the variable TSTORM_VERSION is not set"),
        (["tstorm-coordinator", "probe"], "no Job on /run/tstorm/"),
    ],
)
def test_a_launcher_outside_of_a_pod_says_what_it_misses(
    rootfs: Path, launcher: list[str], words: str
) -> None:
    done = inside(rootfs, *launcher)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@AS_ROOT
def test_every_module_of_the_project_in_it_can_be_imported(rootfs: Path) -> None:
    packages = rootfs / "usr/lib/thunderstorm"
    names = [
        str(path.relative_to(packages).with_suffix("")).replace("/", ".").removesuffix(".__init__")
        for room in ("runtime", "compiler")
        for path in sorted((packages / room).rglob("*.py"))
        if path.name != "__main__.py"
    ]
    assert "runtime.agent.process.agent" in names
    script = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done = inside(rootfs, "/usr/bin/python3", "-P", "-c", script, *names)
    assert (done.returncode, done.stderr) == (0, "")


@AS_ROOT
def test_what_a_when_does_is_compiled_in_it(rootfs: Path) -> None:
    text = (
        r"service a img=x\nbridge s\nlink a--s latency=1ms\nwhen ready a { it crash }\nat 9s quit\n"
    )
    script = (
        "import tstorm.live.reactor\n"
        "from compiler import firing\n"
        "from compiler.pipeline import compile_source\n"
        "from compiler.plan.parts.action_texts import Firing\n"
        f"plan = compile_source('{text}').plan\n"
        "when = firing.statements(plan)[0]\n"
        "print(firing.fire(plan, when, 'a.0', Firing(1, 1), 1, 10**9)[1])\n"
    )
    done = inside(rootfs, "/usr/bin/python3", "-P", "-c", script)
    assert (done.stdout, done.stderr) == ("at 1s a.0 crash\n\n", "")


@AS_ROOT
def test_what_programs_import_when_they_run_is_there(rootfs: Path) -> None:
    script = (
        "import asyncio, ssl, sys, traceback\n"
        "async def main(): return await asyncio.to_thread(ssl.create_default_context)\n"
        "print(asyncio.run(main()).verify_mode.name, 'ä'.encode('idna'), sys.flags.safe_path)\n"
    )
    done = inside(rootfs, "/usr/bin/python3", "-P", "-c", script)
    assert (done.stdout, done.stderr) == ("CERT_REQUIRED b'xn--4ca' True\n", "")


@AS_ROOT
@pytest.mark.parametrize("program", [name for name in COMPILED if not name.endswith(".so")])
def test_the_compiled_programs_start_in_it(rootfs: Path, program: str) -> None:
    done = inside(rootfs, f"/usr/lib/thunderstorm/runtime/bin/{program}", "--nonsense")
    assert "usage" in done.stderr + done.stdout, done.stderr


@AS_ROOT
def test_the_hold_installs_itself(rootfs: Path) -> None:
    done = inside(rootfs, HOLD[0], "install", "/run")
    assert (done.returncode, done.stderr) == (0, "")
    assert (rootfs / "run/tstorm-hold").read_bytes() == (rootfs / HOLD[1][1:]).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--arch", "arm64"), 3, "this machine's programs are for amd64, not arm64"),
        (("--arch", "mips"), 2, "'mips' is not one of 'amd64', 'arm64'"),
        (("--name", "thunder/Storm"), 2, "a repository's name has no capitals"),
        (("--root", "/proc/self/fd"), 3, "/proc/self/fd has no python3 in /usr/local/bin"),
    ],
)
def test_what_cannot_be_built_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = tstorm("-o", tmp_path / "image.tar", *arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_dockerfile_sets_what_the_archive_sets() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert lines[-2] == "ENV " + " ".join(CONFIG["Env"])
    assert lines[-1] == "ENTRYPOINT " + json.dumps(CONFIG["Entrypoint"])
    assert f"--tag {DEFAULT_AGENT_IMAGE} ." in "\n".join(lines)
    copied = {line.split()[1] for line in lines if re.match(r"COPY \w+ /source", line)}
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    named = {name.rstrip("*") for name in packages["packages"]["find"]["include"]}
    assert copied == named | {"tcal_c"}
