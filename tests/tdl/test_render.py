"""Diagnostics for people, scripts and tools."""

from __future__ import annotations

import json

from tdl.ast import Span
from tdl.diagnostics import Diagnostic, Severity
from tdl.presentation import render_json, render_sarif, render_text, summary
from tests.tdl.helpers import found

TEXT = "bridge s1\nlink a--s1 up=1GB loss=1\n"


def test_text_shows_place_line_carets_and_help() -> None:
    assert render_text(found(TEXT), "exp.tdl", TEXT) == (
        "exp.tdl:2:15: error TS0023: 1GB counts bytes; rates are bits per second\n"
        " 2 | link a--s1 up=1GB loss=1\n"
        "   |               ^^^\n"
        "   = help: write 1Gb if bits are meant, 8Gb if bytes are\n"
        "\n"
        "exp.tdl:2:19: warning TS0905: this loses every packet\n"
        " 2 | link a--s1 up=1GB loss=1\n"
        "   |                   ^^^^^^\n"
        "   = help: write 1% for one percent, 100% if you mean it\n"
    )


def test_nothing_to_say_is_nothing() -> None:
    assert render_text((), "exp.tdl", TEXT) == ""
    assert summary(()) == ""


def test_summary_counts() -> None:
    assert summary(found(TEXT)) == "1 error, 1 warning"
    assert summary(found("servce\nlink a--b loss=1\nx\n")) == "2 errors, 1 warning"


def test_colour_only_when_asked() -> None:
    plain = render_text(found(TEXT), "exp.tdl", TEXT)
    coloured = render_text(found(TEXT), "exp.tdl", TEXT, colour=True)
    assert "\x1b[" not in plain
    assert "\x1b[1;31merror TS0023\x1b[0m" in coloured
    assert "\x1b[1;33mwarning TS0905\x1b[0m" in coloured


def test_carets_stand_under_wide_characters_and_tabs() -> None:
    text = "service a\texec='日本' replicas=0"
    shown = render_text(found(text), "f", text).split("\n")
    assert shown[1] == " 1 | service a exec='日本' replicas=0"
    assert shown[2] == "   | " + " " * 22 + "^" * 10


def test_a_long_line_is_cut_around_the_span() -> None:
    text = "bridge s1 tags=" + ";".join(f"tag{n}" for n in range(500)) + " ?"
    shown = render_text(found(text), "f", text).split("\n")
    assert len(shown[1]) < 130
    assert shown[1].startswith(" 1 | …")
    assert shown[2][shown[1].index("?")] == "^"


def test_control_characters_of_the_source_do_not_reach_the_terminal() -> None:
    for text in ("bridge s1 \x1b[31m", "bridge s1 é\x1b[31m"):  # alone, and among what is repeated
        assert "\x1b" not in render_text(found(text), "f", text)


def test_a_place_outside_the_text_is_not_shown() -> None:
    item = Diagnostic(Severity.ERROR, "TS0304", Span(9, 1, 9, 2), "no quit")
    assert render_text([item], "f", "bridge s1") == "f:9:1: error TS0304: no quit\n"


def test_json_is_one_canonical_document() -> None:
    text = render_json(found(TEXT), "exp.tdl", TEXT)
    first, second = json.loads(text)
    assert first["code"] == "TS0023"
    assert (first["line"], first["col"], first["end_line"], first["end_col"]) == (2, 15, 2, 18)
    assert first["severity"] == "error"
    assert second["severity"] == "warning"
    assert text.endswith("]\n")
    assert text == json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False, indent=1) + "\n"


def test_sarif_names_rules_and_regions() -> None:
    log = json.loads(render_sarif(found(TEXT), "my exp.tdl", TEXT))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TS0023", "TS0905"]
    first = run["results"][0]
    assert rules[first["ruleIndex"]]["id"] == first["ruleId"] == "TS0023"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20exp.tdl"
    absolute = json.loads(render_sarif(found(TEXT), "/a b/x.tdl", TEXT))["runs"][0]["results"][0]
    place_of = absolute["locations"][0]["physicalLocation"]
    assert place_of["artifactLocation"]["uri"] == "file:///a%20b/x.tdl"
    assert place["region"] == {"startLine": 2, "startColumn": 15, "endLine": 2, "endColumn": 18}
