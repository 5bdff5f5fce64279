"""What a Python file with a topology describes, found out in a process without rights.

Input: the file, and which of its topologies. Output: the JSON of mininet_stand_in.py, which
tdl.formats reads. The process sees Python, its library and the folder of the file, all read-only.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from runtime.errors import MachineError, RunError
from runtime.system import compiled_programs, confinement
from tdl.preprocess.includes import NoTextError

_STAND_IN = Path(__file__).with_name("mininet_stand_in.py")
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")


def load_topology(file: Path, choice: str) -> bytes:
    """Raises NoTextError with the reason."""
    file = file.resolve()
    if file.parent == Path("/"):
        raise NoTextError(f"{str(file)!r} would see the whole machine", "give it a folder")
    python = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    argv = [python, "-s", "-S", "-B", "-P", str(_STAND_IN.resolve()), str(file), choice]
    try:
        keeper = compiled_programs.find("tstorm-ns")
        shown = [python, str(_STAND_IN.resolve()), str(file.parent), *_library()]
        found = confinement.run_confined(keeper, argv, shown)
    except (RunError, MachineError) as error:
        message = "the file is a program, and it would not be confined"
        hint = error.remedy or "`tstorm doctor` looks at namespaces"
        raise NoTextError(f"{message}: {error.message}", hint) from None
    if found.stopped:
        most = f"{confinement.MEMORY_MIB} MiB, {confinement.CPU_SECONDS} s of a processor"
        hint = f"it has {most}, no network, and nothing outside its folder"
        raise NoTextError(f"{file.name!r} describes no topology: {found.stopped}", hint)
    return found.output


def _library() -> Iterator[str]:
    """Python's own, and what its modules are linked with."""
    yield from (path for path in _LIBRARIES if os.path.lexists(path))
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    if sys.base_prefix != "/usr":
        places.append(f"{sys.base_prefix}/lib")
    yield from (os.path.realpath(path) for path in places if Path(path).is_dir())
