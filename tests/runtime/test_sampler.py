"""Samples of an engine: what is written of what it answers."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from runtime.datapath import sampler
from runtime.datapath.pktd import EngineAnswer, keeps_digests
from runtime.datapath.sampler import Sampler
from runtime.judge.pulse import Pulse
from runtime.options import RunOptions
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile, read_lines
from runtime.schedule import Schedule

TEXT = "service a replicas=3\nbridge s\nlink a--s latency=1\nat 5s quit\n"


class Answering:
    """An engine with answers to every question, once."""

    def __init__(self, **answers: list[bytes]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def batch(self, commands: list[str]) -> list[EngineAnswer]:
        self.asked += commands
        return [
            EngineAnswer([], self.answers.pop(command.rpartition(" ")[2], []))
            for command in commands
        ]


def sampled(directory: Path, engine: Any, *, digests: bool) -> list[dict[str, Any]]:
    """What is in the file after two samples, read as any reader would."""
    held = HeldDirectory.hold(directory)
    file = LineFile(held, "samples.jsonl", pytest.fail)
    clock = Schedule(compile_source(TEXT).plan, RunOptions()).clock
    pulse = Pulse("driver", lambda who, _ns: pytest.fail(who))
    found = Sampler(engine, file, clock, 0, pulse, digests=digests)
    asyncio.run(found.sample())
    asyncio.run(found.sample())
    file.close()
    return list(read_lines(held, "samples.jsonl"))


def test_digests_stand_beside_the_counters(tmp_path: Path) -> None:
    engine = Answering(
        links=[b"0 1 2", b"3 4 5"], digests=[b"0 00000000000000ff", b"3 0123456789abcdef"]
    )
    header, line = sampled(tmp_path, engine, digests=True)
    assert header["columns"]["digests"] == ["link", "digest"]
    assert line["links"] == [[0, 1, 2], [3, 4, 5]]
    assert line["digests"] == [[0, "00000000000000ff"], [3, "0123456789abcdef"]]
    assert line["pairs"] == []
    assert "digests" in engine.asked


def test_without_digests_lines_are_as_they_were(tmp_path: Path) -> None:
    engine = Answering(links=[b"0 1 2"])
    header, line = sampled(tmp_path, engine, digests=False)
    assert header["columns"].keys() == {"links", "pairs"}
    assert line.keys() == {"at_ns", "elapsed_ns", "links", "pairs"}
    assert "digests" not in engine.asked


def test_nothing_is_written_when_nothing_moved(tmp_path: Path) -> None:
    assert len(sampled(tmp_path, Answering(), digests=True)) == 1


class Still(Answering):
    """One in which nothing moves until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.moved = asyncio.Event()
        self.waiting = asyncio.Event()

    async def call(self, command: str) -> None:
        self.asked.append(command)
        self.waiting.set()

    def move(self) -> None:
        self.answers["links"] = [b"0 1 2"]
        self.moved.set()


@pytest.mark.parametrize("moves", [True, False])
def test_one_that_rests_asks_again_when_something_moves_or_at_the_end(
    tmp_path: Path, *, moves: bool
) -> None:
    async def run() -> list[str]:
        held, engine = HeldDirectory.hold(tmp_path), Still()
        file = LineFile(held, "samples.jsonl", pytest.fail)
        clock = Schedule(compile_source(TEXT).plan, RunOptions()).clock
        pulse = Pulse("driver", lambda *_: None)
        begin = time.monotonic_ns()
        found = Sampler(engine, file, clock, begin, pulse, rests=True)  # type: ignore[arg-type]
        running = asyncio.create_task(found.run())
        await engine.waiting.wait()
        await asyncio.sleep(0.25)
        asked = len(engine.asked)
        assert engine.asked[-3:] == ["await", "stats links", "stats pairs"]
        await asyncio.sleep(0.25)
        assert len(engine.asked) == asked, "it sleeps"
        engine.waiting.clear()
        if moves:
            engine.move()
            await engine.waiting.wait()  # it has sampled and found nothing more
        else:
            engine.answers["links"] = [b"0 1 2"]  # not told yet: the last sample has it
        found.stop()
        await running
        file.close()
        header, line = read_lines(held, "samples.jsonl")
        assert line["links"] == [[0, 1, 2]]
        since_ns = line["elapsed_ns"] % header["interval_ns"]
        assert not moves or since_ns < header["interval_ns"] / 2, "on the beat"
        return engine.asked

    asked = asyncio.run(run())
    assert asked.count("await") == (2 if moves else 1)


def test_digests_of_pairs_have_both_ends() -> None:
    lines = [b"1 2 00ff", b"3 4 01fe"]
    assert json.loads(sampler.digest_arrays(lines)) == [[1, 2, "00ff"], [3, 4, "01fe"]]
    assert sampler.digest_arrays([]) == b"[]"


@pytest.mark.parametrize(
    ("facts", "keeps"),
    [({}, False), ({"digests": "off"}, False), ({"digests": "times"}, True)],
)
def test_a_datapath_tells_whether_it_keeps_digests(facts: dict[str, str], *, keeps: bool) -> None:
    assert keeps_digests(facts) == keeps
