"""The kernel's end of a netlink socket, without the kernel."""

from __future__ import annotations


class FakeNetlink:
    """Answers with these datagrams, whatever it is asked."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)

    def send(self, request: bytes) -> int:
        return len(request)

    def recv(self, _size: int) -> bytes:
        return self.answers.pop(0)
