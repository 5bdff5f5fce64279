"""`make test`: checks, C tests, Python tests; all of them run, whatever fails; one closing line.

Python tests run on two workers; those marked `e2e`, which start namespaces and real programs, file
by file, since tests of a file share what one of them has set up, and those marked `alone` after
them, one after another. Root runs the e2e tests a second time as an ordinary user, where the
machine lets it, since a rootless run is a way of its own through the runtime; but for those marked
`once`, which have an ordinary user in them already or need no rights at all. Tests marked
`cluster` run where a Kubernetes cluster was built (tests/cluster/README.md), those marked `netem`
under a kernel that has it: this one, else user-mode Linux; those marked `virtual` run where the
kernel for virtual time was built (`make kernel`).
Arguments go to pytest (`make test TESTS='tests/tdl -k fmt'`) and leave out the checks, the C
tests, the second run, the cluster and those kernels. `--cluster`, `--netem` or `--virtual` first
leaves out everything else, which then must be possible.

TSTORM_TEST_MINUTES bounds the whole: a phase after the end-to-end tests that would not be done by
then, at the pace of this machine so far, is left out, which is said and counted as skipped.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import RunError
from runtime.virtual.kernel import cache

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent  # not resolved: the environment's own
CLUSTER = ROOT / "tests/cluster"
WITH_NETEM = ROOT / "tests/netem/with_netem.py"
ORDINARY_USER = "nobody"
SLOWEST = ("--durations=10", "--durations-min=10")  # seconds: where a suite that grows takes them
# A guest has one processor: two at once serve this machine better.
VIRTUAL_WORKERS = ("-n", "2")
# They wait more than they work; what a file has set up serves all of its tests. The files with the
# fewest tests have the longest ones, and would come last.
FILE_WORKERS = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
ALONE = "tests/cluster/test_programs.py"  # of what programs do beside other work nothing follows
_PLACELESS = "not cluster and not netem and not virtual"  # what runs wherever this does
NO_TESTS = 5  # pytest's exit code when a selection is empty
# How long phases take on two processors that have nothing else to do, in minutes.
FIRST_MINUTES = 44.0  # checks, C tests, unit and end-to-end tests
VIRTUAL_MINUTES, NETEM_MINUTES, CLUSTER_MINUTES, ROOTLESS_MINUTES = 6.0, 5.0, 14.0, 7.0


@dataclass
class Totals:
    """What the closing line says. Checks and C tests count as one each."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add_suite(self, report: Path) -> None:
        """Adds the counts of a JUnit file as pytest writes it."""
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped = int(suite.get("skipped", 0))
            self.passed += max(0, int(suite.get("tests", 0)) - failed - skipped)
            self.failed += failed
            self.skipped += skipped


@dataclass(frozen=True, slots=True)
class Budget:
    """Minutes for everything, since `began_s` (time.monotonic); infinite unless somebody says."""

    began_s: float
    minutes: float

    def lacks(self, minutes: float, pace: float) -> str:
        """Why a phase of so many minutes does not fit in any more; '' if it does."""
        gone = (time.monotonic() - self.began_s) / 60
        if gone + minutes * pace <= self.minutes:
            return ""
        return (
            f"{gone:.0f} of {self.minutes:g} minutes are over (TSTORM_TEST_MINUTES), and it takes "
            f"some {minutes * pace:.0f} here"
        )

    def pace(self) -> float:
        """Of this machine, after the first phases: 2 if they took twice as long as usual."""
        return max(1.0, (time.monotonic() - self.began_s) / 60 / FIRST_MINUTES)


def say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def step(totals: Totals, name: str, argv: list[str]) -> None:
    """Runs one command that passes or fails as a whole."""
    say(name)
    if subprocess.run(argv, cwd=ROOT, check=False).returncode == 0:
        totals.passed += 1
    else:
        totals.failed += 1
        print(f"FAILED: {name}", flush=True)


