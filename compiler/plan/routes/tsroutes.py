"""The library with the routing core, libtsroutes.so (tcal_c/routes), as Python calls it.

Input and output are arrays of the standard library. Each prototype of tcal_c/routes/tsroutes.h is
repeated here as argument and result types; a test holds them equal. The library is found like the
programs are: in the package, or in a source tree.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from compiler.plan.format import TOPOLOGY, PlanError

ABI = 4  # TSROUTES_ABI in tsroutes.h
NAME = "libtsroutes.so"
_PACKAGE = Path(__file__).resolve().parents[1]
_REMEDY = "run `make -C tcal_c` in the source tree, or install again with a C compiler present"


class _Numbers:
    """An argument that points to the items of an array; any other type code is a TypeError."""

    typecode: ClassVar[str]
    size: ClassVar[int]

    @classmethod
    def from_param(cls, value: object) -> ctypes.c_void_p:
        if not isinstance(value, array) or value.typecode != cls.typecode:
            raise TypeError(f"an array of {cls.typecode!r} is expected, not {value!r:.40}")
        if value.itemsize != cls.size:
            raise TypeError(f"{cls.typecode!r} has {value.itemsize} bytes on this platform")
        return ctypes.c_void_p(value.buffer_info()[0])


class U8(_Numbers):
    typecode, size = "B", 1


class U16(_Numbers):
    typecode, size = "H", 2


class U32(_Numbers):
    typecode, size = "I", 4


class U64(_Numbers):
    typecode, size = "Q", 8


class F64(_Numbers):
    typecode, size = "d", 8


class Handle(ctypes.c_void_p):
    """An object of the library's; a type of its own keeps ctypes from making an int of it."""


_u32, _i32, _u64 = ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64

Prototypes = dict[str, tuple[Any, tuple[Any, ...]]]  # name -> (result, arguments)

PROTOTYPES: Prototypes = {
    "tsroutes_abi": (_u32, ()),
    "tsroutes_table_new": (Handle, (_u32, _u32, _u32, U8, U32, U32, U32, U16, _u32, U16)),
    "tsroutes_table_free": (None, (Handle,)),
    "tsroutes_table_apply": (_i32, (Handle, _u32, U32, U64, U8)),
    "tsroutes_table_changed": (_u64, (Handle,)),
    "tsroutes_table_changes": (None, (Handle, U32, U16)),
    "tsroutes_put": (None, (U16, _u64, U32, U16)),
    "tsroutes_table_group_numbers": (_u64, (Handle,)),
    "tsroutes_table_groups": (None, (Handle, _u64, U16)),
    "tsroutes_paths_new": (
        Handle,
        (_u32, _u32, _u32, _u32, U32, U32, U32, U32, U32, U32, U32, U32),
    ),
    "tsroutes_paths_free": (None, (Handle,)),
    "tsroutes_paths_set": (_i32, (Handle, U8, U64, U64, U32, U64)),
    "tsroutes_paths_compose": (_i32, (Handle, U16, _u32, U32, _u32, U32)),
    "tsroutes_paths_row": (_i32, (Handle, _u32, _u32, U32, U64, U64, U64, U64, U32)),
    "tsroutes_paths_deciding": (_i32, (Handle, U16, _u32, _u32, U32, U32, U32)),
}


def places() -> tuple[Path, ...]:
    """Where the library may be, in the order in which it is looked for."""
    return (_PACKAGE / "lib" / NAME, _PACKAGE.parent.parent / "tcal_c" / "build" / NAME)


def load(path: Path) -> ctypes.CDLL:
    """The library at `path` with its prototypes. Raises PlanError if it is not this release's."""
    return load_library(path, PROTOTYPES, "tsroutes_abi", ABI)


def load_library(path: Path, prototypes: Prototypes, version: str, abi: int) -> ctypes.CDLL:
    """Any library of the project's: its function `version` must return `abi`.

    Raises PlanError for everything that is wrong with it.
    """
    try:
        found = ctypes.CDLL(str(path))
    except OSError as error:
        raise PlanError(str(path), f"cannot be loaded: {error}", _REMEDY) from error
    try:
        asked = getattr(found, version)
        asked.restype, asked.argtypes = prototypes[version]
        has = asked()
        if has == abi:
            for name, (result, arguments) in prototypes.items():
                function = getattr(found, name)
                function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise PlanError(str(path), f"is another library: {error}", _REMEDY) from error
    if has != abi:
        raise PlanError(
            str(path), f"has interface version {has}, and this release needs {abi}", _REMEDY
        )
    return found


@cache
def library() -> ctypes.CDLL:
    """The library, loaded once. Raises PlanError if it was not built or does not fit."""
    return load(first_of(places()))


def put(table: array[int], cells: array[int], values: array[int]) -> None:
    """Writes the new values ('H') of cells ('I') into a table that has them all. Raises PlanError
    without the library."""
    library().tsroutes_put(table, len(cells), cells, values)


def first_of(looked_for: tuple[Path, ...]) -> Path:
    """The first of these places of a library where there is something. Raises PlanError."""
    for path in looked_for:
        if os.path.lexists(path):
            return path
    looked = " and ".join(str(path) for path in looked_for)
    raise PlanError(looked_for[0].name, f"the library is missing (looked for {looked})", _REMEDY)


def no_memory(what: str) -> PlanError:
    """The error to raise where the library could not get memory."""
    hint = "use a machine with more memory, or give services one link to a bridge each"
    return PlanError(TOPOLOGY, f"there is no memory {what}", hint)
