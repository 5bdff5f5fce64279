"""The routing library as Python sees it: prototypes as in C, and plain errors without it."""

from __future__ import annotations

import ctypes
import errno
import re
import shutil
import subprocess
from array import array
from pathlib import Path

import pytest

from compiler.plan.format import PlanError
from compiler.plan.paths.collapse import Collapse
from compiler.plan.routes import tsroutes
from compiler.plan.routes.routing import Routes
from compiler.plan.types import Topology
from tests.plan.networks import listing

HEADER = Path(__file__).resolve().parents[3] / "tcal_c" / "routes" / "tsroutes.h"
C_TYPES = {
    "void": None,
    "uint32_t": ctypes.c_uint32,
    "int32_t": ctypes.c_int32,
    "uint64_t": ctypes.c_uint64,
    "uint8_t *": tsroutes.U8,
    "uint16_t *": tsroutes.U16,
    "uint32_t *": tsroutes.U32,
    "uint64_t *": tsroutes.U64,
    "struct tsroutes_table *": tsroutes.Handle,
    "struct tsroutes_paths *": tsroutes.Handle,
}


def c_type(text: str) -> object:
    """Of a parameter (`const uint32_t *links`) or a result."""
    words = re.fullmatch(r"(?:const )?((?:struct )?\w+(?: \*)?)\s*\w*", text.strip())
    assert words, text
    return C_TYPES[words[1]]


def prototypes() -> dict[str, tuple[object, tuple[object, ...]]]:
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)
    found: dict[str, tuple[object, tuple[object, ...]]] = {}
    for declared in re.findall(r"^TSROUTES_API ([^;]*);", text, flags=re.MULTILINE):
        parts = re.fullmatch(r"(.*?)(\w+)\((.*)\)", " ".join(declared.split()))
        assert parts, declared
        arguments = () if parts[3] == "void" else tuple(map(c_type, parts[3].split(",")))
        found[parts[2]] = (C_TYPES[parts[1].strip()], arguments)
    return found


def test_ctypes_and_the_header_agree() -> None:
    declared = prototypes()
    assert len(declared) > 8
    assert declared == tsroutes.PROTOTYPES


def test_the_versions_agree() -> None:
    [version] = re.findall(r"^#define TSROUTES_ABI (\d+)$", HEADER.read_text(), re.MULTILINE)
    assert tsroutes.library().tsroutes_abi() == tsroutes.ABI == int(version)


def test_nothing_else_is_visible() -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed here")
    command = ["nm", "-D", "--defined-only", tsroutes.library()._name]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in shown.splitlines()} == set(tsroutes.PROTOTYPES)


def test_an_array_of_another_type_is_refused() -> None:
    for wrong in (array("Q", [1]), [1], None, b"1234", array("i", [1])):
        with pytest.raises(TypeError, match="an array of 'I' is expected"):
            tsroutes.U32.from_param(wrong)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The library is looked for again, and again afterwards."""
    monkeypatch.setattr(tsroutes, "library", tsroutes.library.__wrapped__)
    return monkeypatch


def test_a_missing_library_says_how_to_make_it(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places = (tmp_path / "a.so", tmp_path / "b.so")
    fresh.setattr(tsroutes, "places", lambda: places)
    with pytest.raises(PlanError) as caught:
        tsroutes.library()
    assert f"looked for {places[0]} and {places[1]}" in str(caught.value)
    assert "make -C tcal_c" in caught.value.hint


def test_the_package_comes_before_the_source_tree() -> None:
    first, second = tsroutes.places()
    assert first.parts[-4:] == ("compiler", "plan", "lib", tsroutes.NAME)
    assert second.parts[-3:] == ("tcal_c", "build", tsroutes.NAME)


def test_another_version_is_refused(fresh: pytest.MonkeyPatch) -> None:
    fresh.setattr(tsroutes, "ABI", tsroutes.ABI + 1)
    with pytest.raises(
        PlanError, match=f"interface version {tsroutes.ABI - 1}, .* needs"
    ) as caught:
        tsroutes.library()
    assert "make -C tcal_c" in caught.value.hint


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a library")
    with pytest.raises(PlanError, match=r"text\.so: cannot be loaded"):
        tsroutes.load(text)
    with pytest.raises(PlanError, match="is another library"):
        tsroutes.load(Path("libc.so.6"))


class Poor:
    """The library on a machine without memory."""

    def __init__(self, works: tuple[str, ...] = ()) -> None:
        self._works = works

    def __getattr__(self, name: str) -> object:
        if name in self._works or name.endswith("_free"):
            return getattr(tsroutes.load(tsroutes.places()[1]), name)
        return lambda *_: -errno.ENOMEM if name.endswith("_apply") else None


def test_no_memory_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = listing()
    monkeypatch.setattr(tsroutes, "library", lambda: Poor(works=("tsroutes_table_new",)))
    routes = Routes(topology)
    with pytest.raises(PlanError, match="no memory for routes between 2 core nodes and 2"):
        routes.apply([(4, topology.links[4].state)])
    monkeypatch.setattr(tsroutes, "library", Poor)
    with pytest.raises(PlanError, match="no memory for routes"):
        Routes(topology)
    with pytest.raises(PlanError, match="no memory for composing paths"):
        Collapse(topology)


def test_the_table_cannot_move_under_the_library() -> None:
    topology: Topology = listing()
    routes = Routes(topology)
    with pytest.raises(BufferError):
        routes.table.append(1)
