"""`fmt`: in place, atomic, and honest about what it did."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tstorm.cli import cli
from tstorm.exit_codes import CommandError

MESSY = "service   a img=x   # the one\nbridge s\r\nlink a—s   latency=1\n"


def tstorm(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["fmt", *arguments], input=stdin)


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    path = tmp_path / "messy.tdl"
    path.write_bytes(MESSY.encode())
    return path


def test_in_place_and_idempotent(messy: Path) -> None:
    assert tstorm(str(messy)).exit_code == 0
    once = messy.read_bytes()
    assert b"link a--s latency=1ms" in once
    assert b"# the one" in once
    assert b"\r" not in once
    before = messy.stat().st_mtime_ns
    result = tstorm(str(messy))
    assert (result.stdout, result.stderr) == ("", "")
    assert messy.stat().st_mtime_ns == before
    assert [path.name for path in messy.parent.iterdir()] == ["messy.tdl"]


def test_mode_and_symbolic_link_stay(messy: Path) -> None:
    messy.chmod(0o640)
    link = messy.with_name("link.tdl")
    link.symlink_to(messy)
    assert tstorm(str(link)).exit_code == 0
    assert link.is_symlink()
    assert messy.stat().st_mode & 0o777 == 0o640
    assert b"a--s" in messy.read_bytes()


@pytest.mark.parametrize("options", [["--check"], ["--diff"], ["--check", "--diff"]])
def test_check_and_diff_write_nothing(messy: Path, options: list[str]) -> None:
    result = tstorm(*options, str(messy))
    assert messy.read_bytes() == MESSY.encode()
    if "--diff" in options:
        assert "+link a--s latency=1ms" in result.stdout
    if "--check" in options:
        assert isinstance(result.exception, CommandError)
        assert result.exception.code == 1
        assert "messy.tdl" in result.stderr
    else:
        assert result.exit_code == 0


def test_standard_input_to_standard_output(messy: Path) -> None:
    result = tstorm("-", stdin=MESSY.encode())
    assert result.exit_code == 0
    tstorm(str(messy))
    assert result.stdout.encode() == messy.read_bytes()


def test_a_broken_file_stays_and_the_others_are_done(messy: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tdl"
    broken.write_text("service a img=x\nlink ???\n", encoding="utf-8")
    result = tstorm(str(broken), str(messy))
    assert isinstance(result.exception, CommandError)
    assert "broken.tdl:2:" in result.stderr
    assert broken.read_text(encoding="utf-8").endswith("link ???\n")
    assert b"a--s" in messy.read_bytes()


def test_a_diff_marks_a_missing_end_of_line() -> None:
    result = tstorm("--diff", "-", stdin="bridge  s")
    assert result.stdout.splitlines()[-3:] == [
        "-bridge  s",
        "\\ No newline at end of file",
        "+bridge s",
    ]
