"""Gathers the files of the image: interpreter, modules, C programs, shared libraries, launchers.

Input: a Source. Modules are found by their imports (modules.py), shared libraries by what the ELF
files of the image say that they need (elf.py); everything has to be of one architecture.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import runtime
from compiler.plan.format import TOOL_VERSION
from runtime.system.inroot import inside
from tdl import lalr_tables
from tstorm.exit_codes import CANNOT, CommandError
from tstorm.image import archive, elf, modules
from tstorm.image.archive import PROGRAM, Contents
from tstorm.image.elf import Libraries
from tstorm.image.modules import ModuleFolder

# Where the parts of an image come from: this machine, or the root file system of another one.

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


# What is started in the image -> the module that it is.
LAUNCHERS = {"tstorm-agent": "runtime.agent.pod", "tstorm-coordinator": "runtime.job"}
MODULES = (
    *(f"{module}.__main__" for module in (*LAUNCHERS.values(), "runtime.agent")),
    "tstorm.live.reactor",  # which the driver starts, with the compiler
)
# What no import statement names: the interpreter's start, its -m, and codecs.
STARTS = ("encodings", "runpy", "site")
CODECS = ("aliases", "ascii", "idna", "latin_1", "punycode", "utf_8")
# Imported by the standard library for what neither agents nor coordinators do: other
# systems, debuggers, tests and help.
LEFT_OUT = {
    *("_pydecimal", "curses", "distutils", "doctest", "ensurepip", "idlelib", "lib2to3", "pdb"),
    *("pydoc", "readline", "setuptools", "smtplib", "test", "tkinter", "turtle", "venv"),
    *("webbrowser", "xml.dom", "xml.etree", "xml.sax", "xmlrpc"),
    # Files of other tools as parts of a text: they take PyYAML.
    *("tdl.formats.compose", "tdl.formats.json_tree", "tdl.formats.readers"),
    *("tdl.formats.topologies", "tdl.formats.yaml_tree"),
}
# As in tcal_c/sources: program or library -> its folder among the packages.
TABLES = (lalr_tables.GRAMMAR.name, lalr_tables.FILE.name)  # beside the modules of tdl
COMPILED = {
    "pktd": "runtime/bin",
    "tcald": "runtime/bin",
    "tstorm-ns": "runtime/bin",
    "tprobe": "runtime/bin",
    "tstorm-hold": "runtime/bin",
    "libtsroutes.so": "compiler/plan/lib",
    "libtsshare.so": "runtime/agent/lib",
}
_WITH_SOURCE = (
    "compiler.plan.",
    "runtime.",
)  # for tracebacks; of the rest only what runs, which is half
_CACHED = f"{sys.implementation.cache_tag}.pyc"
HOLD = ("/usr/bin/tstorm-hold", "/tstorm/tstorm-hold")  # the second fills a volume of Compose
ENVIRONMENT = {
    "PATH": "/usr/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": PACKAGES,
}
_LAUNCHER = """\
#!/usr/bin/python3 -P
import runpy

