"""Our changes to the kernel: their digest, the sections of `config`, conditions of patches."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.errors import RunError
from runtime.virtual.kernel import kernel_changes
from tests.virtual.kernel import fake


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernel_changes, "DATA", fake.write_data(tmp_path / "data"))
    return kernel_changes.DATA


@pytest.mark.parametrize(
    "name", ["config", "patches/series", "patches/0001-change.patch", "added/arch/um/own/own.c"]
)
def test_every_file_counts_in_the_digest(data: Path, name: str) -> None:
    before = kernel_changes.digest()
    assert kernel_changes.digest() == before
    with (data / name).open("a") as file:
        file.write("# more\n")
    assert kernel_changes.digest() != before


def test_path_of_an_added_file_counts(data: Path) -> None:
    before = kernel_changes.digest()
    (data / "added/arch/um/own/own.c").rename(data / "added/arch/um/own/other.c")
    assert kernel_changes.digest() != before


def test_sections_are_told_apart() -> None:
    for section in (kernel_changes.NEEDED, kernel_changes.WANTED, kernel_changes.OLDER):
        assert kernel_changes.config_lines(section)
    assert "# CONFIG_MCONSOLE is not set" in kernel_changes.config_lines(kernel_changes.NEEDED)
    assert "CONFIG_UML_TIME_TRAVEL_SUPPORT=y" in kernel_changes.config_lines(kernel_changes.NEEDED)
    assert "CONFIG_NF_TABLES=y" in kernel_changes.config_lines(kernel_changes.WANTED)


def test_no_option_stands_twice() -> None:
    sections = (kernel_changes.NEEDED, kernel_changes.WANTED, kernel_changes.OLDER)
    lines = [line for section in sections for line in kernel_changes.config_lines(section)]
    assert len(lines) == len(set(lines))
    written = (kernel_changes.DATA / "config").read_text().splitlines()
    options = [line for line in written if "CONFIG_" in line and "make" not in line]
    assert sorted(options) == sorted(lines)  # none is above the first section


def test_what_is_not_followed_is_named(data: Path) -> None:
    followed = "CONFIG_ONE=y\nCONFIG_TWO=y\n"
    assert kernel_changes.not_followed(kernel_changes.NEEDED, followed) == []
    assert kernel_changes.not_followed(kernel_changes.NEEDED, "CONFIG_TWO=y\n") == ["CONFIG_ONE=y"]
    switched_on = followed + "CONFIG_MCONSOLE=y\n"
    assert kernel_changes.not_followed(kernel_changes.NEEDED, switched_on) == ["CONFIG_MCONSOLE"]


def test_kernel_tells_its_changes(data: Path) -> None:
    assert kernel_changes.of_config(kernel_changes.whole_config()) == kernel_changes.digest()
    assert kernel_changes.of_config('CONFIG_BUILD_SALT=""\n') == ""


@pytest.mark.parametrize(
    ("condition", "version", "fits"),
    [
        ("", (6, 6), True),
        ("<6.13", (6, 12), True),
        ("<6.13", (6, 13), False),
        (">=6.13", (6, 12), False),
        (">=6.13", (7, 0), True),
    ],
)
def test_condition_on_the_version(condition: str, version: tuple[int, int], fits: bool) -> None:
    assert kernel_changes.Patch(Path("a.patch"), condition).fits(version) is fits


def test_series_with_a_condition_that_is_none(data: Path) -> None:
    (data / "patches/series").write_text("0001-change.patch >6.13\n")
    with pytest.raises(RunError, match="no condition on a version"):
        kernel_changes.series()[0].fits((6, 12))


def test_series_that_names_no_patch(data: Path) -> None:
    (data / "patches/series").write_text("# text\n0009-none.patch\n")
    with pytest.raises(RunError, match=r"no such patch: 0009-none\.patch"):
        kernel_changes.series()


def test_changes_are_made(data: Path, tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    kernel_changes.apply(tree, (6, 12))
    assert [one.path.name for one in kernel_changes.fitting((6, 12))] == ["0001-change.patch"]
    assert "/* changed */" in (tree / "main.c").read_text()
    assert (tree / "arch/um/own/own.c").read_text() == "int own;\n"


def test_patch_for_another_version_is_left_out(data: Path, tmp_path: Path) -> None:
    (data / "patches/series").write_text("0001-change.patch <6.12\n")
    tree = fake.write_tree(tmp_path / "tree")
    kernel_changes.apply(tree, (6, 12))
    assert kernel_changes.fitting((6, 12)) == []
    assert "/* changed */" not in (tree / "main.c").read_text()


def test_patch_that_does_not_fit_is_named(data: Path, tmp_path: Path) -> None:
    tree = fake.write_tree(tmp_path / "tree")
    (tree / "main.c").write_text("another file\n")
    with pytest.raises(RunError, match=r"0001-change\.patch does not fit .* Linux 6\.12"):
        kernel_changes.apply(tree, (6, 12))


def test_all_of_the_series_is_there() -> None:
    names = {patch.path.name for patch in kernel_changes.series()}
    assert names == {path.name for path in (kernel_changes.DATA / "patches").glob("*.patch")}
