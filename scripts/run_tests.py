"""`make test`: checks, C tests, Python tests; all of them run, whatever fails; one closing line.

Python tests run four at a time. Those marked `e2e`, which start namespaces and real programs, run
file by file, since tests of a file share what one of them has set up; those marked `alone` run
at the end, one after another. Tests marked `cluster` run where a Kubernetes cluster was
built (tests/cluster/README.md), those marked `netem` under a kernel that has it: this one, else
user-mode Linux; those marked `virtual` where the kernel for virtual time was built (`make kernel`).
With TSTORM_TEST_KERNEL=build that kernel is built in the meantime, from what the unit tests leave.
What waits runs beside what computes: the checks beside the C tests, the cluster boots and is tested
beside the unit tests, the kernel with netem beside the tests end to end. Virtual time, on which
nothing can act, fills what is left: beside the rest of the tests end to end and beside what wants a
quiet machine, on one half of the processors, and last there. Root runs the tests that are marked
`ordinary` a second time as an ordinary user, where the machine lets it.
Arguments go to pytest (`make test TESTS='tests/tdl -k fmt'`) and leave out everything else.
`--cluster`, `--netem` or `--virtual` first leaves out everything else, too, and must be possible.

`scripts/slowest` shows where the time of the last whole run went. TSTORM_TEST_MINUTES is a last
resort where something ends a run that takes too long: a phase that would not be done by then, at
the pace of this machine so far, is left out and counted as skipped, and the last line names it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import RunError
from runtime.system import caching
from runtime.virtual.kernel import kernel_cache
from scripts.phases import LAST, ROOT, Lane, Outcome, Record, beside, emptied, make_way

BIN = Path(sys.executable).parent  # not resolved: the environment's own
CLUSTER = ROOT / "tests/cluster"
QUIET = "tests/cluster/test_programs.py"  # of what programs do beside other work nothing follows
WITH_NETEM = ROOT / "tests/netem/with_netem.py"
ORDINARY_USER = "nobody"
FILE_BY_FILE = ("--dist", "loadfile", "--no-loadscope-reorder")
WORKERS = ("-n", "4")  # more than processors: half of the time a test waits
PROGRAMS = ("-n", "3")  # end to end: a test has many processes itself
GUESTS = ("-n", "2")  # a guest of virtual time computes all the time, and so does a cluster
CANNOT_BUILD = 3  # exit code of `tstorm kernel build`
_PLACELESS = "not cluster and not netem and not virtual"  # what runs wherever this does


@dataclass(frozen=True, slots=True)
class Part:
    """Phases of one lane, and how long they take on two processors that have nothing else to do but
    the lane beside them."""

    name: str
    minutes: float
    carry_out: Callable[[Lane], object]


@dataclass
class Pace:
    """Leaves out what would not be done in time, at the pace of this machine in the last lane."""

    limit_minutes: float
    slowness: float = 1.0  # times that a part takes what it is expected to take

    def carry_out(self, lane: Lane, *parts: Part) -> None:
        record, expected, began = lane.record, 0.0, lane.record.minutes()
        for part in parts:
            now = record.minutes()
            needed = part.minutes * self.slowness
            if now + needed <= self.limit_minutes:
                part.carry_out(lane)
                expected += part.minutes
                self.slowness = max(1.0, (record.minutes() - began) / expected)
                continue
            gone = f"{now:.0f} of {self.limit_minutes:g} minutes are over (TSTORM_TEST_MINUTES)"
            lane.skip(part.name, f"{gone}, and it takes some {needed:.0f} here")
            record.left_out.append(part.name)


def everything(record: Record) -> None:
    pace = Pace(float(os.environ.get("TSTORM_TEST_MINUTES") or "inf"))
    builds = os.environ.get("TSTORM_TEST_KERNEL") == "build"
    with beside(record, kernel) if builds else nullcontext():
        with beside(record, lambda lane: pace.carry_out(lane, Part("checks", 1.5, checks))):
            pace.carry_out(Lane(record), Part("C tests", 1.5, c_tests))
        no_cluster = why_no_cluster()
        in_cluster = Part("cluster tests", 10.0, lambda lane: cluster(lane, [], no_cluster))
        with beside(record, lambda lane: pace.carry_out(lane, in_cluster)):
            pace.carry_out(Lane(record), Part("unit tests", 10.0, unit_tests))
    alone_now = threading.Event()
    with beside(record, lambda lane: beside_programs(lane, pace, alone_now)):
        lane = Lane(record)
        pace.carry_out(lane, Part("end to end", 12.0, end_to_end))
        alone_now.wait()
        quiet(lane, pace, no_cluster)
    if record.minutes() < pace.limit_minutes:
        record.look_again(Lane(Record(None)))


def kernel(lane: Lane) -> None:
    """For virtual time, once for a user. Exit 3: a machine that cannot build it."""
    build = ["nice", "-n", str(LAST), str(BIN / "tstorm"), "kernel", "build"]
    lane.step("kernel for virtual time", build, cannot=CANNOT_BUILD)


def c_tests(lane: Lane) -> None:
    lane.step("C tests", ["make", "--no-print-directory", "-C", "tcal_c", "-j2", "test"])


def checks(lane: Lane) -> None:
    """Types take most of it, on one processor, where they were not checked before: what is known of
    files is kept by their digests. Reading all files of tests compiles them for all who do it after
    that."""
    types = f"MYPY_CACHE_DIR={caching.folder('mypy', 'types of files')}"
    lane.step("checks", ["env", types, "scripts/check", str(BIN)])
    lane.suite("files of tests", ["--collect-only", "-k", "none_of_them"])


def unit_tests(lane: Lane) -> None:
    lane.suite("unit tests", ["-m", f"not e2e and {_PLACELESS}", *WORKERS])


def marked(*names: str) -> list[str]:
    """Files with tests that have all of these marks, which stand in the file itself
    (tests/conftest.py): a worker takes ten seconds and more to read all tests."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    wanted = [f"mark.{name}" for name in names]
    return sorted(str(p) for p, text in texts.items() if all(mark in text for mark in wanted))


