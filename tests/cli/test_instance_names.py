"""Names of machines and of their parts on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tstorm.cli import cli
from tstorm.instance_names import stands_for

PARTS = ["sat.0.app.0", "sat.0.app.1", "sat.0.ctl.0", "sat.1.app.0", "sat.1.app.1", "sat.1.ctl.0"]
TEXT = """\
node sat replicas=2 {
    service app replicas=2
    service ctl
    bridge inner
    link app--inner
    link ctl--inner
}
service db
bridge air
link sat.app--air
link db--air
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("sat", range(6)),
        ("sat.1", (3, 4, 5)),
        ("sat.app", (0, 1, 3, 4)),
        ("sat.app.1", (1, 4)),
        ("sat.1.app", (3, 4)),
        ("sat.1.app.0", (3,)),
        ("sat.2", ()),
        ("app", ()),
        ("sat.", ()),
        ("sat.0.app.", ()),
        ("", ()),
    ],
)
def test_what_names_of_machines_stand_for(name: str, found: tuple[int, ...]) -> None:
    assert [i for i, one in enumerate(PARTS) if stands_for(name, one)] == list(found)


def test_other_services_have_no_parts() -> None:
    assert [name for name in ("db.0", "db", "db.", "0", "db.0.") if stands_for(name, "db.0")] == [
        "db.0",
        "db",
    ]


def test_paths_of_a_machine(tmp_path: Path) -> None:
    (tmp_path / "a.tdl").write_text(TEXT)
    words = ["paths", str(tmp_path / "a.tdl"), "--from", "sat.app.1", "--to", "db"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0
    starts = [line.split()[0] for line in result.stdout.splitlines()[1:]]
    assert starts == ["sat.0.app.1", "sat.1.app.1"]
    wrong = CliRunner().invoke(cli, [*words[:2], "--from", "sat.2", "--to", "db"])
    assert wrong.exit_code == 2
    assert "no service or instance 'sat.2'" in wrong.stderr
