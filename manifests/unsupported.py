"""What of the language Kubernetes and Compose do not carry out, under which conditions, and what to
do instead. One table for both; words that they never carry out are in
compiler/plan/rules/capabilities.py.

`held` services state entrypoint=: there tstorm-hold starts the program (docs/hold.md), and does
what needs to be done inside of the container. Of others the image's program is not known, and
container engines start it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compiler.plan.rules.capabilities import COMPOSE, KUBERNETES
from compiler.plan.types import NO_CHECK, RUN_VARIABLE, TCP_CHECK, Mount, Service, Topology
from manifests.refusal import ManifestError

HOLD_FOLDER = "/tstorm"
MAX_ID = 2**31 - 1  # of a user or group in Kubernetes
_BOTH = frozenset((KUBERNETES, COMPOSE))
_K8S, _COMPOSE = frozenset((KUBERNETES,)), frozenset((COMPOSE,))

NOWHERE = frozenset(("TSTORM_RUN_DIR", "TSTORM_START_DIR"))  # a container has no run directory
ADDRESSES = frozenset(("TSTORM_IPV4", "TSTORM_IPV6"))  # known when the container is there
# Known to the renderer, or to Kubernetes before the container starts.
FIXED = frozenset(
    ("TSTORM_EXPERIMENT", "TSTORM_INDEX", "TSTORM_INSTANCE", "TSTORM_SEED", "TSTORM_SERVICE")
)
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class UnsupportedRow:
    """`found` is what of the service is not carried out, '' if nothing is."""

    ways: frozenset[str]
    found: Callable[[Service], str]
    why: str
    instead: str


def refusals(topology: Topology, way: str) -> Iterator[ManifestError]:
    """Everything of a plan that this way does not carry out."""
    for service in topology.services:
        for row in TABLE:
            what = row.found(service) if way in row.ways else ""
            if what:
                who = f"service {service.name!r}"
                yield ManifestError(f"{who}: {what:.120} {row.why}", row.instead)


# -- what a service states ----------------------------------------------------------------------


def held(service: Service) -> bool:
    return bool(service.entrypoint)


def named_user(service: Service) -> bool:
    """Whether somebody has to look into the image's /etc/passwd or /etc/group."""
    return not all(part.isdecimal() for part in service.user.split(":")) if service.user else False


def ready_port(service: Service) -> int:
    """0 if it is not a port that says whether the program is ready."""
    [check] = service.ready if len(service.ready) == 1 else ("",)
    return int(check.removeprefix(TCP_CHECK)) if check.startswith(TCP_CHECK) else 0


def ready_command(service: Service) -> tuple[str, ...]:
    """Empty if it is not a command that says so."""
    return () if service.ready == (NO_CHECK,) or ready_port(service) else service.ready


def file_path(service: Service, path: str) -> str:
    """Where a file is in the container: relative paths begin at cwd=."""
    return path if path.startswith("/") else f"{service.cwd}/{path}"


def variables(word: str) -> set[str]:
    """The run's own variables that are replaced in a word."""
    return {found[1] or found[2] for found in RUN_VARIABLE.finditer(word)}


def replaced(word: str, form: Callable[[str], str], rest: Callable[[str], str]) -> str:
    """With `form` of each variable that is known before, and `rest` of what is between them."""
    parts, end = [], 0
    for found in RUN_VARIABLE.finditer(word):
        name = found[1] or found[2]
        if name in FIXED:
            parts += [rest(word[end : found.start()]), form(name)]
            end = found.end()
    return "".join([*parts, rest(word[end:])])


# -- the table ----------------------------------------------------------------------------------


def _words_of_run(service: Service) -> set[str]:
    words = (*service.entrypoint, *service.command, *service.setup, *service.ready)
    return {name for word in words for name in variables(word)}


def _first(names: set[str]) -> str:
    return f"${min(names)}" if names else ""


def _mount(mounts: tuple[Mount, ...], wrong: Callable[[Mount], bool]) -> str:
    return next((f"mount={one.source}:{one.target}" for one in mounts if wrong(one)), "")


def _file(service: Service, wrong: Callable[[str], bool]) -> str:
    return next((f"the file {one.path!r}" for one in service.files if wrong(one.path)), "")