def end_to_end(lane: Lane) -> None:
    which = f"e2e and not alone and {_PLACELESS}"
    lane.suite("end-to-end tests", ["-m", which, *PROGRAMS, *FILE_BY_FILE, *marked("e2e")])


def beside_programs(lane: Lane, pace: Pace, alone_now: threading.Event) -> None:
    """What runs beside tests end to end, and then what programs do not notice. Root's machine with
    netem comes before them (tests/netem/vm.py)."""
    try:
        if os.geteuid() == 0:
            pace.carry_out(lane, Part("netem", 8.0, netem), Part("ordinary", 3.0, ordinary))
    finally:
        alone_now.set()
    make_way()
    pace.carry_out(lane, Part("virtual", 12.0, virtual))


def quiet(lane: Lane, pace: Pace, no_cluster: str) -> None:
    """What programs do in time, to which nothing else may happen."""
    if os.geteuid() != 0:
        pace.carry_out(lane, Part("netem", 8.0, netem))
    pace.carry_out(lane, Part("one at a time", 5.0, alone))
    if not no_cluster:
        programs = Part("programs on the cluster", 2.0, lambda lane: cluster(lane, [QUIET]))
        pace.carry_out(lane, programs)


def alone(lane: Lane) -> None:
    """What nothing may run beside, as root and as an ordinary user."""
    which = f"alone and {_PLACELESS}"
    lane.suite("tests one at a time", ["-m", which, *marked("alone")])
    if os.geteuid() == 0:
        as_ordinary_user(lane, "tests one at a time", which, *marked("alone", "ordinary"))


def ordinary(lane: Lane) -> None:
    """Root's second time; an ordinary user has had them all."""
    which = "not alone and not cluster and not netem"
    options = (*PROGRAMS, *FILE_BY_FILE, *marked("ordinary"))
    as_ordinary_user(lane, "tests that differ", which, *options)


def as_ordinary_user(lane: Lane, name: str, which: str, *options: str) -> None:
    words = ("-m", f"ordinary and not root and {which}", *options)
    with_ordinary_user(lane, f"{name} as an ordinary user", words)


