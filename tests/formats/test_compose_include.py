"""A Compose file in a TDL file: what holds of its networks, variables, profiles and overrides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from compiler.pipeline import Compilation, compile_source
from compiler.sources import RecordedFiles, SourceFolder
from tdl import ast
from tdl.diagnostics import TdlError
from tdl.formats import as_tdl
from tdl.formats.readers import READERS
from tdl.formatter import format_statement
from tdl.parser import parse_partial
from tdl.preprocess.includes import FOREIGN, MATRICES


def test_the_language_knows_the_endings_of_all_readers() -> None:
    assert {ending for one in READERS for ending in one.endings} == {*FOREIGN, *MATRICES}


TWO = "services: {web: {image: w, networks: [front, back]}, db: {image: d, networks: [back]}}\n"
TWO += "networks: {front: , back: }\n"


def written(tmp_path: Path, text: str, **files: str) -> list[str]:
    """The statements of a text that is beside these files; `x_yml` is x.yml."""
    put(tmp_path, files)
    partial = parse_partial(text, SourceFolder(tmp_path))
    assert not partial.failed, partial.diagnostics
    return [format_statement(one) for one in partial.file.statements]


def put(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        stem, _, end = name.rpartition("_")
        (folder / f"{stem}.{end}").write_text(text, encoding="utf-8")


def links(found: list[str]) -> list[str]:
    return [one.removeprefix("link ") for one in found if one.startswith("link")]


def bridges(found: list[str]) -> list[str]:
    return [one.split()[1] for one in found if one.startswith("bridge")]


def test_services_are_in_their_networks(tmp_path: Path) -> None:
    found = written(tmp_path, 'include "c.yml"', c_yml=TWO)
    assert links(found) == ["web--front", "web--back", "db--back"]
    assert bridges(found) == ["front", "back"]


def test_a_link_to_a_network_takes_the_place_of_the_plain_one(tmp_path: Path) -> None:
    text = 'include "c.yml"\nlink web--back latency=5ms\n'
    found = written(tmp_path, text, c_yml=TWO)
    assert links(found) == ["web--back latency=5ms", "web--front", "db--back"]


def test_a_link_to_another_bridge_places_a_service(tmp_path: Path) -> None:
    text = 'bridge wan\nlink wan--back latency=9ms\ninclude "c.yml"\nlink web--wan\n'
    found = written(tmp_path, text, c_yml=TWO)
    assert links(found) == ["wan--back latency=9ms", "web--wan", "db--back"]
    assert bridges(found) == ["wan", "back"]


def test_a_link_between_services_leaves_them_where_they_are(tmp_path: Path) -> None:
    found = written(tmp_path, 'include "c.yml"\nlink web--db latency=1ms', c_yml=TWO)
    assert links(found) == ["web--db latency=1ms", "web--front", "web--back", "db--back"]


def test_a_network_may_be_declared_with_tags(tmp_path: Path) -> None:
    found = written(tmp_path, 'bridge back tags=lan\ninclude "c.yml"', c_yml=TWO)
    assert bridges(found) == ["back", "front"]
    assert links(found) == ["web--front", "web--back", "db--back"]


ONE = "services: {a: {image: x, depends_on: [b]}, b: {image: x}}\n"


def test_services_of_the_text_without_links_are_in_the_default_network(tmp_path: Path) -> None:
    text = 'include "c.yml"\nservice load exec="true"\nservice own exec="true"\nlink own--a\n'
    assert links(written(tmp_path, text, c_yml=ONE)) == [
        *("own--a", "a--default", "b--default", "load--default")
    ]


def test_what_the_text_says_of_the_start_stands_once(tmp_path: Path) -> None:
    found = written(tmp_path, 'start when ready\ninclude "c.yml"', c_yml=ONE)
    assert found.count("start when ready") == 1
    assert found.count("start when ready") == written(tmp_path, 'include "c.yml"').count(
        "start when ready"
    )


IMAGE = "services: {a: {image: 'x:${TAG:-0}'}}\n"


@pytest.mark.parametrize(
    ("before", "dotenv", "given", "tag"),
    [
        ("", "", {}, "0"),
        ("", "TAG=1", {}, "1"),
        ("", "TAG=1", {"TAG": "2"}, "2"),
        ("let TAG = 3\n", "TAG=1", {}, "3"),
        ("param TAG = 3\n", "TAG=1", {"TAG": "4"}, "4"),
    ],
)
def test_where_variables_come_from(
    tmp_path: Path, before: str, dotenv: str, given: dict[str, str], tag: str
) -> None:
    (tmp_path / ".env").write_text(dotenv)
    (tmp_path / "c.yml").write_text(IMAGE)
    text = f'{before}include "c.yml"\nat 1s quit\n'
    found = compile_source(text, sources=SourceFolder(tmp_path), params=given)
    assert found.topology.services[0].image == f"x:{tag}"
    again = compile_source(text, sources=RecordedFiles(found.plan), params=found.plan.params)
    assert again.files == found.files


def test_a_plan_compiles_again_without_its_files(tmp_path: Path) -> None:
    put(tmp_path, {"x_env": "A=1\n"})
    override = "services: {a: {environment: {B: '2'}}}\n"
    base = "services: {a: {build: ., env_file: x.env}}\n"
    put(tmp_path, {"c_yml": base, "c.override_yml": override})
    text = 'include "c.yml"\nat 1s quit\n'
    found = compile_source(text, sources=SourceFolder(tmp_path))
    assert set(found.includes) == {"c.yml", "c.override.yml", "x.env"}
    assert found.topology.services[0].env == (("A", "1"), ("B", "2"))
    assert found.topology.services[0].image == f"docker-daemon:{tmp_path.name}-a:latest".replace(
        tmp_path.name, found.plan.params["COMPOSE_PROJECT_NAME"]
    )
    again = compile_source(text, sources=RecordedFiles(found.plan), params=found.plan.params)
    assert again.files == found.files


def test_profiles_are_named_by_their_variable(tmp_path: Path) -> None:
    file = "services: {a: {image: x}, b: {image: x, profiles: [debug, dev]}}\n"
    text = 'include "c.yml"'
    assert len(links(written(tmp_path, text, c_yml=file))) == 1
    assert len(links(written(tmp_path, f'let COMPOSE_PROFILES = "x,dev"\n{text}'))) == 2
    assert len(links(written(tmp_path, f'let COMPOSE_PROFILES = "*"\n{text}'))) == 2


BASE = """
services:
  a:
    image: x
    command: [one, two]
    environment: {A: 1, B: 2}
    volumes: ["./data:/data", "./etc:/etc/x"]
    expose: [80]
    depends_on: [b]
    user: "5"
  b: {image: y}
