"""What the coordinator asks of the cluster: pods of its own namespace, their logs, and commands in
them.

Input: the files that every pod with a token has. No library: the official one is 126 MB, and the
coordinator's image is to stay small (docs/dependencies.md). The token is read again for each
request, since kubelet replaces it every hour.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from runtime.backend.k8s import httpget, websocket
from runtime.backend.k8s.httpget import ApiAddress, HttpAnswer, HttpError
from runtime.errors import RunError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PAGE = 500  # pods in one answer: a few megabytes
PAGE_BYTES = 256 << 20
REASON_BYTES = 65536
WATCH_SECONDS = 240  # then the server ends it, and a new one begins
EXEC_PROTOCOL = "v4.channel.k8s.io"
GONE = 410  # what was asked for is older than what the server remembers
REFUSALS = {401: "does not know this account", 403: "does not allow it", 404: "has no such thing"}


class ApiError(RunError):
    """The API server does not answer (`status` 0), or says no: `status` as in HTTP."""

    def __init__(self, message: str, status: int = 0, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.status = status

    @property
    def final(self) -> bool:
        """Asking again will not help."""
        return self.status in REFUSALS


@dataclass(frozen=True, slots=True)
class Listed:
    """`items` are objects as the API has them, all as of `version`."""

    items: list[dict[str, Any]]
    version: str


class Api:
    """`token` is a file's path, None for a server that asks for none."""

    def __init__(self, server: ApiAddress, namespace: str, token: Path | None) -> None:
        self.namespace = namespace
        self._server = server
        self._token = token

    async def pods(self, selector: str) -> Listed:
        """All of them that the selector (of labels) matches. ApiError."""
        items: list[dict[str, Any]] = []
        query = {"labelSelector": selector, "limit": str(PAGE)}
        while True:
            async with self._get(self._path("pods"), query) as answer:
                page = _object(await answer.whole(PAGE_BYTES))
            try:
                items += page["items"]
                about = page["metadata"]
                following = about.get("continue", "")
                if not following:
                    return Listed(items, str(about["resourceVersion"]))
            except (KeyError, TypeError, AttributeError) as error:
                raise ApiError(f"the API server's list of pods is none: {error!r}") from error
            query["continue"] = following

    async def changes(self, selector: str, version: str) -> AsyncGenerator[dict[str, Any], None]:
        """`{"type": …, "object": …}` of each change since `version`, until the server ends it.

        ApiError, with status GONE when `version` is too old: then list again.
        """
        query = {
            "labelSelector": selector,
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        async with self._get(self._path("pods"), query) as answer:
            async for line in answer.lines():
                if not line.endswith(b"\n"):
                    return  # cut off: the next watch has it
                change = _object(line)
                if change.get("type") == "ERROR":
                    raise _refusal("watch pods", change.get("object"), 0)
                yield change

    @asynccontextmanager
    async def log(
        self, pod: str, container: str, since: str, *, follow: bool = True
    ) -> AsyncIterator[AsyncGenerator[bytes, None]]:
        """Lines of a container, each with the time before it and with its end (the last one may
        have none), from `since` on ('': all), as long as it runs or, without `follow`, those that
        are there. Inside the block there is an answer. ApiError."""
        query = {"container": container, "timestamps": "true"}
        if follow:
            query["follow"] = "true"
        if since:
            query["sinceTime"] = since
        async with (
            self._get(self._path("pods", pod, "log"), query) as answer,
            aclosing(answer.lines()) as lines,
        ):
            yield lines

    async def execute(
        self, pod: str, container: str, argv: Sequence[str]
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """Runs a command there to its end: channels (exec_status) and what came on them. ApiError.

        Who stops reading closes the connection; whether the command ends then is the container
        runtime's affair.
        """
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        query += [("command", word) for word in argv]
        path = self._path("pods", pod, "exec")
        wanted = f"{path}?{urlencode(query)}"
        headers = {**self._headers(), "Accept": "*/*"}  # JSON would be refused (406)
        try:
            async with websocket.opened(self._server, wanted, headers, EXEC_PROTOCOL) as (
                answer,
                messages,
            ):
                if answer.status != websocket.SWITCHED:
                    body = await answer.whole(REASON_BYTES)
                    raise _refusal(f"GET {path}", _told(body), answer.status)
                async with aclosing(messages):
                    async for message in messages:
                        if message:
                            yield message[0], message[1:]
        except HttpError as error:
            raise ApiError(f"the API server: {error.message}") from error

    def _path(self, *words: str) -> str:
        return "/".join(["/api/v1/namespaces", *map(quote, (self.namespace, *words))])

    @asynccontextmanager
    async def _get(self, path: str, query: Mapping[str, str]) -> AsyncIterator[HttpAnswer]:
        wanted = f"{path}?{urlencode(query)}"
        try:
            async with httpget.get(self._server, wanted, self._headers()) as answer:
                if answer.status != 200:
                    body = await answer.whole(REASON_BYTES)
                    raise _refusal(f"GET {path}", _told(body), answer.status)
                yield answer
        except HttpError as error:
            raise ApiError(f"the API server: {error.message}") from error

    def _headers(self) -> dict[str, str]:
        found = {"Accept": "application/json", "User-Agent": "thunderstorm"}
        if self._token is not None:
            try:
                token = self._token.read_text(encoding="ascii").strip()
            except (OSError, UnicodeError) as error:
                raise ApiError(f"cannot read the account's token: {error}") from error
            found["Authorization"] = f"Bearer {token}"
        return found


def in_cluster() -> Api:
    """By what kubelet gives a pod. RunError where this is none."""
    host, port = (
        os.environ.get("KUBERNETES_SERVICE_HOST"),
        os.environ.get("KUBERNETES_SERVICE_PORT"),
    )
    try:
        if not host or not port:
            raise ValueError("KUBERNETES_SERVICE_HOST is not set")
        namespace = (ACCOUNT / "namespace").read_text(encoding="ascii").strip()
        tls = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
        return Api(ApiAddress(host, int(port), tls), namespace, ACCOUNT / "token")
    except (OSError, ValueError) as error:
        raise RunError(
            f"this is no pod with an account of its cluster: {error}",
            "the coordinator is started by `tstorm run --backend k8s`",
        ) from error


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ApiError(f"the API server sent {data[:40]!r}, which is no object")
    return found


def _told(body: bytes) -> Any:
    """What a refusal says of itself, if it is one of the API's."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _refusal(what: str, told: Any, status: int) -> ApiError:
    """`told` is a Status of the API, or anything."""
    found = told if isinstance(told, dict) else {}
    code = found.get("code")
    number = code if isinstance(code, int) else status
    why = str(found.get("message") or REFUSALS.get(number) or f"status {number}")
    return ApiError(f"the API server refuses to {what}: {why:.500}", number)
