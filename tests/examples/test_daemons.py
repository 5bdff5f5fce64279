"""Examples of daemons as they are installed: described in a few lines, without a shell around them,
and each judges by itself whether it did what it should (`expect=`).

None depends on the machine's speed: what waits, waits until something has happened.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from compiler.pipeline import compile_source
from compiler.sources import SourceFolder
from tests.examples.conftest import EXAMPLES, Finished, Runner
from tests.intime import Attempt, exactly
from tstorm.cli import cli

LINES = 30
SHELLS = {"sh", "bash", "dash", "env", "ash", "busybox"}
SYSTEM = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


@dataclass(frozen=True)
class Daemon:
    """An example, and what must be installed for it."""

    name: str
    programs: tuple[str, ...]

    def lacking(self) -> str:
        missing = [name for name in self.programs if shutil.which(name, path=SYSTEM) is None]
        return f"not installed: {', '.join(missing)}" if missing else ""


POSTGRES = ("/usr/lib/postgresql/15/bin/postgres", "/usr/lib/postgresql/15/bin/pgbench")
DAEMONS = (
    Daemon("postgres/postgres", POSTGRES),
    Daemon("postgres/loss", POSTGRES),
    Daemon("nginx/nginx", ("nginx", "wrk")),
    Daemon("memcached/memcached", ("memcached",)),
    Daemon("nats/nats", ("nats-server", "curl")),
    Daemon("gossip/gossip", ()),
)
NAMED = {daemon.name: daemon for daemon in DAEMONS}
each = pytest.mark.parametrize("daemon", DAEMONS, ids=lambda daemon: daemon.name)


def _source(daemon: Daemon) -> Path:
    return EXAMPLES / f"{daemon.name}.tdl"


@each
def test_it_takes_few_lines_and_no_shell(daemon: Daemon) -> None:
    path = _source(daemon)
    text = path.read_text(encoding="utf-8")
    said = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert len(said) <= LINES
    compiled = compile_source(text.encode(), filename=path.name, sources=SourceFolder(path.parent))
    for service in compiled.topology.services:
        for argv in (service.exec, service.setup, service.ready):
            assert not argv or Path(argv[0]).name not in SHELLS, service.name
        for file in service.files:
            assert not file.path.endswith(".sh")


@each
def test_no_seed_gives_a_warning(daemon: Daemon) -> None:
    path = _source(daemon)
    for seed in (None, 1, 2):
        compiled = compile_source(
            path.read_bytes(), filename=path.name, seed=seed, sources=SourceFolder(path.parent)
        )
        assert compiled.diagnostics == ()


@each
def test_the_same_file_renders_for_kubernetes(daemon: Daemon, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["render", str(_source(daemon)), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.stderr
    assert list((tmp_path / "out").glob("*.yaml"))


@dataclass(frozen=True)
class Judged:
    """What a run of an example must have printed, beyond what it expects by itself."""

    name: str
    instance: str
    says: str  # a regular expression, of one line of the instance's log

    def found(self, run: Finished) -> bool:
        return re.search(self.says, run.log(self.instance), re.MULTILINE) is not None


JUDGED = (
    Judged("postgres/postgres", "check.0", r"^ +600 \|.* 1$"),
    Judged("postgres/postgres", "bench.0", r"^number of failed transactions: 0 "),
    Judged("postgres/loss", "check.0", r"\| +1$"),
    Judged("nginx/nginx", "load.0", r"^[1-9]\d* answers, 0 failed"),
    Judged("memcached/memcached", "client.0", r"^[1-9]\d* hits, [1-9]\d* misses, 0 wrong$"),
    Judged("nats/nats", "client.0", r"^\d+ orders, [1-9]\d* acknowledged, 0 missing"),
    Judged("gossip/gossip", "g49.5", r"^[\d.]+ heard it from g\d+\.\d$|heard it from first\.0$"),
)


def carry_out(daemon: Daemon, run_example: Runner, *options: str, out: str = "run") -> None:
    if lacking := daemon.lacking():
        pytest.skip(lacking)
    run = run_example(daemon.name, *options, out=out)
    for judged in JUDGED:
        if judged.name == daemon.name:
            assert judged.found(run), run.log(judged.instance)[-3000:]


@pytest.mark.long
@pytest.mark.ordinary
@pytest.mark.e2e
@pytest.mark.parametrize("name", ["postgres/postgres", "nginx/nginx"])
def test_it_does_what_it_should(name: str, run_example: Runner) -> None:
    """In real time, as users run it: nothing depends on how fast this machine is."""
    carry_out(NAMED[name], run_example)


@pytest.mark.alone
@pytest.mark.e2e
def test_a_rumour_spreads(run_example: Runner) -> None:
    """300 programs that start at once, and an engine that computes for them before all else: two
    processors do nothing else for half a minute."""
    carry_out(NAMED["gossip/gossip"], run_example)


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["postgres/loss", "memcached/memcached", "nats/nats"])
def test_it_does_what_it_should_under_faults(name: str, run_example: Runner) -> None:
    """In virtual time where its kernel is there: some of them wait for many seconds."""

    def trial(attempt: Attempt) -> None:
        carry_out(NAMED[name], run_example, *attempt.flags, out=attempt.name("run"))

    exactly(trial)
