"""Whether `tstorm why` finds the draw that decided, in three experiments, each with ten seeds that
fail:

coins   two coins, drawn a second apart beside other draws, come up the same way;
redis   the site of a Redis primary goes dark, at a drawn moment, between an acknowledged write and
        its arrival at the replica, which takes over without it (redis-server of this machine);
etcd    a drawn one of three members of etcd is cut off at a drawn moment; if it is the leader, a
        client writes nothing for a second (etcd of this machine).

`python -m bench.virtual.why [coins|redis|etcd] [RUNS] [more]` writes
bench/results/virtual-why.json: of each run (with `more` beside those that are there), at which
place what decided stands among what is printed for the interval (of the coins without lines of a
program that writes all the time), how many branches that took, and how long, by the clock and of
processors; of the first run, whether a second answer is the same to the last byte. It ends with 1
if what decided is further than NEAR in more than one of ten, a run takes longer than MOST_S, or the
second answer differs.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import RESULTS, machine
from bench.tables import Cell, Record, Table

FILE = RESULTS / "virtual-why.json"
RUNS, NEAR, SEEDS, MOST_S = 10, 3, 200, 300
COINS = {
    "coins.tdl": """\
service two exec="sh coins.sh" files=coins.sh expect=success
service server exec="tprobe serve"
service client exec="tprobe rtt server.0 --count 100 --interval 25ms --each"
bridge s
link two--s latency=1ms
link server--s latency=2ms jitter=300us loss=2%
link client--s latency=2ms
at 5s quit
""",
    "coins.sh": """\
coin() { echo $(($(od -An -N1 -tu1 /dev/urandom) % 2)); }
sleep 1
one=$(coin); echo one is $one
sleep 1
two=$(coin); echo two is $two
sleep 1
[ $one$two != 11 ] || exit 3
""",
}
REDIS = {
    "redis.tdl": """\
service redis1 exec="redis-server --save '' --protected-mode no --repl-diskless-sync-delay 0"
service redis2 exec="redis-server --save '' --protected-mode no --replicaof redis1 6379"
service client exec="/usr/bin/python3 acked.py" files=acked.py expect=success
bridges here there
link redis1--here latency=1ms
link client--here latency=1ms
link client--there latency=20ms
link redis2--there latency=1ms
link here--there latency=10ms
from 4s to 8s here leave for 10s
at 11s quit
""",
    "acked.py": """\
import os, socket, sys, time

def ask(connection, *words):
    connection.settimeout(1)
    parts = [b"$%d\\r\\n%s\\r\\n" % (len(word), word) for word in map(str.encode, words)]
    connection.sendall(b"*%d\\r\\n" % len(parts) + b"".join(parts))
    return connection.recv(256).decode().split("\\r\\n")

def connected(host):
    return socket.create_connection((host, 6379), timeout=1)

time.sleep(1)
primary, acked = connected("redis1"), 0
try:
    while True:
        time.sleep((20 + os.urandom(1)[0] % 40) / 1000)
        acked = int(ask(primary, "INCR", "n")[0][1:])
except OSError as error:
    print("acknowledged", acked, error, flush=True)
time.sleep(1)
replica = connected("redis2")
ask(replica, "REPLICAOF", "NO", "ONE")
kept = int(ask(replica, "GET", "n")[1])
print("kept", kept, flush=True)
sys.exit(3 if kept < acked else 0)
""",
}
ETCD = {
    "etcd.tdl": """\
service db replicas=3 exec="./member.sh" stop=SIGKILL
service client exec="/usr/bin/python3 puts.py" files=puts.py expect=success
bridge s
link db--s latency=2ms
link client--s latency=2ms
from 4s to 6s partition 1 of db for 2s
at 9s quit
""",
    "member.sh": """\
#!/bin/sh
me=http://$TSTORM_INSTANCE here=http://$TSTORM_IPV4
all=db.0=http://db.0:2380,db.1=http://db.1:2380,db.2=http://db.2:2380
exec etcd --name $TSTORM_INSTANCE --data-dir data --pre-vote --log-level error \\
    --initial-cluster $all --initial-advertise-peer-urls $me:2380 --listen-peer-urls $here:2380 \\
    --advertise-client-urls $me:2379 --listen-client-urls $here:2379
""",
    "puts.py": """\
import itertools, sys, time
from urllib import request

time.sleep(2.5)
began, last = time.monotonic(), None
for number in itertools.count():
    put = request.Request(f"http://db.{number % 3}:2379/v3/kv/put", b'{"key": "aw==", "value": ""}')
    try:
        request.urlopen(put, timeout=0.4).read()
    except OSError:
        continue
    finally:
        now = time.monotonic()
        if last and now - last > 1:
            print("nothing was written for 1 s", flush=True)
            sys.exit(3)
        if now - began > 5:
            break
    last = now
    time.sleep(0.05)
""",
}


@dataclass(frozen=True, slots=True)
class Puzzle:
    """`decides`: whether these words are of what decided."""

    files: Mapping[str, str]
    decides: Callable[[str], bool]
    noise: str = ""  # begin of words that do not count


PUZZLES = {
    "coins": Puzzle(COINS, lambda words: words == "two.0: two is 1", "client.0: "),
    "redis": Puzzle(REDIS, lambda words: words == "here bridge_down"),
    "etcd": Puzzle(ETCD, lambda words: words.endswith(" link_down")),
}


def tstorm(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "tstorm", *words]
    return subprocess.run(argv, cwd=place, capture_output=True, text=True, check=False)


def processor_seconds() -> float:
    """Of all that this process has begun and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def asked(place: Path, run: str) -> subprocess.CompletedProcess[str]:
    return tstorm(place, "why", run, "--quiet", "--format", "json")


