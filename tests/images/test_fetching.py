"""From a registry on loopback, a layout and an archive into the cache: by digest, whole, once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.errors import MachineError, RunError
from runtime.images import fetching, ids, image_cache, image_tools
from runtime.images.fetching import making
from runtime.images.references import parse
from runtime.system import locks
from tests.images.support import SMALL, available, files, quiet
from tests.packing.layout import Entry, Packed, layer_of, write_docker_archive, write_layout
from tests.packing.registry import Registry

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tools")]


def get(written: str, folder: Path | str = "/", *, pull: bool = False) -> image_cache.Image:
    return fetching.get(parse(written, str(folder)), available(), quiet, pull=pull)


def pulled(served: Registry, image: Packed, name: str) -> tuple[str, image_cache.Image]:
    digest = served.push(image, name)
    return digest, get(f"{served.host}/{name}")


@pytest.mark.ordinary
def test_image_of_a_registry_is_unpacked_and_kept(served: Registry, own_cache: Path) -> None:
    digest, image = pulled(served, SMALL, "small:1")
    assert image.digest == digest
    assert (image.root / "hello").read_text() == "hello\n"
    assert image.config.command == ("/hello",)
    assert image.references == (f"{served.host}/small:1",)
    assert image_cache.images() == [image]
    assert own_cache.stat().st_mode & 0o777 == 0o700
    assert not list(own_cache.glob("new-*"))


def test_second_run_asks_no_registry(served: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    _, image = pulled(served, SMALL, "once:1")
    monkeypatch.setattr(image_tools, "run", lambda *_: pytest.fail("a tool was started"))
    assert get(f"{served.host}/once:1") == image


def test_tag_stays_what_it_was_until_it_is_pulled(served: Registry) -> None:
    first, image = pulled(served, SMALL, "moving:1")
    other = Packed((layer_of([Entry("other", b"")]),), {"Cmd": ["/other"]})
    second = served.push(other, "moving:1")
    assert second != first
    name = f"{served.host}/moving:1"
    assert get(name) == image
    assert get(name, pull=True).digest == second
    assert get(name).digest == second
    assert get(f"{served.host}/moving@{first}") == image
    assert [gone.digest for gone in image_cache.prune(every=False)] == [first]
    assert [kept.digest for kept in image_cache.images()] == [second]


def test_of_a_list_the_image_for_this_machine_is_taken(served: Registry, tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    foreign = replace(SMALL, config={"Cmd": ["/foreign"]}, architecture="s390x")
    listed = []
    for image, folder in ((foreign, other), (SMALL, own)):
        write_layout(folder, image)
        index = json.loads((folder / "index.json").read_bytes())
        platform = {"architecture": image.architecture, "os": "linux"}
        listed.append({**index["manifests"][0], "platform": platform})
        del listed[-1]["annotations"]
    shutil.copytree(other / "blobs", own / "blobs", dirs_exist_ok=True)
    kind = "application/vnd.oci.image.index.v1+json"
    inner = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": listed}).encode()
    digest = hashlib.sha256(inner).hexdigest()
    (own / "blobs/sha256" / digest).write_bytes(inner)
    index["manifests"][0] |= {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(inner)}
    (own / "index.json").write_text(json.dumps(index))
    argv = ["skopeo", "--insecure-policy", "copy", "--all", "--quiet", "--dest-tls-verify=false"]
    target = f"docker://{served.host}/list:1"
    subprocess.run([*argv, "--preserve-digests", f"oci:{own}:latest", target], check=True)
    for written, place in ((f"{served.host}/list:1", "/"), ("oci:own", str(tmp_path))):
        found = get(written, place)
        assert found.digest == f"sha256:{digest}"
        assert found.config.command == ("/hello",)
        image_cache.prune(every=True)


def test_docker_archive_has_its_health_check(tmp_path: Path) -> None:
    image = replace(SMALL, config={"Cmd": ["a"], "Healthcheck": {"Test": ["CMD", "check"]}})
    write_docker_archive(tmp_path / "a.tar", image, "a:1")
    found = get("docker-archive:a.tar", tmp_path)
    assert found.config.health == ("check",)
    assert files(found.root) == ["hello"]


def test_layout_that_changes_is_another_image(tmp_path: Path) -> None:
    before = write_layout(tmp_path / "app", SMALL)
    assert get("oci:app", tmp_path).digest == before
    shutil.rmtree(tmp_path / "app")
    after = write_layout(tmp_path / "app", replace(SMALL, config={"Cmd": ["/other"]}))
    found = get("oci:app", tmp_path)
    assert found.digest == after != before
    assert found.config.command == ("/other",)
    wanted = fetching.fetched(parse("oci:app", str(tmp_path)), before, available(), quiet)
    assert wanted.digest == before  # still kept
    image_cache.prune(every=True)
    with pytest.raises(RunError, match="has changed"):
        fetching.fetched(parse("oci:app", str(tmp_path)), before, available(), quiet)


def test_archive_of_a_layout_is_read(tmp_path: Path) -> None:
    digest = write_layout(tmp_path / "app", SMALL)
    subprocess.run(["tar", "-C", tmp_path / "app", "-cf", tmp_path / "app.tar", "."], check=True)
    assert get("oci-archive:app.tar", tmp_path).digest == digest


@pytest.mark.ordinary
def test_layers_lie_upon_each_other(tmp_path: Path) -> None:
    below = layer_of([Entry("a/kept", b"1"), Entry("a/gone", b"1"), Entry("b/all", b"1")])
    above = layer_of([Entry("a/.wh.gone"), Entry("b/.wh..wh..opq"), Entry("b/new", b"2")])
    write_layout(tmp_path / "app", Packed((below, above)))
    assert files(get("oci:app", tmp_path).root) == ["a", "a/kept", "b", "b/new"]


@pytest.mark.ordinary
def test_files_belong_to_their_users_where_there_are_several(tmp_path: Path) -> None:
    layer = layer_of([Entry("theirs", b"", uid=999, gid=998)])
    write_layout(tmp_path / "app", Packed((layer,)))
    found = get("oci:app", tmp_path)
    owner = (found.root / "theirs").stat()
    if found.ids == ids.ALL:
        assert (owner.st_uid, owner.st_gid) == (999, 998)
    elif found.ids == ids.ONE:
        assert owner.st_uid == os.geteuid()
    else:
        assert owner.st_uid not in (0, 999, os.geteuid())


def test_two_at_once_fetch_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_layout(tmp_path / "app", SMALL)
    copies, run = [], image_tools.run

    def counted(*given: object, **more: object) -> bytes:
        copies.append(given[1])
        return run(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(image_tools, "run", counted)
    found: list[image_cache.Image] = []
    threads = [
        threading.Thread(target=lambda: found.append(get("oci:app", tmp_path))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len({image.folder for image in found}) == 1
    assert sum("umoci" in " ".join(map(str, argv)) for argv in copies) == 1  # type: ignore[call-overload]


def test_one_that_is_used_is_not_removed(tmp_path: Path) -> None:
    write_layout(tmp_path / "app", SMALL)
    image = get("oci:app", tmp_path)
    held, beside = image_cache.use(image), image_cache.use(image)
    assert held is not None
    assert beside is not None
    assert image_cache.prune(every=True) == []
    os.close(held)
    assert image_cache.prune(every=True) == []
    os.close(beside)
    assert image_cache.prune(every=True) == [image]
    assert image_cache.use(image) is None


@pytest.mark.ordinary
def test_what_a_kill_left_is_removed_and_nothing_else(tmp_path: Path, own_cache: Path) -> None:
    write_layout(tmp_path / "app", SMALL)
    image = get("oci:app", tmp_path)
    image_cache.note_reference("docker://x/app:1", image.digest)
    dead, alive = own_cache / "new-dead", own_cache / "new-alive"
    for folder in (dead, alive):
        folder.mkdir()
        (folder / "lock").touch()
    (image.folder.parent / ("0" * 64 + "-x-all")).mkdir()
    holder = image_cache.opened(alive / "lock")
    locks.take(holder)
    assert image_cache.prune(every=False) == []
    os.close(holder)
    assert not dead.exists()
    assert alive.exists()
    assert image_cache.images() == [image]
    assert list(image.folder.parent.iterdir()) == [image.folder]


def test_what_is_damaged_is_made_again(tmp_path: Path) -> None:
    write_layout(tmp_path / "app", SMALL)
    image = get("oci:app", tmp_path)
    (image.folder / image_cache.FACTS).write_text("{")
    assert image_cache.images() == []
    assert get("oci:app", tmp_path).digest == image.digest


def test_failure_names_the_image_and_leaves_nothing(served: Registry, own_cache: Path) -> None:
    with pytest.raises(RunError, match=r"cannot find the image .*/none:1: .*unknown"):
        get(f"{served.host}/none:1")
    assert image_cache.images() == []
    assert not list(own_cache.glob("new-*"))


def test_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="skopeo and umoci are not installed") as caught:
        fetching.get(parse("oci:app", str(tmp_path)), ids.ALL, quiet)
    assert "apt-get install skopeo umoci" in caught.value.remedy


def test_digest_is_that_of_the_manifest(served: Registry) -> None:
    digest = served.push(SMALL, "raw:1")
    argv = ["skopeo", "inspect", "--tls-verify=false", "--raw", f"docker://{served.host}/raw:1"]
    manifest = subprocess.run(argv, capture_output=True, check=True).stdout
    assert json.loads(manifest)["schemaVersion"] == 2
    assert digest == f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def test_folder_that_is_just_being_made_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who looks for what killed ones have left sees it before it is locked."""
    opened, found = image_cache.opened, list[Path]()
    others: list[threading.Thread] = []

    def slowly(path: Path) -> int:
        if path.name == image_cache.LOCK and not others:
            others.append(threading.Thread(target=lambda: found.extend(image_cache.left_over())))
            others[0].start()
            others[0].join(0.5)
        return opened(path)

    monkeypatch.setattr(image_cache, "opened", slowly)
    with making("sha256:" + "0" * 64, ids.ALL) as made:
        others[0].join()
        assert made.folder.is_dir()
    assert found == []
