"""`tstorm kernel` as a user calls it, with a source that is compiled in a moment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from runtime.virtual import guest
from runtime.virtual.kernel import kernel_cache, kernel_changes
from tests.cli.support import status, tstorm
from tests.virtual.kernel import fake


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(guest, "why_not", lambda _kernel, _keeper: "")
    return fake.use(monkeypatch, tmp_path)


@pytest.fixture
def built(folder: Path, tmp_path: Path) -> Path:
    """The path of a kernel that was built."""
    fake.write_tree(tmp_path / "tree")
    result = tstorm("kernel", "build", "--source", str(tmp_path / "tree"))
    assert status(result) == 0, result.output
    return Path(result.stdout.strip())


def test_build_prints_the_path(built: Path, folder: Path) -> None:
    assert built.parent.parent == folder
    assert built == kernel_cache.path_for_run()


def test_build_says_its_steps(folder: Path, tmp_path: Path) -> None:
    fake.write_tree(tmp_path / "tree")
    lines = tstorm("kernel", "build", "--source", str(tmp_path / "tree")).stderr.splitlines()
    steps = ("source: ", "unpack: ", "configure Linux 6.12.7: ", "compile on ", "Linux 6.12.7, ")
    assert len(lines) == len(steps)
    assert all(line.startswith(step) for line, step in zip(lines, steps, strict=True))


def test_kernel_that_does_not_start(
    built: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept: where it was built something may be forbidden that is not elsewhere."""
    monkeypatch.setattr(guest, "why_not", lambda _kernel, _keeper: "ptrace is forbidden")
    result = tstorm("kernel", "build", "--source", str(tmp_path / "tree"))
    assert (status(result), result.stdout) == (0, f"{built}\n")
    assert "warning: it does not start here: ptrace is forbidden (tstorm doctor)" in result.stderr
    result = tstorm("kernel", "import", str(built))
    assert status(result) == 3
    assert f"{built}: it does not start here: ptrace is forbidden" in result.exception.message


def test_source_that_is_none(folder: Path, tmp_path: Path) -> None:
    result = tstorm("kernel", "build", "--source", str(tmp_path / "none"))
    assert status(result) == 1
    assert "there is no such archive or folder" in str(result.exception.message)


def test_status_without_a_kernel(folder: Path) -> None:
    result = tstorm("kernel", "status")
    assert (status(result), result.stdout) == (3, "")
    assert result.exception.message.endswith("is built\nhint: tstorm kernel build")


def test_status_without_a_kernel_as_json(folder: Path) -> None:
    result = tstorm("kernel", "status", "--format", "json")
    assert status(result) == 3
    assert json.loads(result.stdout) == {"folder": str(folder), "kernels": []}


def test_status(built: Path) -> None:
    result = tstorm("kernel", "status")
    assert status(result) == 0
    assert result.stdout.splitlines()[1].split()[:2] == ["6.12.7", "used"]


def test_status_as_json(built: Path) -> None:
    (kernel,) = json.loads(tstorm("kernel", "status", "--format", "json").stdout)["kernels"]
    assert (kernel["path"], kernel["used"], kernel["stale"]) == (str(built), True, False)
    assert kernel["patches"] == ["0001-change.patch"]


def test_status_of_a_stale_one(built: Path) -> None:
    with (kernel_changes.DATA / "config").open("a") as file:
        file.write("# more\n")
    result = tstorm("kernel", "status")
    assert status(result) == 3
    assert result.stdout.splitlines()[1].split()[:2] == ["6.12.7", "stale"]
    assert "tstorm kernel remove --stale" in result.stderr
    assert "was built by another release of tstorm" in result.exception.message


def test_remove(built: Path) -> None:
    assert status(tstorm("kernel", "remove", "--stale")) == 0
    assert built.exists()
    result = tstorm("kernel", "remove")
    assert (status(result), result.stderr) == (0, f"removed {built.parent.name}\n")
    assert not built.exists()


def test_import(built: Path, tmp_path: Path) -> None:
    carried = tmp_path / "carried"
    carried.write_bytes(built.read_bytes())  # and no right to start it, as on many a stick
    tstorm("kernel", "remove")
    result = tstorm("kernel", "import", str(carried))
    assert (status(result), result.stdout) == (0, f"{built}\n")
    found = kernel_cache.find()
    assert found is not None
    assert (found.path, found.facts.source) == (built, f"imported from {carried}")


def test_import_of_another_releases(built: Path, tmp_path: Path) -> None:
    with (kernel_changes.DATA / "config").open("a") as file:
        file.write("# more\n")
    result = tstorm("kernel", "import", str(built))
    assert status(result) == 1
    assert "was not built by this release of tstorm" in result.exception.message


@pytest.mark.parametrize(
    ("program", "words"),
    [("/bin/sh", "answers --version with status"), ("/bin/true", "no kernel of user-mode Linux")],
)
def test_import_of_another_program(folder: Path, program: str, words: str) -> None:
    result = tstorm("kernel", "import", program)
    assert status(result) == 1
    assert words in result.exception.message


def test_import_of_what_is_no_program(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text\n")
    result = tstorm("kernel", "import", str(tmp_path / "text"))
    assert status(result) == 1
    assert "this is no program" in result.exception.message


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_import_of_what_has_no_end(folder: Path, tmp_path: Path, kind: str) -> None:
    file = Path("/dev/zero")
    if kind == "fifo":
        file = tmp_path / "fifo"
        os.mkfifo(file)
    result = tstorm("kernel", "import", str(file))
    assert status(result) == 1
    assert "is no ordinary file" in result.exception.message


def test_a_file_that_is_no_kernel_is_not_copied(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache, "staged", lambda _file: pytest.fail("it was copied"))
    file = tmp_path / "linux"
    file.touch()
    for size, why in (
        (3 << 40, "this file has 3,298,534,883,328 bytes"),
        (5, "this is no program"),
    ):
        os.truncate(file, size)
        result = tstorm("kernel", "import", str(file))
        assert status(result) == 1
        assert why in result.exception.message


def test_import_that_is_refused_leaves_nothing(folder: Path) -> None:
    tstorm("kernel", "import", "/bin/true")
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_import_by_whom_has_no_place(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TSTORM_CACHE", str(tmp_path / "file"))
    result = tstorm("kernel", "import", "/bin/true")
    assert status(result) == 1
    assert f"cannot write {tmp_path}/file/kernel: Not a directory" in result.exception.message
