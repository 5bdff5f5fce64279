"""A plan appears whole or not at all, replaces a plan and nothing else, and leaves no litter."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.format import TOOL_VERSION, PlanError
from compiler.plan.reader import read_plan
from compiler.plan.storage import outdir, scratch
from compiler.plan.writer import encode, write_plan
from tests.plan.networks import SECOND, contents, listing, timeline


def files(seed: int) -> dict[str, bytes]:
    return encode(contents(listing(), timeline(listing(), (SECOND, "crash", "client.0")), seed))


def content(path: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in path.iterdir()}


def names_in(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


@pytest.mark.parametrize("swap", [True, False])
def test_replacing_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: bool) -> None:
    if not swap:
        monkeypatch.setattr(outdir, "exchange", lambda *_: False)
    target = tmp_path / "x.plan"
    write_plan(target, files(1))
    digest = write_plan(target, files(2))
    assert content(target) == files(2)
    assert read_plan(target).digest == digest
    assert names_in(tmp_path) == ["x.plan"]


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "x.plan").mkdir()
    write_plan(tmp_path / "x.plan", files(1))
    assert content(tmp_path / "x.plan") == files(1)
    assert names_in(tmp_path) == ["x.plan"]


def test_through_a_symbolic_link(tmp_path: Path) -> None:
    write_plan(tmp_path / "real.plan", files(1))
    (tmp_path / "x.plan").symlink_to("real.plan")
    write_plan(tmp_path / "x.plan", files(2))
    assert (tmp_path / "x.plan").is_symlink()
    assert content(tmp_path / "real.plan") == files(2)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("notes.txt",), "not a plan"),
        (("plan.json", "notes.txt"), "holds 'notes.txt', which is no part of a plan"),
        (("plan.json", "source.tdl", "sub"), "holds 'sub'"),
        (("plan.json", "manifests"), "holds 'manifests'"),
    ],
)
def test_refuses_to_replace_what_is_not_a_plan(
    tmp_path: Path, names: tuple[str, ...], message: str
) -> None:
    target = tmp_path / "x.plan"
    target.mkdir()
    for name in names:
        (target / name).write_text(name)
    with pytest.raises(PlanError, match=message):
        write_plan(target, files(1))
    assert content(target) == {name: name.encode() for name in names}


@pytest.mark.parametrize("name", ["routes.bin", "plan.json"])
def test_a_folder_is_not_taken_for_a_file_of_the_plan(tmp_path: Path, name: str) -> None:
    target = tmp_path / "x.plan"
    write_plan(target, files(1))
    (target / name).unlink()
    (target / name).mkdir()
    (target / name / "precious").touch()
    with pytest.raises(PlanError, match=f"holds '{name}', which is no part of a plan"):
        write_plan(target, files(2))
    assert (target / name / "precious").exists()


def test_refuses_to_replace_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.plan").write_text("precious")
    with pytest.raises(PlanError, match="is a file, not a plan"):
        write_plan(tmp_path / "x.plan", files(1))
    assert (tmp_path / "x.plan").read_text() == "precious"


def test_a_failure_leaves_the_old_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "x.plan"
    write_plan(target, files(1))

    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(PlanError, match="cannot write the plan: No space left on device"):
            write_plan(target, files(2))
    assert content(target) == files(1)
    assert names_in(tmp_path) == ["x.plan"]


@pytest.mark.parametrize("error", [OSError(errno.EIO, os.strerror(errno.EIO)), KeyboardInterrupt()])
def test_a_failed_rename_puts_the_old_plan_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    target = tmp_path / "x.plan"
    write_plan(target, files(1))
    rename = Path.rename

    def fails_for_the_new(self: Path, to: Path) -> Path:
        if self.suffix == ".tmp" and not to.exists():
            raise error
        return rename(self, to)

    monkeypatch.setattr(outdir, "exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", fails_for_the_new)
    with pytest.raises((PlanError, KeyboardInterrupt)) as caught:
        write_plan(target, files(2))
    assert caught.value is error or "Input/output error" in str(caught.value)
    assert content(target) == files(1)
    assert names_in(tmp_path) == ["x.plan"]


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Path, data: bytes) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_plan(tmp_path / "x.plan", files(1))
    assert names_in(tmp_path) == []


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot write the plan: No such file or directory"):
        write_plan(tmp_path / "no" / "such" / "x.plan", files(1))
    with pytest.raises(PlanError, match="cannot write the plan: File name too long"):
        write_plan(tmp_path / ("n" * 300), files(1))


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    (tmp_path / f".x.plan.{os.getpid()}-0.tmp").mkdir()
    (tmp_path / ".x.plan.1-7.old").mkdir()
    (tmp_path / ".x.plan.keep.tmp").mkdir()  # not a name of ours
    write_plan(tmp_path / "x.plan", files(1))
    assert content(tmp_path / "x.plan") == files(1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.plan.keep.tmp", "x.plan"]


def test_no_name_of_a_temporary_directory_comes_back(tmp_path: Path) -> None:
    """Another process may have found the first one unlocked, and remove what has its name."""
    names = set()
    for _ in range(3):
        with scratch.directory(tmp_path, "x.plan") as path:
            names.add(path.name)
    assert len(names) == 3
    assert names_in(tmp_path) == []


def test_another_writer_at_work_is_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / ".x.plan.1-0.tmp"
    theirs.mkdir()
    lock = os.open(theirs, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    write_plan(tmp_path / "x.plan", files(1))
    os.close(lock)
    assert theirs.is_dir()


@pytest.mark.parametrize("swap", [True, False])
def test_a_plan_that_came_meanwhile_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: bool
) -> None:
    if not swap:
        monkeypatch.setattr(outdir, "exchange", lambda *_: False)
    target = tmp_path / "x.plan"
    look = outdir.refusal

    def then_comes_one(*arguments: Any) -> str:
        found = look(*arguments)
        with monkeypatch.context() as patch:
            patch.setattr(outdir, "refusal", look)
            write_plan(target, files(1), RENDERED)
        return found

    monkeypatch.setattr(outdir, "refusal", then_comes_one)
    write_plan(target, files(2))
    assert content(target) == files(2)
    assert names_in(tmp_path) == ["x.plan"]


@pytest.mark.parametrize("error", [True, False])
def test_what_was_replaced_meanwhile_is_looked_at_again(tmp_path: Path, error: bool) -> None:
    target, asked = tmp_path / "x.plan", []
    target.mkdir()

    def judge(directory: Path) -> str:
        asked.append(directory)
        if len(asked) > 1:
            return "" if len(asked) == 3 else "holds 'notes.txt'"
        directory.rename(tmp_path / "old")
        directory.mkdir()
        if error:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "manifests")
        return "holds nothing"

    assert outdir.refusal(target, judge) == "holds 'notes.txt'"
    assert outdir.refusal(target, judge) == ""
    assert len(asked) == 3


def test_an_error_of_looking_at_it_is_told(tmp_path: Path) -> None:
    def judge(directory: Path) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    assert outdir.refusal(tmp_path / "none", judge) == ""
    with pytest.raises(PermissionError):
        outdir.refusal(tmp_path, judge)


def test_the_tool_version_is_that_of_the_package() -> None:
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{TOOL_VERSION}"\n' in text


RENDERED = {"00-a.yaml": b"# Rendered by tstorm\na: 1\n"}


def test_rendered_files_go_into_a_folder_and_with_the_plan(tmp_path: Path) -> None:
    target = tmp_path / "x.plan"
    digest = write_plan(target, files(1), RENDERED)
    assert (target / "manifests" / "00-a.yaml").read_bytes() == RENDERED["00-a.yaml"]
    assert write_plan(tmp_path / "y.plan", files(1)) == digest
    write_plan(target, files(2), RENDERED)
    write_plan(target, files(1))
    assert content(target) == files(1)


@pytest.mark.parametrize("name", ["a.yaml", "plan-000", "plan"])
def test_what_others_put_beside_rendered_files_stays(name: str, tmp_path: Path) -> None:
    target = tmp_path / "x.plan"
    write_plan(target, files(1), RENDERED)
    (target / "manifests" / name).write_text("kind: ConfigMap\n")
    with pytest.raises(PlanError, match=f"holds 'manifests/{name}', which is no part of a plan"):
        write_plan(target, files(2), RENDERED)
    assert (target / "manifests" / name).read_text() == "kind: ConfigMap\n"
