"""The addresses of the page's server: the page, and version 1 of the interface for programs.

docs/openapi.json describes them (tstorm/ui/openapi.py). What changes the run is done as `tstorm do`
does it, one at a time, in a thread; few may wait for their turn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from compiler.extension import MOST_BYTES
from runtime.errors import RunError
from runtime.page.page_file import live_page
from tdl import values
from tdl.values import ValueProblem
from tstorm import units
from tstorm.live import steer
from tstorm.live.answers import ActionAnswer, answered, refusal_text
from tstorm.live.steer import Done
from tstorm.ui import openapi
from tstorm.ui.feed import Feed, LaggingError

API = "/api/v1"
BODY_BYTES = 2 * MOST_BYTES  # of JSON that has a text
BODY_SECONDS = 10.0
LAG_SECONDS = 10.0  # in which who listens takes something
PART_BYTES = 1 << 16  # of a long message, that is sent at a time
MOST_WAITING = 4  # for an action before theirs


_Said = tuple[dict[str, int | None], str]  # a record, and the same for people


class _RefusedError(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class _Stream:
    """Server-sent events to one who listens."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            listener = await self._feed.listen()
        except RunError as error:
            return await JSONResponse({"error": str(error)}, 503)(scope, receive, send)
        if listener is None:
            refusal = JSONResponse({"error": "too many look at this run at once"}, 503)
            return await refusal(scope, receive, send)
        head = [(b"content-type", b"text/event-stream; charset=utf-8")]
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": head})
            while (message := await _first(listener.next(), gone)) is not None:
                for begin in range(0, len(message), PART_BYTES):
                    part = message[begin : begin + PART_BYTES]
                    body = {"type": "http.response.body", "body": part, "more_body": True}
                    async with asyncio.timeout(LAG_SECONDS):
                        await send(body)
                    if listener.lags:
                        raise LaggingError
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        except (LaggingError, TimeoutError):
            scope.get("state", {}).get("hang_up", _nothing)()
        finally:
            gone.cancel()
            self._feed.leave(listener)


def _nothing() -> None:
    return


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(message: Any, gone: asyncio.Task[None]) -> bytes | None:
    """What comes; None if who listens has gone."""
    task = asyncio.ensure_future(message)
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()


@dataclass(frozen=True, slots=True)
class ServedRun:
    """What is served. `name`: how the run is found on this machine."""

    name: str
    feed: Feed
    metrics: Callable[[], str]


