"""Pods are known as the API server tells of them, whatever happens to the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from runtime.backend.k8s import pods
from runtime.backend.k8s.api import ApiError
from runtime.backend.k8s.pods import Pod, PodWatch, pod
from tests.doubles.api import PODS, FakeApi, Trouble, shown
from tests.waiting import in_a_loop, until


class Scene:
    def __init__(self, server: FakeApi) -> None:
        self.notices: list[str] = []
        self.changes: list[tuple[str, str]] = []  # how, which pod
        self.watch = PodWatch(server.api(), self.notices.append)
        self.watch.on_change = self._changed

    def _changed(self, before: Pod | None, after: Pod | None) -> None:
        known = after or before
        assert known is not None
        how = "new" if before is None else "gone" if after is None else "other"
        self.changes.append((how, known.name))


@asynccontextmanager
async def watching(server: FakeApi) -> AsyncIterator[Scene]:
    scene = Scene(server)
    task = asyncio.create_task(scene.watch.run())
    try:
        yield scene
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_what_a_run_needs_of_a_pod() -> None:
    found = pod(
        shown(
            "server-3",
            index=3,
            ips=["10.1.0.7", "fd00::7"],
            restarts=2,
            last={"terminated": {"exitCode": 137, "signal": 9, "reason": "Error"}},
        )
    )
    assert (found.instance, found.node, found.digest) == ("server.3", "n0", "d1")
    assert found.addresses == ("10.1.0.7", "fd00::7")
    assert found.running("instance") and not found.running("tstorm-gate")
    container = found.containers["instance"]
    assert (container.restarts, container.status, container.signal) == (2, 137, 9)
    assert found.waits() == ""


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {
                "node": "",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available",
                    }
                ],
            },
            "Unschedulable: 0/3 nodes are available",
        ),
        (
            {"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}},
            "instance: ErrImagePull: not found",
        ),
        ({"state": {"waiting": {"reason": "PodInitializing"}}}, ""),
        ({"node": ""}, "it is not placed on a node yet"),
    ],
)
def test_why_a_pod_waits(more: dict[str, Any], words: str) -> None:
    assert pod(shown("server-0", **more)).waits() == words


@pytest.mark.parametrize(
    "shape", [None, [], {}, {"metadata": {"name": "x"}}, {"metadata": 3, "spec": {}}, "pod"]
)
def test_what_is_no_pod_is_refused(shape: object) -> None:
    with pytest.raises(ApiError, match="a pod that is none"):
        pod(shape)


@in_a_loop
async def test_pods_are_listed_then_followed(server: FakeApi) -> None:
    for index in range(5):
        server.put_pod(shown(f"server-{index}", index=index))
    server.page = 2
    async with watching(server) as scene:
        await asyncio.wait_for(scene.watch.listed.wait(), 10)
        assert [name for _, name in scene.changes] == [f"server-{n}" for n in range(5)]
        server.put_pod(shown("client-0", service="client"))
        server.put_pod(shown("server-1", index=1, restarts=1))
        server.remove_pod("server-4")
        await until(lambda: len(scene.changes) == 8, "the changes")
        assert scene.changes[5:] == [
            ("new", "client-0"),
            ("other", "server-1"),
            ("gone", "server-4"),
        ]
        assert sorted(scene.watch.pods) == ["client-0", *(f"server-{n}" for n in range(4))]
        assert scene.notices == []


@in_a_loop
async def test_a_broken_stream_goes_on_where_it_was(server: FakeApi) -> None:
    server.put_pod(shown("server-0"))
    async with watching(server) as scene:
        await asyncio.wait_for(scene.watch.listed.wait(), 10)
        server.put_pod(shown("server-1", index=1))
        await until(lambda: "server-1" in scene.watch.pods, "the first change")
        server.cut()
        server.put_pod(shown("server-2", index=2))
        await until(lambda: "server-2" in scene.watch.pods, "what happened meanwhile")
        lists = [query for query in server.queries if not query.get("watch")]
        assert len(lists) == 1
        assert scene.changes == [("new", f"server-{n}") for n in range(3)]


@in_a_loop
async def test_a_version_that_is_too_old_is_listed_anew(server: FakeApi) -> None:
    server.put_pod(shown("server-0"))
    server.put_pod(shown("server-1", index=1))
    async with watching(server) as scene:
        await asyncio.wait_for(scene.watch.listed.wait(), 10)
        server.close()
        server.objects.pop(f"{PODS}/server-0")
        server.put_pod(shown("server-2", index=2))
        server.oldest = server.version
        server.listen()
        await until(lambda: "server-2" in scene.watch.pods, "the second list")
        assert ("gone", "server-0") in scene.changes
        assert "server-0" not in scene.watch.pods


GARBAGE = [
    Trouble(status=500),
    Trouble(status=429),
    Trouble(cut=True),
    Trouble(sends=b"SSH-2.0-OpenSSH\r\n\r\n"),
    Trouble(sends=b"HTTP/1.1 200 OK\r\n\r\nno json at all"),
    Trouble(sends=b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"),
    Trouble(sends=b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000),
    Trouble(
        sends=b"HTTP/1.1 200 OK\r\n\r\n" + b'{"items": [{}], "metadata": {"resourceVersion": 1}}'
    ),
    Trouble(sends=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    Trouble(sends=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}{}\r\n"),
    Trouble(sends=b"x" * 200_000),
]


@pytest.mark.parametrize("number", range(len(GARBAGE)))
@in_a_loop
async def test_no_answer_stops_the_watch(
    number: int, monkeypatch: pytest.MonkeyPatch, server: FakeApi
) -> None:
    """In a list, and in what follows it."""
    monkeypatch.setattr(pods, "LAST_PAUSE_SECONDS", 0.2)
    server.put_pod(shown("server-0"))
    server.trouble.extend([GARBAGE[number], None, GARBAGE[number], GARBAGE[number]])
    async with watching(server) as scene:
        await asyncio.wait_for(scene.watch.listed.wait(), 10)
        await until(lambda: not server.trouble, "the troubles")
        server.put_pod(shown("server-1", index=1))
        await until(lambda: "server-1" in scene.watch.pods, "the change")
        assert scene.changes == [("new", "server-0"), ("new", "server-1")]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"type": "ADDED"},
        {"type": "ADDED", "object": {"metadata": {"resourceVersion": "1"}}},
        {"type": "WHATEVER", "object": {"metadata": {"resourceVersion": "1"}}},
        {"type": "ERROR", "object": "?"},
    ],
)
@in_a_loop
async def test_a_change_of_nothing_changes_nothing(
    change: dict[str, object], server: FakeApi
) -> None:
    server.put_pod(shown("server-0"))
    async with watching(server) as scene:
        await asyncio.wait_for(scene.watch.listed.wait(), 10)
        server.say(change)
        asked = len(server.requests)
        await until(lambda: len(server.requests) > asked, "another attempt")
        server.history.pop()
        server.put_pod(shown("server-1", index=1))
        await until(lambda: "server-1" in scene.watch.pods, "the change after it")


@in_a_loop
async def test_an_api_server_that_is_away_is_told_once_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, server: FakeApi
) -> None:
    monkeypatch.setattr(pods, "AWAY_SECONDS", 0.5)
    monkeypatch.setattr(pods, "LAST_PAUSE_SECONDS", 0.2)
    server.put_pod(shown("server-0"))
    async with watching(server) as scene:
        await asyncio.wait_for(scene.watch.listed.wait(), 10)
        server.close()
        await until(lambda: bool(scene.notices), "a word")
        assert "the run goes on" in scene.notices[0]
        assert list(scene.watch.pods) == ["server-0"]
        server.put_pod(shown("server-1", index=1))
        server.listen()
        await until(lambda: "server-1" in scene.watch.pods, "the change")
        assert scene.notices[1:] == ["the API server answers again"]


@pytest.mark.parametrize("status", [401, 403])
@in_a_loop
async def test_an_account_that_may_not_is_an_error(status: int, server: FakeApi) -> None:
    server.trouble.append(Trouble(status=status))
    with pytest.raises(ApiError, match=r"refuses to GET .*/pods: as asked"):
        await Scene(server).watch.run()