def with_ordinary_user(lane: Lane, name: str, words: tuple[str, ...]) -> Outcome:
    with ordinary_user() as (prefix, why_not):
        if why_not:
            lane.skip(name, why_not)
            return Outcome()
        return lane.suite(
            name,
            ["-p", "no:cacheprovider", *words],
            prefix,
            again=lambda lane, tests: with_ordinary_user(lane, f"{name}, once more", tests),
        )


@contextmanager
def ordinary_user() -> Iterator[tuple[tuple[str, ...], str]]:
    """(how to start a program as an ordinary user with a home, '') or ((), why that is not possible
    here)."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        yield (), "setpriv (util-linux) is not installed"
        return
    with tempfile.TemporaryDirectory(prefix="tstorm-home-") as home:
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
        if trial.returncode == 0:
            yield (*prefix, *kernel_of(home)), ""
        else:
            reason = (trial.stderr.strip().splitlines() or ["it ended without a word"])[-1]
            yield (), f"an ordinary user cannot use this Python or this checkout ({reason})"


def kernel_of(home: str) -> tuple[str, ...]:
    """A word for env(1) that names a copy of this user's kernel for virtual time, for a user who
    may read `home`; none where there is no kernel."""
    try:
        kernel = kernel_cache.path_for_run()
    except RunError:
        return ()
    copy = Path(home) / "linux"
    shutil.copy(kernel, copy)
    copy.chmod(0o755)
    return (f"TSTORM_KERNEL={copy}",)


def virtual(lane: Lane, arguments: list[str] | None = None, *, must: bool = False) -> None:
    """Tests that need the kernel for virtual time."""
    name = "tests in virtual time"
    try:
        kernel = kernel_cache.path_for_run()
    except RunError as error:
        lane.skip(name, f"{error} (make kernel)", fails=must)
        return
    selection = ["-m", "virtual", *GUESTS, *FILE_BY_FILE, *(arguments or marked("virtual"))]
    lane.suite(f"{name} ({kernel})", selection)


def netem(lane: Lane, arguments: list[str] | None = None, *, must: bool = False) -> None:
    """The kernel datapath's tests, under this kernel or another, which the headline names."""
    prefix = (sys.executable, str(WITH_NETEM))
    found = subprocess.run([*prefix, "--check"], check=False, capture_output=True, text=True)
    name = f"kernel datapath under a kernel with netem ({found.stdout.strip() or 'none'})"
    if found.returncode == 0:
        selection = ["-m", "netem", "-p", "no:cacheprovider", *(arguments or ["tests/netem"])]
        lane.suite(name, selection, (*prefix, "--"))
    else:
        lane.skip(name, f"{found.stderr.strip()} (make test-netem)", fails=must)


def why_no_cluster() -> str:
    """What is missing for the cluster tests here, '' if nothing is."""
    done = subprocess.run(
        [CLUSTER / "cluster", "check"], check=False, capture_output=True, text=True
    )
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip() or "check failed"


def cluster(lane: Lane, arguments: list[str], why_not: str = "") -> None:
    """One cluster for all its tests but the quiet ones. Once it is possible here, one that does not
    come up is a failure."""
    if why_not:
        lane.skip("cluster tests", f"{why_not} (make test-cluster)")
        return
    prefix = (sys.executable, str(CLUSTER / "with_cluster.py"))
    several = [*GUESTS, *FILE_BY_FILE, f"--ignore={QUIET}", "tests/cluster"]
    name = f"cluster tests: {' '.join(arguments)}" if arguments else "cluster tests"
    lane.suite(name, ["-m", "cluster", *(arguments or several)], prefix)


def main() -> int:
    # Else each of many thousand processes compiles all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    record = Record(None if sys.argv[1:] else emptied())
    first, rest = sys.argv[1:2], sys.argv[2:]
    if first == ["--cluster"]:
        cluster(Lane(record), rest)
        if not rest:
            cluster(Lane(record), [QUIET])
    elif first == ["--netem"]:
        netem(Lane(record), rest, must=True)
    elif first == ["--virtual"]:
        virtual(Lane(record), rest, must=True)
    elif first:
        Lane(record).suite("Python tests", sys.argv[1:])
    else:
        everything(record)
    print(f"\n{record.closing()}", flush=True)
    return 1 if record.failed else 0


if __name__ == "__main__":
    sys.exit(main())
