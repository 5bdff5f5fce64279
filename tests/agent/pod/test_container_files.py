"""Files in containers of a node, as its agent hears of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from runtime.agent.pod import container_files
from runtime.agent.pod.container_files import ContainerFiles, waited_for
from runtime.errors import RunError
from tests.agent.pod.planted import Planted
from tests.waiting import until

TEXT = """\
service db exec=x replicas=2
service c exec=y
bridge s1
link db--s1
link c--s1
when file db.* "b" { it crash }
when file db.0 "a/c" { it crash }
when ready c { c crash }
"""


class Heard:
    """Who is told."""

    def __init__(self, node: Planted, monkeypatch: pytest.MonkeyPatch, cwd: str) -> None:
        monkeypatch.setattr(container_files, "PROC", node.proc)
        self.changes: list[tuple[int, str, str]] = []
        self.warnings: list[str] = []
        self.broken: list[RunError] = []
        self.files = ContainerFiles(
            {0: ["a/c", "b"]},
            {0: cwd},
            lambda *change: self.changes.append(change),
            lambda _node, words: self.warnings.append(words),
            self.broken.append,
        )


@pytest.fixture
def node(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def played(scene: Callable[[], Awaitable[None]]) -> None:
    async def play() -> None:
        await scene()

    asyncio.run(play())


def test_of_each_own_instance_the_paths_that_are_waited_for() -> None:
    topology = compile_source(TEXT).plan.topology
    names = {one.name: number for number, one in enumerate(topology.nodes)}
    own = [names["db.0"], names["c.0"]]
    assert waited_for(topology, own) == {names["db.0"]: ["a/c", "b"]}


@pytest.mark.parametrize("cwd", ["/var/db", "/"])
def test_they_are_heard_of_from_time_0_on_and_again_in_the_next_container(
    node: Planted, monkeypatch: pytest.MonkeyPatch, cwd: str
) -> None:
    heard = Heard(node, monkeypatch, cwd)
    first, second = (node.root(pid) for pid in (30, 31))

    async def scene() -> None:
        heard.files.open(0, 30)
        place = first / cwd.lstrip("/")
        (place / "a").mkdir(parents=True)
        (place / "a/c").write_text("early")
        heard.files.begin()
        (place / "b").write_text("x")
        await until(lambda: len(heard.changes) == 1, "the first change")
        heard.files.close_one(0)
        (place / "b").write_text("of a container that is over")
        heard.files.open(0, 31)
        place = second / cwd.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        (place / "b.new").write_text("x")
        (place / "b.new").rename(place / "b")
        await until(lambda: len(heard.changes) == 2, "the second one")
        heard.files.close()

    played(scene)
    assert heard.changes[0] == (0, "b", "written")
    assert heard.changes[1][:2] == (0, "b")  # its directory is new, or what is in it
    assert heard.changes[1][2] in ("moved here", "made")
    assert not heard.broken


def test_one_that_changes_for_ever_is_heard_of_so_often(
    node: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_files, "MOST", 5)
    heard = Heard(node, monkeypatch, "/")

    async def scene() -> None:
        heard.files.open(0, 30)
        heard.files.begin()
        for number in range(8):
            for name in ("x", "b"):  # two of the same at once are one
                (root / name).write_text(str(number))
        await until(lambda: bool(heard.warnings), "the word that it is enough")
        heard.files.close()

    root = node.root(30)
    played(scene)
    assert heard.changes == [(0, "b", "written")] * 5
    assert len(heard.warnings) == 1


def test_what_cannot_be_watched_ends_the_run(
    node: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard(node, monkeypatch, "/")
    node.root(30).rmdir()

    async def scene() -> None:
        heard.files.open(0, 30)
        assert not heard.broken, "it has ended"
        node.root(31).rmdir()
        (node.proc / "31/root").unlink(missing_ok=True)
        (node.proc / "31/root").write_text("no directory")
        heard.files.open(0, 31)
        heard.files.close()

    played(scene)
    assert "cannot be heard of: Not a directory" in str(heard.broken[0])