class _Steering:
    def __init__(self, run: str, feed: Feed) -> None:
        self._run = run
        self._feed = feed
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def do(self, request: Request) -> Response:
        async def act() -> Response:
            body = await _body(request, ("text",))
            text = body.get("text")
            if not isinstance(text, str) or not text.strip():
                raise _RefusedError(422, "`text` is to be a statement")
            if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
                raise _RefusedError(413, f"an action has at most {MOST_BYTES} bytes")
            return await self._carried_out(lambda: steer.do(self._run, text), text)

        return await _answer(act)

    async def hold(self, request: Request) -> Response:
        return await self._plain(request, steer.hold, "hold")

    async def hold_time(self, request: Request) -> Response:
        def act() -> _Said:
            held_ns = steer.hold_time(self._run)
            return {"time_held_ns": held_ns}, f"time is held at {units.duration(held_ns)}"

        return await self._in_turn(request, lambda: self._of_time(act))

    async def go(self, request: Request) -> Response:
        """Time, where that is held, as `tstorm go`; else what is planned."""

        def act() -> _Said | None:
            went = steer.let_time_go(self._run)
            return ({"time_held_ns": None}, "time goes on") if went else None

        return await self._in_turn(
            request, lambda: self._of_time(act) or self._answered(lambda: steer.go(self._run), "go")
        )

    def _of_time(self, act: Callable[[], _Said | None]) -> JSONResponse | None:
        try:
            said = act()
        except RunError as error:
            return JSONResponse({"error": str(error), "text": refusal_text(error)}, 409)
        if said is None:
            return None
        self._feed.hold_time(said[0]["time_held_ns"])
        return JSONResponse({"ok": said[0], "warnings": [], "text": f"{said[1]}\n"})

    async def skip(self, request: Request) -> Response:
        async def act() -> Response:
            to = (await _body(request, ("to",))).get("to")
            if not isinstance(to, str):
                raise _RefusedError(422, '`to` is to be a time such as "30s", or "next"')
            try:
                to_ns = None if to == "next" else values.time(to)
            except ValueProblem as error:
                raise _RefusedError(422, f"`to`: {error}") from None
            return await self._carried_out(lambda: steer.skip(self._run, to_ns), f"skip to {to}")

        return await _answer(act)

    async def _plain(self, request: Request, act: Callable[[str], Done], word: str) -> Response:
        return await self._in_turn(request, lambda: self._answered(lambda: act(self._run), word))

    async def _in_turn(self, request: Request, act: Callable[[], Response | None]) -> Response:
        """Of a request that says nothing more."""

        async def acted() -> Response:
            await _body(request, ())
            return await self._after_others(act)

        return await _answer(acted)

    async def _carried_out(self, act: Callable[[], Done], text: str) -> Response:
        return await self._after_others(lambda: self._answered(act, text))

    def _answered(self, act: Callable[[], Done], text: str) -> Response:
        answer: ActionAnswer = answered(act)
        record = {**answer.record, "text": answer.text("action", text)}
        return JSONResponse(record, 409 if answer.exit_code else 200)

    async def _after_others(self, act: Callable[[], Response | None]) -> Response:
        if self._waiting >= MOST_WAITING:
            raise _RefusedError(429, "too many actions at once: try again")
        self._waiting += 1
        try:
            async with self._turn:
                found = await asyncio.to_thread(act)
        finally:
            self._waiting -= 1
        assert found is not None
        return found


async def _answer(act: Callable[[], Any]) -> Response:
    try:
        response: Response = await act()
    except _RefusedError as error:
        return JSONResponse({"error": str(error)}, error.status)
    return response


async def _body(request: Request, known: tuple[str, ...]) -> dict[str, Any]:
    """An object of JSON, of bounded size, in bounded time."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _RefusedError(415, "the body is to be application/json")
    data = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                data += part
                if len(data) > BODY_BYTES:
                    raise _RefusedError(413, f"a request has at most {BODY_BYTES} bytes")
    except TimeoutError:
        raise _RefusedError(408, "the request did not end") from None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise _RefusedError(400, "the body is no JSON") from None
    if not isinstance(found, dict) or not set(found) <= set(known):
        what = " and ".join(f"`{name}`" for name in known) or "nothing in it"
        raise _RefusedError(422, f"the body is to be an object with {what}")
    return found


def application(run: ServedRun) -> Starlette:
    """All of it, without who may (tstorm/ui/access.py)."""
    steering, page = _Steering(run.name, run.feed), live_page(API)

    async def index(_request: Request) -> Response:
        return HTMLResponse(page)

    async def state(_request: Request) -> Response:
        try:
            return JSONResponse(await run.feed.read(run.feed.whole))
        except RunError as error:
            return JSONResponse({"error": str(error)}, 503)

    async def described(_request: Request) -> Response:
        return JSONResponse(openapi.document())

    async def metrics(_request: Request) -> Response:
        text = await run.feed.read(run.metrics)
        return Response(text, media_type=openapi.OPENMETRICS)

    posts = {"do": steering.do, "hold": steering.hold, "go": steering.go, "skip": steering.skip}
    posts["hold-time"] = steering.hold_time
    return Starlette(
        routes=[
            Route("/", index, methods=["GET"]),
            Route("/metrics", metrics, methods=["GET"]),
            Route(f"{API}/state", state, methods=["GET"]),
            Route(f"{API}/stream", _Stream(run.feed), methods=["GET"]),
            Route(f"{API}/openapi.json", described, methods=["GET"]),
            *(Route(f"{API}/{name}", act, methods=["POST"]) for name, act in posts.items()),
        ]
    )
