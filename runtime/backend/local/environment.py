"""The environment of a program: little from the caller, what it needs to know, what env= says.

Little, so that a run does not depend on who starts it and no secret of the caller's shell reaches
a hundred logs; see docs/run.md. The run's own processes get no more, since programs can read what
is in /proc/1/environ: but for what Python itself needs, which nothing in an instance has.
"""

from __future__ import annotations

import os
import site
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from compiler.plan.types import Node, Service
from runtime.backend.local.nursery import Program
from runtime.backend.runwords import replaced
from runtime.system import compiled_programs

_INHERITED = ("PATH", "LANG", "LANGUAGE", "TZ", "SHELL", "TERM", "LD_LIBRARY_PATH")
_PYTHONS = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
    *("PYTHONNOUSERSITE", "PYTHONUTF8", "PYTHONCOERCECLOCALE"),
)


def inherited(caller: Mapping[str, str]) -> dict[str, str]:
    kept = {name: caller[name] for name in _INHERITED if name in caller}
    kept.update({name: value for name, value in caller.items() if name.startswith("LC_")})
    kept["PATH"] = compiled_programs.of_programs(caller)
    return kept


def of_driver(caller: Mapping[str, str]) -> dict[str, str]:
    """Of the keeper, the driver and what it starts, with the way to this very package."""
    found = inherited(caller)
    found.update({name: caller[name] for name in _PYTHONS if name in caller})
    package = str(Path(__file__).resolve().parents[3])
    found["PYTHONUSERBASE"] = site.getuserbase()  # in a user namespace it would be root's
    found["PYTHONPATH"] = os.pathsep.join(filter(None, (package, found.get("PYTHONPATH", ""))))
    return found


class Own(NamedTuple):
    """What is an instance's own of its environment: where its directory and its program are, its
    user's name ('' if that is not stated), and the variables of its image, if it has one."""

    home: str
    directory: str
    user: str = ""
    image: tuple[tuple[str, str], ...] | None = None


def _of_user(own: Own) -> dict[str, str]:
    return {"USER": own.user, "LOGNAME": own.user} if own.user else {}


def variables(
    base: Mapping[str, str],
    service: Service,
    node: Node,
    run: Path,
    seed: int,
    start: str,
    own: Own | None = None,
) -> dict[str, str]:
    """What an instance's programs see: env= wins over what is inherited, TSTORM_* over all. In an
    image nothing is inherited, as on a cluster: it may know nothing of the caller's languages."""
    place = str(instance_directory(run, node.name))
    own = own or Own(place, place)
    if own.image is None:
        found = {**base, "HOME": own.home, "TMPDIR": f"{own.home}/tmp"}
    else:
        found = dict(own.image)
    found.update({**_of_user(own), "PWD": own.directory})
    found.update(dict(service.env))
    found.update(
        TSTORM_INSTANCE=node.name,
        TSTORM_SERVICE=service.name,
        TSTORM_INDEX=node.name.rpartition(".")[2],
        TSTORM_RUN_DIR=str(run) if own.image is None else own.home,
        TSTORM_SEED=str(seed),
        TSTORM_IPV4=node.ipv4,
        TSTORM_IPV6=node.ipv6,
        TSTORM_START_DIR=start,
    )
    machine, dot, _ = service.name.rpartition(".")
    return {**found, "TSTORM_MACHINE": machine} if dot else found


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


def resolved(
    argv: Sequence[str], env: Mapping[str, str], source: str, elsewhere: Mapping[str, str]
) -> tuple[str, ...]:
    """A command as it is to be run: a relative path to its program starts at `source`. `elsewhere`:
    see scripts.keep."""
    words = replaced(argv, env)
    if words and "/" in words[0]:
        return (elsewhere.get(argv[0], str(Path(source) / words[0])), *words[1:])
    return words


def program(
    run: Path,
    service: Service,
    node: Node,
    env: Mapping[str, str],
    source: str,
    elsewhere: Mapping[str, str],
) -> Program | None:
    """None for an idle instance. A relative path to the program starts at `source`."""
    if not service.exec:
        return None
    return Program(
        argv=resolved(service.exec, env, source, elsewhere),
        env=env,
        directory=instance_directory(run, node.name),
        log=run / "logs" / f"{node.name}.log",
    )