"""
OVER = """
services:
  a:
    command: [three]
    environment: [B=3, C]
    volumes: ["./other:/data:ro"]
    expose: [81, 80]
    depends_on: {b: {condition: service_healthy}}
    user: !reset null
  c: {image: z}
"""


def test_files_are_merged_as_compose_does(tmp_path: Path) -> None:
    found = written(tmp_path, 'include "a.yml" "b.yml"', a_yml=BASE, b_yml=OVER)
    assert found[0] == (
        "service a img=x command=['three'] env=A:1;B:3 port=80;81 "
        "mount=other:/data:ro;etc:/etc/x after=b"
    )
    assert links(found) == ["a--default", "b--default", "c--default"]


def test_an_override_file_is_read_unless_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.override.yml").write_text("services: {a: {image: over}}\n")
    assert written(tmp_path, 'include "a.yml"', a_yml=BASE)[0].startswith("service a img=over")
    more = written(tmp_path, 'include "a.yml" "b.yml"', b_yml=OVER)
    assert more[0].startswith("service a img=x")


EXPRESSIONS = {
    "$A-$A": "1-1",
    "${A}x": "1x",
    "$$A": "$A",
    "${A:-2}": "1",
    "${E:-2}": "2",
    "${E-2}": "",
    "${U-2}": "2",
    "${U:-${A}3}": "13",
    "${U:-${V:-${A}}}": "1",
    "${A:+y}": "y",
    "${E:+y}": "",
    "${E+y}": "y",
    "${U+y}": "",
    "${A:?no}": "1",
    "${E?no}": "",
    "a$$${A}": "a$1",
}


@pytest.mark.parametrize("said", sorted(EXPRESSIONS))
def test_variables_are_put_in_as_compose_does(tmp_path: Path, said: str) -> None:
    file = f"services: {{a: {{image: x, environment: {{X: '<{said}>'}}}}}}\n"
    (tmp_path / ".env").write_text("A=1\nE=\n")
    (tmp_path / "c.yml").write_text(file)
    partial = parse_partial('include "c.yml"\n', SourceFolder(tmp_path))
    service = partial.file.statements[0]
    assert isinstance(service, ast.ServiceStatement)
    assert service.env == (("X", f"<{EXPRESSIONS[said]}>"),)


NUMBERS = {
    "022": "18", "0o22": "18", "0x1F": "31", "0b11": "3", "1_000": "1000", "+5": "5", "08": "8",
    "1.10": "1.1", "1e3": "1000", "1000000.0": "1e+06", "1e-5": "1e-05", ".5": "0.5", "-0.0": "-0",
    "1e400": "1e400", "1.2.3": "1.2.3", "yes": "yes", "_1": "_1", "'022'": "022", "True": "true",
    "18446744073709551615": "18446744073709551615", "100000000000000000000": "1e+20",
}  # fmt: skip


@pytest.mark.parametrize("said", sorted(NUMBERS))
def test_a_number_is_printed_as_gos_yaml_reads_it(tmp_path: Path, said: str) -> None:
    (tmp_path / "c.yml").write_text(f"services: {{a: {{image: x, environment: {{X: {said}}}}}}}\n")
    partial = parse_partial('include "c.yml"\n', SourceFolder(tmp_path))
    service = partial.file.statements[0]
    assert isinstance(service, ast.ServiceStatement)
    assert service.env == (("X", NUMBERS[said]),)


ENV_FILE = """\
HOST=inner
URL=http://${HOST}:${PORT-80}/${A} # why
KEY="first
SECOND=x" # why
NOTE='it\\'s
$HOST'
EMPTY=
LAST=$BEFORE
COLOUR=#fff
TAB=x\t#y
"""


def test_a_file_of_variables_is_read_as_compose_reads_it(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=project\n")
    (tmp_path / "first.env").write_text("BEFORE=earlier\nA=own\n")
    (tmp_path / "a.env").write_text(ENV_FILE)
    (tmp_path / "raw.env").write_text('# raw\n\nRAW= "$A"  # all of it\r\n')
    raw = "{path: raw.env, format: raw}"
    file = f"services: {{a: {{image: x, env_file: [first.env, a.env, {raw}]}}}}\n"
    (tmp_path / "c.yml").write_text(file)
    partial = parse_partial('include "c.yml"\n', SourceFolder(tmp_path))
    assert partial.diagnostics == ()
    service = partial.file.statements[0]
    assert isinstance(service, ast.ServiceStatement)
    assert dict(service.env) == {
        "BEFORE": "earlier", "A": "own", "HOST": "inner", "URL": "http://inner:80/project",
        "KEY": "first\nSECOND=x", "NOTE": "it's\n$HOST", "EMPTY": "", "LAST": "earlier",
        "COLOUR": "#fff", "TAB": "x\t#y", "RAW": ' "$A"  # all of it',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('A="x\n\ny"z\n', 3, "'z' stands behind the quote that ends A"),
        ("B=1\nA='it''s'\n", 2, "''s'' stands behind"),
        ('B=1\nA="x\nC=2\n', 2, "never closed"),
        ("B=1\nA b\n", 2, "not NAME=value"),
    ],
)
def test_what_no_file_of_variables_can_have(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    (tmp_path / "a.env").write_text(text)
    (tmp_path / "c.yml").write_text("services: {a: {image: x, env_file: a.env}}\n")
    (found,) = parse_partial('include "c.yml"\n', SourceFolder(tmp_path)).diagnostics
    assert (found.code, found.span.file, found.span.line) == ("TS0504", "a.env", line)
    assert message in found.message


EXTENDS = """\
services:
  app: {image: "app:1", environment: {A: base, B: base}, env_file: [one.env], depends_on: [db]}
  child: {extends: app, command: [child], depends_on: !reset [], env_file: two.env}
  db: {image: db}
