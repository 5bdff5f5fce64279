"""A coordinator with up to 1,000 agents and 5,000 instances: time, memory, bytes.

The agents are simulated, all in one process (bench.agents.simulated); the coordinator is another
process (bench.agents.coordinating) with the memory that it would have in a cluster. On a machine of
two processors the agents' side takes as much time as the coordinator's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import ROOT
from bench.errors import BenchError
from bench.tables import Record, Table
from compiler.pipeline import compile_source, write
from runtime.options import RunOptions
from runtime.rpc.secure import make_key
from runtime.schedule import Schedule

INSTANCES_A_HOST = 5
STEPS = 4
SECONDS = 300

TABLES = (
    Table(
        {
            "Hosts, instances": "{hosts}, {instances}",
            "connect and prepare": "{ready_s} s",
            "ports, clocks, start": "{start_s} s",
            "sent / received": "{sent_mb} / {received_mb} MB",
            "memory, plan alone": "{peak_mib:.0f} MiB, {plan_mib:.0f} MiB",
            "a step, CPU": "{step_cpu_ms} ms",
            "watch, of a core": "{watch_percent} %",
        }
    ),
)


def measure(quick: bool) -> list[Record]:
    """A row for each number of hosts."""
    return [_run(hosts) for hosts in ((20,) if quick else (64, 256, 1000))]


def text(instances: int) -> str:
    """Half of the instances on each side of a backbone whose delay changes."""
    lines = [
        f"service client img=alpine:3 replicas={instances // 2}",
        f"service server img=alpine:3 replicas={instances - instances // 2}",
        "bridges s1 s2",
        "link client--s1 latency=1ms up=100Mb symmetric",
        "link server--s2 latency=1ms up=100Mb symmetric",
        "link s1--s2 latency=10ms up=1Gb symmetric",
        *(f"at {step}s s1--s2 set latency={10 + step}ms" for step in range(1, STEPS)),
        f"at {STEPS}s quit",
    ]
    return "\n".join([*lines, ""])


def _run(hosts: int) -> Record:
    instances = INSTANCES_A_HOST * hosts
    key = make_key().hex()
    with tempfile.TemporaryDirectory(prefix="tstorm-bench-") as name:
        plan = Path(name) / "large.plan"
        compiled = compile_source(text(instances))
        write(compiled, plan)
        steps = len(Schedule(compiled.plan, RunOptions()).steps)
        words = [sys.executable, "-m", "bench.agents.simulated", str(hosts), str(steps)]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as agents:
            assert agents.stdin is not None
            assert agents.stdout is not None
            print(key, file=agents.stdin, flush=True)
            done = subprocess.run(
                [sys.executable, "-m", "bench.agents.coordinating", str(plan)],
                input=json.dumps({"key": key, "ports": json.loads(agents.stdout.readline())}),
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                timeout=SECONDS,
                check=False,
            )
            agents.stdin.close()
    if done.returncode != 0:
        raise BenchError(f"the coordinator of {hosts} agents ended with {done.returncode}")
    return {"hosts": hosts, "instances": instances, **json.loads(done.stdout)}
