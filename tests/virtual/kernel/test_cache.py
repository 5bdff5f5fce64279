"""Keeping kernels: which one a run takes, what is stale, what others meet meanwhile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.errors import MachineError
from runtime.virtual.kernel import kernel_cache, kernel_changes
from tests.virtual.kernel import fake

Keep = Callable[..., kernel_cache.Kernel]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake.use(monkeypatch, tmp_path)


@pytest.fixture
def keep(folder: Path, tmp_path: Path) -> Keep:
    """Keeps a kernel that consists of these bytes."""

    def put(content: bytes = b"kernel", **facts: object) -> kernel_cache.Kernel:
        file = tmp_path / "linux"
        file.write_bytes(content)
        given: dict[str, object] = {
            "version": "6.12.7",
            "source": "a test",
            "source_digest": "",
            "changes": kernel_changes.digest(),
            "patches": (),
            "lacking": (),
            "seccomp": False,
            "compiler": "",
            "built": "2026-01-01T00:00:00+00:00",
        }
        with kernel_cache.held():
            return kernel_cache.put(kernel_cache.staged(file), {**given, **facts})

    return put


def test_nothing_is_built(folder: Path) -> None:
    assert kernel_cache.find() is None
    assert kernel_cache.kernels() == []
    with pytest.raises(MachineError, match="no kernel for virtual time is built") as caught:
        kernel_cache.path_for_run()
    assert caught.value.remedy == "tstorm kernel build"
    assert caught.value.exit_code == 3


def test_kept_is_found(keep: Keep) -> None:
    kernel = keep()
    assert kernel_cache.find() == kernel
    assert kernel_cache.path_for_run() == kernel.path
    assert kernel.path.read_bytes() == b"kernel"
    assert os.access(kernel.path, os.X_OK)
    assert kernel.facts.size_bytes == 6
    assert kernel.path.parent.name == f"6.12.7-{kernel.facts.digest[:12]}"


def test_another_releases_is_stale(keep: Keep) -> None:
    kernel = keep()
    with (kernel_changes.DATA / "config").open("a") as file:
        file.write("# more\n")
    assert not kernel.current
    assert kernel_cache.find() is None
    with pytest.raises(MachineError, match=r"6\.12\.7, was built by another release"):
        kernel_cache.path_for_run()


def test_one_asked_for_last_is_taken(keep: Keep) -> None:
    first, second = keep(b"one"), keep(b"two")
    os.utime(first.path.parent / "kernel.json", ns=(0, 0))
    assert kernel_cache.find() == second
    kernel_cache.choose(first)
    assert kernel_cache.find() == first


def test_same_kernel_is_kept_once(keep: Keep, folder: Path) -> None:
    keep(source="one")
    again = keep(source="two")
    assert kernel_cache.kernels() == [again]
    assert again.facts.source == "two"


@pytest.mark.parametrize(
    "damage",
    [
        lambda kernel: kernel.path.write_bytes(b"half"),
        lambda kernel: kernel.path.unlink(),
        lambda kernel: (kernel.path.parent / "kernel.json").write_text("{"),
        lambda kernel: (kernel.path.parent / "kernel.json").write_text('{"format": 1}'),
        lambda kernel: (kernel.path.parent / "kernel.json").write_text("[" * 100_000),
        lambda kernel: (kernel.path.parent / "kernel.json").write_text("[]"),
        lambda kernel: (kernel.path.parent / "kernel.json").write_bytes(b"\xff"),
        lambda kernel: edit(kernel, version=6.12),
        lambda kernel: edit(kernel, digest=None),
        lambda kernel: edit(kernel, patches="0001"),
        lambda kernel: edit(kernel, more=1),
        lambda kernel: edit(kernel, format=kernel_cache.FORMAT + 1),
        lambda kernel: (kernel.path.parent / "kernel.json").unlink(),
    ],
)
def test_damaged_is_none(keep: Keep, damage: Callable[[kernel_cache.Kernel], object]) -> None:
    kernel = keep()
    damage(kernel)
    assert kernel_cache.kernels() == []
    assert kernel_cache.remove() == [kernel.path.parent.name]


def edit(kernel: kernel_cache.Kernel, **values: object) -> None:
    file = kernel.path.parent / "kernel.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


@pytest.mark.parametrize("content", [b"half", b"Kernel"])
def test_damaged_one_is_made_good(keep: Keep, content: bytes) -> None:
    kernel = keep()
    kernel.path.write_bytes(content)
    assert keep() == kernel
    assert kernel_cache.find() == kernel
    assert kernel.path.read_bytes() == b"kernel"


def test_of_a_source(keep: Keep) -> None:
    kernel = keep(source_digest="12")
    assert kernel_cache.built_of("12") == kernel
    assert kernel_cache.built_of("13") is None


def test_all_is_removed(keep: Keep, folder: Path) -> None:
    names = sorted(keep(content).path.parent.name for content in (b"one", b"two"))
    assert kernel_cache.remove() == names
    assert kernel_cache.kernels() == []
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_stale_is_removed(keep: Keep) -> None:
    kept, stale = keep(b"one"), keep(b"two", changes="0")
    assert kernel_cache.remove(only_stale=True) == [stale.path.parent.name]
    assert kernel_cache.kernels() == [kept]


def test_link_is_removed_and_not_what_it_leads_to(keep: Keep, folder: Path, tmp_path: Path) -> None:
    kernel = keep()
    kernel.path.parent.rename(tmp_path / "elsewhere")
    kernel.path.parent.symlink_to(tmp_path / "elsewhere")
    assert kernel_cache.find() == kernel
    assert kernel_cache.remove() == [kernel.path.parent.name]
    assert kernel_cache.kernels() == []
    assert (tmp_path / "elsewhere/linux").exists()


def test_nothing_to_remove(folder: Path) -> None:
    assert kernel_cache.remove() == []
    assert not folder.exists()


def test_only_one_at_a_time(keep: Keep) -> None:
    keep()
    with kernel_cache.held(), pytest.raises(MachineError, match="by another tstorm"):
        kernel_cache.remove()
    assert len(kernel_cache.remove()) == 1


def test_who_is_refused_leaves_what_others_do_alone(keep: Keep, folder: Path) -> None:
    keep()
    with kernel_cache.held():
        (folder / "building/tree").mkdir(parents=True)
        with pytest.raises(MachineError, match="by another tstorm"), kernel_cache.held():
            pass
        assert (folder / "building/tree").exists()


def test_leftovers_of_those_who_were_killed_go(keep: Keep, folder: Path) -> None:
    kernel = keep()
    (folder / "new-12").mkdir()
    assert kernel_cache.kernels() == [kernel]
    with kernel_cache.held():
        assert sorted(path.name for path in folder.iterdir()) == sorted(
            ["lock", kernel.path.parent.name]
        )


def test_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/a")
    monkeypatch.delenv("TSTORM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert kernel_cache.root() == Path("/home/a/.cache/tstorm/kernel")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert kernel_cache.root() == Path("/home/a/.cache/tstorm/kernel")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/a")
    assert kernel_cache.root() == Path("/var/cache/a/tstorm/kernel")
    monkeypatch.setenv("TSTORM_CACHE", "/var/b")
    assert kernel_cache.root() == Path("/var/b/kernel")


def test_named_kernel_is_taken_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSTORM_KERNEL", "/bin/true")
    assert kernel_cache.path_for_run() == Path("/bin/true")
    monkeypatch.setenv("TSTORM_KERNEL", "/a/linux")
    with pytest.raises(MachineError, match="TSTORM_KERNEL names no program: /a/linux"):
        kernel_cache.path_for_run()
