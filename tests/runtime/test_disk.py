"""What a power failure leaves of a directory: what was synced, always, and of the rest what POSIX
allows; the same for the same seed, wherever the directory lies."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.backend.local.disk import BESIDE, SECTOR, Disk, Lost
from runtime.errors import RunError

SEEDS = range(60)


def tree(root: Path) -> dict[str, str]:
    """What each path is: a directory, a link, or the bytes of a file, repeats left out."""
    return {
        str(one.relative_to(root)): f"-> {one.readlink()}"
        if one.is_symlink()
        else "directory"
        if one.is_dir()
        else one.read_bytes().decode()
        for one in sorted(root.rglob("*"))
    }


def write(path: Path, data: str, disk: Disk | None = None, *, mode: int = os.O_APPEND) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o640)
    os.write(file, data.encode())
    if disk is not None:
        disk.sync(f"/proc/self/fd/{file}")
    os.close(file)


def begun(root: Path) -> Disk:
    disk = Disk(root)
    disk.begin()
    return disk


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Path]:
    """An empty directory each time."""

    def made() -> Iterator[Path]:
        while True:
            shutil.rmtree(tmp_path / "one", ignore_errors=True)
            (tmp_path / "one").mkdir()
            yield tmp_path / "one"

    return made()


def test_what_is_synced_stays(places: Iterator[Path]) -> None:
    for seed in SEEDS:
        root = next(places)
        (root / "sub").mkdir()
        write(root / "sub" / "old", "there at first")
        disk = begun(root)
        write(root / "log", "L" * 1300, disk)
        (root / "sub" / "old").rename(root / "sub" / "new")
        disk.sync(str(root))
        disk.sync(str(root / "sub"))
        before = tree(root)
        assert disk.lose(seed) == Lost(0, 0)
        assert tree(root) == before
        disk.close()


def test_names_are_lost_by_directories_and_moves_are_whole(places: Iterator[Path]) -> None:
    found = set()
    for seed in SEEDS:
        root = next(places)
        (root / "a").mkdir()
        (root / "b").mkdir()
        write(root / "a" / "x", "x")
        write(root / "gone", "g")
        disk = begun(root)
        (root / "a" / "x").rename(root / "b" / "x")
        write(root / "b" / "y", "y", disk)
        (root / "gone").unlink()
        disk.lose(seed)
        left = tree(root)
        assert ("a/x" in left) != ("b/x" in left)
        assert ("b/x" in left) == ("b/y" in left)
        assert left.get("gone", "g") == "g"
        found.add(("b/x" in left, "gone" in left))
        disk.close()
    assert len(found) == 4


def test_a_file_that_takes_the_place_of_another_is_one_of_the_two(places: Iterator[Path]) -> None:
    found = set()
    for seed in SEEDS:
        root = next(places)
        write(root / "file", "old")
        disk = begun(root)
        write(root / "tmp", "new", disk)
        (root / "tmp").rename(root / "file")
        disk.lose(seed)
        assert set(tree(root)) == {"file"}
        found.add(tree(root)["file"])
        disk.close()
    assert found == {"old", "new"}


def test_an_append_is_lost_torn_or_kept(places: Iterator[Path]) -> None:
    found = set()
    for seed in SEEDS:
        root = next(places)
        write(root / "log", "a" * 700)
        disk = begun(root)
        write(root / "log", "b" * 1000)
        disk.lose(seed)
        left = (root / "log").read_text()
        whole = "a" * 700 + "b" * 1000
        assert left[:700] == "a" * 700
        assert len(left) in (700, 2 * SECTOR, 3 * SECTOR, 1700)
        for at in range(SECTOR, len(left), SECTOR):
            begin = max(at, 700)
            assert left[begin : at + SECTOR] in (
                whole[begin : at + SECTOR][: len(left) - begin],
                "\0" * (min(at + SECTOR, len(left)) - begin),
            )
        found.add(len(left))
        disk.close()
    assert found == {700, 2 * SECTOR, 3 * SECTOR, 1700}


def test_old_data_do_not_come_back_beside_new_ones_after_a_truncation(
    places: Iterator[Path],
) -> None:
    found = set()
    for seed in SEEDS:
        root = next(places)
        write(root / "file", "o" * 2000)
        disk = begun(root)
        disk.truncate(str(root / "file"), 0)
        write(root / "file", "n" * 2000, mode=os.O_TRUNC)
        disk.lose(seed)
        left = (root / "file").read_text()
        assert left == "o" * 2000 or not set(left) - {"n", "\0"}
        found.add(left)
        disk.close()
    assert {"o" * 2000, "n" * 2000, "", "n" * SECTOR} <= found


@pytest.mark.parametrize(
    ("lengths", "written", "stays"),
    [((7000,), "", 3000), ((2000,), "", 2000), ((2048,), "n" * 900, 2048), ((0, 3000), "", 0)],
    ids=["longer", "shorter", "shorter and appended to", "cut and long again"],
)
def test_a_truncation_takes_nothing_synced_from_what_it_keeps(
    places: Iterator[Path], lengths: tuple[int, ...], written: str, stays: int
) -> None:
    found = set()
    for seed in SEEDS:
        root = next(places)
        write(root / "file", "o" * 3000)
        disk = begun(root)
        for length in lengths:
            disk.truncate(str(root / "file"), length)
            os.truncate(root / "file", length)
        write(root / "file", written)
        whole = (root / "file").read_text()
        disk.lose(seed)
        left = (root / "file").read_text()
        assert left[:stays] == "o" * stays
        assert left == "o" * 3000 or not set(left[stays:]) - {"n", "\0"}
        found.add(left)
        disk.close()
    assert {"o" * 3000, whole} <= found


def test_a_file_without_a_name_is_read_by_what_holds_it(
    places: Iterator[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file system has it that opens files by name only (hostfs)."""
    opened = os.open

    def by_name(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).startswith("/proc/") and not Path(os.path.realpath(path)).exists():
            raise OSError(errno.ENOMEM, "Cannot allocate memory", path)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr("os.open", by_name)
    found = set()
    for seed in SEEDS:
        root = next(places)
        write(root / "gone", "g")
        disk = begun(root)
        file = opened(root / "gone", os.O_RDWR)
        (root / "gone").unlink()
        os.write(file, b"G")
        disk.sync(f"/proc/self/fd/{file}")
        other = opened(root / "tmp", os.O_RDWR | os.O_CREAT)
        (root / "tmp").unlink()
        disk.sync(f"/proc/self/fd/{other}")
        disk.truncate(f"/proc/self/fd/{other}", 9)
        disk.lose(seed)
        left = tree(root)
        assert left in ({}, {"gone": "G"})
        found.add(len(left))
        os.close(file)
        os.close(other)
        disk.close()
    assert found == {0, 1}


