"""An image from another root file system, as one for another architecture is made."""

from __future__ import annotations

import shutil
import struct
import sys
from pathlib import Path

import pytest

from runtime.system.inroot import inside
from tdl import lalr_tables
from tests.image.support import BUILT
from tstorm.exit_codes import CommandError
from tstorm.image import modules, rootfs
from tstorm.image.elf import Libraries

LIBRARY = f"python3.{sys.version_info.minor}"


def copy(place: Path, root: Path, path: str) -> None:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(place, target)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is installed here, copied to where Debian's packages and pip would have put it."""
    root = tmp_path_factory.mktemp("root")
    here = rootfs.this_machine()
    copy(here.python, root, f"usr/bin/{LIBRARY}")
    (root / "usr/bin/python3").symlink_to(f"/usr/bin/{LIBRARY}")
    names = [*rootfs.MODULES, *rootfs.STARTS, *(f"encodings.{name}" for name in rootfs.CODECS)]
    found = modules.find(here.folders, names, rootfs.LEFT_OUT)
    for module in found.values():
        path = module.path.replace(rootfs.PACKAGES, f"/usr/lib/{LIBRARY}/site-packages")
        copy(module.place, root, path)
    for name in rootfs.TABLES:
        copy(lalr_tables.FILE.with_name(name), root, f"/usr/lib/{LIBRARY}/site-packages/tdl/{name}")
    for name, folder in rootfs.COMPILED.items():
        copy(BUILT / name, root, f"/usr/lib/{LIBRARY}/site-packages/{folder}/{name}")
    libraries = Libraries(Path("/"), here.architecture)
    programs = [module.place for module in found.values() if not module.compiled]
    libraries.add_needs([here.python, *programs, BUILT / "pktd"])
    libraries.add_needs([libraries.add("libgcc_s.so.1", here.python)])
    for name, place in libraries.found.items():
        copy(place, root, f"{libraries.folder}/{name}")
    copy(Path(libraries.loader), root, libraries.loader)
    return root


def test_the_same_parts_make_the_same_image(root: Path) -> None:
    found = rootfs.other_root(root)
    assert found.python == root / f"usr/bin/{LIBRARY}"
    other, here = rootfs.gather(found).listed(), rootfs.gather(rootfs.this_machine()).listed()
    assert other == here


def test_nothing_is_taken_from_this_machine(root: Path) -> None:
    found = rootfs.other_root(root)
    assert all(folder.here.is_relative_to(root) for folder in found.folders)


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        ("usr/bin/python3", "no python3"),
        (f"usr/lib/{LIBRARY}/os.py", "no standard library"),
        (f"usr/lib/{LIBRARY}/site-packages/runtime/bin/pktd", "no thunderstorm"),
    ],
)
def test_what_is_missing_is_named(root: Path, gone: str, words: str) -> None:
    (root / gone).rename(root / "away")
    try:
        with pytest.raises(CommandError, match=words):
            rootfs.other_root(root)
    finally:
        (root / "away").rename(root / gone)


def test_a_program_of_another_architecture_is_refused(root: Path) -> None:
    place = root / f"usr/lib/{LIBRARY}/site-packages/runtime/bin/pktd"
    data = place.read_bytes()
    place.write_bytes(data[:18] + struct.pack("<H", 183) + data[20:])  # EM_AARCH64
    try:
        with pytest.raises(CommandError, match="pktd is for arm64, not amd64"):
            rootfs.gather(rootfs.other_root(root))
    finally:
        place.write_bytes(data)


def test_links_do_not_lead_out_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/here").write_text("")
    (tmp_path / "outside").write_text("")
    (tmp_path / "root/up").symlink_to("../../outside")
    (tmp_path / "root/absolute").symlink_to("/etc/here")
    (tmp_path / "root/round").symlink_to("round")
    assert inside(tmp_path / "root", "up") is None
    assert inside(tmp_path / "root", "round") is None
    assert inside(tmp_path / "root", "/absolute") == tmp_path / "root/etc/here"
    assert inside(tmp_path / "root", "../../etc/here") == tmp_path / "root/etc/here"
