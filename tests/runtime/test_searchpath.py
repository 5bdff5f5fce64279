"""Which folders the programs of an experiment are looked for in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runtime.system import compiled_programs
from runtime.system.compiled_programs import find

OWN = str(find("tprobe").parent)


def test_an_active_environment_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, ours = tmp_path / "mine", tmp_path / "ours"
    (ours / "bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(ours)
    monkeypatch.setattr(sys, "prefix", str(ours))
    caller = {"PATH": f"{tmp_path}/link/bin:{mine}/bin:/usr/bin:/bin", "VIRTUAL_ENV": str(mine)}
    found = compiled_programs.of_programs(caller).split(":")
    assert found == ["/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin", OWN]


def test_the_python_of_the_machine_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert compiled_programs.of_programs({"PATH": f"{sys.base_prefix}/bin"}).startswith(
        sys.base_prefix
    )


@pytest.mark.parametrize("caller", [{}, {"PATH": ""}])
def test_without_a_path_there_is_the_usual_one(caller: dict[str, str]) -> None:
    assert compiled_programs.of_programs(caller) == f"{compiled_programs.DEFAULT}:{OWN}"


def test_a_program_that_a_package_hides_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("14", "15"):
        program = tmp_path / "postgresql" / version / "bin" / "initdb-of-a-test"
        program.parent.mkdir(parents=True)
        program.touch(mode=0o755)
    monkeypatch.setattr(compiled_programs, "_ELSEWHERE", (f"{tmp_path}/*/*/bin"[1:],))
    assert compiled_programs.elsewhere("initdb-of-a-test") == str(program)
    assert compiled_programs.elsewhere("nothing-of-this-name") is None
