"""A coordinator beside the cluster: `python -m tests.cluster.coordinating RUN SERVER NS CA TOKEN`.

Input: a run directory with its plan, the API server, the namespace, and files with the server's
certificate and the token of the coordinator's account. It leads the run as the Job does, with the
pods that the API server tells of; the agents of fake nodes answer at loopback addresses. Output:
one line of JSON: seconds until the start, how the run ended, memory and bytes.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runtime.backend.k8s import cluster_backend
from runtime.backend.k8s.api import Api
from runtime.backend.k8s.cluster_backend import make
from runtime.backend.k8s.httpget import ApiAddress
from runtime.backend.k8s.supervisors import NodeParts, Notice
from runtime.driver import driver
from runtime.driver.driver_messages import DriverConfig, RunStarted, Said
from runtime.driver.progress import Progress
from runtime.options import RunOptions
from runtime.system.process_limits import raise_limit
from tests.cluster.simulatednodes import address
from tests.coordinator.traffic import peak_mib, transferred
from tests.doubles.agent import KEY
from tests.doubles.follower import Followed


class Told(Followed):
    """How long it took until what was said, and what it cost."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.monotonic()
        self.record: dict[str, Any] = {}
        self.facts: Mapping[str, Any] = {}

    def send(self, said: Said) -> None:
        if isinstance(said, RunStarted):
            self.facts = said.facts
            self.record["start_s"] = round(time.monotonic() - self.began, 2)
            sent, received = transferred()
            self.record["sent_mb"] = round(sent / 1e6, 1)
            self.record["received_mb"] = round(received / 1e6, 1)
            self.record["start_mib"] = peak_mib()
        if isinstance(said, Progress) and said.message:
            print(f"{time.monotonic() - self.began:.1f} s: {said.message}", file=sys.stderr)


def _parts(name: str, _address: str, key: bytes, notice: Notice) -> NodeParts:
    return NodeParts(name, address(int(name.rpartition("-")[2])), key, notice)


async def lead(directory: Path, api: Api) -> dict[str, Any]:
    options = RunOptions(backend="k8s", clock_budget_ns=200_000_000)
    told = Told()
    config = DriverConfig("run1", str(directory), str(directory / "control"), options)
    with (directory / "driver.log").open("wb") as log:
        end = await driver.carry_out(config, make(KEY, api), told, log)
    wanted = {"outcome": end.outcome, "message": end.message}
    proven = len(told.facts.get("proof", ()))
    return {**told.record, **wanted, "proven": proven, "peak_mib": peak_mib()}


def main() -> int:
    raise_limit(0)
    directory, server, namespace, authority, token = sys.argv[1:]
    where = urlsplit(server)
    tls = ssl.create_default_context(cafile=authority)
    setattr(cluster_backend, "NodeParts", _parts)  # noqa: B010  # it is not mypy's to know
    api = Api(ApiAddress(where.hostname or "", where.port or 443, tls), namespace, Path(token))
    print(json.dumps(asyncio.run(lead(Path(directory), api))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
