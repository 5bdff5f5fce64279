"""Where the parts of an image come from: this machine, or the root file system of another one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import runtime
from runtime.system.inroot import inside
from tstorm.exit_codes import CANNOT, CommandError
from tstorm.image import elf
from tstorm.image.modules import ModuleFolder

PACKAGES = "/usr/lib/thunderstorm"  # in the image
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Source:
    root: Path  # of the libraries
    python: Path
    standard: tuple[ModuleFolder, ...]  # folders of the standard library
    packages: Path  # the folder with runtime, compiler …

    @property
    def architecture(self) -> str:
        return elf.read_file(self.python).architecture

    @property
    def folders(self) -> list[ModuleFolder]:
        return [ModuleFolder(self.packages, PACKAGES), *self.standard]


def this_machine() -> Source:
    """The interpreter that runs this command, with what is installed for it."""
    standard = Path(os.__file__).resolve().parent
    compiled = Path(sys.base_exec_prefix) / sys.platlibdir / f"python{_VERSION}/lib-dynload"
    python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    return Source(
        Path("/"),
        python,
        _standard(standard, compiled, sys.platlibdir),
        Path(runtime.__file__).resolve().parents[1],
    )


def other_root(root: Path) -> Source:
    """A root file system with Python and Thunderstorm installed. Raises CommandError if not."""
    python = _first(root, ("usr/local/bin/python3", "usr/bin/python3"))
    if python is None:
        raise _incomplete(root, "no python3 in /usr/local/bin and /usr/bin")
    version = re.search(r"python(\d+\.\d+)$", python.name)
    if version is None or version[1] != _VERSION:
        raise CommandError(
            f"error: {python} is not Python {_VERSION}, which runs this command\n"
            f"hint: the modules are compiled by this Python: run tstorm with that of {root}",
            CANNOT,
        )
    library = f"python{_VERSION}"
    standard = _first(root, (f"usr/{lib}/{library}" for lib in ("local/lib", "lib64", "lib")))
    if standard is None or not (standard / "os.py").is_file():
        raise _incomplete(root, f"no standard library of Python {_VERSION}")
    installed = (
        *(f"usr/{lib}/{library}/site-packages" for lib in ("local/lib", "lib64", "lib")),
        f"usr/local/lib/{library}/dist-packages",
        "usr/lib/python3/dist-packages",
        PACKAGES.lstrip("/"),
    )
    packages = _first(root, (f"{folder}/runtime/bin/pktd" for folder in installed))
    if packages is None:
        raise _incomplete(root, f"no thunderstorm in {', '.join(f'/{name}' for name in installed)}")
    platlib = standard.parent.name
    folders = _standard(standard, standard / "lib-dynload", platlib)
    return Source(root, python, folders, packages.parents[2])


def _incomplete(root: Path, what: str) -> CommandError:
    return CommandError(
        f"error: {root} has {what}\n"
        f"hint: install Python {_VERSION} and Thunderstorm (pip install) in it, as one does in a "
        "Dockerfile, on a machine of its architecture or with emulation",
        CANNOT,
    )


def _standard(modules: Path, compiled: Path, platlib: str) -> tuple[ModuleFolder, ...]:
    there = f"/usr/{platlib}/python{_VERSION}"
    return ModuleFolder(modules, there), ModuleFolder(compiled, f"{there}/lib-dynload")


def _first(root: Path, paths: Iterable[str]) -> Path | None:
    found = (inside(root, path) for path in paths)
    return next((path for path in found if path is not None), None)
