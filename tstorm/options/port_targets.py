"""INSTANCE:PORT as words of the command line."""

from __future__ import annotations

import click

MOST_PORT = 65535


class PortTarget(click.ParamType[tuple[str, int]]):
    """A port inside an instance."""

    name = "INSTANCE:PORT"

    def convert(
        self,
        value: str | tuple[str, int],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        instance, _, port = value.rpartition(":")
        number = _port(port)
        if not instance or number is None:
            self.fail(f"{value!r:.60} is not INSTANCE:PORT, such as web.0:80", param, ctx)
        return instance, number


class PublishedPort(click.ParamType[tuple[str, int, int | None]]):
    """A port inside an instance, and the one of this machine that leads there; None: any."""

    name = "INSTANCE:PORT[=LOCAL]"

    def convert(
        self,
        value: str | tuple[str, int, int | None],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int, int | None]:
        if isinstance(value, tuple):
            return value
        inside, given, local = value.partition("=")
        instance, _, port = inside.rpartition(":")
        number, here = _port(port), _port(local)
        if not instance or number is None or (given and here is None):
            message = f"{value!r:.60} is not INSTANCE:PORT=LOCAL, such as web.0:80=8080"
            self.fail(message, param, ctx)
        return instance, number, here


def _port(word: str) -> int | None:
    number = int(word) if word.isascii() and word.isdigit() and len(word) <= 5 else 0
    return number if 1 <= number <= MOST_PORT else None
