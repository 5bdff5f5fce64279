"""What all tests share: directories of their own, so that nobody else's runs meet theirs; and those
marked `root`, `e2e`, `netem` or `virtual` are skipped, and say why, where they must be.

Only the machine's own refusal is a reason: a program of ours that is missing or broken must fail.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from runtime.errors import RunError
from runtime.virtual.kernel import kernel_cache
from tests.setuptimes import pytest_runtest_logstart as pytest_runtest_logstart
from tests.setuptimes import pytest_runtest_makereport as pytest_runtest_makereport

if TYPE_CHECKING:
    from tests.page.browser import Browser

# What tests share says what it saw when it fails, as they do.
_HERE = Path(__file__).parent
pytest.register_assert_rewrite(*(f"tests.{path.name}" for path in _HERE.iterdir() if path.is_dir()))

# A machine that is busy with something else makes no test wrong: nothing depends on its speed. What
# judges a commit tries the same examples each time, so a failure is that commit's; whoever works on
# the code tries others each time, and keeps what has failed.
_ANYWHERE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("tstorm", _ANYWHERE)
settings.register_profile("ci", _ANYWHERE, max_examples=50, derandomize=True, database=None)
settings.load_profile("ci" if "CI" in os.environ else "tstorm")

# A shell has what it starts in the background ignore Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# `python3` of programs is a version manager's script where somebody has one: it takes ten times as
# long as a Python, a second and more of virtual time's computing. So the Python of these tests is
# the first.
os.environ["PATH"] = f"{Path(sys.executable).resolve().parent}{os.pathsep}{os.environ['PATH']}"


# Short, since paths of sockets are; open to those that tests make ordinary users, as /tmp is.
_OWN = (
    ("XDG_STATE_HOME", "state", 0o700),
    ("XDG_RUNTIME_DIR", "run", 0o700),
    ("TMPDIR", "tmp", 0o1777),
)


def _make_directories() -> Path | None:
    """A worker of xdist has its own, below those of the process that started it, which removes
    them all: None there."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        place = Path(os.environ["TMPDIR"]).parent / worker
        place.mkdir()
    else:
        place = Path(tempfile.mkdtemp(prefix="ts-"))
    place.chmod(0o755)
    for variable, name, mode in _OWN:
        (place / name).mkdir()
        (place / name).chmod(mode)
        os.environ[variable] = str(place / name)
    tempfile.tempdir = None  # it was asked for before
    return None if worker else place


_PLACE = _make_directories()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from tests.page.browser import Browser, program

    found = program()
    if found is None:
        pytest.skip("there is no Chromium (Debian: chromium)")
    with Browser(found) as one:
        yield one


@pytest.fixture(autouse=True)
def _scheduled_as_before() -> Iterator[None]:
    """A driver that a test carries out goes into the real-time class, and takes this process with
    it: each test after it would go before all else on the machine."""
    before = os.sched_getscheduler(0)
    yield
    after = os.sched_getscheduler(0)
    if after != before:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    assert after == before, "this test leaves its process in another scheduling class"


def pytest_sessionfinish(exitstatus: int) -> None:
    """What a failed test has left is kept for whoever looks for the reason."""
    if _PLACE is None:
        return
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        shutil.rmtree(_PLACE, ignore_errors=True)
    else:
        print(f"\nfiles of the tests: {_PLACE}")


def _why_no_namespaces() -> str:
    """The kernel's words if it refuses the namespaces a run needs, else ''."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ""
    kinds = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork"]
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    trial = subprocess.run(
        [unshare, *user, *kinds, "true"], capture_output=True, text=True, check=False
    )
    return "" if trial.returncode == 0 else f"namespaces are refused: {trial.stderr.strip()}"


@functools.cache
def _why_no_virtual_time() -> str:
    """A kernel that is there must do: only one that was not built excuses a test."""
    try:
        kernel_cache.path_for_run()
    except RunError as error:
        return f"needs the kernel for virtual time (make kernel): {error.message}"
    return ""


def _check_marks(items: list[pytest.Item]) -> None:
    """A phase of `make test` looks for its files by these words (scripts/run_tests.py)."""
    read = functools.cache(lambda path: path.read_text(encoding="utf-8"))
    for item in items:
        for name in ("alone", "e2e", "ordinary", "virtual"):
            if item.get_closest_marker(name) and f"mark.{name}" not in read(item.path):
                raise pytest.UsageError(f"{item.path}: no `mark.{name}` in the file of {item.name}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _check_marks(items)
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)
    ordinary = os.geteuid() != 0
    with_netem = [item for item in items if item.get_closest_marker("netem")]
    end_to_end = [item for item in items if item.get_closest_marker("e2e")]
    refused = _why_no_namespaces() if end_to_end else ""
    # With this set they were to be run under such a kernel: then nothing excuses them.
    if with_netem and "TSTORM_TEST_NETEM" not in os.environ:
        for item in with_netem:
            item.add_marker(pytest.mark.skip(reason="needs a kernel with netem: make test-netem"))
    for item in items if _why_no_virtual_time() else []:
        if item.get_closest_marker("virtual"):
            item.add_marker(pytest.mark.skip(reason=_why_no_virtual_time()))
    for item in items:
        if ordinary and item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))
    if refused:
        for item in end_to_end:
            item.add_marker(pytest.mark.skip(reason=refused))