runpy.run_module("{module}", run_name="__main__", alter_sys=True)
"""
_ETC = {
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "nsswitch.conf": "hosts: files dns\n",
    "passwd": "root:x:0:0:root:/:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n",
}
_CANCEL = "libgcc_s.so.1"  # needed by no file: glibc loads it when a thread is cancelled


def gather(source: Source) -> Contents:
    """The image's files. Raises CommandError if something is missing or fits nothing else, and
    OSError."""
    contents = Contents()
    programs = [source.python, *_add_modules(contents, source), *_add_compiled(contents, source)]
    contents.add("/usr/bin/python3", source.python.read_bytes(), PROGRAM)
    _add_tables(contents, source)
    _add_libraries(contents, source, programs)
    for name, module in LAUNCHERS.items():
        contents.add(f"/usr/bin/{name}", _LAUNCHER.format(module=module).encode(), PROGRAM)
    for name, text in _ETC.items():
        contents.add(f"/etc/{name}", text.encode())
    for path in ("/dev", "/proc", "/run", "/sys"):
        contents.directory(path)
    contents.directory("/tmp", 0o1777)
    return contents


def _add_modules(contents: Contents, source: Source) -> Iterator[Path]:
    """Those that are compiled C are ELF files, which it yields."""
    names = (*MODULES, *STARTS, *(f"encodings.{codec}" for codec in CODECS))
    found = modules.find(source.folders, names, LEFT_OUT)
    for name in names:
        if name not in found:
            raise CommandError(f"error: the Python module {name} is missing", CANNOT)
    for name, module in found.items():
        if not module.compiled:
            contents.add(module.path, module.data, PROGRAM)
            yield module.place
        elif f"{name}.".startswith(_WITH_SOURCE):
            folder, _, file = module.path.rpartition("/")
            cached = f"{folder}/__pycache__/{file.removesuffix('.py')}.{_CACHED}"
            contents.add(module.path, module.data)
            contents.add(cached, module.compiled)
        else:
            contents.add(f"{module.path}c", module.compiled)


def _add_tables(contents: Contents, source: Source) -> None:
    """What the language is read by: without these its parser is made anew, which takes Lark."""
    for name in TABLES:
        data = (source.packages / "tdl" / name).read_bytes()
        contents.add(f"{PACKAGES}/tdl/{name}", data)


def _add_compiled(contents: Contents, source: Source) -> Iterator[Path]:
    for name, folder in COMPILED.items():
        place = _built(source.packages, folder, name)
        path = f"{PACKAGES}/{folder}/{name}"
        if name == "tstorm-hold":
            for other in HOLD:
                contents.add(other, place.read_bytes(), PROGRAM)
            contents.link(path, HOLD[0])
        else:
            contents.add(path, place.read_bytes(), PROGRAM)
        yield place


def _built(packages: Path, folder: str, name: str) -> Path:
    for place in (packages / folder / name, packages / "tcal_c/build" / name):
        if place.is_file():
            return place
    why = "; it is built where there is a static C library" if name == "tstorm-hold" else ""
    raise CommandError(
        f"error: {name} is missing in {packages / folder}{why}\n"
        "hint: run `make` in the source tree, or install the package again with a C compiler "
        "present (Debian: libc6-dev, Fedora: glibc-static)",
        CANNOT,
    )


def _add_libraries(contents: Contents, source: Source, programs: list[Path]) -> None:
    """All beside the C library, from whatever folder they are here."""
    libraries = Libraries(source.root, source.architecture)
    libraries.add_needs(programs)
    if "libc.so.6" in libraries.found:
        libraries.add_needs([libraries.add(_CANCEL, source.python)])
    loader = inside(source.root, libraries.loader)
    if loader is None:
        raise CommandError(
            f"error: {libraries.loader}, which starts {source.python}, is missing", CANNOT
        )
    contents.add(libraries.loader, loader.read_bytes(), PROGRAM)
    for name, place in libraries.found.items():
        if name != Path(libraries.loader).name:
            contents.add(f"{libraries.folder}/{name}", place.read_bytes(), PROGRAM)


# Builds the image of agent and coordinator: what `tstorm image build` does.

CONFIG = {
    "Entrypoint": ["/usr/bin/tstorm-agent"],
    "Env": [f"{key}={value}" for key, value in sorted(ENVIRONMENT.items())],
    "Labels": {
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.title": "thunderstorm",
        "org.opencontainers.image.version": TOOL_VERSION,
    },
}


@dataclass(frozen=True, slots=True)
class Built:
    architecture: str
    digest: str  # of the image's manifest; '' of files without an archive
    files: int
    size_bytes: int  # unpacked


def build(out: Path, name: str, architecture: str, root: Path | None, unpacked: bool) -> Built:
    """Writes the archive `out`, or the files into the folder `out`. `architecture`: '' for the one
    that is found; `root`: None for this machine. Raises CommandError, OSError."""
    found = this_machine() if root is None else other_root(root)
    if architecture and architecture != found.architecture:
        raise _other_architecture(architecture, found.architecture, root)
    contents = gather(found)
    digest = ""
    if unpacked:
        contents.write(out)
    else:
        digest = archive.write(out, name, found.architecture, contents, CONFIG)
    return Built(found.architecture, digest, len(contents.listed()), contents.size_bytes)


def _other_architecture(asked: str, found: str, root: Path | None) -> CommandError:
    whose = "this machine's programs are" if root is None else f"the programs in {root} are"
    return CommandError(
        f"error: {whose} for {found}, not {asked}: nothing is compiled for another architecture\n"
        f"hint: run this command on a machine with {asked}, or give a root file system of one, "
        f"with Python and Thunderstorm installed in it: --arch {asked} --root DIR",
        CANNOT,
    )
