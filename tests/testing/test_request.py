"""What a test asks for becomes words of the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tstorm.testing.experiment_errors import ReactionError
from tstorm.testing.request import RunRequest, nanoseconds

HERE = Path("/here")


def request(source: str | Path = "a.tdl", **more: Any) -> RunRequest:
    return RunRequest(source, HERE, Path("/out"), **more)


def test_a_path_begins_in_the_folder() -> None:
    assert request().words() == ["run", "/here/a.tdl", "--out=/out", "--quiet"]
    assert request(Path("/there/a.tdl")).words()[1] == "/there/a.tdl"


def test_a_text_has_more_than_one_line() -> None:
    assert request("service a\n").text == "service a\n"
    assert request("service a\n").words()[1] == "-"
    assert request("service a").text is None


def test_everything_that_is_stated_is_said() -> None:
    found = request(
        seed=0,
        time="virtual",
        hosts=2,
        until="5s",
        params={"b": "2", "a": "1 2"},
        options=["--packets"],
    )
    assert found.words()[4:] == [
        "--seed=0",
        "--time=virtual",
        "--hosts=2",
        "--until=5s",
        "--param=a=1 2",
        "--param=b=2",
        "--packets",
    ]


@pytest.mark.parametrize("word", ["--out", "--backend=k8s", "--seeds", "--format=json"])
def test_options_that_a_test_has_no_use_for_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match=word.partition("=")[0]):
        request(options=[word, "x"])


def test_options_are_a_list() -> None:
    with pytest.raises(TypeError, match=r'options=\["--packets"\]'):
        request(options="--packets")


def test_times_are_written_as_in_the_language() -> None:
    assert nanoseconds("1m1.5s") == 61_500_000_000
    assert nanoseconds(7) == 7
    with pytest.raises(ValueError, match="unit"):
        nanoseconds("7")


def test_a_reaction_stands_at_the_end_of_the_text() -> None:
    when = ['when log a.* "up" {\n  it crash\n}', "when exit a { a crash 1 }"]
    assert request("service a\n", when=when).text == "\n".join(("service a\n", *when, ""))


def test_what_is_wrong_with_a_reaction_is_told_with_its_place() -> None:
    with pytest.raises(ReactionError, match=r"^reaction 2:2:\d+: TS\d{4} ") as caught:
        request("service a\n", when=["when exit a { a crash 1 }", "when exit a {\n  a crsh 1\n}"])
    assert caught.value.diagnostics[0].span.line == 2
    with pytest.raises(ValueError, match="reaction 1 is to be"):
        request("service a\n", when=["at 1s a crash 1"])
    with pytest.raises(ValueError, match="as a text"):
        request("a.tdl", when=["when exit a { a crash 1 }"])
    with pytest.raises(TypeError, match="a list"):
        request("service a\n", when="when exit a { a crash 1 }")
