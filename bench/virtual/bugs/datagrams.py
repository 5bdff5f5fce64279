"""What the programs beside this one share: messages of words, a loop with a timer, a state that is
said where it changes. Messages may be lost, and come in any order, as datagrams do."""

import os
import socket
import time
from collections.abc import Callable

ME = os.environ["TSTORM_INSTANCE"]
_PORT = 7000
_LINE = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
_LINE.bind(("", _PORT))
_places: dict[str, str] = {}
_said, _serial = "", 0


def send(to: str, *words: object) -> None:
    try:
        place = _places.get(to) or _places.setdefault(to, socket.gethostbyname(to))
        _LINE.sendto(" ".join(map(str, (ME, *words))).encode(), (place, _PORT))
    except OSError:
        pass  # nobody is there, or the network is gone


def heard(seconds: float) -> list[str]:
    """The words of one message, its sender first; none if none comes in that time."""
    _LINE.settimeout(max(seconds, 0.001))
    try:
        return _LINE.recv(4000).decode().split()
    except OSError:
        return []


def asked(to: str, seconds: float, *words: object) -> list[str]:
    """The words of the answer, which ends with the same serial number as the question."""
    global _serial
    _serial += 1
    send(to, *words, _serial)
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        answer = heard(left)
        if answer and answer[-1] == str(_serial):
            return answer[1:-1]
    return []


def loop(handle: Callable[..., None], tick: Callable[[], None], every: float) -> None:
    """For ever: a timer that is due goes before a message."""
    due = time.monotonic()
    while True:
        words = heard(due - time.monotonic())
        if time.monotonic() >= due:
            tick()
            due = time.monotonic() + every
        if words:
            handle(*words)


def state(word: str) -> None:
    global _said
    if word != _said:
        _said = word
        print(f"state={word}", flush=True)
