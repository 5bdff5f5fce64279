"""Finding a source: what the user names, what is installed, what apt knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.errors import MachineError, RunError
from runtime.virtual.kernel import kernel_source
from tests.virtual.kernel import fake


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the only programs that there are."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_newest_that_is_installed(tmp_path: Path) -> None:
    for name in ("6.1.tar.xz", "6.9.tar.xz", "6.12.tar.xz", "6.12.patch.xz", "7.2.tar.xz"):
        (tmp_path / f"linux-source-{name}").touch()
    found = kernel_source.installed(tmp_path)
    assert found is not None
    assert found.path.name == "linux-source-6.12.tar.xz"


def test_only_old_ones_are_installed(tmp_path: Path) -> None:
    (tmp_path / "linux-source-6.1.tar.xz").touch()
    assert kernel_source.installed(tmp_path) is None


def test_newest_that_apt_knows(programs: Path) -> None:
    script(programs, "apt-get", "")
    script(
        programs,
        "apt-cache",
        "for one in 6.1 6.12 7.2 6.9 x; do echo linux-source-$one; done",
    )
    assert kernel_source.packaged() == "linux-source-6.12"


@pytest.mark.parametrize("known", ["", "linux-source-6.1", "linux-source-7.2"])
def test_apt_knows_none(programs: Path, known: str) -> None:
    script(programs, "apt-get", "")
    script(programs, "apt-cache", f"echo {known}")
    assert kernel_source.packaged() is None


def test_no_apt(programs: Path) -> None:
    assert kernel_source.packaged() is None


def test_package_is_fetched(programs: Path, tmp_path: Path) -> None:
    """One of a build that did not end is not taken for it, though its name comes first."""
    (tmp_path / "linux-source-6.12_6.12.0-1_all.deb").touch()
    script(programs, "apt-get", ': > "${3}_6.12.1-1_all.deb"')
    fetched = kernel_source.fetch("linux-source-6.12", tmp_path)
    assert fetched.path == tmp_path / "linux-source-6.12_6.12.1-1_all.deb"


def test_package_that_cannot_be_fetched(programs: Path, tmp_path: Path) -> None:
    script(programs, "apt-get", "echo 'E: no network' >&2; exit 100")
    with pytest.raises(MachineError, match="E: no network") as caught:
        kernel_source.fetch("linux-source-6.12", tmp_path)
    assert "--source" in caught.value.remedy


def test_nowhere_says_what_to_name() -> None:
    assert "kernel.org" in kernel_source.nowhere().remedy
    assert "tstorm kernel build --source" in kernel_source.nowhere().remedy


def test_version_is_in_the_makefile(tmp_path: Path) -> None:
    assert kernel_source.version_of(fake.write_tree(tmp_path, (7, 3))) == (7, 3, 7)


@pytest.mark.parametrize("text", ["", "VERSION = 6\nPATCHLEVEL = 12\n", "all:\n\techo\n"])
def test_makefile_without_a_version(tmp_path: Path, text: str) -> None:
    (tmp_path / "Makefile").write_text(text)
    with pytest.raises(RunError, match="its Makefile has no version"):
        kernel_source.version_of(tmp_path)


def test_old_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"is Linux 6\.5\.7: 6\.6 or newer is needed"):
        kernel_source.given(fake.write_tree(tmp_path, (6, 5)))


def test_oldest_is_taken(tmp_path: Path) -> None:
    assert kernel_source.given(fake.write_tree(tmp_path, (6, 6))).path == tmp_path


def test_folder_that_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no source tree of Linux"):
        kernel_source.given(tmp_path)


def test_nothing_is_there(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such archive or folder"):
        kernel_source.given(tmp_path / "none.tar.xz")


def test_digest_of_a_folder_is_of_what_is_taken(tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    found = kernel_source.given(tree)
    before = found.digest()
    (tree / "main.o").touch()
    (tree / "drivers/net/ethernet/big.c").write_text("another text\n")
    (tree / ".git").mkdir()
    (tree / ".git/Makefile").touch()
    assert found.digest() == before
    (tree / "main.c").write_text("another text\n")
    assert found.digest() != before


def test_folder_is_copied_without_what_was_built(tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    for name in ("main.o", ".config", "vmlinux", ".main.o.cmd", "vmlinux.lds.S"):
        (tree / name).touch()
    (tree / "include/generated").mkdir(parents=True)
    (tree / "include/generated/autoconf.h").touch()
    copy = tmp_path / "copy"
    copy.mkdir()
    kernel_source.given(tree).unpack(copy, lambda _text: None)
    taken = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    assert taken == {
        "Makefile",
        "main.c",
        "vmlinux.lds.S",
        "arch/um/Kconfig",
        "arch/arm/Kconfig",
        "drivers/net/tun.c",
        "drivers/net/ethernet/Makefile",
    }
