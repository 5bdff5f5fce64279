"""What this machine can do for a run, found out by trying: `probe()`.

Namespaces, ports, stamping, scheduling and queueing disciplines are tried in throw-away namespaces
by runtime.doctor.namespace_checks; here are the checks that need none, and why the namespaces are
refused.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import shutil
import sys
from pathlib import Path

from runtime.backend import datapath_choice
from runtime.backend.local import environment
from runtime.doctor.findings import FAIL, OK, WARN, Check
from runtime.errors import RunError
from runtime.images import ids, image_tools
from runtime.system import compiled_programs, control_groups, namespaces, process_limits, userids
from runtime.virtual import forbidden, guest
from runtime.virtual.kernel import asking, compiling, kernel_cache

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
        checks.append(virtual_time())
        checks.append(images())
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
    detail = f"at most {hard}, enough for about {process_limits.enough_for(hard)} instances"
    if hard >= FILES_MINIMUM:
        return Check("open files", OK, detail)
    return Check("open files", WARN, detail, process_limits.REMEDY)


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


# Whether images can be run here (`img=` without `exec=`): the tools, and the user ids.
#
# Never "fail": runs of the machine's own programs need none of it.

IMAGES = "images"
_NOT_NEEDED = "only needed for services with img= and no exec="
_MAPPERS = ("newuidmap", "newgidmap")


def images() -> Check:
    lacking = image_tools.lacking()
    if lacking:
        missing = image_tools.missing(lacking)
        return Check(IMAGES, WARN, missing.message, f"{missing.remedy} ({_NOT_NEEDED})")
    try:
        available = ids.available()
    except RunError as error:
        return Check(IMAGES, WARN, error.message, error.remedy or _NOT_NEEDED)
    if available == ids.ONE:
        mappers = [name for name in _MAPPERS if shutil.which(name) is None]
        why = f" ({' and '.join(mappers)} not installed)" if mappers else ""
        return Check(IMAGES, WARN, f"{ids.WARNING}{why}", ids.REMEDY)
    users = "all user ids" if available == ids.ALL else "the user ids of /etc/subuid"
    return Check(IMAGES, OK, f"skopeo fetches and umoci unpacks them, with {users}")


# Whether runs in virtual time (`--time virtual`) are possible here: by starting a guest.
#
# Never "fail": runs in real time need none of it. Where there is no kernel yet, what would stop one
# is looked for (runtime.virtual.forbidden).

VIRTUAL_TIME = "virtual time"
_PROCESSOR = Path("/proc/cpuinfo")
_HIDES = "cpuid_fault"  # among its features: a process can be stopped where it asks for them
_REAL_TIME_NEEDS_NONE = "only needed for --time virtual"


def virtual_time() -> Check:
    """One line. Takes a second where there is a kernel: what is forbidden is asked only where it
    does not start, or there is none."""
    machine = platform.machine()
    if machine != compiling.ARCHITECTURE:
        return Check(
            VIRTUAL_TIME, WARN, f"this machine is {machine}: only x86-64 can", _REAL_TIME_NEEDS_NONE
        )
    try:
        kernel = kernel_cache.path_for_run()
    except RunError as error:
        return _warning(error.message, error.remedy)
    try:
        return _tried(kernel)
    except RunError as error:
        return Check(VIRTUAL_TIME, WARN, error.message, error.remedy or _REAL_TIME_NEEDS_NONE)


def _tried(kernel: Path) -> Check:
    name = f"Linux {asking.version(kernel)}"
    if reason := guest.why_not(kernel, compiled_programs.find("tstorm-ns")):
        return _warning(f"{name} does not start: {reason}", _REAL_TIME_NEEDS_NONE)
    how = "seccomp, else ptrace" if asking.can_seccomp(kernel) else "ptrace"
    random = "hidden from" if _hides_random_instructions() else "seen by"
    about = f"programs run under {how}; the processor's random instructions are {random} them"
    return Check(VIRTUAL_TIME, OK, f"{name} starts here; {about}")


def _hides_random_instructions() -> bool:
    """Whether two runs are the same even for programs that use rdrand (docs/virtual.md)."""
    try:
        return _HIDES in _PROCESSOR.read_text().split()
    except OSError:
        return False


def _warning(what: str, remedy: str) -> Check:
    """This, or what is behind it: a machine that forbids guests."""
    what, remedy = next(iter(forbidden.refusals()), (what, remedy))
    return Check(VIRTUAL_TIME, WARN, what, remedy or _REAL_TIME_NEEDS_NONE)
