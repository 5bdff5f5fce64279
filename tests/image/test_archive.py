"""The archive: what it holds, and that the same files are the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tstorm.image import archive
from tstorm.image.archive import PROGRAM, Contents

NAME = "docker.io/thunderstorm/tstorm:1"


def contents(order: int = 1) -> Contents:
    made = Contents()
    files = [("/usr/bin/a", b"A", PROGRAM), ("/usr/bin-b", b"B", 0o644), ("/etc/c", b"", 0o600)]
    for path, data, mode in files[::order]:
        made.add(path, data, mode)
    made.link("/bin", "usr/bin")
    made.directory("/tmp", 0o1777)
    return made


def written(out: Path, made: Contents) -> dict[str, bytes]:
    archive.write(out, NAME, "arm64", made, {"Env": ["A=1"]})
    with tarfile.open(out) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar}


def blob(files: dict[str, bytes], descriptor: Any) -> bytes:
    data = files["blobs/" + descriptor["digest"].replace(":", "/")]
    assert descriptor["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert descriptor["size"] == len(data)
    return data


def test_index_leads_to_the_files(tmp_path: Path) -> None:
    files = written(tmp_path / "a.tar", contents())
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (found,) = json.loads(files["index.json"])["manifests"]
    assert found["annotations"]["io.containerd.image.name"] == NAME
    assert found["platform"] == {"architecture": "arm64", "os": "linux"}
    manifest = json.loads(blob(files, found))
    config = json.loads(blob(files, manifest["config"]))
    (layer,) = manifest["layers"]
    assert config["architecture"] == "arm64"
    assert config["config"] == {"Env": ["A=1"]}
    assert config["rootfs"]["diff_ids"] == [layer["digest"]]
    with tarfile.open(fileobj=io.BytesIO(blob(files, layer))) as tar:
        shown = [(i.name, i.type, i.mode, i.linkname, i.mtime, i.uid, i.gid) for i in tar]
    assert shown == [
        ("bin", tarfile.SYMTYPE, 0o777, "usr/bin", 0, 0, 0),
        ("etc", tarfile.DIRTYPE, 0o755, "", 0, 0, 0),
        ("etc/c", tarfile.REGTYPE, 0o600, "", 0, 0, 0),
        ("tmp", tarfile.DIRTYPE, 0o1777, "", 0, 0, 0),
        ("usr", tarfile.DIRTYPE, 0o755, "", 0, 0, 0),
        ("usr/bin", tarfile.DIRTYPE, 0o755, "", 0, 0, 0),
        ("usr/bin/a", tarfile.REGTYPE, 0o755, "", 0, 0, 0),
        ("usr/bin-b", tarfile.REGTYPE, 0o644, "", 0, 0, 0),
    ]


def test_docker_finds_the_same_by_its_own_list(tmp_path: Path) -> None:
    files = written(tmp_path / "a.tar", contents())
    (listed,) = json.loads(files["manifest.json"])
    (found,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(blob(files, found))
    assert listed["RepoTags"] == [NAME]
    assert files[listed["Config"]] == blob(files, manifest["config"])
    assert [files[path] for path in listed["Layers"]] == [blob(files, manifest["layers"][0])]


def test_the_same_files_are_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a.tar", tmp_path / "b.tar"
    written(first, contents())
    written(second, contents(-1))
    assert first.read_bytes() == second.read_bytes()


def test_nothing_is_left_of_an_archive_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.tar").mkdir()
    with pytest.raises(IsADirectoryError):
        written(tmp_path / "a.tar", contents())
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_two_files_of_one_path_are_refused() -> None:
    made = contents()
    made.add("/usr/bin/a", b"A", PROGRAM)  # the same once more
    with pytest.raises(ValueError, match="two different files would be /usr/bin/a"):
        made.add("/usr/bin/a", b"other", PROGRAM)
