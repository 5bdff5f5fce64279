"""Doctor's line about virtual time: what stops it is named, with what to do."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from runtime.doctor import checks
from runtime.doctor.findings import OK, WARN
from runtime.errors import MachineError
from runtime.virtual import forbidden, guest
from runtime.virtual.kernel import kernel_build, kernel_cache
from tests.virtual.kernel import fake


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake.use(monkeypatch, tmp_path)


@pytest.fixture
def built(folder: Path, tmp_path: Path) -> None:
    kernel_build.build(fake.write_tree(tmp_path / "tree"), fake.heard()[1])


def forbid(monkeypatch: pytest.MonkeyPatch, place: Path, name: str, value: str, code: str) -> None:
    """This machine as one with the setting, where the small program is refused."""
    file = place / name
    file.write_text(f"{value}\n")
    monkeypatch.setattr(forbidden, name, file)
    monkeypatch.setattr(forbidden, code, "print('Operation not permitted')")


def test_no_kernel(folder: Path) -> None:
    check = checks.virtual_time()
    assert (check.status, check.detail) == (WARN, "no kernel for virtual time is built")
    assert check.remedy == "tstorm kernel build"


def test_no_place_for_a_kernel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no reason to tell nothing about the rest of the machine."""

    def nowhere() -> Path:
        raise MachineError("no home is known here", "set TSTORM_CACHE")

    monkeypatch.setattr(kernel_cache, "root", nowhere)
    check = checks.virtual_time()
    assert (check.status, check.detail) == (WARN, "no home is known here")


def test_kernel_that_is_named_is_the_one_that_is_tried(
    built: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.write_bytes(kernel_cache.path_for_run().read_bytes())
    other.chmod(0o755)
    tried = []
    monkeypatch.setattr(guest, "why_not", lambda kernel, _keeper: tried.append(kernel) or "")
    monkeypatch.setenv("TSTORM_KERNEL", str(other))
    assert checks.virtual_time().status == OK
    assert tried == [other]


def test_other_processor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert checks.virtual_time().detail == "this machine is aarch64: only x86-64 can"


def test_tracing_is_forbidden(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, tmp_path, "_SCOPE", "3", "_TRACE")
    check = checks.virtual_time()
    assert check.detail == "programs may not be traced: Operation not permitted"
    assert check.remedy == "sysctl kernel.yama.ptrace_scope=1 (it is 3)"


def test_a_container_forbids_tracing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, tmp_path, "_SCOPE", "1", "_TRACE")
    assert "--cap-add SYS_PTRACE" in checks.virtual_time().remedy


def test_memory_may_not_be_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, tmp_path, "_NOEXEC", "2", "_MEMORY")
    assert checks.virtual_time().remedy == "sysctl vm.memfd_noexec=0 (it is 2)"


def test_guest_that_starts(built: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "why_not", lambda _kernel, _keeper: "")
    check = checks.virtual_time()
    assert (check.status, check.detail.split(" ")[:2]) == (OK, ["Linux", "6.12.7"])


@pytest.mark.parametrize(
    ("features", "words"), [("fpu rdrand", "seen by"), ("fpu cpuid_fault rdrand", "hidden from")]
)
def test_random_instructions(
    built: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, features: str, words: str
) -> None:
    monkeypatch.setattr(guest, "why_not", lambda _kernel, _keeper: "")
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags : {features}\n")
    monkeypatch.setattr(checks, "_PROCESSOR", tmp_path / "cpuinfo")
    assert f"random instructions are {words} them" in checks.virtual_time().detail


def test_guest_that_does_not_start(built: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "why_not", lambda _kernel, _keeper: "no room")
    check = checks.virtual_time()
    assert (check.status, check.detail) == (WARN, "Linux 6.12.7 does not start: no room")
    assert check.remedy


def test_guest_that_does_not_start_since_tracing_is_forbidden(
    built: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest, "why_not", lambda _kernel, _keeper: "status 1")
    forbid(monkeypatch, tmp_path, "_SCOPE", "3", "_TRACE")
    assert checks.virtual_time().detail.startswith("programs may not be traced")
