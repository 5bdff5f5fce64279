"""`steer`: passes on to the driver what somebody outside asks of it, as `tstorm do` asks on one
machine, and takes the longer plans that go with that.

Requests and answers are lines of JSON, in turn, to the end of stdin:

    {"plan": true}                           {"digest": D, "sizes": [L, …]}, and then the shards
    {"ask": REQUEST}                         what the driver answers
    {"ask": REQUEST, "digest": D,            the same; the shards that follow are left in the run
     "sizes": [L, …]}, then the shards       directory as a plan, which REQUEST has as "plan"

Shards are those of compiler/plan/storage/plan_shards.py. A refusal is {"error", "remedy"}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from compiler.plan.format import PlanError
from compiler.plan.storage import scratch
from compiler.plan.storage.delivery import ArrivingPlan
from compiler.plan.storage.plan_shards import MAX_SHARDS, SHARD_BYTES
from runtime.errors import RunError, unwritten
from runtime.job.container_paths import ContainerPaths
from runtime.job.follow import shards_of
from runtime.json_schema import Shape, check, integer, parse
from runtime.rpc.control import REQUEST_BYTES, ask, encode, refusal
from runtime.rundir.runfiles import LONGER_PLAN, PLAN

LINE_BYTES = REQUEST_BYTES + 16 * MAX_SHARDS
_SIZES = Shape([integer(1, SHARD_BYTES)])
PLAN_TRIES = 20  # of reading one while it is replaced
_WHAT = "the request"


class SteeringSession:
    """With one caller, over these two streams."""

    def __init__(self, places: ContainerPaths, requests: BinaryIO, answers: BinaryIO) -> None:
        self._places = places
        self._in, self._out = requests, answers

    def run(self) -> None:
        """Until the caller goes. RunError for what is no request: nothing after it is known to be
        one."""
        while line := self._in.readline(LINE_BYTES + 1):
            if not line.endswith(b"\n"):
                raise RunError(f"{_WHAT} has no end, or more than {LINE_BYTES} bytes")
            request = parse(line, _WHAT)
            if type(request) is not dict:
                raise RunError(f"{_WHAT} must be an object")
            shards = self._shards(request)
            try:
                self._put(*self._answered(request, shards))
            except RunError as error:
                self._put(refusal(error), b"")

    def _shards(self, request: Mapping[str, Any]) -> list[bytes]:
        """What follows the line. RunError if it is cut."""
        sizes = request.get("sizes", [])
        check(sizes, _SIZES, f"{_WHAT}: sizes")
        found = [self._in.read(size) for size in sizes[:MAX_SHARDS]]
        if [len(data) for data in found] != sizes:
            raise RunError(f"{_WHAT} is cut")
        return found

    def _answered(
        self, request: Mapping[str, Any], shards: list[bytes]
    ) -> tuple[Mapping[str, object], bytes]:
        if "plan" in request:
            return self._plan()
        asked = request.get("ask")
        if type(asked) is not dict:
            raise RunError(f"{_WHAT}: ask must be an object")
        if not shards:
            return ask(self._places.control, asked)[0], b""
        return self._offered(asked, str(request.get("digest")), shards), b""

    def _plan(self) -> tuple[Mapping[str, object], bytes]:
        for left in reversed(range(PLAN_TRIES)):
            try:
                digest, shards = shards_of(self._places.run / PLAN)
                break
            except (PlanError, OSError) as error:  # it is being replaced
                if not left:
                    raise RunError(f"the plan of the run cannot be read: {error}") from error
        return {"digest": digest, "sizes": [len(data) for data in shards]}, b"".join(shards)

    def _offered(
        self, asked: Mapping[str, Any], digest: str, shards: list[bytes]
    ) -> Mapping[str, object]:
        arriving = ArrivingPlan()
        for number, data in enumerate(shards):
            arriving.take(digest, number, data)
        try:
            files = arriving.files()
            with scratch.filled(self._places.run, LONGER_PLAN, files) as path:
                return ask(self._places.control, {**asked, "plan": path.name})[0]
        except PlanError as error:
            raise RunError(f"{error.file}: {error.what}", error.hint) from error
        except OSError as error:
            raise unwritten(error) from error

    def _put(self, answer: Mapping[str, object], data: bytes) -> None:
        self._out.write(encode(answer) + data)
        self._out.flush()
