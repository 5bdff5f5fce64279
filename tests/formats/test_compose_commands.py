"""The commands with a Compose file: check, compile, run, import, and those that read plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.plan.reader import read_plan
from tests.cli.support import status, tstorm

COMPOSE = """\
services:
  web:
    image: "nginx:${TAG:-1}"
    ports: ["80:80"]
    volumes: ["./pages:/pages:ro"]
  db:
    image: postgres
    x-tstorm: {exec: sleep 9}
"""
STORM = "at 5s web--default set latency=100ms\nat 9s quit\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop").mkdir()
    Path("shop/docker-compose.yml").write_text(COMPOSE)
    Path("shop/storm.tdl").write_text(STORM)
    Path("more.yaml").write_text("services: {web: {image: other}}\n")


def test_check_says_what_is_not_carried_over_and_what_is_there() -> None:
    found = tstorm("check", "shop/docker-compose.yml", "--tdl", "shop/storm.tdl")
    assert status(found) == 0
    assert found.stdout.startswith("ok with 1 warning: 2 services, 2 instances, 2 links, 5 events")
    assert "shop/docker-compose.yml:4:5: warning TS0972" in found.stderr
    assert '4 |     ports: ["80:80"]' in found.stderr
    assert status(tstorm("check", "shop/docker-compose.yml", "--strict")) == 1


def test_events_have_the_lines_of_the_tdl_beside() -> None:
    arguments = ("shop/docker-compose.yml", "--tdl", "shop/storm.tdl", "-o", "p", "--param")
    assert status(tstorm("compile", *arguments, "TAG=7")) == 0
    plan = read_plan(Path("p"))
    assert plan.source == b'include "docker-compose.yml"\ninclude "storm.tdl"\n'
    assert plan.params == {"TAG": "7"}
    assert "storm.tdl:1" in tstorm("events", "p").stdout
    assert "at 5s web--default set" in tstorm("explain", "p", "--event", "2").stdout
    assert "web.0->default default->db.0" in tstorm("paths", "p", "--at", "6s").stdout


def test_files_are_merged_and_named_from_anywhere() -> None:
    arguments = ("compile", "shop/docker-compose.yml", "-f", "more.yaml", "-o", "p")
    assert status(tstorm(*arguments)) == 0
    plan = read_plan(Path("p"))
    assert plan.source == b'include "docker-compose.yml" "../more.yaml"\n'
    assert plan.topology.services[0].image == "other"


def test_import_prints_tdl_that_is_the_same_experiment() -> None:
    found = tstorm("import", "shop/docker-compose.yml", "--param", "TAG=7")
    assert status(found) == 0
    assert found.stdout == (
        "service web img=nginx:7 port=80 mount=pages:/pages:ro\n"
        'service db img=postgres exec="sleep 9"\n\n'
        "bridge default\n\nlink web--default\nlink db--default\n"
    )
    assert "TS0972" in found.stderr
    assert status(tstorm("import", "shop/docker-compose.yml", "-o", "shop/shop.tdl")) == 0
    same = tstorm("diff", "shop/docker-compose.yml", "shop/shop.tdl")
    assert status(same) == 0
    other = tstorm("import", "shop/docker-compose.yml", "-o", "shop.tdl")
    assert f"names of files in it begin in {Path('shop').absolute()}" in other.stderr


def test_import_writes_nothing_of_a_file_with_errors() -> None:
    Path("bad.yml").write_text("services: {a: {image: x, gpus: all}}\n")
    found = tstorm("import", "bad.yml", "-o", "bad.tdl")
    assert status(found) == 1
    assert "bad.yml:1:" in found.stderr
    assert "error TS0502" in found.stderr
    assert not Path("bad.tdl").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("check", "shop/none.yml"), 1, "reading shop/none.yml: No such file"),
        (("check", "shop/docker-compose.yml", "--tdl", "none.tdl"), 1, "reading none.tdl"),
        (("check", "shop/storm.tdl", "--tdl", "shop/storm.tdl"), 2, "is no Compose file"),
        (("check", "shop/storm.tdl", "-f", "more.yaml"), 2, "is no Compose file"),
        (("check", "shop/docker-compose.yml", "--param", "NO=1"), 2, "has no parameter 'NO'"),
        (("import", "shop/docker-compose.yml", "--param", "NO=1"), 2, "has no parameter 'NO'"),
        (("import", "shop/storm.tdl"), 1, "of no format that is known"),
        (("fmt", "shop/docker-compose.yml"), 1, 'include "docker-compose.yml"'),
        (
            ("run", "shop/docker-compose.yml", "--tdl", "shop/storm.tdl", "--seeds", "1..2"),
            *(2, "--seeds takes one text"),
        ),
    ],
)
def test_what_cannot_be_asked(arguments: tuple[str, ...], code: int, said: str) -> None:
    found = tstorm(*arguments)
    assert status(found) == code
    assert said in found.stderr + getattr(found.exception, "message", "")


def test_a_plan_takes_no_files_beside_it() -> None:
    assert status(tstorm("compile", "shop/docker-compose.yml", "-o", "p")) == 0
    found = tstorm("run", "p", "--tdl", "shop/storm.tdl")
    assert status(found) == 2
    assert "compiled already" in found.stderr


def test_a_cluster_refuses_what_it_does_not_carry_out() -> None:
    Path("c.yml").write_text("services: {a: {image: x, depends_on: [b]}, b: {image: x}}\n")
    found = tstorm("check", "c.yml", "--backend", "k8s")
    assert "does not carry out after= (of service a)" in found.stdout
