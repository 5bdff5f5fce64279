"""The environment of a program: little from the caller, what it needs to know, what env= says.

Little, so that a run does not depend on who starts it and no secret of the caller's shell reaches
a hundred logs; see docs/run.md. The run's own processes get no more, since programs can read what
is in /proc/1/environ: but for what Python itself needs, which nothing in an instance has.
"""

from __future__ import annotations

import os
import site
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from compiler.plan.types import Node, Service
from runtime.backend.local.nursery import Program
from runtime.system.programs import find

_INHERITED = ("PATH", "LANG", "LANGUAGE", "TZ", "SHELL", "TERM", "LD_LIBRARY_PATH")
_PYTHONS = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
    *("PYTHONNOUSERSITE", "PYTHONUTF8", "PYTHONCOERCECLOCALE"),
)
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def inherited(caller: Mapping[str, str]) -> dict[str, str]:
    kept = {name: caller[name] for name in _INHERITED if name in caller}
    kept.update({name: value for name, value in caller.items() if name.startswith("LC_")})
    # The project's own programs (tprobe) come last, so that they never hide one of the machine.
    own = find("tprobe").parent
    kept["PATH"] = f"{kept.get('PATH') or _DEFAULT_PATH}:{own}"
    return kept


def of_driver(caller: Mapping[str, str]) -> dict[str, str]:
    """Of the keeper, the driver and what it starts, with the way to this very package."""
    found = inherited(caller)
    found.update({name: caller[name] for name in _PYTHONS if name in caller})
    package = str(Path(__file__).resolve().parents[3])
    found["PYTHONUSERBASE"] = site.getuserbase()  # in a user namespace it would be root's
    found["PYTHONPATH"] = os.pathsep.join(filter(None, (package, found.get("PYTHONPATH", ""))))
    return found


def variables(
    base: Mapping[str, str], service: Service, node: Node, run: Path, seed: int, start: str
) -> dict[str, str]:
    """What an instance's programs see: env= wins over what is inherited, TSTORM_* over all."""
    home = instance_directory(run, node.name)
    found = dict(base)
    found.update({"HOME": str(home), "PWD": str(home), "TMPDIR": str(home / "tmp")})
    found.update(dict(service.env))
    found.update(
        TSTORM_INSTANCE=node.name,
        TSTORM_SERVICE=service.name,
        TSTORM_INDEX=node.name.rpartition(".")[2],
        TSTORM_RUN_DIR=str(run),
        TSTORM_SEED=str(seed),
        TSTORM_IPV4=node.ipv4,
        TSTORM_IPV6=node.ipv6,
        TSTORM_START_DIR=start,
    )
    return found


def instance_directory(run: Path, name: str) -> Path:
    return run / "instances" / name


def misplaced(program: Program, source: str) -> str:
    """What to say of arguments that name files in `source`, where no program looks for them; or ''.

    Only the program's own name is looked for there: an argument may be anything.
    """
    for word in program.argv[1:]:
        with suppress(OSError):  # too long for a name
            if (Path(source) / word).exists() and not (program.directory / word).exists():
                return f"; '{word}' is in {source}, but the program runs in {program.directory}"
    return ""


def program(
    run: Path, service: Service, node: Node, env: Mapping[str, str], source: str
) -> Program | None:
    """None for an idle instance. A relative path to the program starts at `source`."""
    if not service.exec:
        return None
    first = service.exec[0]
    if "/" in first:
        first = str(Path(source) / first)
    return Program(
        argv=(first, *service.exec[1:]),
        env=env,
        directory=instance_directory(run, node.name),
        log=run / "logs" / f"{node.name}.log",
    )
