"""Images that somebody made to write elsewhere, to fill the disk, or to be read wrongly."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest

from runtime.errors import RunError
from runtime.images import fetching, image_cache, image_tools
from runtime.images.references import parse
from runtime.system import inroot, userids
from tests.images.support import SMALL, available, files, quiet
from tests.packing.layout import Entry, Packed, layer_of, write_layout

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tools")]
EVIL = b"evil\n"


def unpack(folder: Path, *layers: list[Entry]) -> image_cache.Image:
    write_layout(folder / "app", Packed(tuple(layer_of(entries) for entries in layers)))
    return fetching.get(parse("oci:app", str(folder)), available(), quiet)


def up_to(target: Path) -> str:
    """A relative path that leads out of everything, to `target`."""
    return "../" * 40 + str(target).lstrip("/")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the cache with a file in it, that must stay as it is."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("mine\n")
    return folder


def attempts(outside: Path) -> dict[str, list[list[Entry]]]:
    link = Entry("way", kind=tarfile.SYMTYPE, link=str(outside))
    relative = Entry("way", kind=tarfile.SYMTYPE, link=up_to(outside))
    hard = Entry("hard", kind=tarfile.LNKTYPE, link=up_to(outside / "file"))
    through = Entry("hard", kind=tarfile.LNKTYPE, link="way/file")
    return {
        "path with dots": [[Entry(up_to(outside / "new"), EVIL)]],
        "absolute path": [[Entry(str(outside / "new"), EVIL)]],
        "through a link": [[link, Entry("way/new", EVIL)]],
        "through a link of a layer below": [[link], [Entry("way/file", EVIL)]],
        "through a relative link": [[relative], [Entry("way/file", EVIL)]],
        "hard link": [[hard, Entry("hard", EVIL)]],
        "hard link through a link": [[link, through], [Entry("hard", EVIL)]],
        "whiteout through a link": [[link], [Entry("way/.wh.file")]],
        "whiteout with dots": [[Entry(up_to(outside / ".wh.file"))]],
        "opaque through a link": [[link], [Entry("way/.wh..wh..opq")]],
        "whiteout of everything": [[Entry("a")], [Entry(".wh..wh..opq"), Entry(".wh...")]],
        "root as a link": [
            [Entry(".", kind=tarfile.SYMTYPE, link=str(outside)), Entry("new", EVIL)]
        ],
        "directory through a link": [[link], [Entry("way/sub", kind=tarfile.DIRTYPE)]],
        "mode through a link": [[link], [Entry("way", kind=tarfile.DIRTYPE, mode=0o777)]],
    }


@pytest.mark.ordinary
@pytest.mark.parametrize("how", sorted(attempts(Path("/"))))
def test_nothing_outside_the_root_is_written(how: str, tmp_path: Path, outside: Path) -> None:
    """It may be refused, or unpacked within the root: outside nothing changes either way."""
    before = outside.stat()
    try:
        image = unpack(tmp_path, *attempts(outside)[how])
    except RunError:
        assert image_cache.images() == []
    else:
        assert image.root.is_dir()
        assert not image.root.is_symlink()
    assert files(outside) == ["file"]
    assert (outside / "file").read_text() == "mine\n"
    after = outside.stat()
    assert (after.st_mode, after.st_nlink, (outside / "file").stat().st_nlink) == (
        *(before.st_mode, before.st_nlink),
        1,
    )
    assert not list((tmp_path / "cache/images").glob("new-*"))


@pytest.mark.parametrize("folder", ["", "sub/"])
def test_a_whiteout_of_what_is_outside_is_refused_as_that(tmp_path: Path, folder: str) -> None:
    layers = [[Entry("sub", kind=tarfile.DIRTYPE), Entry("sub/a")], [Entry(f"{folder}.wh...")]]
    if folder:  # its `..` is the root itself
        with pytest.raises(RunError):
            unpack(tmp_path, *layers)
    else:
        with pytest.raises(RunError, match="a layer removes what is outside of its root"):
            unpack(tmp_path, *layers)
    assert image_cache.images() == []
    assert not list((tmp_path / "cache/images").glob("new-*"))


@pytest.mark.parametrize("written", ["oci-archive:pipe", "docker-archive:pipe:x", "oci:app"])
def test_an_image_that_is_a_pipe_is_refused_at_once(tmp_path: Path, written: str) -> None:
    write_layout(tmp_path / "app", SMALL)
    (tmp_path / "app/index.json").unlink()
    for name in ("pipe", "app/index.json"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(RunError, match=r"(pipe|index\.json) is not a file"):
        fetching.get(parse(written, str(tmp_path)), available(), quiet)


@pytest.mark.ordinary
def test_devices_are_left_out(tmp_path: Path) -> None:
    image = unpack(
        tmp_path,
        [
            Entry("disk", kind=tarfile.BLKTYPE, device=(8, 0), mode=0o666),
            Entry("memory", kind=tarfile.CHRTYPE, device=(1, 1), mode=0o666),
            Entry("pipe", kind=tarfile.FIFOTYPE),
            Entry("file", b"1"),
        ],
    )
    kept = [
        path for path in image.root.iterdir() if path.is_block_device() or path.is_char_device()
    ]
    assert kept == []
    assert {"file", "pipe"} <= set(files(image.root))


def test_image_that_would_fill_the_disk_is_ended(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_tools, "LEFT_BYTES", 1 << 60)  # as if it were full already
    monkeypatch.setattr(image_tools, "_LOOK_SECONDS", 0.01)
    with pytest.raises(RunError, match="it is too large") as caught:
        unpack(tmp_path, [Entry(f"zeros{number}", bytes(64 << 20)) for number in range(8)])
    assert "free some space" in caught.value.remedy
    assert image_cache.images() == []
    assert not list(own_cache.glob("new-*"))


def test_image_of_too_many_files_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = os.statvfs(tmp_path)
    if not disk.f_files:
        pytest.skip("this file system has no number of files")
    monkeypatch.setattr(image_tools, "LEFT_FILES", disk.f_files + 1)
    monkeypatch.setattr(image_tools, "_LOOK_SECONDS", 0.01)
    with pytest.raises(RunError, match="it has too many files"):
        unpack(tmp_path, [Entry(f"f{number}") for number in range(20_000)])
    assert image_cache.images() == []


@pytest.mark.parametrize("blob", ["config", "layer", "manifest"])
def test_content_that_is_not_what_its_digest_says_is_refused(tmp_path: Path, blob: str) -> None:
    digest = write_layout(tmp_path / "app", SMALL)
    blobs = tmp_path / "app/blobs/sha256"
    manifest = json.loads((blobs / digest.partition(":")[2]).read_bytes())
    wrong = {
        "config": manifest["config"]["digest"],
        "layer": manifest["layers"][0]["digest"],
        "manifest": digest,
    }[blob]
    place = blobs / wrong.partition(":")[2]
    place.write_bytes(place.read_bytes().replace(b"o", b"p", 1)[:-1] + b" ")
    with pytest.raises(RunError, match="app"):
        fetching.fetched(parse("oci:app", str(tmp_path)), digest, available(), quiet)
    assert image_cache.images() == []


def test_layer_that_is_not_what_the_config_says_is_refused(tmp_path: Path) -> None:
    """Each blob has its digest; the layer is another than the configuration's diff_id."""
    digest = write_layout(tmp_path / "app", SMALL)
    blobs = tmp_path / "app/blobs/sha256"
    manifest = json.loads((blobs / digest.partition(":")[2]).read_bytes())
    other = gzip.compress(layer_of([Entry("evil", EVIL)]))
    name = hashlib.sha256(other).hexdigest()
    (blobs / name).write_bytes(other)
    manifest["layers"][0] |= {"digest": f"sha256:{name}", "size": len(other)}
    text = json.dumps(manifest).encode()
    named = hashlib.sha256(text).hexdigest()
    (blobs / named).write_bytes(text)
    index = json.loads((tmp_path / "app/index.json").read_bytes())
    index["manifests"][0] |= {"digest": f"sha256:{named}", "size": len(text)}
    (tmp_path / "app/index.json").write_text(json.dumps(index))
    with pytest.raises(RunError, match="cannot unpack"):
        fetching.get(parse("oci:app", str(tmp_path)), available(), quiet)
    assert image_cache.images() == []


