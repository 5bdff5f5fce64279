"""Which user ids a run has on this machine, and doing something with all of them.

As root, all. An ordinary user has one of its own, and those that root lends it in /etc/subuid and
/etc/subgid (subuid(5)), through newuidmap(1) and newgidmap(1). The run's sandbox maps them; here it
is asked what came of it.
"""

from __future__ import annotations

import os

from runtime.errors import MachineError
from runtime.system import (
    compiled_programs,
    namespaces,
    process_limits,
    userids,
)

ALL, RANGE, ONE = "all", "range", "one"
WARNING = (
    "there is one user id here: all files of images belong to it, and programs that change their"
    " user, as PostgreSQL and nginx do, fail"
)
REMEDY = (
    "apt-get install uidmap (newuidmap, newgidmap), and as root: usermod --add-subuids"
    " 100000-165535 --add-subgids 100000-165535 USER"
)
_MANY = 65_536
_SECONDS = 30.0


def available() -> str:
    """ALL, RANGE or ONE. MachineError if a user namespace is refused."""
    if os.geteuid() == 0:
        return ALL if userids.total(userids.present()) >= _MANY else RANGE
    done = namespaces.probe(
        compiled_programs.find("tstorm-ns"),
        ["/bin/cat", "/proc/self/uid_map"],
        os.environ,
        _SECONDS,
    )
    if done.returncode != 0:
        refusal = namespaces.last_words(done)
        raise MachineError(
            f"this machine refuses what images need: {refusal}",
            process_limits.remedy_for(refusal) or namespaces.refusal_remedy(),
        )
    return RANGE if userids.total(userids.mapped(done.stdout.decode())) > 1 else ONE


def with_all(*argv: str) -> list[str]:
    """The command line that runs a program with all ids, as root of them, in namespaces of its own.
    It ends with this process."""
    return [*namespaces.sandbox(compiled_programs.find("tstorm-ns")), *argv]