"""
CHANGED = """\
services:
  app: {image: "app:2", environment: {A: over, B: !reset null}, env_file: two.env}
  child: {environment: {B: over}}
"""


def test_a_service_extends_another_as_its_own_file_has_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.env").write_text(f"{name.upper()}=1\n")
    found = written(tmp_path, 'include "a.yml" "b.yml"', a_yml=EXTENDS, b_yml=CHANGED)
    assert found[:2] == [
        "service app img=app:2 env=ONE:1;TWO:1;A:over after=db:start",
        "service child img=app:1 command=['child'] env=ONE:1;TWO:1;A:base;B:over",
    ]


def test_a_dollar_sign_stays_one_beside_a_variable_of_the_text(tmp_path: Path) -> None:
    file = "services: {a: {image: x, command: 'echo $$HOME', environment: {P: 'a$$HOME'}}}\n"
    (tmp_path / "c.yml").write_text(file)
    partial = parse_partial('let HOME = 5\ninclude "c.yml"\n', SourceFolder(tmp_path))
    service = partial.file.statements[0]
    assert isinstance(service, ast.ServiceStatement)
    assert service.command == ("echo", "$HOME")
    assert service.env == (("P", "a$HOME"),)


def test_a_file_in_a_folder_names_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    file = "services: {a: {image: x, volumes: ['./d:/d', '../e:/e'], env_file: a.env}}\n"
    (tmp_path / "net/c.yml").write_text(file)
    (tmp_path / "net/a.env").write_text('A=\'x y\' \nexport B="q\\"" # why\nC=z # why\n\nD\n')
    found = written(tmp_path, 'include "net/c.yml"')
    assert found[0] == 'service a img=x env=A:"x y";B:"q\\"";C:z mount=net/d:/d;e:/e'


def problems(tmp_path: Path, text: str) -> list[tuple[str, str, int]]:
    try:
        found: Compilation | TdlError = compile_source(text, sources=SourceFolder(tmp_path))
    except TdlError as error:
        found = error
    return [(one.code, one.span.file, one.span.line) for one in found.diagnostics]


def test_what_the_compiler_finds_is_told_at_the_line_of_the_yaml(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text("services:\n  a:\n    image: x\n    user: 1\n")
    assert problems(tmp_path, 'include "c.yml"\nservice a\nat 1s quit\n') == [("TS0101", "", 2)]
    assert problems(tmp_path, 'service a\ninclude "c.yml"\nat 1s quit\n') == [
        ("TS0101", "c.yml", 2)
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('include "none.yml"', "TS0151"),
        ('include "c.yml" "none.yml"', "TS0151"),
        ('include "c.yml" "x.tdl"', "TS0150"),
        ('include "/c.yml"', "TS0150"),
    ],
)
def test_files_that_are_not_there(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "c.yml").write_text(ONE)
    assert code in [one for one, _, _ in problems(tmp_path, text)]


def test_variables_of_the_file_beside_may_use_those_before(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("FOO=a\nX=$FOO-2\n")
    (tmp_path / "c.yml").write_text("services: {web: {image: 'w:${X}'}}\n")
    partial = parse_partial('include "c.yml"\n', SourceFolder(tmp_path))
    assert partial.diagnostics == ()
    assert "img=w:a-2" in "".join(map(as_tdl.text, partial.translations))
