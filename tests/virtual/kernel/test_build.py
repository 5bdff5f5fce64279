"""Building, with a source that is compiled in a moment: whole, once, nothing left of a failure."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.errors import MachineError, RunError
from runtime.system import procs
from runtime.virtual.kernel import (
    compiling,
    kernel_build,
    kernel_cache,
    kernel_changes,
    kernel_source,
)
from tests.cli.process import ROOT
from tests.virtual.kernel import fake
from tests.waiting import wait_until

# Says who it is and never ends, with a child that does not, either.
ENDLESS = fake.MAKEFILE.partition("linux:\n")[0] + (
    "linux:\n\t@echo '  CC      main.o'\n\techo $$$$ > ../../pid; sleep 1000; true\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake.use(monkeypatch, tmp_path)


def content(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tree.rglob("*")
        if path.is_file()
    }


def test_kernel_of_a_folder(folder: Path, tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    before = content(tree)
    words, steps = fake.heard()
    kernel = kernel_build.build(tree, steps)
    assert content(tree) == before
    assert kernel_cache.find() == kernel
    facts = kernel.facts
    assert (facts.version, facts.seccomp, facts.patches) == ("6.12.7", True, ("0001-change.patch",))
    assert (facts.changes, facts.lacking) == (kernel_changes.digest(), ())
    assert sorted(path.name for path in folder.iterdir()) == ["6.12.7-" + facts.digest[:12], "lock"]
    assert words[0] == f"source: {tree}"
    assert [word.partition(":")[0] for word in words[1:]] == [
        "unpack",
        "configure Linux 6.12.7",
        f"compile on {len(os.sched_getaffinity(0))} processors".replace(
            "1 processors", "1 processor"
        ),
    ]


def test_kernel_of_an_archive_is_built_once(folder: Path, tmp_path: Path) -> None:
    path = fake.write_archive(tmp_path / "linux.xz", fake.write_tree(tmp_path / "tree"))
    first = kernel_build.build(path, fake.heard()[1])
    words, steps = fake.heard()
    assert kernel_build.build(path, steps) == first
    assert words == ["source: linux.xz", "built already: Linux 6.12.7 of this source"]


def test_any_kernel_will_do_where_no_source_is_named(folder: Path, tmp_path: Path) -> None:
    first = kernel_build.build(fake.write_tree(tmp_path / "tree"), fake.heard()[1])
    words, steps = fake.heard()
    assert kernel_build.build(None, steps) == first
    assert words == [f"built already: Linux 6.12.7 of {tmp_path / 'tree'}"]


def test_other_changes_make_another_kernel(folder: Path, tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    first = kernel_build.build(tree, fake.heard()[1])
    with (kernel_changes.DATA / "config").open("a") as file:
        file.write("CONFIG_THREE=y\n")
    second = kernel_build.build(tree, fake.heard()[1])
    assert second.path != first.path
    assert kernel_cache.find() == second


def test_same_source_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    first = kernel_build.build(tree, fake.heard()[1]).facts.digest
    kernel_cache.remove()
    assert kernel_build.build(tree, fake.heard()[1]).facts.digest == first


def test_tools_that_compile_nothing_are_not_noted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    first = kernel_build.build(tree, fake.heard()[1]).facts.digest
    kernel_cache.remove()
    rustc = tmp_path / "bin/rustc"
    rustc.parent.mkdir()
    rustc.write_text("#!/bin/sh\necho rustc 1.95.0\n")
    rustc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{rustc.parent}:{os.environ['PATH']}")
    assert kernel_build.build(tree, fake.heard()[1]).facts.digest == first


def test_date_user_and_host_are_fixed(folder: Path, tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    log = tmp_path / compiling.LOG
    compiling.run(["env"], tree, lambda _count, _seconds: None)
    told = dict(line.split("=", 1) for line in log.read_text().splitlines() if "=" in line)
    assert told["KBUILD_BUILD_TIMESTAMP"].endswith("2000")
    assert (told["KBUILD_BUILD_USER"], told["KBUILD_BUILD_HOST"]) == ("tstorm", "tstorm")
    assert "MAKEFLAGS" not in told
    assert "PYTHONPATH" not in told


def test_what_is_wanted_and_missing_is_told(folder: Path, tmp_path: Path) -> None:
    text = fake.CONFIG.replace("CONFIG_TWO", "CONFIG_UNKNOWN_TWO")
    (kernel_changes.DATA / "config").write_text(text)
    words, steps = fake.heard()
    kernel = kernel_build.build(fake.write_tree(tmp_path / "tree"), steps)
    assert kernel.facts.lacking == ("CONFIG_UNKNOWN_TWO=y",)
    assert "this source has not: CONFIG_UNKNOWN_TWO=y" in words


def test_what_is_needed_and_missing_ends_it(folder: Path, tmp_path: Path) -> None:
    (kernel_changes.DATA / "config").write_text(
        fake.CONFIG.replace("CONFIG_ONE", "CONFIG_UNKNOWN_ONE")
    )
    with pytest.raises(RunError, match="does not take what is needed: CONFIG_UNKNOWN_ONE=y"):
        kernel_build.build(fake.write_tree(tmp_path / "tree"), fake.heard()[1])
    assert kernel_cache.kernels() == []


def test_compiler_that_fails(folder: Path, tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    (tree / "main.c").write_text(fake.MAIN.replace("puts(VERSION)", "puts(UNKNOWN)"))
    with pytest.raises(RunError, match=r"make .* failed: main\.c:.* error: .*UNKNOWN"):
        kernel_build.build(tree, fake.heard()[1])
    assert sorted(path.name for path in folder.iterdir()) == ["build.log", "building", "lock"]
    assert "UNKNOWN" in (folder / "build.log").read_text()


def test_a_build_that_failed_goes_on_where_it_stopped(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What of it was compiled is not compiled again; other changes begin anew."""
    stops = fake.MAKEFILE.replace("linux:\n", "linux: first\n\t@test -e ../../room\n")
    tree = fake.write_tree(tmp_path / "tree", makefile=f"{stops}first:\n\tdate +%N > first\n")
    with pytest.raises(RunError) as caught:
        kernel_build.build(tree, fake.heard()[1])
    assert "goes on where this one stopped" in caught.value.remedy
    first = (folder / "building/tree/first").read_text()
    (folder / "room").mkdir()
    seen: list[str] = []
    monkeypatch.setattr(kernel_build, "_stripped", lambda tree: _noting(tree / "first", seen, tree))
    words, steps = fake.heard()
    kernel_build.build(tree, steps)
    assert seen == [first]
    assert "unpacked already: it goes on where the build before this stopped" in words
    assert not (folder / "building").exists()
    (folder / "room").rmdir()
    with (kernel_changes.DATA / "config").open("a") as file:
        file.write("CONFIG_THREE=y\n")
    with pytest.raises(RunError):
        kernel_build.build(tree, fake.heard()[1])
    with (kernel_changes.DATA / "config").open("a") as file:
        file.write("CONFIG_FOUR=y\n")
    with pytest.raises(RunError):
        words, steps = fake.heard()
        kernel_build.build(tree, steps)
    assert not [word for word in words if word.startswith("unpacked already")]


