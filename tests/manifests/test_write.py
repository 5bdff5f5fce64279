"""Directories of manifests: whole or not at all, and only our own are replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compiler.plan.storage import outdir
from manifests.refusal import ManifestError
from manifests.write import encoded, stream, write

FILES: dict[str, str | bytes] = {"00-a.yaml": "a: 1\n", "10-b.yaml": "b: 2\n---\nc: 3\n"}
COMPOSE: dict[str, str | bytes] = {
    "docker-compose.yaml": "services: {}\n",
    "plan/plan-000": b"BZh9",
    "plan/plan-001": b"x",
}


def content(directory: Path) -> dict[str, bytes]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_texts_say_who_made_them() -> None:
    found = encoded(COMPOSE)
    assert found["plan/plan-000"] == b"BZh9"
    head, _, rest = found["docker-compose.yaml"].partition(b"\n")
    assert head.startswith(outdir.RENDERED)
    assert rest == b"services: {}\n"


def test_only_ascii_is_written() -> None:
    with pytest.raises(UnicodeEncodeError):
        encoded({"a.yaml": "é"})


@pytest.mark.parametrize("files", [FILES, COMPOSE], ids=["kubernetes", "compose"])
@pytest.mark.parametrize("swap", [True, False])
def test_ours_is_replaced(
    files: dict[str, str | bytes], swap: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not swap:
        monkeypatch.setattr(outdir, "exchange", lambda *_: False)
    target = tmp_path / "out"
    for wanted in (files, COMPOSE, FILES):
        write(target, wanted)
        assert content(target) == encoded(wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_directory_and_a_link_to_one_are_filled(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", FILES)
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "real") == encoded(FILES)


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "mine.yaml",
        "plan/notes",
        "plan/deep/plan-000",
        "sub/a.yaml",
        "auth/key",
        ".hid",
    ],
)
def test_what_others_put_there_is_not_replaced(name: str, tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, COMPOSE)
    path = target / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("years of work")
    with pytest.raises(ManifestError, match=r"out holds '.*', which tstorm has not rendered"):
        write(target, FILES)
    assert content(target) == {**encoded(COMPOSE), name: b"years of work"}


def test_links_in_it_are_not_ours(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, FILES)
    (target / "z.yaml").symlink_to(target / "00-a.yaml")
    with pytest.raises(ManifestError, match=r"holds 'z.yaml'"):
        write(target, FILES)
    (target / "z.yaml").unlink()
    os.mkfifo(target / "z.yaml")  # reading it would wait for ever
    with pytest.raises(ManifestError, match=r"holds 'z.yaml'"):
        write(target, FILES)


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    with pytest.raises(ManifestError, match="is a file, not a directory of manifests"):
        write(tmp_path / "out", FILES)
    assert (tmp_path / "out").read_text() == "precious"


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot write the manifests: No such file"):
        write(tmp_path / "no" / "out", FILES)
    with pytest.raises(ManifestError, match="cannot write the manifests: File name too long"):
        write(tmp_path / ("n" * 300), FILES)


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "out", FILES)

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(ManifestError, match="No space left on device"):
            write(tmp_path / "out", COMPOSE)
    assert content(tmp_path / "out") == encoded(FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_stream_has_all_texts_in_order() -> None:
    files = dict(reversed(FILES.items()))
    assert stream(files) == "---\na: 1\n---\nb: 2\n---\nc: 3\n"
    assert stream(COMPOSE) == "---\nservices: {}\n"
