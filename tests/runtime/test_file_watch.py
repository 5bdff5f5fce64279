"""What is heard of files in directories (runtime/system/inotify.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.system.inotify import FileChange, FileWatch


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[FileWatch]:
    """Of a.0 and b.0, in directories of these names."""
    for name in ("a.0", "b.0"):
        (tmp_path / name).mkdir()
    (tmp_path / "b.0/there").write_text("before\n", encoding="utf-8")
    roots = {name: str(tmp_path / name) for name in ("a.0", "b.0")}
    found = FileWatch(roots, {"a.0": ["deep/er/file", "deep", "plain"], "b.0": ["there"]})
    yield found
    found.close()


def test_what_is_there_before_does_not_count(watch: FileWatch) -> None:
    assert list(watch.changes()) == []


def test_a_file_counts_when_it_is_closed_and_each_time(watch: FileWatch, tmp_path: Path) -> None:
    with (tmp_path / "a.0/plain").open("w", encoding="utf-8") as file:
        file.write("one\n")
        file.flush()
        assert list(watch.changes()) == []
    assert list(watch.changes()) == [FileChange("a.0", "plain", "written")]
    (tmp_path / "a.0/other").write_text("no\n", encoding="utf-8")
    (tmp_path / "b.0/plain").write_text("of another\n", encoding="utf-8")
    for _ in range(2):
        (tmp_path / "a.0/plain").write_text("two\n", encoding="utf-8")
        assert list(watch.changes()) == [FileChange("a.0", "plain", "written")]


def test_renamed_linked_and_other_files_count_at_once(watch: FileWatch, tmp_path: Path) -> None:
    place = tmp_path / "a.0"
    (place / "new").write_text("x\n", encoding="utf-8")
    (place / "new").rename(place / "plain")
    assert list(watch.changes()) == [FileChange("a.0", "plain", "moved here")]
    (place / "plain").rename(place / "new")
    assert list(watch.changes()) == []
    (place / "plain").hardlink_to(place / "new")
    assert list(watch.changes()) == [FileChange("a.0", "plain", "made")]
    (place / "plain").unlink()
    (place / "plain").symlink_to("nowhere")
    assert list(watch.changes()) == [FileChange("a.0", "plain", "made")]


def test_directories_on_the_way_may_come_later_and_again(watch: FileWatch, tmp_path: Path) -> None:
    place = tmp_path / "a.0"
    for _ in range(2):
        (place / "deep").mkdir()
        assert list(watch.changes()) == [FileChange("a.0", "deep", "made")]
        (place / "deep/er").mkdir()
        assert list(watch.changes()) == []
        (place / "deep/er/file").write_text("x\n", encoding="utf-8")
        assert list(watch.changes()) == [FileChange("a.0", "deep/er/file", "written")]
        (place / "deep").rename(tmp_path / "away")
        assert list(watch.changes()) == []
        for one in ("away/er/file", "away/er", "away"):
            path = tmp_path / one
            path.rmdir() if path.is_dir() else path.unlink()
        assert list(watch.changes()) == []


def test_a_directory_that_is_filled_at_once_is_looked_through(
    watch: FileWatch, tmp_path: Path
) -> None:
    (tmp_path / "a.0/deep/er").mkdir(parents=True)
    (tmp_path / "a.0/deep/er/file").write_text("x\n", encoding="utf-8")
    found = list(watch.changes())
    assert found == [FileChange("a.0", "deep", "made"), FileChange("a.0", "deep/er/file", "made")]


def test_no_link_on_the_way_leads_out_of_the_directory(watch: FileWatch, tmp_path: Path) -> None:
    outside = tmp_path / "outside/er"
    outside.mkdir(parents=True)
    (tmp_path / "a.0/deep").symlink_to(tmp_path / "outside")
    assert list(watch.changes()) == [FileChange("a.0", "deep", "made")]
    (outside / "file").write_text("x\n", encoding="utf-8")
    assert list(watch.changes()) == []


def test_an_owner_may_get_another_directory_and_none(watch: FileWatch, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    watch.add("a.0", str(tmp_path / "other"), ["plain"])
    for name in ("a.0/plain", "other/plain", "other/deep"):
        (tmp_path / name).write_text("x\n", encoding="utf-8")
    assert list(watch.changes()) == [FileChange("a.0", "plain", "written")]
    watch.forget("a.0")
    (tmp_path / "other/plain").write_text("x\n", encoding="utf-8")
    (tmp_path / "b.0/there").write_text("x\n", encoding="utf-8")
    assert list(watch.changes()) == [FileChange("b.0", "there", "written")]
