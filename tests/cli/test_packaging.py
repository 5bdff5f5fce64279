"""`pip install`: the sdist is complete, the wheel carries the programs and works elsewhere."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
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
    *("__errno_location", "calloc", "free", "malloc", "memcmp", "memcpy", "memmove", "memset"),
    *("qsort", "realloc"),
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from an sdist built from a copy of this tree, as pip would."""
    tree = tmp_path_factory.mktemp("packaging") / "tree"
    shutil.copytree(ROOT, tree, ignore=NOT_COPIED)
    quickly = "-O0"  # what is built is asked whether it is there and runs
    run([sys.executable, "-m", "build", "--no-isolation", "."], tree, CFLAGS=quickly)
    (built,) = (tree / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", ".", str(wheel)],
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
    import tarfile

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
def made(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The commands with which make would build everything, in BUILD."""
    place = tmp_path_factory.mktemp("made")
    told = run(["make", "-C", str(ROOT / "tcal_c"), "-n", f"BUILD={place}"], place)
    return told.replace(str(place), "BUILD").splitlines()


@pytest.mark.parametrize("name", sorted(USERS))
def test_setup_compiles_a_library_as_make_does(name: str, made: list[str]) -> None:
    [linked] = [line.split() for line in made if f"-o BUILD/{name} " in line]
    parts = [word.removesuffix(".o") + ".c" for word in linked if word.endswith(".o")]
    sources = {part.removeprefix("BUILD/release/") for part in parts}
    compiled = [words for line in made if sources & set(words := line.split())]
    assert len(compiled) == len(sources)
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    flags = re.search(r"^LIBRARY_FLAGS = (\[.*?\])$", text, re.MULTILINE | re.DOTALL)
    assert flags
    assert set(ast.literal_eval(flags[1])) <= set(linked).union(
        set.intersection(*map(set, compiled))
    )
