"""What is broken, huge or slow ends by itself, and the editor goes on meanwhile."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.process import ROOT, ended
from tests.cli.support import status, tstorm
from tests.lsp.editor import Editor
from tests.waiting import wait_until
from tstorm.commands import lsp

GOOD = """service a img=x exec="sleep 9" replicas=2
bridge s
link a--s latency=1ms
at 5s quit
"""
SLOW = "".join(
    f"for {name} in 1..240 {{\n" for name in ("i", "j")
) + "    bridge b$i-$j\n    link b$i-$j--c$i-$j latency=1ms\n}\n}\n"  # fmt: skip
needs_pygls = pytest.mark.skipif(find_spec("pygls") is None, reason="the extra [lsp] is missing")


@needs_pygls
def test_a_text_that_takes_long_is_given_up_for_the_next(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        editor.change_before_answer("a.tdl", [SLOW, SLOW, GOOD])
        assert editor.diagnostics("a.tdl") == []
        left = [one for one in editor.heard if "publish" in one.get("method", "")]
        assert left == []  # of the texts before, nothing


@needs_pygls
def test_a_huge_text_is_told_and_not_checked(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        (found,) = editor.open("a.tdl", "# more than enough\n" * 250_000)
        assert "not checked here, since it has more than 4 MiB" in found["message"]
        editor.change("a.tdl", GOOD)
        assert editor.diagnostics("a.tdl") == []


@needs_pygls
def test_a_client_that_does_not_listen_hears_all_of_it_later(tmp_path: Path) -> None:
    wrong = "".join(f"link nobody{i}--nowhere{i} latency=1ms\n" for i in range(900))
    with Editor(tmp_path) as editor:
        # More than a pipe holds is written, and nothing read until all changes are sent.
        editor.change_before_answer("a.tdl", [*[wrong] * 20, GOOD])
        assert editor.diagnostics("a.tdl") == []


@needs_pygls
def test_nonsense_is_an_error_and_no_end(tmp_path: Path) -> None:
    with Editor(tmp_path) as editor:
        editor.open("a.tdl", '\0\ufffe\ud800 service {{{ [ " 🌩 \r $ ${ }\r\n' * 50)
        for body in (b"{", b"[]", b'{"jsonrpc":"2.0","method":"textDocument/didChange"}'):
            editor.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        editor.send({"method": "nobody/knows", "params": {}})
        editor.change("a.tdl", GOOD)
        assert editor.diagnostics("a.tdl") == []


@needs_pygls
def test_it_ends_with_its_editor_and_leaves_no_process(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    editor.open("a.tdl", GOOD)
    editor.change("a.tdl", SLOW)
    group = children(editor.server.pid)
    assert group
    assert editor.server.stdin is not None
    assert editor.server.stdout is not None
    editor.server.stdin.close()
    editor.server.wait(60)
    editor.server.stdout.close()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in group), "their end")


def children(pid: int) -> list[int]:
    """The processes that it has started, and those that these have."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                found += [int(stat.parent.name), *children(int(stat.parent.name))]
    return found


ASK = """
import asyncio
from tests.lsp.test_bounds import SLOW
from tstorm.lsp.check_process import CheckProcess
from tstorm.lsp.checking import AskedText

async def ask():
    process = CheckProcess(AskedText(SLOW, seconds=0))
    print((await process.ask("check")).why)
    print((await process.ask("check")).why)

asyncio.run(ask())
"""


def test_a_question_has_so_many_seconds_of_a_processor(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = ended([sys.executable, "-c", ASK], cwd=tmp_path, env=env)
    said = ["it takes longer than 0 s of a processor", "the text has been changed since"]
    assert result.stdout.splitlines() == said, result.stderr


def test_it_says_how_to_install_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsp, "_PACKAGES", ("pygls", "a_package_that_nobody_has"))
    result = tstorm("lsp")
    assert status(result) == 3
    assert "needs" in str(result.exception)
    assert "a_package_that_nobody_has" in str(result.exception)
    assert "pip install 'tstorm[lsp]'" in str(result.exception)
    assert status(tstorm("lsp", "--check")) == 3


def test_it_says_whether_it_could_start() -> None:
    pytest.importorskip("pygls", reason="the extra [lsp] is not installed")
    assert status(tstorm("lsp", "--check")) == 0
