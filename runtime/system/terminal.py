"""This process' own streams and terminal, for a command that runs elsewhere."""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


class OutputError(Exception):
    """Our own output cannot be written (its cause is the OSError): no fault of the command's."""


def is_ours() -> bool:
    """Whether a person types here and sees what is printed."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def show(stream: IO[str], data: bytes) -> None:
    """OutputError."""
    try:
        stream.buffer.write(data)  # type: ignore[attr-defined]
        stream.flush()
    except OSError as error:
        drop(stream)
        raise OutputError from error


def drop(stream: IO[str]) -> None:
    """Points a stream that cannot be written any more at nothing: later output and the last flush
    are quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def raw() -> Iterator[None]:
    """The terminal passes every key on, ^C too: it is for the command."""
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
