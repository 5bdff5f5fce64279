"""A process that answers questions about a text (checking.py), as whoever asks sees it.

Processes are forked from one that has the compiler imported and nothing else, so that each begins
at once (multiprocessing, "forkserver"). One that answers too late is killed.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from tstorm.lsp.checking import AskedText, Unanswered, serve

PATIENCE_SECONDS = 300  # by the clock: others may need the processors, too
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tstorm.lsp.checking"])


class CheckProcess:
    """Of one text, until it is closed."""

    def __init__(self, asked: AskedText) -> None:
        self._asked = asked
        self._connection: Connection | None = None
        self._process: Any = None
        self._turn = asyncio.Lock()
        self.closed = False

    async def ask(self, question: str, *about: Any) -> Any:
        """The answer, or Unanswered. Questions are answered one after the other."""
        async with self._turn:
            if self.closed:
                return Unanswered("the text has been changed since")
            try:
                asking = asyncio.to_thread(self._ask, (question, *about))
                return await asyncio.wait_for(asking, PATIENCE_SECONDS)
            except (EOFError, OSError) as error:
                return await asyncio.to_thread(self._why_it_ended, error)
            except TimeoutError:
                self.close()
                return Unanswered(f"it takes longer than {PATIENCE_SECONDS} s")
            except asyncio.CancelledError:
                self.close()
                raise

    def close(self) -> None:
        """Ends it, whatever it does; who waits for an answer gets none."""
        self.closed = True
        if self._process is not None:
            self._process.kill()

    def _ask(self, question: Sequence[Any]) -> Any:
        if self._connection is None:
            self._start()
        assert self._connection is not None
        self._connection.send(question)
        return self._connection.recv()

    def _start(self) -> None:
        self._connection, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=serve, args=(theirs, self._asked), daemon=True)
        process.start()
        theirs.close()
        self._process = process
        if self.closed:  # meanwhile
            process.kill()

    def _why_it_ended(self, error: EOFError | OSError) -> Unanswered:
        was_closed, self.closed = self.closed, True
        if was_closed:
            return Unanswered("the text has been changed since")
        if self._process is None:
            return Unanswered(f"no process for it can be started: {error}")
        self._process.join(PATIENCE_SECONDS)
        if self._process.exitcode == -signal.SIGXCPU:
            return Unanswered(f"it takes longer than {self._asked.seconds} s of a processor")
        return Unanswered(f"its check broke off ({self._process.exitcode})")