def suite(totals: Totals, name: str, arguments: list[str], prefix: tuple[str, ...] = ()) -> None:
    """Runs pytest and counts. A pytest that dies without a report counts as one failure."""
    say(name)
    with tempfile.TemporaryDirectory(prefix="tstorm-tests-") as folder:
        Path(folder).chmod(0o777)
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *SLOWEST, *arguments]
        code = subprocess.run([*prefix, *command], cwd=ROOT, check=False).returncode
        if report.exists():
            before = totals.failed
            totals.add_suite(report)
            reported = totals.failed > before
        else:
            reported = False
    if code not in (0, NO_TESTS) and not reported:
        totals.failed += 1
        print(f"FAILED: {name}: pytest ended with status {code}", flush=True)


def as_ordinary_user(home: str) -> tuple[tuple[str, ...], str]:
    """(how to start a program as an ordinary user, '') or ((), why that is not possible here)."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return (), "setpriv (util-linux) is not installed"
    user = pwd.getpwnam(ORDINARY_USER)
    os.chown(home, user.pw_uid, user.pw_gid)
    prefix = (
        setpriv,
        f"--reuid={user.pw_uid}",
        f"--regid={user.pw_gid}",
        "--clear-groups",
        "--inh-caps=-all",
        "env",
        f"HOME={home}",
        f"USER={ORDINARY_USER}",
        "PYTHONDONTWRITEBYTECODE=1",
    )
    trial = subprocess.run(
        [*prefix, sys.executable, "-c", "import click, pytest, tdl"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    if trial.returncode != 0:
        reason = (trial.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        return (), f"an ordinary user cannot use this Python or this checkout ({reason})"
    return prefix, ""


def everything(totals: Totals) -> None:
    minutes = float(os.environ.get("TSTORM_TEST_MINUTES") or "inf")
    budget = Budget(time.monotonic(), minutes)
    step(totals, "checks", ["scripts/check", str(BIN)])
    step(totals, "C tests", ["make", "--no-print-directory", "-C", "tcal_c", "test"])
    suite(totals, "Python tests", ["-m", f"not e2e and {_PLACELESS}", "-n", "2"])
    end_to_end(totals, "end-to-end tests", _PLACELESS)
    pace = budget.pace()
    rest: list[tuple[str, float, Callable[[], None]]] = [
        ("tests in virtual time", VIRTUAL_MINUTES, lambda: virtual(totals, [], must=False)),
        ("kernel datapath", NETEM_MINUTES, lambda: netem(totals, [], must=False)),
        ("cluster tests", CLUSTER_MINUTES, lambda: cluster(totals, [], why_no_cluster())),
    ]
    if os.geteuid() == 0:
        name = "end-to-end tests as an ordinary user"
        rest.append((name, ROOTLESS_MINUTES, lambda: rootless(totals)))
    for name, usual, carry_out in rest:
        why_not = budget.lacks(usual, pace)
        if why_not:
            say(f"{name}: skipped: {why_not}")
            totals.skipped += 1
        else:
            carry_out()


def end_to_end(
    totals: Totals,
    name: str,
    which: str,
    options: tuple[str, ...] = (),
    prefix: tuple[str, ...] = (),
) -> None:
    several = ["-m", f"e2e and not alone and {which}", *FILE_WORKERS, *options]
    suite(totals, name, several, prefix)
    suite(totals, f"{name}, one at a time", ["-m", f"e2e and alone and {which}", *options], prefix)


def rootless(totals: Totals) -> None:
    name = "end-to-end tests as an ordinary user"
    with tempfile.TemporaryDirectory(prefix="tstorm-home-") as home:
        prefix, why_not = as_ordinary_user(home)
        if prefix:
            end_to_end(
                totals,
                name,
                f"{_PLACELESS} and not root and not once",
                ("-p", "no:cacheprovider"),
                (*prefix, *kernel_of(home)),
            )
        else:
            say(f"{name}: skipped: {why_not}")
            totals.skipped += 1


def kernel_of(home: str) -> tuple[str, ...]:
    """A word for env(1) that names a copy of this user's kernel for virtual time, for a user who
    may read `home`; none where there is no kernel."""
    try:
        kernel = cache.path_for_run()
    except RunError:
        return ()
    copy = Path(home) / "linux"
    shutil.copy(kernel, copy)
    copy.chmod(0o755)
    return (f"TSTORM_KERNEL={copy}",)


def virtual(totals: Totals, arguments: list[str], *, must: bool) -> None:
    """Tests that need the kernel for virtual time; root runs them as an ordinary user as well."""
    name = "tests in virtual time"
    try:
        kernel = cache.path_for_run()
    except RunError as error:
        say(f"{name}: {'FAILED' if must else 'skipped'}: {error} (make kernel)")
        if must:
            totals.failed += 1
        else:
            totals.skipped += 1
        return
    selection = ["-m", "virtual", *VIRTUAL_WORKERS, *(arguments or ["tests"])]
    suite(totals, f"{name} ({kernel})", selection)
    if os.geteuid() == 0 and not arguments:
        virtual_rootless(totals)


def virtual_rootless(totals: Totals) -> None:
    """The same as an ordinary user, who gets a copy of root's kernel."""
    name = "tests in virtual time as an ordinary user"
    with tempfile.TemporaryDirectory(prefix="tstorm-home-") as home:
        prefix, why_not = as_ordinary_user(home)
        if not prefix:
            say(f"{name}: skipped: {why_not}")
            totals.skipped += 1
            return
        selection = ["-m", "virtual and not root and not once", "-p", "no:cacheprovider"]
        suite(
            totals,
            name,
            [*selection, *VIRTUAL_WORKERS, "tests"],
            (*prefix, *kernel_of(home)),
        )


