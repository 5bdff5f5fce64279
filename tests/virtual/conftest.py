import subprocess

import pytest

from runtime.errors import MachineError
from runtime.virtual.kernel import cache


@pytest.fixture(params=["ptrace", "seccomp"])
def kernel(request: pytest.FixtureRequest) -> list[str]:
    """The kernel for virtual time with words for its command line: programs are traced, or watched
    by seccomp where it can."""
    try:
        path = str(cache.path_for_run())
    except MachineError as error:
        pytest.skip(f"needs the kernel for virtual time: {error}")
    help_text = subprocess.run([path, "--help"], capture_output=True, text=True, check=False).stdout
    if "seccomp=" not in help_text:
        if request.param == "seccomp":
            pytest.skip("this kernel cannot watch programs by seccomp")
        return [path]
    return [path, {"ptrace": "seccomp=off", "seccomp": "seccomp=on"}[request.param]]
