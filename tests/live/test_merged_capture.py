"""Packets of several engines in one stream, whatever order they come in."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import RunError
from runtime.rundir.pcapng import Packet
from runtime.rundir.pcapng_writer import PacketWriter
from tstorm.live import merged_capture
from tstorm.live.merged_capture import MergedCapture


def told(name: str, times: Sequence[int]) -> bytes:
    """What an engine writes."""
    file = io.BytesIO()
    writer = PacketWriter(file, [name], "test")
    for at_ns in times:
        writer.add(Packet(name, at_ns, b"x" * 60, "", 0))
    writer.ended(name, 3)
    writer.close()
    return file.getvalue()


@given(st.lists(st.lists(st.integers(0, 1000)).map(sorted), min_size=1, max_size=4))
def test_all_of_them_come_in_the_order_of_time(engines: list[list[int]]) -> None:
    pipes = [io.BytesIO(told(f"e{n}", times)) for n, times in enumerate(engines)]
    ends: list[tuple[str, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merged_capture, "HELD_SECONDS", 600)  # a busy machine begins threads late
        found = list(MergedCapture(pipes, 5000).packets(lambda *end: ends.append(end)))
    every = sorted(5000 + at for times in engines for at in times)
    assert [one.at_ns for one in found] == every
    assert sorted(name for name, _ in ends) == [f"e{n}" for n in range(len(engines))]


def test_an_engine_that_says_nothing_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_capture, "HELD_SECONDS", 0.05)
    silent, writable = os.pipe()
    with os.fdopen(silent, "rb") as quiet:
        packets = MergedCapture([io.BytesIO(told("a", [1, 2])), quiet], 0).packets(lambda *_: None)
        assert [next(packets).at_ns, next(packets).at_ns] == [1, 2]
        os.close(writable)
        with pytest.raises(RunError, match="engine 1"):
            list(packets)


def test_who_stops_has_what_was_read() -> None:
    merged = MergedCapture([], 0)
    for name, at_ns in (("a", 2), ("b", 1)):
        merged._read_all(io.BytesIO(told(name, [at_ns])), name)
    assert [one.at_ns for one in merged.rest()] == [1, 2]
