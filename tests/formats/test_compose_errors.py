"""What is wrong with a Compose file is told on the guilty line of the YAML: `#! CODE text`, as in
tests/tdl/errors. And hostile files: bounded, with an error, whatever they hold."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.sources import SourceFolder
from tdl import ast
from tdl.codes.compose_codes import COMPOSE_CODES
from tdl.diagnostics import Sink, TdlError
from tdl.formats.yaml_tree import MAX_BYTES, Value, read
from tdl.parser import parse_partial
from tests.tdl.test_errors import expectations

FILES = sorted((Path(__file__).parent / "errors").glob("*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_guilty_line_gets_its_message_and_no_other_line_any(path: Path) -> None:
    expected = expectations(path.read_text(encoding="utf-8"))
    found = parse_partial(f'include "{path.name}"\n', SourceFolder(path.parent)).diagnostics
    reported = [one for one in found if one.span.file]
    for line, code, fragment in expected:
        there = [one for one in reported if one.span.line == line]
        match = next(
            (one for one in there if one.code == code and fragment in f"{one.message} {one.hint}"),
            None,
        )
        assert match is not None, f"line {line}: no {code} with {fragment!r} among {there}"
        reported.remove(match)
    assert reported == []


def said_of(folder: Path, text: str) -> list[tuple[str, str, int]]:
    (folder / "docker-compose.yml").write_text(text)
    found = parse_partial('include "docker-compose.yml"\n', SourceFolder(folder)).diagnostics
    return [(one.code, one.span.file, one.span.line) for one in found]


def test_a_file_without_services_is_told_in_the_file(tmp_path: Path) -> None:
    for text in ("name: x\nservices: {}\n", "name: x\nservices:\n"):
        assert said_of(tmp_path, text) == [("TS0501", "docker-compose.yml", 2)]


def test_ranges_of_ports_are_carried_as_far_as_there_is_room(tmp_path: Path) -> None:
    base = "services:\n  a:\n    image: x\n    expose: "
    assert said_of(tmp_path, base + '["80-82", "90"]\n') == []
    partial = parse_partial('include "docker-compose.yml"\n', SourceFolder(tmp_path))
    (service,) = [one for one in partial.file.statements if isinstance(one, ast.ServiceStatement)]
    assert service.ports == (80, 81, 82, 90)
    file = "docker-compose.yml"
    assert said_of(tmp_path, base + '["1000-1999"]\n') == [("TS0971", file, 4)]
    for wrong in ("82-80", "0-3", "1-", "70000"):
        assert said_of(tmp_path, base + f'["{wrong}"]\n')[0] == ("TS0501", file, 4)
    published = "services:\n  a:\n    image: x\n    ports:\n    - published: 80\n"
    assert ("TS0501", file, 5) in said_of(tmp_path, published)
    ports = base.replace("expose", "ports")
    for unlike in ("100-101:200-205", "127.0.0.1:1-3:1-2/tcp"):
        assert ("TS0501", file, 4) in said_of(tmp_path, ports + f'["{unlike}"]\n')
    for alike in ("100-101:200-201", "8000-8999:80", "80"):
        found = said_of(tmp_path, ports + f'["{alike}"]\n')
        assert [code for code, _, _ in found] == ["TS0972"]


def test_an_alias_that_is_another_service_is_told(tmp_path: Path) -> None:
    text = (
        "services:\n  a:\n    image: x\n    container_name: a\n    hostname: b\n  b: {image: x}\n"
    )
    assert ("TS0971", "docker-compose.yml", 5) in said_of(tmp_path, text)
    assert not [one for one in said_of(tmp_path, text) if one[2] == 4]


def test_an_alias_that_is_the_name_of_an_instance_is_an_error(tmp_path: Path) -> None:
    text = (
        "services:\n"
        "  a: {image: x, hostname: a-0}\n"  # which it is
        "  b: {image: x, container_name: a-0}\n"
        "  c:\n    image: x\n    scale: 2\n    hostname: c-0\n"  # which one of the two is
        "  d: {image: x, networks: {default: {aliases: [c.1, web]}}}\n"
        "  e: {image: x, networks: {default: {aliases: [web, 10.1.1.1]}}}\n"
        "  f: {image: x, links: ['e:localhost']}\n"
    )
    (tmp_path / "docker-compose.yml").write_text(text)
    with pytest.raises(TdlError) as refused:
        compile_source('include "docker-compose.yml"\n', sources=SourceFolder(tmp_path))
    found = [one for one in refused.value.diagnostics if one.code == "TS0139"]
    assert {one.span.file for one in found} == {"docker-compose.yml"}
    assert [(one.span.line, one.message.split("'")[1]) for one in found] == [
        (3, "a-0"),
        (7, "c-0"),
        (8, "c.1"),
        (9, "10.1.1.1"),
        (10, "localhost"),
    ]


def test_every_code_of_compose_files_is_shown_by_a_test() -> None:
    shown = {code for path in FILES for _, code, _ in expectations(path.read_text())}
    shown |= {"TS0506", "TS0971"}  # below, and in the files of compose/
    assert shown >= {code.code for code in COMPOSE_CODES}


def tree(data: bytes) -> tuple[Value | None, list[tuple[str, int]]]:
    sink = Sink()
    return read(data, "x.yml", sink), [(one.code, one.span.line) for one in sink.found]


LAUGHS = b"a0: &a0 [1,1,1,1,1,1,1,1,1]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (LAUGHS, "TS0506", 5),
        (b"a: &a [*a]\n", "TS0506", 1),
        (b"a: &a\n  <<: *a\n", "TS0506", 2),
        (b"[" * 100_000, "TS0506", 1),
        (b"- " * 100_000, "TS0506", 1),
        (b"{a: " * 50_000, "TS0506", 1),
        (b"a: 1\n" * (MAX_BYTES // 5 + 1), "TS0506", 1),
        (b"".join(b"k%05d: 1\n" % n for n in range(26_000)), "TS0506", 1),
        (b"a:\n\tb: 1\n", "TS0500", 2),
        (b"a: 1\n---\nb: 2\n", "TS0500", 2),
        (b"", "TS0500", 1),
        (b"a: b\n\xff\n", "TS0500", 2),
        (b"a: 1\nb: \x07\n", "TS0500", 2),
        (b"a: *b\n", "TS0500", 1),
        (b"<<: 5\n", "TS0500", 1),
        (b"? [a]\n: b\n", "TS0500", 1),
        (b"a: !!python/object/apply:os.system ['x']\n", "", 0),
    ],
)
def test_hostile_yaml_is_bounded(data: bytes, code: str, line: int) -> None:
    began = time.process_time()
    value, found = tree(data)
    assert time.process_time() - began < 30  # seconds of CPU: no threshold, an end
    assert found == ([(code, line)] if code else [])
    assert (value is None) == bool(code)


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_tree_or_an_error(data: bytes) -> None:
    value, found = tree(data)
    assert (value is None) == bool(found)


_scalars = st.none() | st.booleans() | st.integers(0, 9) | st.text("ab$:{}-./~ é\n", max_size=6)
_names = st.sampled_from(
    (
        *("services", "a", "image", "build", "command", "environment", "volumes", "depends_on"),
        *("healthcheck", "networks", "deploy", "ports", "extends", "service", "profiles", "test"),
        *("limits", "resources", "env_file", "configs", "secrets", "target", "source", "aliases"),
        "x-tstorm",
    )
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=12,
)
_files = st.fixed_dictionaries(
    {"services": st.dictionaries(_names, st.dictionaries(_names, _values, max_size=5), max_size=3)},
    optional={"networks": _values, "volumes": _values, "configs": _values, "secrets": _values},
)


class _One:
    """A folder with this file in it, and nothing else."""

    def __init__(self, data: bytes) -> None:
        from compiler.sources import NOWHERE

        self._data, self._nowhere = data, NOWHERE

    def text(self, path: str) -> bytes:
        return self._data if path == "c.yml" else self._nowhere.text(path)

    def translated(self, paths, variable, asked, sink):  # type: ignore[no-untyped-def]
        from tdl.formats.readers import translate

        return translate(paths, variable, asked, self.text, sink, "folder")


@given(_files)
def test_any_shape_of_a_file_is_read_or_refused(document: object) -> None:
    """Never an exception, and what is read without an error is TDL without one."""
    from tdl.formats import as_tdl

    partial = parse_partial('include "c.yml"\n', _One(yaml.safe_dump(document).encode()))
    if not partial.failed:
        text = "".join(map(as_tdl.text, partial.translations))
        assert not parse_partial(text).failed


def test_a_file_that_includes_itself_is_read_once_a_line(tmp_path: Path) -> None:
    (tmp_path / "c.yml").write_text("services: {a: {extends: {file: c.yml, service: a}}}\n")
    found = parse_partial('include "c.yml"\n', SourceFolder(tmp_path)).diagnostics
    assert [(one.code, one.span.file) for one in found] == [("TS0505", "c.yml")]
