"""Unpacking a source: what is taken, and what an archive that is none, or hostile, comes to."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from runtime.errors import MachineError, RunError
from runtime.virtual.kernel import unpack_source
from tests.virtual.kernel import fake


def unpack(path: Path, tree: Path) -> set[str]:
    """What was written."""
    tree.mkdir()
    unpack_source.unpack(path, tree, lambda _count: None)
    return {str(file.relative_to(tree)) for file in tree.rglob("*") if file.is_file()}


def test_only_what_a_build_reads_is_taken(tmp_path: Path) -> None:
    path = fake.write_archive(tmp_path / "a.xz", fake.write_tree(tmp_path / "source"))
    assert unpack(path, tmp_path / "tree") == {
        "Makefile",
        "main.c",
        "arch/um/Kconfig",
        "arch/arm/Kconfig",
        "drivers/net/tun.c",
        "drivers/net/ethernet/Makefile",
    }


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Documentation/Kconfig", True),
        ("Documentation/process/howto.rst", False),
        ("drivers/gpu/drm/Kconfig", True),
        ("drivers/gpu/drm/big.c", False),
        ("drivers/Makefile", True),
        ("drivers/base/core.c", True),
        ("drivers/tty/vt/vt.c", True),
        ("drivers/net/ethernet/intel/e1000/e1000.h", False),
        ("arch/x86/include/asm/page.h", True),
        ("scripts/Makefile.build", True),
        ("scripts/Kbuild.include", True),
        ("kernel/fork.c", True),
        ("tools/perf/perf.c", False),
    ],
)
def test_wanted(name: str, wanted: bool) -> None:
    assert unpack_source.wanted(name) is wanted


@pytest.mark.parametrize("kind", ["xz", "gz", "bz2"])
def test_kinds_of_compression(tmp_path: Path, kind: str) -> None:
    path = fake.write_archive(tmp_path / f"a.{kind}", fake.write_tree(tmp_path / "source"))
    assert "main.c" in unpack(path, tmp_path / "tree")


def test_without_xz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake.write_archive(tmp_path / "a.xz", fake.write_tree(tmp_path / "source"))
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert "main.c" in unpack(path, tmp_path / "tree")


def test_program_stays_one(tmp_path: Path) -> None:
    source = fake.write_tree(tmp_path / "source")
    (source / "scripts").mkdir()
    (source / "scripts/run.sh").write_text("#!/bin/sh\n")
    (source / "scripts/run.sh").chmod(0o755)
    unpack(fake.write_archive(tmp_path / "a.gz", source), tmp_path / "tree")
    assert (tmp_path / "tree/scripts/run.sh").stat().st_mode & 0o111
    assert not (tmp_path / "tree/main.c").stat().st_mode & 0o111


@pytest.mark.parametrize("name", ["../outside.c", "linux/../../outside.c", "/tmp/tstorm-outside.c"])
def test_file_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = fake.write_members(tmp_path / "a.gz", [(tarfile.TarInfo(name), b"x")])
    with pytest.raises(RunError, match="a file outside of its folder"):
        unpack(path, tmp_path / "tree")
    assert not (tmp_path / "outside.c").exists()
    assert not Path("/tmp/tstorm-outside.c").exists()


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    link = tarfile.TarInfo("linux/kernel")
    link.type, link.linkname = tarfile.SYMTYPE, str(victim)
    members = [(link, b""), (tarfile.TarInfo("linux/kernel/evil.c"), b"x")]
    members.append((tarfile.TarInfo("linux/Makefile"), b"x"))
    written = unpack(fake.write_members(tmp_path / "a.gz", members), tmp_path / "tree")
    assert written == {"kernel/evil.c", "Makefile"}
    assert list(victim.iterdir()) == []


@pytest.mark.parametrize("second", ["linux/a.c", "linux/a.c/b.c"])
def test_two_files_in_one_place_are_refused(tmp_path: Path, second: str) -> None:
    members = [(tarfile.TarInfo("linux/a.c"), b"x"), (tarfile.TarInfo(second), b"y")]
    path = fake.write_members(tmp_path / "a.gz", members)
    with pytest.raises(RunError, match="two files in one place"):
        unpack(path, tmp_path / "tree")


def test_two_folders_are_refused(tmp_path: Path) -> None:
    members = [(tarfile.TarInfo("linux/a.c"), b"x"), (tarfile.TarInfo("other/b.c"), b"y")]
    path = fake.write_members(tmp_path / "a.gz", members)
    with pytest.raises(RunError, match=r"other/b\.c is not below linux"):
        unpack(path, tmp_path / "tree")


@pytest.mark.parametrize(("limit", "most"), [("MOST_FILES", 3), ("MOST_BYTES", 40)])
def test_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    path = fake.write_archive(tmp_path / "a.gz", fake.write_tree(tmp_path / "source"))
    monkeypatch.setattr(unpack_source, limit, most)
    with pytest.raises(RunError, match="too large"):
        unpack(path, tmp_path / "tree")


def test_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"no archive" * 1000)
    with pytest.raises(RunError, match="no whole archive"):
        unpack(tmp_path / "a.tar", tmp_path / "tree")


def test_half_an_archive(tmp_path: Path) -> None:
    whole = fake.write_archive(tmp_path / "a.gz", fake.write_tree(tmp_path / "source"))
    (tmp_path / "b.gz").write_bytes(whole.read_bytes()[:-200])
    with pytest.raises(RunError, match=r"no whole archive|no source"):
        unpack(tmp_path / "b.gz", tmp_path / "tree")


@pytest.mark.parametrize("kind", ["xz", "gz", "bz2"])
@pytest.mark.parametrize("by_hand", [False, True])
def test_damaged_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, by_hand: bool
) -> None:
    """Wherever it is damaged: also behind the last file."""
    if by_hand:
        monkeypatch.setattr(shutil, "which", lambda _name: None)
    path = fake.write_archive(tmp_path / f"a.{kind}", fake.write_tree(tmp_path / "source"))
    whole = path.read_bytes()
    for number, place in enumerate((len(whole) // 2, len(whole) - 6)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with pytest.raises(RunError, match="no whole archive"):
            unpack(path, tmp_path / f"tree{number}")


def test_name_with_a_zero(tmp_path: Path) -> None:
    member = tarfile.TarInfo("linux/a")
    member.pax_headers = {"path": "linux/a\0b"}
    path = fake.write_members(tmp_path / "a.gz", [(member, b"x")])
    with pytest.raises(RunError, match=r"a file outside of its folder|no whole archive"):
        unpack(path, tmp_path / "tree")


def test_archive_of_something_else(tmp_path: Path) -> None:
    path = fake.write_members(tmp_path / "a.gz", [(tarfile.TarInfo("other/a.c"), b"x")])
    with pytest.raises(RunError, match="no source of a kernel: it has no Makefile"):
        unpack(path, tmp_path / "tree")


def debian_package(place: Path, packed: str) -> Path:
    """A package with a file at usr/src/PACKED."""
    root = place / "package"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "usr/src").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: linux-source-6.12\nVersion: 1\nArchitecture: all\n"
        "Maintainer: A Test <a@example.org>\nDescription: a test\n"
    )
    fake.write_archive(root / "usr/src" / packed, fake.write_tree(place / "source"))
    subprocess.run(
        ["dpkg-deb", "-b", str(root), str(place / "a.deb")], check=True, capture_output=True
    )
    return place / "a.deb"


needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is missing")


@needs_dpkg
def test_debian_package(tmp_path: Path) -> None:
    package = debian_package(tmp_path, "linux-source-6.12.tar.xz")
    packed = unpack_source.take_out(package, tmp_path)
    assert packed.name == "linux-source-6.12.tar.xz"
    assert "main.c" in unpack(packed, tmp_path / "tree")


def test_debian_package_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(MachineError, match=r"dpkg-deb, .* is missing"):
        unpack_source.take_out(tmp_path / "a.deb", tmp_path)


@needs_dpkg
def test_another_debian_package(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="has no usr/src/linux-source"):
        unpack_source.take_out(debian_package(tmp_path, "other.tar.xz"), tmp_path)


@needs_dpkg
def test_what_is_no_debian_package(tmp_path: Path) -> None:
    (tmp_path / "b.deb").write_bytes(b"none")
    with pytest.raises(RunError):
        unpack_source.take_out(tmp_path / "b.deb", tmp_path)
