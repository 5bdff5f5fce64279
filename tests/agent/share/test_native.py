"""The library of the agents as Python sees it: prototypes as in C, found like the programs."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from compiler.plan.format import PlanError
from compiler.plan.routes.tsroutes import F64, U8, U16, U32, U64, Handle
from runtime.agent.share import tsshare

HEADER = Path(__file__).resolve().parents[3] / "tcal_c" / "share" / "tsshare.h"
C_TYPES = {
    "void": None,
    "uint32_t": ctypes.c_uint32,
    "int32_t": ctypes.c_int32,
    "uint64_t": ctypes.c_uint64,
    "uint8_t *": U8,
    "uint16_t *": U16,
    "uint32_t *": U32,
    "uint64_t *": U64,
    "double *": F64,
}


def c_type(text: str) -> object:
    """Of a parameter (`const uint32_t *links`) or a result; a struct is the library's own."""
    words = re.fullmatch(r"(?:const )?((?:struct )?\w+(?: \*)?)\s*\w*", text.strip())
    assert words, text
    return Handle if words[1].startswith("struct ") else C_TYPES[words[1]]


def test_ctypes_and_the_header_agree() -> None:
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)
    declared: dict[str, tuple[object, tuple[object, ...]]] = {}
    for found in re.findall(r"^TSSHARE_API ([^;]*);", text, flags=re.MULTILINE):
        parts = re.fullmatch(r"(.*?)(\w+)\((.*)\)", " ".join(found.split()))
        assert parts, found
        arguments = () if parts[3] == "void" else tuple(map(c_type, parts[3].split(",")))
        declared[parts[2]] = (c_type(parts[1]), arguments)
    assert len(declared) > 1
    assert declared == tsshare.PROTOTYPES


def test_the_versions_agree() -> None:
    [version] = re.findall(r"^#define TSSHARE_ABI (\d+)$", HEADER.read_text(), re.MULTILINE)
    assert tsshare.library().tsshare_abi() == tsshare.ABI == int(version)


def test_nothing_else_is_visible() -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed here")
    command = ["nm", "-D", "--defined-only", tsshare.library()._name]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in shown.splitlines()} == set(tsshare.PROTOTYPES)


def test_a_missing_library_says_how_to_make_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tsshare, "places", lambda: (tmp_path / tsshare.NAME,))
    with pytest.raises(PlanError, match="the library is missing") as caught:
        tsshare.library.__wrapped__()
    assert "make -C tcal_c" in caught.value.hint


def test_the_package_comes_before_the_source_tree() -> None:
    first, second = tsshare.places()
    assert first.parts[-4:] == ("runtime", "agent", "lib", tsshare.NAME)
    assert second.parts[-3:] == ("tcal_c", "build", tsshare.NAME)
