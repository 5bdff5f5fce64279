"""The command group: help, usage errors, completion, and what commands import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.process import ended
from tstorm.cli import COMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]


def tstorm(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return ended(
        [sys.executable, "-m", "tstorm", *arguments], cwd=ROOT, env={**os.environ, **environment}
    )


def test_help_lists_every_command_and_exit_code() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in result.stdout
    assert "130" in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert f"tstorm {name}" in result.stdout.partition("Example")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["compile"],
        ["compile", "x.tdl", "-o", "-"],
        ["compile", "x.tdl", "-o", ""],
        ["paths", "examples/quickstart.tdl", "--at", "9"],
        ["paths", "examples/quickstart.tdl", "--at", ""],
        ["events", "examples/quickstart.tdl", "--seed", "-1"],
        ["events", "examples/quickstart.tdl", "--seed", "abc"],
        ["run", "examples/quickstart.tdl", "--pace", "0"],
        ["run", "examples/quickstart.tdl", "--out", ""],
        ["run", "examples/quickstart.tdl", "--datapath", "tc"],
        ["destroy", "--all", "some-run"],
        ["exec", "run", "server.0"],
        ["exec", "run", "server.0", "--"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    result = tstorm(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Error" in result.stderr


def test_an_unknown_command_is_answered_with_the_nearest() -> None:
    assert "Did you mean 'compile'?" in tstorm("complie").stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str) -> None:
    result = tstorm("completion", shell)
    assert result.returncode == 0, result.stderr
    assert "_TSTORM_COMPLETE" in result.stdout


def test_completion_of_commands() -> None:
    result = tstorm(_TSTORM_COMPLETE="bash_complete", COMP_WORDS="tstorm co", COMP_CWORD="1")
    assert {line.partition(",")[2] for line in result.stdout.splitlines()} == {
        "compare",
        "compile",
        "completion",
    }


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], {"tdl", "compiler", "runtime", "rich", "pyroute2", "lark"}),
        (
            ["check", "examples/quickstart.tdl"],
            {"runtime.backend", "asyncio", "rich", "lark", "pyroute2"},
        ),
        (["events", "examples/quickstart.tdl"], {"runtime", "rich", "pyroute2"}),
    ],
)
def test_commands_import_only_what_they_use(arguments: list[str], absent: set[str]) -> None:
    code = (
        "import sys\n"
        "from tstorm.__main__ import main\n"
        f"sys.argv = ['tstorm', *{arguments!r}]\n"
        "main()\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = result.stderr.splitlines()[-1].split()
    loaded = {*modules, *(name.partition(".")[0] for name in modules)}
    assert "click" in loaded
    assert loaded & absent == set()


def test_a_closed_pipe_is_quiet() -> None:
    result = ended(
        ["/bin/sh", "-c", f"{sys.executable} -m tstorm events examples/listing1.tdl | head -n 1"],
        cwd=ROOT,
    )
    assert result.stdout.split()[:2] == ["SEQ", "AT"]
    assert "Traceback" not in result.stderr
    assert "Broken pipe" not in result.stderr


@pytest.mark.parametrize(
    ("redirections", "code", "said"),
    [(">/dev/full", 1, "No space left"), (">&-", 0, ""), (">&- 2>&-", 0, "")],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_an_output_that_takes_nothing(redirections: str, code: int, said: str, form: str) -> None:
    events = f"{sys.executable} -m tstorm events examples/quickstart.tdl --format {form}"
    result = ended(["/bin/sh", "-c", f"{events} {redirections}"], cwd=ROOT)
    assert result.returncode == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


def test_a_closed_standard_input_is_an_error() -> None:
    result = ended(["/bin/sh", "-c", f"{sys.executable} -m tstorm check - <&-"], cwd=ROOT)
    assert (result.returncode, result.stderr) == (
        1,
        "error: reading standard input: it is closed\n",
    )


def test_products_are_utf8_in_any_locale(tmp_path: Path) -> None:
    source = tmp_path / "o.tdl"
    source.write_text("# µ — ü\nbridge s\nservice a img=x\nlink a--s\n", encoding="utf-8")
    arguments = [sys.executable, "-m", "tstorm", "fmt", "-"]
    strange = {**os.environ, "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    with source.open("rb") as stdin:
        done = subprocess.run(
            arguments, cwd=ROOT, env=strange, stdin=stdin, capture_output=True, check=True
        )
    assert done.stdout.decode("utf-8").startswith("# µ — ü\n")


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    from tstorm import __main__ as entry

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tstorm.__main__.cli.main", interrupted)
    assert entry.main() == 130
