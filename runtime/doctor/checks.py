"""What this machine can do for a run, found out by trying: `probe()`.

Namespaces, ports, stamping, scheduling and queueing disciplines are tried in throw-away namespaces
by runtime.doctor.namespace_checks; here are the checks that need none, and why the namespaces are
refused.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from pathlib import Path

from runtime.backend import datapath_choice
from runtime.backend.local import environment
from runtime.doctor import imagetools, virtualtime
from runtime.doctor.findings import FAIL, OK, WARN, Check
from runtime.errors import RunError
from runtime.system import (
    compiled_programs,
    control_groups,
    namespaces,
    openfiles,
    process_limits,
    userids,
)

OLDEST_KERNEL = (5, 8)  # setns(2) on a pidfd
FILES_MINIMUM = 1024
PROBE_SECONDS = 60.0
_GAI = Path("/etc/gai.conf")


def probe() -> list[Check]:
    """All checks, in a fixed order. Leaves nothing behind."""
    checks = [_kernel(), _files(), _users(), _names(), _limits()]
    found = [_program(name) for name in ("pktd", "tstorm-ns")]
    checks.extend(found)
    if all(check.status == OK for check in found):
        checks.extend(_in_namespaces())
        checks.append(_kernel_datapath())
        checks.append(virtualtime.check())
        checks.append(imagetools.check())
    return checks


def parse_kernel(release: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _kernel() -> Check:
    release = os.uname().release
    if parse_kernel(release) >= OLDEST_KERNEL:
        return Check("kernel", OK, f"Linux {release}")
    wanted = ".".join(map(str, OLDEST_KERNEL))
    return Check("kernel", FAIL, f"Linux {release}", f"Linux {wanted} or newer is needed")


def _files() -> Check:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return Check("open files", OK, "no limit")
    detail = f"at most {hard}, enough for about {openfiles.enough_for(hard)} instances"
    if hard >= FILES_MINIMUM:
        return Check("open files", OK, detail)
    return Check("open files", WARN, detail, openfiles.REMEDY)


def _users() -> Check:
    """Runs are possible with one number, and programs that want a second one fail."""
    name = "user numbers"
    if os.geteuid() == 0:
        return Check(name, OK, "root has all")
    count = sum(one.count for one in userids.ranges())
    if userids.sandbox_arguments():
        return Check(name, OK, f"{count + 1} in a run (newuidmap, /etc/subuid)")
    detail = "one in a run: programs cannot become other users, user= is only a name"
    return Check(name, WARN, detail, userids.remedy())


def _names() -> Check:
    name = "names"
    if _GAI.exists():
        return Check(name, OK, "instances resolve names to IPv4 first")
    detail = "no /etc/gai.conf to mount over: programs with glibc resolve names to IPv6 first"
    return Check(name, WARN, detail, "touch /etc/gai.conf as root; it may be empty")


def _limits() -> Check:
    name = "cpu= and mem="
    found = control_groups.make(f"doctor-{os.getpid()}")
    found.remove()
    if found.cpu is not None and found.memory is not None:
        return Check(name, OK, "control groups enforce them")
    return Check(name, WARN, "no control groups to enforce them with", control_groups.REMEDY)


def _program(name: str) -> Check:
    try:
        return Check(f"program {name}", OK, str(compiled_programs.find(name)))
    except RunError as error:
        return Check(f"program {name}", FAIL, error.message, error.remedy)


def _kernel_datapath() -> Check:
    """Only --datapath kernel needs it."""
    name = "datapath kernel"
    try:
        lacking = datapath_choice.kernel_lacks(
            compiled_programs.find("tcald"), compiled_programs.find("tstorm-ns")
        )
    except RunError as error:
        return Check(name, WARN, error.message, error.remedy)
    if not lacking:
        return Check(name, OK, "htb, netem and what else `--hosts N --datapath kernel` needs")
    missing = ", ".join(f"{what} ({why})" for what, why in lacking.items())
    return Check(name, WARN, f"not here: {missing}", datapath_choice.kernel_remedy(lacking))


def _in_namespaces() -> list[Check]:
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    argv = [sys.executable, "-P", "-m", "runtime.doctor.namespace_checks"]
    keeper, caller = compiled_programs.find("tstorm-ns"), environment.of_driver(os.environ)
    try:
        done = namespaces.probe(keeper, argv, caller, PROBE_SECONDS)
    except RunError as error:
        return [Check("namespaces", FAIL, f"the probe: {error.message}", error.remedy)]
    if done.returncode != 0:
        detail = namespaces.last_words(done)
        remedy = process_limits.remedy_for(detail) or namespaces.refusal_remedy()
        return [Check("namespaces", FAIL, f"refused to {who}: {detail}", remedy)]
    inside = [Check(**record) for record in json.loads(done.stdout)]
    return [Check("namespaces", OK, f"user, mount, network, PID, UTS and IPC, as {who}"), *inside]
