"""The experiments that have to repeat to the last byte in virtual time, with the real programs that
each needs: those of examples/ that run on one machine, and those of tests/virtual/experiments.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = CHECKOUT / "examples"
OURS = Path(__file__).resolve().parent / "experiments"
_SYSTEM = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin"


def _no_program(*names: str) -> Callable[[], str]:
    def lacking() -> str:
        missing = [name for name in names if shutil.which(name, path=_SYSTEM) is None]
        return f"{' and '.join(missing)} not installed" if missing else ""

    return lacking


def _no_postgres() -> str:
    return "" if list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) else "no PostgreSQL"


def _no_zookeeper() -> str:
    if not Path("/usr/share/java/zookeeper.jar").exists():
        return "zookeeper not installed"
    return _no_program("java")()


def _build_gossip(folder: Path) -> None:
    go = shutil.which("go", path=_SYSTEM)
    subprocess.run(
        [str(go), "build", "-o", str(folder / "programs/gossip"), str(OURS / "programs/gossip.go")],
        check=True,
    )


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    folder: Path  # of its TDL file and of its programs
    options: tuple[str, ...] = ()  # of the run: the part that is run of long ones
    lacking: Callable[[], str] = str  # what this machine lacks for it; "" if nothing
    build: Callable[[Path], None] | None = None  # makes its programs, in a copy of its folder

    def staged(self, copies: Path) -> Path:
        """Its TDL file, in a copy of its folder where programs had to be built."""
        if self.build is None:
            return self.folder / f"{self.name}.tdl"
        copy = copies / self.name
        if not copy.exists():
            shutil.copytree(self.folder, copy)
            self.build(copy)
        return copy / f"{self.name}.tdl"


_REDIS = _no_program("redis-server", "redis-sentinel", "redis-benchmark", "redis-cli")
ALL = (
    Experiment("quickstart", EXAMPLES),
    Experiment("churn", EXAMPLES),
    Experiment("demo", EXAMPLES),
    Experiment("dumbbell", EXAMPLES, ("--start-at", "58s", "--until", "64s")),
    Experiment("dynamics", EXAMPLES, ("--until", "11s"), lacking=_no_program("iperf3")),
    Experiment("failovers", EXAMPLES / "reactions", lacking=_REDIS),
    Experiment("fattree", EXAMPLES / "networks", ("--start-at", "3900ms", "--until", "4200ms")),
    Experiment("listing1", EXAMPLES, ("--until", "1h")),
    Experiment("lostwrites", EXAMPLES, lacking=_REDIS),
    Experiment("matrix", EXAMPLES),
    Experiment("partition", EXAMPLES, lacking=_no_program("etcd", "etcdctl")),
    Experiment("leaders", EXAMPLES / "reactions", lacking=_no_program("etcd")),
    Experiment("replicas", EXAMPLES),
    Experiment("sixclients", EXAMPLES, ("--start-at", "58s", "--until", "63s")),
    Experiment("redis", OURS, lacking=_REDIS),
    Experiment("postgres", OURS, lacking=_no_postgres),
    Experiment("mariadb", OURS, lacking=_no_program("mariadbd", "mariadb", "mariadb-install-db")),
    Experiment("zookeeper", OURS, lacking=_no_zookeeper),
    Experiment("nginx", OURS, lacking=_no_program("nginx", "ab", "wrk")),
    Experiment("node", OURS, lacking=_no_program("node")),
    Experiment("asyncio", OURS),
    Experiment("go", OURS, lacking=_no_program("go"), build=_build_gossip),
    Experiment("flows", OURS, lacking=_no_program("iperf3")),
    Experiment("memcached", OURS, lacking=_no_program("memcached")),
    Experiment("nats", OURS, lacking=_no_program("nats-server")),
)
