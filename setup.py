"""Compiles the C programs and the C libraries into the wheel. All else is in pyproject.toml.

Input: the C sources under tcal_c. Output: runtime/bin/{pktd,tcald,tstorm-ns,tprobe},
compiler/plan/lib/libtsroutes.so and runtime/agent/lib/libtsshare.so in the wheel, which is tagged
for this platform but for any Python 3. Only a C compiler is needed, not make. An editable install
compiles nothing: there all of it comes from `make` (tcal_c/build).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
# Name -> the folders (and single files) under tcal_c with its sources.
PROGRAMS = {
    "pktd": ["pktd"],
    "tcald": ["tcal", "pktd/addr.c", "pktd/text.c", "pktd/words.c"],
    "tstorm-ns": ["ns", "common"],
    "tprobe": ["probe"],
}
LIBRARIES = {"libtsroutes.so": ["routes"], "libtsshare.so": ["share"]}
# Name of a library -> the package that loads it.
USERS = {"libtsroutes.so": "compiler/plan", "libtsshare.so": "runtime/agent"}
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-s"]
# As in tcal_c/routes/rules.mk.
LIBRARY_FLAGS = ["-O3", "-fno-math-errno", "-fPIC", "-shared", "-fvisibility=hidden"]


def find_compiler() -> list[str]:
    """$CC, or the first of cc, gcc and clang. Exits with what to install when there is none."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    sys.exit(
        "error: building needs a C compiler, and cc, gcc and clang are all missing\n"
        "hint: on Debian: apt-get install gcc libc6-dev; or set CC"
    )


def program_sources(folders: list[str]) -> list[str]:
    """The sources in the folders, from the root. A test holds them equal to the Makefile's."""
    parts = [ROOT / "tcal_c" / part for part in folders]
    found = (p for part in parts for p in ([part] if part.suffix else part.glob("*.c")))
    return sorted(str(p.relative_to(ROOT)) for p in found if not p.name.startswith("test_"))


def compile_program(name: str, folders: list[str], target: Path, version: str) -> None:
    """Compiles every .c file of the folders under tcal_c but their tests into TARGET/NAME."""
    sources = program_sources(folders)
    if not sources:
        sys.exit(
            f"error: no C sources for {name} in tcal_c: this copy of the project is incomplete"
        )
    target.mkdir(parents=True, exist_ok=True)
    extra = shlex.split(os.environ.get("CFLAGS", "")), shlex.split(os.environ.get("LDFLAGS", ""))
    output = ["-o", str(target / name)]
    kind = LIBRARY_FLAGS if name in LIBRARIES else []
    versions = [f'-D{who}_VERSION="{version}"' for who in ("PKTD", "TCALD")]
    flags = [*FLAGS, *kind, *versions, *extra[0]]
    command = [*find_compiler(), *flags, *output, *sources, *extra[1], "-pthread", "-lm"]
    print(shlex.join(command), flush=True)
    subprocess.run(command, cwd=ROOT, check=True)


class BuildWithPrograms(build_py):
    """build_py that also puts what is compiled beside the package that uses it."""

    def _targets(self) -> dict[str, tuple[list[str], Path]]:
        """Name of each program and library -> its folders under tcal_c, and where it goes."""
        root = Path(self.build_lib)
        programs = {name: (parts, root / "runtime" / "bin") for name, parts in PROGRAMS.items()}
        return programs | {
            name: (parts, root / USERS[name] / "lib") for name, parts in LIBRARIES.items()
        }

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        # What an earlier build left there (a module since removed) must not get into the wheel.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not sys.platform.startswith("linux"):
            sys.exit("error: Thunderstorm runs on Linux only")
        for name, (folders, target) in self._targets().items():
            compile_program(name, folders, target, self.distribution.get_version())

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        outputs = super().get_outputs(include_bytecode)
        if self.editable_mode:
            return outputs
        made = (str(target / name) for name, (_, target) in self._targets().items())
        return [*outputs, *made]


class PlatformWheel(bdist_wheel):
    """Any Python 3, this platform: the programs are native, the Python code is not."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


class NativeDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(
    cmdclass={"build_py": BuildWithPrograms, "bdist_wheel": PlatformWheel},
    distclass=NativeDistribution,
)