def test_links_in_a_root_do_not_lead_out_of_it(tmp_path: Path, outside: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/passwd").symlink_to(outside / "file")
    (root / "etc/group").symlink_to(up_to(outside / "file"))
    (root / "fifo").symlink_to("pipe")
    os.mkfifo(root / "pipe")
    for path in ("/etc/passwd", "/etc/group", "/fifo", "/none", "/etc"):
        assert inroot.text_of(root, path, 100) == ""
    (root / "etc/real").write_text("x" * 200)
    (root / "etc/hosts").symlink_to("/etc/real")
    assert inroot.text_of(root, "/etc/hosts", 100) == "x" * 100


@pytest.mark.ordinary
def test_user_is_looked_up_within_the_root(tmp_path: Path, outside: Path) -> None:
    """Not in a file that the image's link leads to, and no pipe or device is waited for."""
    (outside / "file").write_text("root:x:0:0:root:/root:/bin/sh\nevil:x:0:0::/:\n")
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/passwd").symlink_to(outside / "file")
    os.mkfifo(root / "etc/group")
    with pytest.raises(RunError, match="no user 'evil'"):
        userids.resolve("evil", root)
    with pytest.raises(RunError, match="no group 'evil'"):
        userids.resolve("7:evil", root)
    assert userids.resolve("7", root, unknown_gid=0).text == "7:0"
