"""The kernel for virtual time as it is kept here: it starts, runs a program and ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.doctor import checks
from runtime.doctor.findings import OK
from runtime.system import compiled_programs
from runtime.virtual import guest
from runtime.virtual.kernel import (
    asking,
    kernel_build,
    kernel_cache,
    kernel_changes,
)

pytestmark = pytest.mark.virtual


@pytest.fixture
def kernel() -> Path:
    return kernel_cache.path_for_run()


def test_guest_starts_and_ends(kernel: Path) -> None:
    assert guest.why_not(kernel, compiled_programs.find("tstorm-ns")) == ""


def test_it_is_small(kernel: Path) -> None:
    assert kernel.stat().st_size < kernel_build.LARGEST_BYTES


def test_it_has_what_is_needed(kernel: Path) -> None:
    assert kernel_changes.not_followed(kernel_changes.NEEDED, asking.config(kernel)) == []


def test_nothing_of_the_builder_is_in_it(kernel: Path) -> None:
    """Programs see date, user and host of the build (`uname -a`)."""
    if not kernel_changes.of_config(asking.config(kernel)):
        pytest.skip("`tstorm kernel build` did not build this kernel")
    content = kernel.read_bytes()
    assert b"Sat Jan  1 00:00:00 UTC 2000" in content
    assert b"tstorm@tstorm" in content


def test_doctor_tries_it(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = kernel_cache.find()
    if found is None:
        pytest.skip("the kernel is one that TSTORM_KERNEL names: doctor asks the cache")
    check = checks.virtual_time()
    assert (check.name, check.status) == ("virtual time", OK), check


def test_what_ends_too_early_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "linux"
    broken.write_text("#!/bin/sh\necho the last word\nexit 3\n")
    broken.chmod(0o755)
    why = guest.why_not(broken, compiled_programs.find("tstorm-ns"))
    assert why == "the guest's kernel ended: the last word"