def found(place: Path, run: str, puzzle: Puzzle, *, twice: bool) -> dict[str, Any]:
    began, before_s = time.monotonic(), processor_seconds()
    done = asked(place, run)
    if done.returncode:
        return {"run": run, "error": done.stderr[-300:]}
    said = json.loads(done.stdout)
    seconds = time.monotonic() - began
    used_s = processor_seconds() - before_s
    if not said["jumps"]:
        return {"run": run, "error": "no jump was found", "branches": said["branches"]}
    last = said["jumps"][-1]
    begin_ns, end_ns = last["before"]["at_ns"], last["after_ns"]
    within = [
        one["words"]
        for one in last["happenings"]
        if one["what"] == "drawn" or (one["from_ns"] <= end_ns and one["at_ns"] >= begin_ns)
    ]
    words = [one for one in within if not puzzle.noise or not one.startswith(puzzle.noise)]
    return {
        "run": run,
        "at": next((place for place, one in enumerate(words) if puzzle.decides(one)), None),
        "interval_ns": [begin_ns, end_ns],
        "jumps": len(said["jumps"]),
        "branches": said["branches"],
        "seconds": round(seconds, 1),
        "processor_seconds": round(used_s, 1),
    } | ({"same_twice": asked(place, run).stdout == done.stdout} if twice else {})


def measured(name: str, wanted: int, rows: list[dict[str, Any]]) -> None:
    """Adds to the rows that there are those of later seeds."""
    puzzle = PUZZLES[name]
    first = 1 + max((int(one["run"].removeprefix("seed-")) for one in rows), default=-1)
    with tempfile.TemporaryDirectory(prefix="ts-why-") as folder:
        place = Path(folder)
        for file, text in puzzle.files.items():
            (place / file).write_text(text)
            (place / file).chmod(0o755)
        for seed in range(first, SEEDS):
            if len(rows) >= wanted:
                return
            run = f"seed-{seed}"
            words = ("--seed", str(seed), "--time", "virtual", "--packets", "--quiet", "--out", run)
            if tstorm(place, "run", f"{name}.tdl", *words).returncode == 5:
                rows.append(found(place, run, puzzle, twice=not rows))
                print(name, rows[-1], flush=True)
                written(name, rows)


def is_near(one: Mapping[str, Any]) -> bool:
    return one.get("at") is not None and one["at"] <= NEAR


def known() -> dict[str, list[dict[str, Any]]]:
    """What was found so far, by experiment."""
    results = json.loads(FILE.read_text())["results"]["why"] if FILE.exists() else []
    return {one["name"]: one["runs"] for one in results}


def written(name: str, rows: list[dict[str, Any]]) -> None:
    """Keeps what was found so far, beside what was found of others."""
    results = [{"name": one, "runs": runs} for one, runs in {**known(), name: rows}.items()]
    document = {"machine": machine.describe(), "results": {"why": results}}
    FILE.write_text(json.dumps(document, indent=1) + "\n")


def main(names: list[str], wanted: int, *, more: bool) -> int:
    right = True
    for name in names:
        rows = known().get(name, []) if more else []
        measured(name, wanted, rows)
        near, long = sum(map(is_near, rows)), [one.get("seconds", 0) > MOST_S for one in rows]
        print(f"{name}: {near} of {len(rows)} within {NEAR}, {sum(long)} took over {MOST_S} s")
        same = all(one.get("same_twice", True) for one in rows)
        right = right and same and near >= len(rows) - 1 and len(rows) == wanted and not any(long)
    return 0 if right else 1


def _between(value: Callable[[Record], float | None], form: str) -> Cell:
    """The least and the most of the runs of which it is known."""

    def cell(row: Record) -> str:
        found = [one for one in map(value, row["runs"]) if one is not None]
        return f"{min(found):{form}} to {max(found):{form}}" if found else "–"

    return cell


def _same(row: Record) -> str:
    told = [one["same_twice"] for one in row["runs"] if "same_twice" in one]
    return {True: "yes", False: "no"}[all(told)] if told else "–"


TABLES = (
    Table(
        {
            "failure": "{name}",
            "runs": lambda row: len(row["runs"]),
            f"what decided stands within {NEAR}": lambda row: sum(map(is_near, row["runs"])),
            "interval, ms": _between(
                lambda one: (one["interval_ns"][1] - one["interval_ns"][0]) / 1e6, ".1f"
            ),
            "branches": _between(lambda one: one["branches"], "g"),
            "seconds": _between(lambda one: one["seconds"], ".0f"),
            "processor seconds": _between(lambda one: one.get("processor_seconds"), ".0f"),
            "the same answer twice": _same,
        }
    ),
)


if __name__ == "__main__":
    given = sys.argv[1:]
    chosen = [one for one in given if one in PUZZLES]
    runs = [int(one) for one in given if one.isdecimal()]
    sys.exit(main(chosen or list(PUZZLES), runs[0] if runs else RUNS, more="more" in given))
