"""`/usr/bin/tstorm-agent`, the program of an agent's container (docs/supervisor.md)."""

from __future__ import annotations

import os
import socket
import sys

PROBE, CAPTURE = "probe", "capture"
SUPERVISOR_PORT = 7475  # pod_messages.py has it, which a probe does not import: that would cost
_REQUEST_BYTES = 1 << 17
_PROBE_SECONDS = 3.0
_GREETING = b"tstorm\0"  # how a server of runtime.rpc.seal begins


def main() -> int:
    if sys.argv[1:] == [PROBE]:
        return probe()
    if sys.argv[1:] not in ([], [CAPTURE]):
        print(f"usage: tstorm-agent [{CAPTURE} | {PROBE}]", file=sys.stderr)  # noqa: T201
        return 2
    return capture() if sys.argv[1:] else serve()


def capture() -> int:
    """The reason of a failure is the last line on stderr."""
    from runtime.agent.pod import node_capture, path_capture, supervisor_settings
    from runtime.errors import RunError
    from runtime.json_schema import parse

    try:
        here = supervisor_settings.read(os.environ)
        request = parse(sys.stdin.buffer.readline(_REQUEST_BYTES), "the request")
        is_path = type(request) is dict and "path" in request
        serve_one = path_capture.serve if is_path else node_capture.serve
        serve_one(request, here, sys.stdin.buffer, sys.stdout.buffer)
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


def serve() -> int:
    # Not above: a probe every few seconds shall cost next to nothing.
    import asyncio

    from compiler.plan.format import PlanError
    from compiler.plan.storage import delivery
    from runtime.agent.pod import supervisor_settings
    from runtime.agent.pod.supervisor import supervise
    from runtime.errors import RunError

    try:
        here = supervisor_settings.read(os.environ)
        delivery.receive(here.shards, here.plan, here.digest)
        asyncio.run(supervise(here))
    except (RunError, PlanError, OSError) as error:
        print(f"the supervisor cannot go on: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code if isinstance(error, RunError) else 1
    return 0


def probe() -> int:
    """0 if the supervisor of this pod answers a connection."""
    address = (os.environ.get("TSTORM_POD_IP", ""), SUPERVISOR_PORT)
    try:
        with socket.create_connection(address, _PROBE_SECONDS) as connection:
            connection.settimeout(_PROBE_SECONDS)
            return int(connection.recv(len(_GREETING), socket.MSG_WAITALL) != _GREETING)
    except OSError as error:
        print(f"no supervisor: {error}", file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main())