def test_what_is_mapped_and_removed_is_synced_by_its_number(places: Iterator[Path]) -> None:
    found = set()
    for seed in SEEDS:
        root = next(places)
        write(root / "file", "old")
        disk = begun(root)
        inode = (root / "file").stat().st_ino
        (root / "other").hardlink_to(root / "file")
        (root / "file").unlink()
        write(root / "other", "new")
        (root / "other").unlink()
        disk.sync_unnamed(inode, str(root / "file"))
        disk.lose(seed)
        found.add(tree(root).get("file", ""))
        disk.close()
    assert found == {"", "oldnew"}


def test_what_cannot_be_read_is_named(places: Iterator[Path]) -> None:
    root = next(places)
    disk = begun(root)
    disk.failed = PermissionError(errno.EACCES, "Permission denied", str(root / "file"))
    with pytest.raises(RunError, match=f"^cannot read {root}/file: Permission denied"):
        disk.lose(1)
    disk.close()


def through(path: Path, data: str, disk: Disk, *, at: int | None = None) -> None:
    """As with O_DSYNC; at the end if it is not said where."""
    disk.write_through(str(path), at, data.encode())
    file = os.open(path, os.O_WRONLY)
    os.pwrite(file, data.encode(), path.stat().st_size if at is None else at)
    os.close(file)


def test_what_is_written_through_is_synced_whatever_the_file_is_called(
    places: Iterator[Path],
) -> None:
    for seed in SEEDS:
        root = next(places)
        write(root / "file", "a")
        disk = begun(root)
        write(root / "tmp", "")
        through(root / "tmp", "b" * 1000, disk)
        through(root / "tmp", "c" * 1000, disk)
        (root / "tmp").rename(root / "file")
        (root / "again").hardlink_to(root / "file")
        disk.sync(str(root))
        disk.lose(seed)
        whole = "b" * 1000 + "c" * 1000
        assert tree(root) == {"again": whole, "file": whole}
        disk.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_written_through_may_lose_what_is_written_otherwise(
    places: Iterator[Path], *, replaced: bool
) -> None:
    found = set()
    for seed in SEEDS:
        root = next(places)
        write(root / "file", "a")
        disk = begun(root)
        through(root / "file", "b", disk, at=0)
        if replaced:
            write(root / "tmp", "c")
            (root / "tmp").rename(root / "file")
            disk.sync(str(root))
        else:
            write(root / "file", "c")
        disk.lose(seed)
        found.add((root / "file").read_text())
        disk.close()
    assert found == ({"", "c", "\0"} if replaced else {"b", "bc", "b\0"})


