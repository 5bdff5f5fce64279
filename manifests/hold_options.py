"""What a service states as options of its tstorm-hold (docs/hold.md), as both forms write them."""

from __future__ import annotations

from compiler.plan.types import DEFAULT_GRACE_NS, Service
from manifests import unsupported

HOLD = f"{unsupported.HOLD_FOLDER}/tstorm-hold"  # put there by an init container, or in a volume
_MILLISECOND_NS = 1_000_000
_SECOND_NS = 1_000_000_000
_REST_SECONDS = 1  # for what outlives a program that was told to end


def argv(service: Service) -> list[str]:
    """The whole command of a held service, but for command=. `$` as in the plan."""
    return [HOLD, "run", *_options(service), "--", *service.entrypoint]


def _options(service: Service) -> list[str]:
    found: list[str] = []
    if service.stop:
        found += ["--stop", service.stop]
    if service.grace_ns:
        found += ["--grace", _milliseconds(service.grace_ns)]
    if unsupported.named_user(service):
        found += ["--user", service.user]
        found += ["--cwd", service.cwd] if service.cwd else []
    if service.setup:
        found += ["--setup", str(len(service.setup)), *service.setup]
    port, command = unsupported.ready_port(service), unsupported.ready_command(service)
    if port:
        found += ["--ready-port", str(port)]
    elif command:
        found += ["--ready", str(len(command)), *command]
    if service.ready_timeout_ns and (port or command):
        found += ["--ready-timeout", _milliseconds(service.ready_timeout_ns)]
    return found


def _milliseconds(ns: int) -> str:
    """At least 1: 0 would be no time at all."""
    return str(max(1, round(ns / _MILLISECOND_NS)))


def end_seconds(service: Service) -> int:
    """From the request to end until an engine kills what is left."""
    return -(-(service.grace_ns or DEFAULT_GRACE_NS) // _SECOND_NS) + _REST_SECONDS
