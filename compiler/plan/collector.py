"""Python's search for reference cycles, paused for what makes very many objects that are all alive:
looking through them again and again takes from a fifth to twice the time that making them does.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
