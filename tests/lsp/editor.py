"""An editor as the language server meets it: a process that it speaks JSON-RPC to, over pipes."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

WAIT_SECONDS = 120
Message = dict[str, Any]


class Editor:
    """Starts `tstorm lsp` with a folder open, and ends it as an editor does."""

    def __init__(self, folder: Path, *, encodings: tuple[str, ...] | None = ("utf-16",)) -> None:
        self.folder = folder
        self.server = subprocess.Popen(
            [sys.executable, "-m", "tstorm", "lsp", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
        )
        self.heard: list[Message] = []
        self._bytes = b""
        self._last = 0
        self.version = 0
        general = {} if encodings is None else {"positionEncodings": list(encodings)}
        self.capabilities = self.request(
            "initialize",
            processId=os.getpid(),
            rootUri=folder.as_uri(),
            capabilities={"general": general},
            workspaceFolders=[{"uri": folder.as_uri(), "name": folder.name}],
        )["capabilities"]
        self.notify("initialized")

    def __enter__(self) -> Editor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.request("shutdown")
                self.notify("exit")
                assert self.server.wait(WAIT_SECONDS) == 0
        finally:
            self.server.kill()
            self.server.wait()
            assert self.server.stdin is not None
            assert self.server.stdout is not None
            self.server.stdin.close()
            self.server.stdout.close()

    # --- texts ---

    def uri(self, name: str) -> str:
        """A name that is one already stays."""
        return name if ":" in name else (self.folder / name).as_uri()

    def open(self, name: str, text: str | None = None) -> list[Message]:
        """What is wrong with a file, or with this text in its place."""
        if text is None:
            text = (self.folder / name).read_text()
        self.version += 1
        item = {"uri": self.uri(name), "languageId": "tdl", "version": self.version, "text": text}
        self.notify("textDocument/didOpen", textDocument=item)
        return self.diagnostics(name)

    def change(self, name: str, text: str) -> None:
        self.version += 1
        named = {"uri": self.uri(name), "version": self.version}
        self.notify("textDocument/didChange", textDocument=named, contentChanges=[{"text": text}])

    def change_before_answer(self, name: str, texts: list[str]) -> None:
        """Opens it with the first and goes on to the others at once."""
        item = {"uri": self.uri(name), "languageId": "tdl", "version": 0, "text": texts[0]}
        self.notify("textDocument/didOpen", textDocument=item)
        for text in texts[1:]:
            self.change(name, text)

    def close(self, name: str) -> None:
        self.notify("textDocument/didClose", textDocument={"uri": self.uri(name)})

    def diagnostics(self, name: str, version: int | None = None) -> list[Message]:
        """Of the version of a text that was sent last."""
        wanted = self.version if version is None else version
        return self.published(name, lambda one: one.get("version") == wanted)

    def published(self, name: str, fits: Callable[[Message], bool]) -> list[Message]:
        """Of a file, the first that fit and were not looked at before."""

        def is_it(message: Message) -> bool:
            about = message.get("params", {})
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and about["uri"] == self.uri(name)
                and fits(about)
            )

        return self._wait(is_it)["params"]["diagnostics"]

    # --- messages ---

    def ask(self, method: str, name: str, place: str = "0:0", **more: Any) -> Any:
        """A request about a place of a text, `LINE:UNITS` from 0."""
        line, units = map(int, place.split(":"))
        position = {"line": line, "character": units}
        return self.request(
            f"textDocument/{method}",
            textDocument={"uri": self.uri(name)},
            position=position,
            **more,
        )

    def request(self, method: str, **params: Any) -> Any:
        self._last += 1
        number = self._last
        self.send({"id": number, "method": method, "params": params or None})
        answer = self._wait(lambda message: message.get("id") == number)
        assert "error" not in answer, answer
        return answer["result"]

    def notify(self, method: str, **params: Any) -> None:
        self.send({"method": method, "params": params})

    def send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def send_bytes(self, data: bytes) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(data)
        self.server.stdin.flush()

    def message(self, method: str) -> Message:
        """The next notification of this name."""
        return self._wait(lambda one: one.get("method") == method)["params"]

    def _wait(self, fits: Callable[[Message], bool]) -> Message:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            for index, message in enumerate(self.heard):
                if fits(message):
                    return self.heard.pop(index)
            self.heard.append(self._read(deadline))

    def _read(self, deadline: float) -> Message:
        assert self.server.stdout is not None
        while True:
            head, found, rest = self._bytes.partition(b"\r\n\r\n")
            if found:
                fields = dict(line.split(b": ") for line in head.split(b"\r\n"))
                size = int(fields[b"Content-Length"])
                if len(rest) >= size:
                    self._bytes = rest[size:]
                    return json.loads(rest[:size])
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.server.stdout], [], [], max(0, left))
            assert ready, f"no answer in {WAIT_SECONDS} s; heard {self.heard}"
            data = os.read(self.server.stdout.fileno(), 1 << 16)
            assert data, f"the server has ended; heard {self.heard}"
            self._bytes += data