def netem(totals: Totals, arguments: list[str], *, must: bool) -> None:
    """The kernel datapath's tests, under this kernel or another, which the headline names."""
    prefix = (sys.executable, str(WITH_NETEM))
    found = subprocess.run([*prefix, "--check"], check=False, capture_output=True, text=True)
    name = f"kernel datapath under a kernel with netem ({found.stdout.strip() or 'none'})"
    if found.returncode == 0:
        selection = ["-m", "netem", "-p", "no:cacheprovider", *(arguments or ["tests/netem"])]
        suite(totals, name, selection, (*prefix, "--"))
        return
    say(f"{name}: {'FAILED' if must else 'skipped'}: {found.stderr.strip()} (make test-netem)")
    if must:
        totals.failed += 1
    else:
        totals.skipped += 1


def why_no_cluster() -> str:
    """What is missing for the cluster tests here, '' if nothing is."""
    done = subprocess.run(
        [CLUSTER / "cluster", "check"], check=False, capture_output=True, text=True
    )
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip() or "check failed"


def cluster(totals: Totals, arguments: list[str], why_not: str = "") -> None:
    """Once a cluster is possible here, one that does not come up is a failure."""
    if why_not:
        say(f"cluster tests: skipped: {why_not} (make test-cluster)")
        totals.skipped += 1
        return
    prefix = (sys.executable, str(CLUSTER / "with_cluster.py"))
    if arguments:
        suite(totals, "cluster tests", ["-m", "cluster", *arguments], prefix)
        return
    others = [*FILE_WORKERS, f"--ignore={ALONE}"]
    suite(totals, "cluster tests", ["-m", "cluster", *others], prefix)
    suite(totals, "cluster tests with real programs", ["-m", "cluster", ALONE], prefix)


def main() -> int:
    start = time.monotonic()
    totals = Totals()
    if sys.argv[1:2] == ["--cluster"]:
        cluster(totals, sys.argv[2:])
    elif sys.argv[1:2] == ["--netem"]:
        netem(totals, sys.argv[2:], must=True)
    elif sys.argv[1:2] == ["--virtual"]:
        virtual(totals, sys.argv[2:], must=True)
    elif sys.argv[1:]:
        suite(totals, "Python tests", sys.argv[1:])
    else:
        everything(totals)
    minutes, seconds = divmod(round(time.monotonic() - start), 60)
    print(
        f"\n{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped"
        f" in {minutes}m{seconds:02d}s",
        flush=True,
    )
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
