"""`tstorm plot`: the same bytes each time, what is planned and measured in them, refusals."""

from __future__ import annotations

import builtins
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import click
import pytest

from compiler.pipeline import compile_source
from tests.cli.support import TWO_SERVICES, status, tstorm
from tests.reporting import support
from tstorm.plotting import timeline_picture
from tstorm.plotting.subject import link_of

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"
PAIR = ("--pair", "c.0", "d.1")


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "two.tdl"
    path.write_text(TWO_SERVICES, encoding="utf-8")
    return str(path)


def drawn(source: str, target: Path, *arguments: str) -> bytes:
    result = tstorm("plot", source, *arguments, "-o", str(target))
    assert status(result) == 0, result.output + repr(result.exception)
    return target.read_bytes()


@pytest.mark.parametrize("what", [PAIR, ("--link", "s--t"), ("--timeline",)])
def test_the_same_experiment_gives_the_same_bytes(
    source: str, tmp_path: Path, what: tuple[str, ...]
) -> None:
    one, two = (drawn(source, tmp_path / f"{n}.svg", *what) for n in (1, 2))
    assert one == two
    assert ET.fromstring(one).tag.endswith("svg")
    assert b"<dc:date>" not in one
    assert drawn(source, tmp_path / "p.png", *what).startswith(PNG)


def test_a_run_has_what_was_measured(tmp_path: Path) -> None:
    run = str(support.make(tmp_path / "run"))
    result = tstorm("plot", run, "--link", "a--s1", "-o", str(tmp_path / "l.svg"))
    assert status(result) == 0, result.output
    assert len(ET.parse(tmp_path / "l.svg").findall(".//*[@id='axes_3']")) == 1


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("fast", "fast:a.0->s"),
        ("fast:s--a", "fast:s->a.0"),
        ("slow:a.0->s", "slow:a.0->s"),
        ("a--s", "slow:a.0->s"),
        ("b->s", "b.0->s"),
    ],
)
def test_a_link_is_called_as_events_call_it(name: str, direction: str) -> None:
    text = "service a\nservice b\nbridge s\nlink a--s name=slow\nlink a--s name=fast\nlink b--s\n"
    topology = compile_source(text).topology
    assert topology.links[link_of(topology, name)].name == direction


def test_a_link_that_there_is_not_is_refused_with_one_that_there_is() -> None:
    text = "service a\nbridge s\nlink a--s name=slow\nlink a--s name=fast\n"
    with pytest.raises(click.BadParameter, match=r"no link 'fsat:a--s'.*fast:a\.0--s"):
        link_of(compile_source(text).topology, "fsat:a--s")


def test_names_are_never_read_as_formulas(source: str, tmp_path: Path) -> None:
    from tstorm.plotting import canvas

    with canvas.drawing() as figures:
        figure = figures()
        figure.text(0, 0, canvas.label("$\\frac{1$ \x1b"))
        assert canvas.encoded(figure, ".svg")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*PAIR, "-o", "x.pdf"], ".svg nor .png"),
        ([*PAIR, "-o", "-"], ".svg nor .png"),
        (["-o", "x.svg"], "say what to draw"),
        ([*PAIR, "--link", "s--t", "-o", "x.svg"], "say what to draw"),
        (["--pair", "c.0", "d", "-o", "x.svg"], "has 3 instances"),
        (["--pair", "c.0", "c.0", "-o", "x.svg"], "two instances"),
        (["--link", "s--u", "-o", "x.svg"], "no link 's--u'"),
    ],
)
def test_wrong_usage(source: str, arguments: list[str], said: str) -> None:
    result = tstorm("plot", source, *arguments)
    assert status(result) == 2
    assert said in result.output.replace("\n", " ")
    assert not Path("x.svg").exists()


def test_a_missing_library_is_told_with_what_installs_it(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = builtins.__import__

    def without(name: str, *arguments: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return whole(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    result = tstorm("plot", source, *PAIR, "-o", str(tmp_path / "x.svg"))
    assert status(result) == 3
    assert "pip install 'tstorm[plot]'" in str(result.exception)
    assert not (tmp_path / "x.svg").exists()


def test_a_timeline_has_a_row_for_each_element_that_something_happens_to() -> None:
    text = TWO_SERVICES + "from 12s to 14s c.0 disconnect\nat 15s s->t set loss=1%\n"
    plan = compile_source(text).plan
    second = 10**9
    found = {row.name: row for row in timeline_picture.rows(plan, plan.end_ns)}
    (crashed,) = (name for name in found if name.startswith("d."))
    assert list(found) == [crashed, "s->t", "t->s", "c.0"]
    assert found[crashed].bars == [(0, 5 * second, "up")]
    apart = [(0, 10 * second, "up"), (20 * second, 30 * second, "up")]
    assert found["s->t"].bars == found["t->s"].bars == apart
    assert [found[name].marks for name in ("s->t", "t->s")] == [[15 * second], []]
    assert (12 * second, 14 * second, "cut") in found["c.0"].bars
    alike = timeline_picture.rows(compile_source(TWO_SERVICES).plan, 12 * second)
    assert [row.name for row in alike] == [crashed, "s--t"]
    assert alike[1].bars == [(0, 10 * second, "up")]
