"""The kernel for virtual time, and how it watches the programs in it."""

import pytest

from runtime.errors import MachineError
from runtime.virtual.kernel import asking, kernel_cache


def _kernel(watching: str) -> list[str]:
    """With words for its command line; `watching` is for a kernel that can watch by seccomp."""
    try:
        path = kernel_cache.path_for_run()
    except MachineError as error:
        pytest.skip(f"needs the kernel for virtual time: {error}")
    return [str(path), f"seccomp={watching}"] if asking.can_seccomp(path) else [str(path)]


@pytest.fixture
def kernel() -> list[str]:
    """It watches programs as it does in a run."""
    return _kernel("auto")


@pytest.fixture(params=["ptrace", "seccomp"])
def either_kernel(request: pytest.FixtureRequest) -> list[str]:
    """Once with programs that it traces, and once with programs that seccomp watches, where it can.
    For the tests of registers, signals and faults, which the two ways handle apart."""
    found = _kernel("off" if request.param == "ptrace" else "on")
    if request.param == "seccomp" and len(found) == 1:
        pytest.skip("this kernel cannot watch programs by seccomp")
    return found
