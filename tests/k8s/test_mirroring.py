"""The stream of the coordinator, and the files that it continues here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtime.errors import RunError
from runtime.rundir import rundir
from runtime.rundir.runfiles import EVENTS, LOGS
from tstorm.k8s.coordinator_follower import FRAME_BYTES, HEADER_BYTES, Frames, Mirror


def frame(name: str, offset: int, data: bytes) -> bytes:
    header = {"file": name, "offset": offset, "bytes": len(data)}
    return json.dumps(header).encode() + b"\n" + data


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_frames_are_the_same_however_the_stream_is_cut(size: int) -> None:
    stream = b'{"beat": true}\n' + frame("a", 3, b'x\n{"y"\n') + b'{"end": true}\n'
    frames, found = Frames(), []
    for start in range(0, len(stream), size):
        found += list(frames.feed(stream[start : start + size]))
    assert [payload for _, payload in found] == [b"", b'x\n{"y"\n', b""]
    assert [sorted(header) for header, _ in found] == [
        ["beat"],
        ["bytes", "file", "offset"],
        ["end"],
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"no json\n",
        b"[1]\n",
        b'{"file": 3, "offset": 0, "bytes": 0}\n',
        b'{"file": "a", "offset": -1, "bytes": 0}\n',
        b'{"file": "a", "offset": 0, "bytes": true}\n',
        b'{"file": "a", "bytes": 0}\n',
        json.dumps({"file": "a", "offset": 0, "bytes": FRAME_BYTES + 1}).encode() + b"\n",
        b"x" * HEADER_BYTES,
    ],
)
def test_nonsense_ends_the_stream_with_what_to_do(data: bytes) -> None:
    with pytest.raises(RunError) as caught:
        list(Frames().feed(data))
    assert "--agent-image" in caught.value.remedy


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    directory = rundir.create(tmp_path / "run")
    directory.make(LOGS)
    return Mirror(directory)


def test_files_are_continued_where_they_end(mirror: Mirror, tmp_path: Path) -> None:
    mirror.write(EVENTS, 0, b"one\n")
    mirror.write(EVENTS, 2, b"e\ntwo\n")  # said again, after a connection broke
    mirror.write("logs/server.0.log", 0, b"hello\n")
    mirror.write("logs/empty.0.log", 0, b"")
    assert (tmp_path / "run" / EVENTS).read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "run/logs/server.0.log").read_bytes() == b"hello\n"
    assert (tmp_path / "run/logs/empty.0.log").read_bytes() == b""
    assert mirror.have == {EVENTS: 8, "logs/server.0.log": 6, "logs/empty.0.log": 0}
    with pytest.raises(RunError, match="left out bytes 8 to 9"):
        mirror.write(EVENTS, 9, b"x")


@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "../x",
        "/etc/passwd",
        "logs/../x.log",
        "logs/a/b.log",
        "logs/x",
        "plan/x",
        "",
    ],
)
def test_no_other_file_is_written(mirror: Mirror, tmp_path: Path, name: str) -> None:
    with pytest.raises(RunError, match="no file of a run"):
        mirror.write(name, 0, b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert [path.name for path in (tmp_path / "run").iterdir()] == [LOGS]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_many_logs_do_not_keep_as_many_descriptors(mirror: Mirror, tmp_path: Path) -> None:
    before = descriptors()
    for turn in range(2):
        for index in range(200):
            mirror.write(f"logs/s.{index}.log", turn, b"x")
    assert descriptors() - before <= 64
    mirror.close()
    assert {path.read_bytes() for path in (tmp_path / "run/logs").iterdir()} == {b"xx"}


def test_a_link_in_the_place_of_a_file_is_not_followed(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    (tmp_path / "run" / EVENTS).symlink_to(tmp_path / "other")
    with pytest.raises(RunError):
        mirror.write(EVENTS, 0, b"x")
    assert (tmp_path / "other").read_bytes() == b""
