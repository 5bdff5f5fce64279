"""Compiles the C programs and the C libraries into the wheel. All else is in pyproject.toml.

Input: tcal_c/sources, which says what each of them is made of and where it goes, as the Makefile
there reads it too. Only a C compiler is needed, not make. An editable install compiles nothing:
there all of it comes from `make` (tcal_c/build).

The wheel is for any Python 3. Programs are static, and libraries name no other one, so it is for
any C library too, and its tags say so: old and new glibc (manylinux) and musl (musllinux). Where
there is no static C library it is for this machine.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-s", "-I", "tcal_c"]
# As in tcal_c/Makefile, with the reasons.
LIBRARY_FLAGS = [
    "-O3",
    "-fno-math-errno",
    "-fPIC",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
    "-fvisibility=hidden",
    "-shared",
    "-nostdlib",
]
STATIC_FLAGS = (["-static", "-Wl,--no-warnings"], ["-static"])  # the first that links
STATIC_ONLY = {"tstorm-hold"}  # it runs in any image
# The oldest that pip of Python 3.11 looks for; of the C library nothing is asked (test_packaging).
ANY_LIBC = ("manylinux_2_17", "manylinux2014", "musllinux_1_1")


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


def read_sources() -> dict[str, tuple[Path, list[str]]]:
    """Name of each program and library in the wheel -> its folder there, its sources from ROOT."""
    table = {}
    for line in (ROOT / "tcal_c" / "sources").read_text(encoding="utf-8").splitlines():
        name, folder, *parts = line.split()
        if name != "#" and (name not in STATIC_ONLY or static_flags()):
            paths = [ROOT / "tcal_c" / part for part in parts]
            found = [p for path in paths for p in ([path] if path.suffix else path.glob("*.c"))]
            table[name] = Path(folder), sorted(str(p.relative_to(ROOT)) for p in found)
    return table


@functools.cache
def static_flags() -> list[str]:
    """With which a static program is linked. [] where none can be: then what is STATIC_ONLY is left
    out, and said: only images need it."""
    source = b"int main(void) { return 0; }"
    for flags in STATIC_FLAGS:
        command = [*find_compiler(), *flags, "-x", "c", "-o", os.devnull, "-"]
        if not subprocess.run(command, input=source, capture_output=True, check=False).returncode:
            return flags
    why = "no static C library (Debian: libc6-dev, Fedora: glibc-static)"
    print(f"note: {', '.join(STATIC_ONLY)} is left out, and the wheel is for this machine: {why}")
    return []


def compile_program(name: str, sources: list[str], folder: Path, version: str) -> None:
    """Compiles the sources into FOLDER/NAME."""
    if not all((ROOT / source).is_file() for source in sources) or not sources:
        sys.exit(
            f"error: no C sources for {name} in tcal_c: this copy of the project is incomplete"
        )
    folder.mkdir(parents=True, exist_ok=True)
    extra = shlex.split(os.environ.get("CFLAGS", "")), shlex.split(os.environ.get("LDFLAGS", ""))
    output = ["-o", str(folder / name)]
    is_library = name.endswith(".so")
    # Unoptimized, a library would call sqrt(), which not every process has.
    flags = [*FLAGS, *extra[0], *(LIBRARY_FLAGS if is_library else static_flags())]
    libraries = ["-lgcc"] if is_library else ["-Wl,--as-needed", "-pthread", "-lm"]
    defined = f'-DVERSION="{version}"'
    command = [*find_compiler(), *flags, defined, *output, *sources, *extra[1], *libraries]
    print(shlex.join(command), flush=True)
    subprocess.run(command, cwd=ROOT, check=True)


class BuildWithPrograms(build_py):
    """build_py that also puts what is compiled beside the package that uses it."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        # What an earlier build left there (a module since removed) must not get into the wheel.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not sys.platform.startswith("linux"):
            sys.exit("error: Thunderstorm runs on Linux only")
        version = self.distribution.get_version()
        with ThreadPoolExecutor(os.cpu_count()) as compilers:
            waited_for = [
                compilers.submit(
                    compile_program, name, sources, Path(self.build_lib) / folder, version
                )
                for name, (folder, sources) in read_sources().items()
            ]
        for compiled in waited_for:
            compiled.result()

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        outputs = super().get_outputs(include_bytecode)
        if self.editable_mode:
            return outputs
        root = Path(self.build_lib)
        return outputs + [str(root / folder / name) for name, (folder, _) in read_sources().items()]


class PlatformWheel(bdist_wheel):
    """Any Python 3, this processor: the programs are native, the Python code is not."""

    def get_tag(self) -> tuple[str, str, str]:
        platform = super().get_tag()[2]
        if static_flags():
            processor = platform.removeprefix("linux_")
            platform = ".".join(f"{libc}_{processor}" for libc in ANY_LIBC)
        return ("py3", "none", platform)


class NativeDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(
    cmdclass={"build_py": BuildWithPrograms, "bdist_wheel": PlatformWheel},
    distclass=NativeDistribution,
)