def _twice(service: Service) -> str:
    seen: set[str] = set()
    for one in service.files:
        path = file_path(service, one.path)
        if path in seen:
            return f"the file {path!r}"
        seen.add(path)
    return ""


def _too_large_id(service: Service) -> str:
    numbers = [part for part in service.user.split(":") if part.isdecimal()]
    return f"user={service.user}" if any(int(part) > MAX_ID for part in numbers) else ""


def _odd_sysctl(service: Service) -> str:
    odd = [name for name, _ in service.sysctls if not _SYSCTL.fullmatch(name)]
    return f"sysctl={odd[0]}" if odd else ""


_STATE_ENTRYPOINT = "state entrypoint="
_HOLD_ONLY = "is for tstorm-hold, which starts programs that entrypoint= states"
TABLE = (
    UnsupportedRow(
        _K8S,
        lambda s: _mount(s.mounts, lambda _: True),
        "is a path of this machine, which a cluster's nodes do not have",
        "put it into the image, or carry it as files= (up to 1 MiB each)",
    ),
    UnsupportedRow(
        _COMPOSE,
        lambda s: _mount(s.mounts, lambda one: not one.source.startswith("/")),
        "is relative to the TDL file, which Compose does not know",
        "write an absolute path",
    ),
    UnsupportedRow(
        _BOTH,
        lambda s: _file(s, lambda path: not (s.cwd or path.startswith("/"))),
        "is relative to the image's own directory, which is not known",
        "state cwd=/DIR, or where it goes: files=FILE:/PATH",
    ),
    UnsupportedRow(
        _BOTH,
        lambda s: _file(s, lambda path: f"{file_path(s, path)}/".startswith(f"{HOLD_FOLDER}/")),
        f"is in {HOLD_FOLDER}, which is tstorm-hold's",
        "choose another path",
    ),
    UnsupportedRow(
        _K8S,
        lambda s: _file(s, lambda path: ":" in file_path(s, path)),
        "has a ':' in its path, which Kubernetes mounts nothing at",
        "choose another path",
    ),
    UnsupportedRow(_BOTH, _twice, "is there twice", "keep one"),
    UnsupportedRow(
        _K8S,
        lambda s: f"user={s.user}" if named_user(s) and not held(s) else "",
        f"{_HOLD_ONLY}: it looks names up in the image",
        f"{_STATE_ENTRYPOINT}, or the user's number: user=1000",
    ),
    UnsupportedRow(_K8S, _too_large_id, f"is more than {MAX_ID}", "choose a smaller number"),
    UnsupportedRow(
        _K8S,
        _odd_sysctl,
        "is no name of a sysctl that Kubernetes takes",
        "use lower-case letters, digits, '_', '-' and '.'",
    ),
    UnsupportedRow(
        _BOTH,
        lambda s: "setup=" if s.setup and not held(s) else "",
        _HOLD_ONLY,
        f"{_STATE_ENTRYPOINT}, or do it in the image",
    ),
    UnsupportedRow(
        _BOTH,
        lambda s: _first(_words_of_run(s) & NOWHERE),
        "is a folder of a run on one machine, which containers do not have",
        "use a path of the image",
    ),
    UnsupportedRow(
        _BOTH,
        lambda s: "" if held(s) else _first(_words_of_run(s) & ADDRESSES),
        _HOLD_ONLY,
        f"{_STATE_ENTRYPOINT}, or use a name, such as localhost",
    ),
    UnsupportedRow(
        _COMPOSE,
        lambda s: _first(_words_of_run(s) & ADDRESSES) if held(s) else "",
        "is not known to a container of Compose",
        "use the instance's name",
    ),
    UnsupportedRow(
        _BOTH,
        lambda s: (
            ""
            if held(s)
            else _first(
                {name for word in ready_command(s) for name in variables(word)}
                - ADDRESSES
                - NOWHERE
            )
        ),
        f"in ready= {_HOLD_ONLY}",
        f"{_STATE_ENTRYPOINT}, or write the check without it",
    ),
    UnsupportedRow(
        _COMPOSE,
        lambda s: f"ready=tcp:{ready_port(s)}" if ready_port(s) and not held(s) else "",
        f"{_HOLD_ONLY}: Compose itself cannot try a port",
        f"{_STATE_ENTRYPOINT}, or give a command of the image",
    ),
)
