"""What is read from ELF files, against what the loader does with them."""

from __future__ import annotations

import _ctypes
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.support import BUILT
from tstorm.exit_codes import CommandError
from tstorm.image import elf
from tstorm.image.elf import Libraries

PYTHON = Path(sys.executable).resolve()


def loaded(place: Path) -> set[str]:
    """Names of the libraries that the loader would load."""
    done = subprocess.run(["ldd", place], capture_output=True, text=True, check=True)
    return set(re.findall(r"(\S+) => /", done.stdout))


@pytest.mark.parametrize("place", [PYTHON, Path(_ctypes.__file__)])
def test_libraries_are_those_that_the_loader_loads(place: Path) -> None:
    file = elf.read(place.read_bytes())
    libraries = Libraries(Path("/"), file.architecture)
    libraries.add_needs([place])
    assert set(libraries.found) - {Path(libraries.loader).name} == loaded(place)
    assert Path(libraries.loader).exists() or place.suffix == ".so"


@pytest.mark.parametrize("name", ["pktd", "tstorm-hold", "libtsroutes.so"])
def test_what_is_built_here_needs_nothing(name: str) -> None:
    file = elf.read((BUILT / name).read_bytes())
    assert (file.loader, file.needed, file.search) == ("", (), ())


def test_an_architecture_without_images_is_named() -> None:
    data = bytearray(PYTHON.read_bytes())
    data[18:20] = struct.pack("<H", 243)  # EM_RISCV
    assert elf.read(bytes(data)).architecture == "machine 243"


@pytest.mark.parametrize("length", [0, 5, 40, 63, 64, 200, 1000])
def test_what_is_cut_short_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=r"no ELF file|cut short|no segment|no end"):
        elf.read(PYTHON.read_bytes()[:length])


def test_a_file_of_another_architecture_is_refused(tmp_path: Path) -> None:
    data = bytearray((BUILT / "pktd").read_bytes())
    data[18:20] = struct.pack("<H", 183)  # EM_AARCH64
    (tmp_path / "pktd").write_bytes(data)
    with pytest.raises(CommandError, match="pktd is for arm64, not amd64"):
        Libraries(Path("/"), "amd64").add_needs([tmp_path / "pktd"])


def test_a_missing_library_is_named_with_its_user(tmp_path: Path) -> None:
    data = PYTHON.read_bytes().replace(b"libc.so.6\0", b"libX.so.6\0")
    (tmp_path / "python").write_bytes(data)
    architecture = elf.read(data).architecture
    with pytest.raises(CommandError, match=r"libX.so.6, which .*/python needs, is missing"):
        Libraries(Path("/"), architecture).add_needs([tmp_path / "python"])