def test_of_a_file_that_is_written_through_in_part_the_rest_may_be_lost(
    places: Iterator[Path],
) -> None:
    size = 1 << 17
    found = set()
    for seed in SEEDS[:20]:
        root = next(places)
        write(root / "file", "a" * 700)
        disk = begun(root)
        write(root / "file", "b" * size)
        through(root / "file", "c" * 9, disk, at=size - 4)
        disk.lose(seed)
        left = (root / "file").read_text()
        assert left[:700] == "a" * 700
        assert left[size - 4 : size + 5] == "c" * 9
        assert not set(left) - {"a", "b", "c", "\0"}
        found.add((left.count("b"), len(left)))
        disk.close()
    assert (0, size + 5) in found
    assert (size - 9, size + 700) in found


def test_what_was_cut_off_before_a_write_through_is_gone(places: Iterator[Path]) -> None:
    for seed in SEEDS:
        root = next(places)
        write(root / "file", "a" * 100_000)
        disk = begun(root)
        for length in (70_000, 65_536, 10):
            disk.truncate(str(root / "file"), length)
            os.truncate(root / "file", length)
            through(root / "file", "b", disk)
            assert (root / "file").stat().st_size == length + 1
        disk.lose(seed)
        assert (root / "file").read_text() == "a" * 10 + "b"
        disk.close()


def test_what_a_program_asserts_is_not_on_its_disk(places: Iterator[Path]) -> None:
    for seed in SEEDS:
        root = next(places)
        (root / BESIDE).mkdir()
        disk = begun(root)
        write(root / BESIDE / "program-001.jsonl", "asserted")
        write(root / "log", "x")
        disk.sync(str(root))
        disk.sync(str(root / BESIDE))
        disk.lose(seed)
        write(root / BESIDE / "program-002.jsonl", "again")
        disk.lose(seed)
        found = tree(root)
        assert found[f"{BESIDE}/program-001.jsonl"] == "asserted"
        assert found[f"{BESIDE}/program-002.jsonl"] == "again"


def test_links_rights_and_files_removed_without_a_sync_come_back(places: Iterator[Path]) -> None:
    found = set()
    for seed in SEEDS:
        root = next(places)
        (root / "d").mkdir(mode=0o700)
        write(root / "d" / "one", "1")
        os.link(root / "d" / "one", root / "two")
        (root / "link").symlink_to("d/one")
        disk = begun(root)
        shutil.rmtree(root / "d")
        (root / "link").unlink()
        disk.lose(seed)
        left = tree(root)
        assert left["two"] == "1"
        if "d/one" in left:
            assert left["link"] == "-> d/one"
            assert (root / "d").stat().st_mode & 0o777 == 0o700
            assert (root / "d" / "one").stat().st_mode & 0o777 == 0o640
            assert (root / "d" / "one").samefile(root / "two")
        found.add("d/one" in left)
        disk.close()
    assert found == {True, False}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "replace", "rename", "unlink", "sync", "sync names"]),
        st.sampled_from("abc"),
        st.sampled_from("abc"),
    ),
    max_size=12,
)


@given(STEPS, st.integers(0, 2**63 - 1))
def test_any_program_finds_the_same_again_and_nothing_that_never_was(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]], seed: int
) -> None:
    roots = [tmp_path_factory.mktemp("disk") for _ in range(2)]
    left = []
    for root in roots:
        write(root / "a", "a0")
        disk = begun(root)
        written = {"a0"}
        for number, (what, name, other) in enumerate(steps):
            path = root / name
            if what == "append":
                write(path, f"{name}{number}")
            elif what == "replace":
                if path.exists():
                    disk.truncate(str(path), 0)
                write(path, f"{name}{number}", mode=os.O_TRUNC)
            elif what == "sync names":
                disk.sync(str(root))
            elif path.exists():
                if what == "rename":
                    path.rename(root / other)
                elif what == "unlink":
                    path.unlink()
                else:
                    disk.sync(str(path))
            written |= {one.read_text() for one in root.iterdir()}
        disk.lose(seed)
        left.append(tree(root))
        disk.close()
        for text in left[-1].values():
            there = text.rstrip("\0")  # of what was lost a file may still have the length
            assert any(one.startswith(there) for one in written)
        shutil.rmtree(root)
    assert left[0] == left[1]
