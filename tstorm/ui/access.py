"""Who gets anything: whoever has the secret, and no page of another origin.

Input: each request, before anything is done for it. The secret comes in a header only
(`Authorization: Bearer`): browsers send no header by themselves, so no other page can use what the
user may do, and it is not shown to other ports of this machine as cookies are. A name in `Host`
that is not this machine's is refused, since another page's name may lead here (DNS rebinding).
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

OPEN_PATHS = ("/",)  # the page itself has nothing of the run
SAME = ("same-origin", "none")  # Sec-Fetch-Site of the page, and of an address that was typed
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class Guarded:
    """`names`: of this machine, that may stand in `Host` beside addresses and `localhost`."""

    def __init__(self, app: ASGIApp, token: str, names: Iterable[str]) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._names = frozenset(name.lower() for name in ("localhost", *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.responses import JSONResponse

        async def sent(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_HEADERS]}  # type: ignore[misc]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, sent)  # type: ignore[arg-type]
            return
        status, words = refusal
        answer = JSONResponse({"error": words}, status)
        await answer(scope, receive, sent)  # type: ignore[arg-type]

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = scope["headers"]
        host = _only(headers, b"host")
        if host is None or not self._is_own(host):
            return 403, "this name does not lead here: use the link that tstorm ui has printed"
        origin = _only(headers, b"origin", "")
        if origin is None or (origin and origin.lower() != f"http://{host}".lower()):
            return 403, "a page of another origin gets nothing"
        if _only(headers, b"sec-fetch-site", "none") not in SAME:
            if scope["path"] in OPEN_PATHS and scope["method"] == "GET":
                return None  # a link somewhere leads here: the page, which has nothing of the run
            return 403, "a page of another origin gets nothing"
        if scope["path"] in OPEN_PATHS:
            return None
        given = _only(headers, b"authorization", "") or ""
        if not hmac.compare_digest(given.encode("latin-1", "replace"), self._expected):
            return 401, "this takes the secret of the link that tstorm ui has printed"
        return None

    def _is_own(self, host: str) -> bool:
        name = host.lower()
        begin, end = ("[", "]") if name.startswith("[") else ("", ":")
        name = name.removeprefix(begin).partition(end)[0]
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _only(
    headers: Iterable[tuple[bytes, bytes]], name: bytes, default: str | None = None
) -> str | None:
    """The value of a header; None if it is there more than once."""
    found = [value for key, value in headers if key == name]
    if not found:
        return default
    return found[0].decode("latin-1") if len(found) == 1 else None
