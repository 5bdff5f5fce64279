"""`pip install`: the sdist is complete, the wheel carries the programs and works elsewhere."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from compiler.plan.format import TOOL_VERSION
from runtime.virtual.kernel import kernel_changes
from tests.cli.process import ended
from tstorm.image import elf

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ["pktd", "tcald", "tstorm-hold", "tstorm-ns", "tprobe"]
USERS = {"libtsroutes.so": "compiler/plan", "libtsshare.so": "runtime/agent"}
LOADERS = {
    "libtsroutes.so": "compiler.plan.routes.tsroutes",
    "libtsshare.so": "runtime.agent.share.tsshare",
}
# What libraries may ask of the process that loads them: since ever in glibc and in musl.
OF_EVERY_C_LIBRARY = {
    "__errno_location",
    "calloc",
    "free",
    "malloc",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "qsort",
    "realloc",
}
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "runs", "bin", "lib"
)


def run(argv: list[str], cwd: Path, **environment: str) -> str:
    done = ended(
        argv,
        cwd=cwd,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(cwd), **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


HOOK = "from setuptools import build_meta; build_meta.build_{}({!r})"  # what pip calls
# A compiler that compiles two of them, and for the others hands over what make has built already.
COMPILED = ("tstorm-ns", "libtsshare.so")
COMPILER = f"""\
#!/bin/sh
printf '%s\\n' "$*" >>'LOG'
for word; do
    if [ "$last" = -o ]; then built={ROOT}/tcal_c/build/${{word##*/}} out=$word; fi
    last=$word
done
case $out in *{" | *".join(f"/{name}" for name in COMPILED)}) built= ;; esac
if [ -f "$built" ]; then exec strip -o "$out" "$built"; fi
exec cc "$@"
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a line has what the compiler was asked each time."""
    return tmp_path_factory.mktemp("compiler") / "log"


@pytest.fixture(scope="module")
def wheel(compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from an sdist built from a copy of this tree, by the hooks that pip calls."""
    place = tmp_path_factory.mktemp("packaging")
    shutil.copytree(ROOT, place / "tree", ignore=NOT_COPIED)
    run([sys.executable, "-c", HOOK.format("sdist", "..")], place / "tree")
    (sdist,) = place.glob("*.tar.gz")
    run(["tar", "-xzf", str(sdist)], place)
    compiler = compiled.with_name("cc")
    compiler.write_text(COMPILER.replace("LOG", str(compiled)), encoding="utf-8")
    compiler.chmod(0o755)
    unpacked = place / sdist.name.removesuffix(".tar.gz")
    hook = [sys.executable, "-c", HOOK.format("wheel", "..")]
    run(hook, unpacked, CC=str(compiler), CFLAGS="-O0")
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    quickly = ("--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check")
    run(
        [sys.executable, "-m", "pip", "install", "-q", *quickly, "--target", ".", str(wheel)],
        target,
    )
    return target


def test_the_wheel_fits_any_python_3_and_any_c_library(wheel: Path) -> None:
    tags = r"manylinux_2_17_(\w+)\.manylinux2014_\1\.musllinux_1_1_\1"
    assert re.fullmatch(rf"tstorm-[\d.]+-py3-none-{tags}\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"runtime/bin/{name}" for name in PROGRAMS} <= set(names)
    assert {f"{USERS[name]}/lib/{name}" for name in USERS} <= set(names)
    assert {"tdl/grammar.lark", "tdl/lalr_tables.json"} <= set(names)
    templates = {str(path.relative_to(ROOT)) for path in (ROOT / "manifests").rglob("*.j2")}
    assert templates
    assert templates <= set(names)
    web = ROOT / "runtime/page/web"
    assert {str(path.relative_to(ROOT)) for path in web.rglob("*.*")} <= set(names)
    strays = [name for name in names if name.startswith(("tests/", "bench/", "examples/"))]
    assert strays == []


def test_the_sdist_has_what_tests_and_docs_need(wheel: Path) -> None:
    (sdist,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "Makefile",
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "tcal_c/Makefile",
        "tcal_c/sources",
        "tcal_c/routes/tsroutes.h",
        "docs/plan.md",
        "examples/listing1.tdl",
        "tests/conftest.py",
        ".ci/run",
    } <= names
    of_c = [path for path in (ROOT / "tcal_c").rglob("*.[ch]") if "build" not in path.parts]
    assert {str(path.relative_to(ROOT)) for path in of_c} <= names
    built = ("tcal_c/build/", "runtime/bin/", *(f"{user}/lib/" for user in USERS.values()))
    assert not [name for name in names if name.startswith(built)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_needs_no_library_and_no_loader(name: str, installed: Path) -> None:
    file = elf.read_file(installed / "runtime/bin" / name)
    assert (file.loader, file.needed) == ("", ())


@pytest.mark.parametrize("name", sorted(USERS))
def test_a_library_needs_what_every_c_library_has(name: str, installed: Path) -> None:
    place = installed / USERS[name] / "lib" / name
    assert elf.read_file(place).needed == ()
    asked = run(["nm", "--dynamic", "--undefined-only", str(place)], installed).split()
    assert set(asked) - {"U"} <= OF_EVERY_C_LIBRARY


WHERE = f"""\
from importlib import import_module
from runtime.system.compiled_programs import find
from runtime.virtual.kernel import kernel_changes

for name in {PROGRAMS}:
    print(find(name))
for name in {sorted(LOADERS.values())}:
    print(import_module(name).library()._name)
print(kernel_changes.DATA, kernel_changes.digest())
"""


def test_what_is_not_python_comes_from_the_installed_package(installed: Path) -> None:
    found = run([sys.executable, "-c", WHERE], installed.parent, PYTHONPATH=str(installed))
    libraries = sorted(LOADERS, key=lambda name: LOADERS[name])
    assert found.split() == [
        *(str(installed / "runtime/bin" / name) for name in PROGRAMS),
        *(str(installed / USERS[name] / "lib" / name) for name in libraries),
        str(installed / "runtime/virtual/kernel"),
        kernel_changes.digest(),
    ]


def test_the_command_works_outside_the_source_tree(installed: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tstorm"]
    version = run([*command, "version", "--format", "json"], tmp_path, PYTHONPATH=str(installed))
    assert json.loads(version)["tstorm"] == TOOL_VERSION
    source = tmp_path / "two.tdl"
    shutil.copy(ROOT / "examples" / "listing1.tdl", source)
    run([*command, "compile", "two.tdl"], tmp_path, PYTHONPATH=str(installed))
    assert (tmp_path / "two.plan" / "plan.json").is_file()
    assert (tmp_path / "two.plan" / "manifests" / "40-agent.yaml").is_file()


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == TOOL_VERSION
    makefile = (ROOT / "tcal_c" / "Makefile").read_text(encoding="utf-8")
    assert f"\nVERSION := {TOOL_VERSION}\n" in makefile
    extension = (ROOT / "docs/editors/vscode/package.json").read_text(encoding="utf-8")
    assert json.loads(extension)["version"] == TOOL_VERSION
    for page in ("Dockerfile", "docs/kubernetes.md"):
        named = re.findall(r"thunderstorm/tstorm:([\d.]+)", (ROOT / page).read_text("utf-8"))
        assert set(named) == {TOOL_VERSION}, page


def test_every_c_file_is_in_the_list_of_sources_or_a_test() -> None:
    """make and setup.py compile what the list names: a file that it misses is in no program."""
    root = ROOT / "tcal_c"
    listed: set[Path] = set()
    for line in (root / "sources").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            for part in line.split()[2:]:
                found = list(root.glob(part if part.endswith(".c") else f"{part}/*.c"))
                assert found, part
                listed.update(found)
    written = {path for path in root.rglob("*.c") if not {"tests", "build"} & set(path.parts[-3:])}
    assert written == listed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The commands with which make would build everything, in BUILD."""
    place = tmp_path_factory.mktemp("made")
    told = run(["make", "-C", str(ROOT / "tcal_c"), "-n", f"BUILD={place}"], place)
    lines = told.replace(str(place), "BUILD").splitlines()
    return [shlex.split(line) for line in lines if line.startswith("cc ")]


@pytest.mark.parametrize("name", [*PROGRAMS, *sorted(USERS)])
def test_setup_compiles_as_make_does(
    name: str, made: list[list[str]], wheel: Path, compiled: Path
) -> None:
    [linked] = [words for words in made if f"BUILD/{name}" in words and "-o" in words]
    parts = [word.removesuffix(".o") + ".c" for word in linked if word.endswith(".o")]
    sources = {part.removeprefix("BUILD/release/") for part in parts}
    by_make = [words for words in made if sources & set(words)]
    assert len(by_make) == len(sources)
    lines = compiled.read_text(encoding="utf-8").splitlines()
    [by_setup] = [line.split() for line in lines if f"/{name} " in line]
    assert {word for word in by_setup if word.endswith(".c")} == {f"tcal_c/{c}" for c in sources}
    flags = {word for word in by_setup if word.startswith("-")}
    own = {"-O0", "-I", "-s", "-Wl,--as-needed"}  # asked for here; another folder; smaller
    assert flags - own <= set(linked).union(set.intersection(*map(set, by_make)))
