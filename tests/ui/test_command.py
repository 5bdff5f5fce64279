"""`tstorm ui` and `run --ui` as commands: what they refuse, and what without their packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.errors import MachineError
from tests.cli.support import status, tstorm
from tests.page.synthetic import Shape, make
from tstorm.ui import ui_extra
from tstorm.ui.beside_run import PageBeside


def test_it_says_how_to_install_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ui_extra, "_PACKAGES", ("starlette", "a_package_that_nobody_has"))
    with pytest.raises(MachineError, match="needs a_package_that_nobody_has"):
        ui_extra.check_installed()
    (tmp_path / "exp.tdl").write_text("at 1s quit\n")
    for words in (("ui",), ("run", str(tmp_path / "exp.tdl"), "--ui")):
        result = tstorm(*words)
        assert status(result) == 3
        assert "pip install 'tstorm[ui]'" in str(result.exception)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--ui", "--seeds", "1..3"),
        ("--ui", "--backend", "k8s"),
        ("--ui-port", "8080"),
    ],
)
def test_it_is_for_one_run_on_this_machine(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "exp.tdl").write_text("at 1s quit\n")
    assert status(tstorm("run", str(tmp_path / "exp.tdl"), *words)) == 2


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    import socket

    run = make(tmp_path / "run", Shape(seconds=2))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = tstorm("ui", str(run), "--port", str(taken.getsockname()[1]))
    assert status(result) == 1
    assert "cannot listen" in str(result.exception)
    assert "leave out the port" in str(result.exception)


def test_a_page_that_never_began_ends_nothing() -> None:
    with PageBeside(0):
        pass
