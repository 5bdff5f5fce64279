"""Mutated plans: reading one ends in a Plan or in a PlanError, soon and in little memory.

    python -m tests.fuzz.fuzz_plan [--seconds N] [--seed N]

Bytes are flipped, cut and copied; JSON values are replaced, removed and moved; integers of
routes.bin are overwritten. Most mutants get correct sizes and digests, so that the fault is met
deep inside. Prints the seed of the first failure and exits 1.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import random
import struct
import sys
import time
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from compiler.analysis.effects import effects
from compiler.analysis.history import History
from compiler.analysis.path_explanation import story
from compiler.analysis.plan_diff import compare_plans
from compiler.plan import format as form
from compiler.plan.format import PlanError
from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan, decode
from compiler.plan.sparse import SparseState
from compiler.plan.state import NetworkState
from compiler.plan.writer import encode
from manifests import bundle, compose, kubernetes
from manifests.refusal import ManifestError
from manifests.render_options import Options
from tests.fuzz.seeds import Words, mutate_bytes, run
from tests.plan.networks import RandomTimeline, contents, random_topology

STRANGE: tuple[Any, ...] = (
    0, 1, -1, 2, 9, 65_535, 65_536, 2**31, 2**32, 2**63 - 1, 2**63, 10**30, True, None, 0.5, "",
    "s1", "server.0", "a->b", "\ud800", "\n", [], {}, [[]], [0, "up"], {"rate_bps": 1},
)  # fmt: skip
SLOW_SECONDS = 5.0


def base(rnd: random.Random) -> dict[str, bytes]:
    topology = random_topology(rnd, rnd.randint(1, 4), rnd.randint(0, 6))
    return encode(contents(topology, RandomTimeline(rnd, topology).draw(rnd.randint(0, 12))))


def sign(files: dict[str, bytes]) -> None:
    try:
        header = json.loads(files[form.HEADER])
        for name in form.FILES:
            data = files[name]
            digest = hashlib.sha256(data).hexdigest()
            header["files"][name] = {"sha256": digest, "size": len(data)}
        files[form.HEADER] = form.canonical(header)
    except (ValueError, TypeError, KeyError):
        return  # a header too broken to sign is a fine mutant too


def mutate_integers(rnd: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(rnd.choice([1, 2, 4])):
        layout = rnd.choice(["<H", "<I", "<Q"])
        size = struct.calcsize(layout)
        if len(found) < size:
            break
        value = rnd.choice([0, 1, 2, 3, 255, rnd.randrange(len(found)), 2 ** (8 * size) - 1])
        at = rnd.randrange(0, len(found) - size + 1, 2)
        struct.pack_into(layout, found, at, value % 2 ** (8 * size))
    return bytes(found)


def containers(value: Any) -> list[Any]:
    """Every non-empty list and object in a JSON value."""
    if not isinstance(value, list | dict) or not value:
        return []
    inner = list(value.values()) if isinstance(value, dict) else value
    return [value, *(found for item in inner for found in containers(item))]


def mutate_json(rnd: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return b"{}\n"
    at = rnd.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except ValueError:
        return data  # an earlier mutation broke this line
    for _ in range(rnd.choice([1, 1, 3])):
        places = containers(value)
        if not places:
            break
        place = rnd.choice(places)
        key = rnd.choice(sorted(place) if isinstance(place, dict) else range(len(place)))
        kind = rnd.randrange(6)
        if kind == 0:
            del place[key]
        elif kind == 1 and isinstance(place, list):
            place.insert(key, copy.deepcopy(place[-1]))
        elif kind == 2 and isinstance(place[key], int):
            place[key] += rnd.choice([-1, 1, 2])
        else:
            place[key] = copy.deepcopy(rnd.choice(STRANGE))
    lines[at] = (json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n").encode()
    if rnd.random() < 0.1:
        rnd.shuffle(lines)
    return b"".join(lines)


def mutant(rnd: random.Random) -> dict[str, bytes]:
    files = base(rnd)
    for _ in range(rnd.choice([1, 1, 2])):
        name = rnd.choice(sorted(files))
        if name.endswith((".json", ".jsonl")) and rnd.random() < 0.8:
            files[name] = mutate_json(rnd, files[name])
        elif name == form.ROUTES and rnd.random() < 0.8:
            files[name] = mutate_integers(rnd, files[name])
        else:
            files[name] = mutate_bytes(rnd, files[name])
    if rnd.random() < 0.9:
        sign(files)
    return files


def use(files: dict[str, bytes], original: dict[str, bytes]) -> None:
    """Everything that the commands and the runtime do with a plan."""
    use_manifests(files)
    with contextlib.suppress(PlanError):  # trusts more than what reads the plan as a whole below
        use_answers(decode(files, lazy=True), decode(original))
    plan = decode(files, lazy=True)
    for at_ns in (0, 10**9, plan.end_ns):
        with contextlib.suppress(PlanError):  # may stand where the strict reader looks first
            use_paths(plan.sparse_at(at_ns))
        use_paths(plan.state_at(at_ns))
    for epoch in plan.epochs:
        for group in plan.route_groups(epoch.index):
            group.dests()
    plan.verify()
    plan.verify(deep=True)
    try:
        use_paths(plan.sparse_at(plan.end_ns))
    except PlanError as error:
        raise AssertionError("only the sparse reader refuses it") from error


def use_answers(plan: Plan, original: Plan) -> None:
    """What explain and diff do."""
    history = History(plan)
    for src in range(min(plan.core.endpoints, 3)):
        for dst in range(plan.core.endpoints):
            if src != dst:
                story(history, src, dst, plan.end_ns)
    if plan.events:
        effects(plan, plan.events[-1])
    compare_plans(original, plan)
    compare_plans(plan, original)


def use_manifests(files: dict[str, bytes]) -> None:
    """Rendering and carrying it: what comes out of the shards is what went in."""
    for slim in (False, True):
        carried = bundle.make(decode(files), slim=slim)
        found = bundle.unpack(carried.shards, carried.digest)
        assert found.items() <= files.items()
    for render in (kubernetes.render, compose.render):
        with contextlib.suppress(ManifestError):  # a plan may say what a cluster refuses
            render(carried, Options())


def use_paths(state: NetworkState | SparseState) -> None:
    paths = Paths(state)
    for src in range(state.core.endpoints):
        for dst in range(state.core.endpoints):
            if src != dst:
                paths.path(src, dst)


def attempt(seed: int) -> bool:
    """True if this mutant was still a valid plan. Raises whatever is not a PlanError."""
    files = mutant(random.Random(seed))
    started = time.process_time()
    try:
        use(files, base(random.Random(seed)))
        fine = True
    except PlanError:
        fine = False
    taken = time.process_time() - started
    if taken > SLOW_SECONDS:
        raise TimeoutError(f"{taken:.1f} s for a plan of {sum(map(len, files.values()))} bytes")
    return fine


def main() -> int:
    closing = "{count} mutated plans, {true} still valid, the others refused"
    return run("fuzz_plan", __doc__, attempt, Words("valid", "refused", closing))


if __name__ == "__main__":
    sys.exit(main())
