"""What pktd records of packets: digests of links (docs/pktd.md, The record of packets)."""

from __future__ import annotations

import subprocess

from tests.pktd.conftest import Setting
from tests.pktd.harness import PKTD, World, pair

FAR = "10.77.0.2"


def digests(lines: list[str]) -> dict[int, str]:
    return {int(line.split()[0]): line.split()[1] for line in lines}


def test_links_that_carried_the_same_have_the_same_digest(world: World, setting: Setting) -> None:
    engine = world.pktd("--digests")
    assert "digests=contents" in world.hello
    a, _ = pair(world, engine, kind=setting.kind, delay=1_000_000)
    world.run(a, "ping", "-c", "5", "-i", "0.05", FAR)
    found = digests(engine.body("digests"))
    assert found.keys() == {0, 1, 2, 3}
    assert found[0] == found[2] and found[1] == found[3]
    assert found[0] != found[1]
    assert engine.body("digests") == [], "nothing has moved since"
    world.run(a, "ping", "-c", "1", FAR)
    again = digests(engine.body("digests"))
    assert all(again[number] != found[number] for number in found)


def test_times_are_part_of_a_digest_if_that_is_asked_for(world: World, setting: Setting) -> None:
    engine = world.pktd("--digest-times")
    assert "digests=times" in world.hello
    a, _ = pair(world, engine, kind=setting.kind, delay=1_000_000)
    engine("epoch 0")
    world.run(a, "ping", "-c", "2", "-i", "0.05", FAR)
    found = digests(engine.body("digests"))
    assert len(set(found.values())) == 4, "the second link is a millisecond after the first"


def test_without_the_option_there_are_none(world: World, setting: Setting) -> None:
    engine = world.pktd()
    assert "digests=off" in world.hello
    a, _ = pair(world, engine, kind=setting.kind)
    world.run(a, "ping", "-c", "1", FAR)
    assert engine.body("digests") == []


def test_the_help_names_the_options() -> None:
    done = subprocess.run([PKTD, "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert "--digests" in done.stdout and "--digest-times" in done.stdout


def test_pktd_tells_once_that_something_moves(world: World, setting: Setting) -> None:
    engine = world.pktd()
    a, _ = pair(world, engine, kind=setting.kind, delay=1_000_000)
    world.run(a, "ping", "-c", "1", FAR)  # whatever devices say when they come up has been said
    assert engine("await") == ""
    assert engine.rows("stats links"), "what moved before is there to be asked for"
    world.run(a, "ping", "-c", "3", "-i", "0.05", FAR)
    assert engine.rows("stats links")
    assert engine.events.count("! moved") == 1