def _noting(file: Path, seen: list[str], tree: Path) -> Path:
    seen.append(file.read_text())
    return tree / "linux"


def test_old_archive_is_refused(folder: Path, tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree", (6, 5))
    path = fake.write_archive(tmp_path / "linux.gz", tree)
    with pytest.raises(RunError, match=r"linux\.gz is Linux 6\.5\.7: 6\.6 or newer is needed"):
        kernel_build.build(path, fake.heard()[1])
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_archive_that_cannot_be_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake.write_archive(tmp_path / "linux.gz", fake.write_tree(tmp_path / "tree"))

    def refuse(_self: kernel_source.KernelSource) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(kernel_source.KernelSource, "digest", refuse)
    with pytest.raises(RunError, match=rf"^{path}: Permission denied"):
        kernel_build.build(path, fake.heard()[1])


def test_missing_tools_are_named_with_their_packages(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = tmp_path / "bin"
    only.mkdir()
    for name in ("make", "ld", "bc", "perl", "awk", "find", "sh"):
        (only / name).symlink_to(shutil.which(name) or "/bin/true")
    monkeypatch.setenv("PATH", str(only))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(MachineError) as caught:
        kernel_build.build(fake.write_tree(tmp_path / "tree"), fake.heard()[1])
    assert "flex, bison, patch, gcc" in caught.value.message
    assert caught.value.remedy == "on Debian: apt-get install bison flex gcc libc6-dev patch"


def test_other_processors_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(MachineError, match="this machine is aarch64"):
        kernel_build.build(fake.write_tree(tmp_path / "tree"), fake.heard()[1])


def test_no_source_anywhere(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_source, "installed", lambda: None)
    monkeypatch.setattr(kernel_source, "packaged", lambda: None)
    with pytest.raises(MachineError, match=r"no source of Linux 6\.6 to 6\.12"):
        kernel_build.build(None, fake.heard()[1])


def test_full_disk_is_said_before(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_build, "SPACE_BYTES", 1 << 62)
    with pytest.raises(MachineError, match="has room for"):
        kernel_build.build(fake.write_tree(tmp_path / "tree"), fake.heard()[1])


def endless(tmp_path: Path) -> tuple[subprocess.Popen[bytes], procs.Process]:
    """A build that does not end, and the shell in it that waits."""
    tree = fake.write_tree(tmp_path / "tree", makefile=ENDLESS)
    script = ROOT / "tests/virtual/kernel/interrupted.py"
    process = subprocess.Popen(
        [sys.executable, str(script), str(kernel_changes.DATA), str(tree)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    file = kernel_cache.root() / "pid"
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), "make has not begun")
    shell = procs.identify(int(file.read_text()))
    assert shell is not None
    return process, shell


def test_ctrl_c_leaves_no_process_and_where_it_stopped(folder: Path, tmp_path: Path) -> None:
    process, shell = endless(tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) != 0
    wait_until(lambda: not procs.alive(shell), "make went on")
    assert sorted(path.name for path in folder.iterdir()) == ["building", "lock", "pid"]
    assert kernel_cache.remove() == ["building"]


def test_kill_leaves_no_process_and_the_next_clears_the_rest(folder: Path, tmp_path: Path) -> None:
    process, shell = endless(tmp_path)
    process.kill()
    process.wait(timeout=60)
    wait_until(lambda: not procs.alive(shell), "make went on")
    assert (folder / "building").exists()
    assert kernel_cache.kernels() == []
    kernel_build.build(fake.write_tree(tmp_path / "other"), fake.heard()[1])
    assert not (folder / "building").exists()


def test_two_builds_at_once(folder: Path, tmp_path: Path) -> None:
    process, _shell = endless(tmp_path)
    try:
        with pytest.raises(MachineError, match="by another tstorm"):
            kernel_build.build(fake.write_tree(tmp_path / "other"), fake.heard()[1])
        assert (folder / "building/tree/main.c").exists()
    finally:
        process.kill()
        process.wait(timeout=60)


def test_record_is_json(folder: Path, tmp_path: Path) -> None:
    kernel = kernel_build.build(fake.write_tree(tmp_path / "tree"), fake.heard()[1])
    record = json.loads((kernel.path.parent / "kernel.json").read_text())
    assert record["digest"] == hashlib.sha256(kernel.path.read_bytes()).hexdigest()
    assert record["format"] == kernel_cache.FORMAT
