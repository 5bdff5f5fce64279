"""The library that agents compute with, libtsshare.so (tcal_c/share), as Python calls it.

Input and output are arrays of the standard library. Each prototype of tcal_c/share/tsshare.h is
repeated here as argument and result types; a test holds them equal. The library is found like the
programs are: in the package, or in a source tree.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from compiler.plan.routes.tsroutes import (
    F64,
    U8,
    U16,
    U32,
    U64,
    Handle,
    Prototypes,
    first_of,
    load_library,
)

ABI = 1  # TSSHARE_ABI in tsshare.h
NAME = "libtsshare.so"
_PACKAGE = Path(__file__).resolve().parents[1]
_u32, _i32 = ctypes.c_uint32, ctypes.c_int32

PROTOTYPES: Prototypes = {
    "tsshare_abi": (_u32, ()),
    "tsshare_solve": (
        _i32,
        (_u32, U32, U32, U64, U64, _u32, U64, U64, U32, U64, F64),
    ),
    "tsshare_net_new": (
        Handle,
        (_u32, _u32, _u32, _u32, U32, U32, U32, U32, U32, U32, U32, U32),
    ),
    "tsshare_net_free": (None, (Handle,)),
    "tsshare_interest": (_i32, (Handle, U16, U8, U8, U32, _u32, U64)),
    "tsshare_interest_paths": (_i32, (Handle, U16, U8, U64, _u32, U32, U32, U64)),
}


def places() -> tuple[Path, ...]:
    """Where the library may be, in the order in which it is looked for."""
    return (_PACKAGE / "lib" / NAME, _PACKAGE.parents[1] / "tcal_c" / "build" / NAME)


@cache
def library() -> ctypes.CDLL:
    """The library, loaded once. Raises PlanError if it was not built or does not fit."""
    return load_library(first_of(places()), PROTOTYPES, "tsshare_abi", ABI)
