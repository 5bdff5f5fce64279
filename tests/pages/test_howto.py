"""docs/howto: the commands of each page, typed in order, do what it says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from compiler.pipeline import Compilation, compile_source
from compiler.plan.paths.path import path
from runtime.system import namespaces
from runtime.thresholds import THRESHOLDS
from tdl.text_layout import format_text
from tests.pages.page import Example, File, Setup, steps
from tests.pages.reader import ROOT, Reader
from tests.pages.test_tutorial import STEPS as TUTORIAL
from tstorm.cli import cli
from tstorm.commands import measure
from tstorm.measuring import measured_hosts, paths_text

FOLDER = ROOT / "docs" / "howto"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(FOLDER.glob("*.md"))}
NS = 1_000_000_000
_NO_ETCD = shutil.which("etcd") is None or shutil.which("etcdctl") is None


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.skipif(_NO_ETCD, reason="etcd-server and etcd-client are not installed")
def test_a_database_under_partition(reader_with_examples: Reader) -> None:
    reader_with_examples.follow(steps(PAGES["database-under-partition"]))


@pytest.mark.e2e
@pytest.mark.skipif(shutil.which("memcached") is None, reason="memcached is not installed")
def test_a_daemon_is_run(reader_with_examples: Reader) -> None:
    reader_with_examples.follow(steps(PAGES["run-a-daemon"]))


@pytest.mark.e2e
def test_a_failure_is_replayed(reader_with_examples: Reader) -> None:
    reader_with_examples.follow(steps(PAGES["replay-a-failure"]))


@pytest.mark.e2e
def test_two_versions_are_compared(reader: Reader) -> None:
    """Both are bounded from below by the network: no machine is too busy for that."""
    reader.follow(steps(PAGES["compare-two-versions"]))
    (printed,) = (said for said in reader.printed.values() if "fastest" in said)
    first, second = (int(number) for number in re.findall(r"fastest (\d+) ms", printed))
    assert first >= 80
    assert second >= 40


@pytest.mark.e2e
def test_the_script_for_ci(reader_with_examples: Reader) -> None:
    reader_with_examples.follow(steps(PAGES["run-in-ci"]))


@pytest.mark.e2e
def test_a_late_run_is_read(reader_with_examples: Reader) -> None:
    reader_with_examples.follow(steps(PAGES["read-a-late-run"]))


def test_the_page_of_late_runs_has_every_figure() -> None:
    rows = re.findall(r"^\| (`[a-z_0-9`, ]+`) \|", PAGES["read-a-late-run"], re.MULTILINE)
    assert set(re.findall(r"\w+", " ".join(rows))) == set(THRESHOLDS)


def test_paths_are_measured_as_the_page_says() -> None:
    """Its machines are nowhere: their file is read, and its lines are those of the command."""
    page = PAGES["measure-your-paths"]
    (file,) = (step for step in steps(page) if isinstance(step, File))
    hosts = measured_hosts.read(file.text.encode(), file.name)
    assert [host.name for host in hosts] == ["paris", "lima", "office"]
    (keys,) = {tuple(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))}
    assert sorted(keys) == sorted(measured_hosts.KEYS)
    (example,) = (step for step in steps(page) if isinstance(step, Example))
    assert example.text.startswith(paths_text.FIRST_WORDS)
    assert compile_source(example.text).diagnostics == ()
    assert format_text(example.text) == example.text
    typed = re.findall(r"^    tstorm (.*)", page, re.MULTILINE)
    assert len(typed) == 4
    for line in typed:
        measure.command.make_context("measure", line.split()[1:]).close()


def test_commands_that_find_what_decided_a_failure_are_those_of_the_command_line() -> None:
    """tests/virtual/test_reseed.py carries out such ones."""
    typed = re.findall(r"^ +tstorm ([^#|\n]+)", PAGES["finding-bugs"], re.MULTILINE)
    assert len(typed) == 15
    for line in typed:
        name, *words = shlex.split(line.replace("${t}", "2").replace("$s", "1"))
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        command.make_context(name, words).close()


def test_a_datapath_is_added(reader: Reader) -> None:
    """The skeleton of the page answers as pktd does."""
    reader.environment["PATH"] = f"{ROOT / 'tcal_c/build'}:{reader.environment['PATH']}"
    reader.follow(steps(PAGES["add-a-datapath"]))


def test_a_link_property_is_followed(reader: Reader) -> None:
    reader.environment["PATH"] = f"{ROOT / 'tcal_c/build'}:{reader.environment['PATH']}"
    reader.follow(steps(PAGES["add-a-link-property"]))


def places(page: str) -> list[str]:
    """The files and folders of the project that a page names."""
    return re.findall(r"`([a-z_]+/[\w/]+(?:\.\w+)?)`", PAGES[page])


@pytest.mark.parametrize("page", [name for name in PAGES if name.startswith("add-")])
def test_the_places_for_developers_exist(page: str) -> None:
    assert len(places(page)) > 4
    assert [name for name in places(page) if not (ROOT / name).exists()] == []


def test_no_other_file_writes_the_properties_of_links_out() -> None:
    """A property that composes, and which nothing else needs: it is named where the page says."""
    packages = ("tdl", "compiler", "manifests", "runtime", "tstorm")
    sources = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    naming = {str(path.relative_to(ROOT)) for path in sources if "loss_ppb" in path.read_text()}
    assert naming
    assert naming <= set(places("add-a-link-property"))


def changed(page: str, copy: Path) -> list[str]:
    """Makes the change of a page on a copy of the sources. Returns the files that it changes."""
    for name in ("tdl", "compiler", "manifests", "runtime", "tstorm", "tcal_c"):
        without = shutil.ignore_patterns("__pycache__", "build")
        shutil.copytree(ROOT / name, copy / name, ignore=without)
    (copy / "tcal_c/build").symlink_to(ROOT / "tcal_c/build")
    (change,) = re.findall(r"^```diff\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)
    subprocess.run(["git", "apply", "-"], cwd=copy, input=change, text=True, check=True)
    return re.findall(r"^\+\+\+ b/(\S+)$", change, re.MULTILINE)


def said(copy: Path, *arguments: str) -> str:
    """What `tstorm` of the copy prints."""
    command = [sys.executable, "-m", "tstorm", *arguments]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_an_option_is_one_row(tmp_path: Path) -> None:
    files = changed("add-an-option", tmp_path)
    assert f"its row took {len(files)} source file:" in PAGES["add-an-option"]
    for command in ("run", "replay", "shrink"):
        assert "--niceness N" in said(tmp_path, command, "--help")
    (tmp_path / "x.tdl").write_text("service a\nat 1s quit\n")
    refused = said(tmp_path, "run", "x.tdl", "--niceness", "20")
    assert "niceness is 20" in refused
    assert "give --niceness 0 to 19" in refused


def test_an_event_kind_is_added(tmp_path: Path) -> None:
    """As the page counts it; the language, the plan and its reader know it then."""
    files = changed("add-an-event-kind", tmp_path)
    python = sum(file.endswith(".py") for file in files)
    page = PAGES["add-an-event-kind"]
    assert f"It took {len(files)} source files, {python} of them Python" in page
    text = "service a replicas=2\nbridge s\nlink a--s latency=1ms\n\nat 1s a reload 1\nat 2s quit\n"
    (tmp_path / "x.tdl").write_text(text.replace("a reload", "a   reload"))
    said(tmp_path, "fmt", "x.tdl")
    assert (tmp_path / "x.tdl").read_text() == text
    said(tmp_path, "compile", "x.tdl", "-o", "x.plan")
    (event,) = (
        line for line in said(tmp_path, "events", "x.plan").splitlines() if "reload" in line
    )
    (tmp_path / "x.tdl").write_text(text.replace("at 1s", "from 1s to 2s"))
    assert "TS0207" in said(tmp_path, "check", "x.tdl")
    assert event.split()[2:4] in (["reload", "a.0"], ["reload", "a.1"])


def test_a_backend_says_what_it_must() -> None:
    """The interfaces that the page names are where it says."""
    rows = re.findall(
        r"^\| ((?:`\w+`(?:, )?)+) \| `(\S+)` \|", PAGES["add-a-backend"], re.MULTILINE
    )
    for names, place in rows:
        source = (ROOT / place).read_text()
        assert [n for n in re.findall(r"\w+", names) if not _is_interface(n, source)] == []
    assert len(rows) == 4


def _is_interface(name: str, source: str) -> bool:
    return any(f"class {name}({base})" in source for base in ("Protocol", "ABC"))


def test_every_page_has_a_test() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert set(re.findall(r'PAGES\["([a-z-]+)"\]', source)) == set(PAGES)


def with_cut(cut: str) -> Compilation:
    """The example of database-under-partition, with another line in place of the partition."""
    (example,) = (
        step for step in steps(PAGES["database-under-partition"]) if isinstance(step, Example)
    )
    assert compile_source(example.text).diagnostics == ()
    text = re.sub(r"^at 15s partition.*\nat 35s heal$", cut, example.text, flags=re.MULTILINE)
    assert cut in text
    return compile_source(text)


def reachable(compilation: Compilation, src: str, dst: str) -> bool:
    names = [node.name for node in compilation.topology.nodes]
    state = compilation.plan.state_at(20 * NS)
    return path(state, names.index(f"{src}.0"), names.index(f"{dst}.0")).reachable


def test_the_cuts_do_what_the_table_says() -> None:
    cuts = re.findall(r"^\| `([^`]+)` \|", PAGES["database-under-partition"], re.MULTILINE)
    found = {cut: with_cut(cut) for cut in cuts}
    alone, apart, out, one, *_ = found.values()
    assert not reachable(alone, "db1", "client1")
    assert not reachable(apart, "db1", "db2")
    assert not reachable(apart, "db1", "client1")
    assert not reachable(out, "db1", "db2")
    assert reachable(out, "db2", "db1")
    assert reachable(one, "db1", "db2")
    assert len(found) == 6


def test_the_exit_codes_are_those_that_the_command_tells() -> None:
    told = re.findall(r"^  (\d+) +\w", (cli.help or "").partition("Exit codes:")[2], re.MULTILINE)
    assert told
    assert re.findall(r"^\| (\d+) \|", PAGES["run-in-ci"], re.MULTILINE) == told


def test_options_for_containers_are_those_that_doctor_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "_CONTAINER_MARKS", ("/",))
    told = namespaces.refusal_remedy(tmp_path)
    typed = [step.text for step in steps(PAGES["run-in-ci"]) if isinstance(step, Setup)]
    options = re.findall(r"--(?:cap-add|security-opt) \S+", "".join(typed))
    assert len(options) == 4
    assert [option for option in options if option not in told] == []


def test_what_is_done_once_is_what_the_machine_of_the_tests_has() -> None:
    """Packages are those that the judgement of a commit installs."""
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    packages = re.findall(r'^PACKAGES="([^"]*)"', script, re.MULTILINE)[0].split()
    every = [*TUTORIAL, *(step for page in PAGES.values() for step in steps(page))]
    lines = [line for step in every if isinstance(step, Setup) for line in step.text.splitlines()]
    installed = [name for line in lines if "apt-get install" in line for name in line.split()[3:]]
    assert set(installed) <= set(packages)
    known = ("sudo apt-get install ", "make", ". .venv/bin/activate", "export PATH=", "docker run ")
    assert [line for line in lines if not line.startswith(known)] == []
