"""`expect always`, `sometimes` and `eventually`: what lines of programs are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.parts.expectations import ALWAYS, EVENTUALLY, LOG, NO_LOG, SOMETIMES
from runtime.expectations import line_matching
from runtime.expectations.matcher import in_json
from runtime.results.loglines import LINE_BYTES
from tests.certify.scene import SECOND, TDL, Scene
from tests.expectations.support import expecting, finding, happened, logged

TWO = TDL.replace("service b img=x", "service b img=x replicas=2")
TOOK = r"took ([0-9.]+) ms"


def _scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(1, "starting"), (12, "took 4 ms"), (45, "took 700.5 ms")])
    logged(scene, "b.1", [(2, "starting"), (41, "took 5 ms"), (50, "took 900 ms"), (55, "bye")])
    return scene


def _judged(
    scene: Scene, kind: str, pattern: str, from_s: float = 0, to_s: float = 60, **how: Any
) -> dict[str, Any]:
    when = {"from_ns": int(from_s * SECOND), "to_ns": int(to_s * SECOND)}
    wanted = expecting(
        scene, kind, "b.0", "b.1", pattern=pattern, eventually=kind != ALWAYS, **when, **how
    )
    return finding(scene, wanted)


def _less(number: str) -> dict[str, Any]:
    return {"op": "<", "number": number}


# -- lines that were cut --------------------------------------------------------------------------

CRASH = "[tstorm] 30.000000000 s: crash"
LAG = "lag ([0-9]+)"


def _cut_scene(tmp_path: Path, *events: dict[str, Any]) -> Scene:
    """`lag 0` is the beginning of `lag 0512`, in the middle of a log and at the end of another."""
    scene = Scene(tmp_path, TWO)
    cut = f"{CRASH} (the line before had no end)"
    logged(scene, "b.0", [(1, "lag 7"), (29, "lag 0"), (30, cut)])
    logged(scene, "b.1", [(1, "lag 7"), (59, "lag 0")], ended=False)
    happened(scene, *({"kind": "exit", "asked": False, "status": 0} | one for one in events))
    return scene


def test_a_line_that_was_cut_decides_nothing(tmp_path: Path) -> None:
    scene = _cut_scene(tmp_path)
    for kind, op, number in (
        (EVENTUALLY, "=", "0"),
        (EVENTUALLY, "=", "7"),
        (SOMETIMES, "=", "0"),
        (ALWAYS, ">", "5"),
        (ALWAYS, ">=", "0"),
    ):
        found = _judged(scene, kind, LAG, op=op, number=number)
        assert found["state"] == "not_measured" and "the line was cut" in found["message"], kind
        assert found["message"].startswith("b.0 had not ended at 28.9 s: lag 0 (")
    for kind in (LOG, NO_LOG):
        found = _judged(scene, kind, "lag 0$")
        assert found["state"] == "not_measured" and "the line was cut" in found["message"], kind


def test_the_moment_of_a_line_that_was_cut_is_that_of_its_program(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(2, "lag 0")], ended=False)
    log, times = scene.place / "logs/b.0.log", scene.place / "logs.jsonl"
    log.write_text(f"lag 0\n{CRASH} (the line before had no end)\n")
    row = {"from_ns": 30 * SECOND, "elapsed_ns": 31 * SECOND, "bytes": {"b.0": log.stat().st_size}}
    times.write_text(times.read_text() + json.dumps(row) + "\n")
    logged(scene, "b.1", [(1, "x")])
    assert _judged(scene, NO_LOG, "lag 0", 0, 3)["state"] == "failed"
    assert _judged(scene, NO_LOG, "lag 0", 3, 60)["state"] == "passed"


def test_whole_lines_decide_beside_one_that_was_cut(tmp_path: Path) -> None:
    scene = _cut_scene(tmp_path)
    assert _judged(scene, SOMETIMES, LAG, op="=", number="7")["state"] == "passed"
    found = _judged(scene, ALWAYS, LAG, op="<", number="5")
    assert found["state"] == "failed" and "lag 7 (7 is not < 5)" in found["message"]
    assert _judged(scene, LOG, "lag [7]$")["state"] == "passed"
    assert _judged(scene, NO_LOG, "lag [7]$")["state"] == "failed"
    assert _judged(scene, EVENTUALLY, LAG, 0, 20, op="=", number="7")["state"] == "passed"


def test_a_plain_text_in_a_line_that_was_cut_counts(tmp_path: Path) -> None:
    scene = _cut_scene(tmp_path)
    assert _judged(scene, LOG, "lag 0")["state"] == "passed"
    assert _judged(scene, NO_LOG, "lag 0")["state"] == "failed"
    assert _judged(scene, ALWAYS, "lag 0", has="ag")["state"] == "passed"
    assert _judged(scene, ALWAYS, "lag 0", has="512")["state"] == "not_measured"
    assert _judged(scene, NO_LOG, "lag 05")["state"] == "passed", "it was not written"


def test_the_last_line_of_a_program_that_ended_by_itself_is_whole(tmp_path: Path) -> None:
    ends = [(name, at_s * SECOND) for name, at_s in (("b.0", 29), ("b.1", 59))]

    def state(name: str, **how: Any) -> str:
        events = [{"target": of, "applied_ns": at_ns, **how} for of, at_ns in ends]
        scene = _cut_scene(tmp_path / name, *events)
        return str(_judged(scene, EVENTUALLY, LAG, op="=", number="0")["state"])

    assert state("itself", signal=0) == "passed"
    assert state("failed", signal=0, status=3) == "passed"
    assert state("signal", signal=9, status=-1) == "not_measured"
    assert state("asked", signal=0, asked=True) == "not_measured"


def test_what_goes_on_behind_a_mark_in_a_line_is_no_line(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO)
    pause, crash = (
        f"[tstorm] {at}.000000000 s: {what} (the line before had no end)"
        for at, what in ((2, "pause"), (9, "crash"))
    )
    resume = "[tstorm] 3.000000000 s: resume"
    lines = [(1, "lag 0"), (2, pause), (3, resume), (4, "lag 5"), (5, "lag 6"), (8, "lag 9")]
    logged(scene, "b.0", [*lines, (9, crash), (11, "lag 8")])
    logged(scene, "b.1", [(1, "lag 6")])
    numbers = {
        number: _judged(scene, SOMETIMES, LAG, op="=", number=number)["state"]
        for number in ("6", "8")
    }
    assert numbers == {"6": "passed", "8": "passed"}
    for number in ("0", "5", "9"):
        assert _judged(scene, LOG, f"lag {number}$")["state"] == "not_measured"


# -- always ---------------------------------------------------------------------------------------


def test_the_first_line_that_does_not_fit_is_told_with_place_and_moment(tmp_path: Path) -> None:
    found = _judged(_scene(tmp_path), ALWAYS, TOOK, **_less("500"))
    assert (found["state"], found["subject"]) == ("failed", "b.0")
    assert found["message"] == (
        "b.0 wrote at 44.9 s: took 700.5 ms (700.5 is not < 500); 2 of 4 such lines do not fit"
    )
    assert 44.8 * SECOND < found["at_ns"] <= 45 * SECOND
    assert found["log"][0]["line"] == "took 700.5 ms"


def test_numbers_are_compared_exactly(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    assert _judged(scene, ALWAYS, TOOK, **_less("900.0000000000000000001"))["state"] == "passed"
    assert _judged(scene, ALWAYS, TOOK, op="<=", number="900")["state"] == "passed"
    assert _judged(scene, ALWAYS, TOOK, **_less("900"))["state"] == "failed"
    assert _judged(scene, ALWAYS, TOOK, op="!=", number="700.50")["state"] == "failed"
    assert _judged(scene, ALWAYS, "took (4|5) ms", op=">=", number="4")["state"] == "passed"


def test_what_is_no_number_does_not_fit(tmp_path: Path) -> None:
    found = _judged(_scene(tmp_path), ALWAYS, "(start)", **_less("5"))
    assert found["state"] == "failed" and "'start' is no number" in found["message"]


def test_numbers_beyond_floats_are_numbers(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(1, "took 1e400 ms"), (2, 'ms {"p": 2e-400}')])
    logged(scene, "b.1", [(1, f"size {'9' * 41}")])
    assert _judged(scene, ALWAYS, "took (.*) ms", op=">", number="5")["state"] == "passed"
    assert _judged(scene, ALWAYS, "ms", key="p", op=">", number="0")["state"] == "failed"
    assert _judged(scene, ALWAYS, "ms .", key="p", op=">", number="0")["state"] == "passed"
    found = _judged(scene, ALWAYS, "size (.*)", op=">", number="5")
    assert found["state"] == "failed" and "has more than 40 characters" in found["message"]


def test_a_second_pattern_has_to_be_in_each(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    assert _judged(scene, ALWAYS, "took", has="ms$")["state"] == "passed"
    assert _judged(scene, ALWAYS, "took", has="ms")["message"] == (
        "4 lines from 0 s to 60 s with 'took', each: has 'ms'"
    )
    found = _judged(scene, ALWAYS, "took", has="00")
    assert found["message"].startswith("b.0 wrote at 11.9 s: took 4 ms ('00' is not in it)")


def test_where_there_is_no_such_line_nothing_was_judged(tmp_path: Path) -> None:
    found = _judged(_scene(tmp_path), ALWAYS, "lost ([0-9]+)", **_less("5"))
    assert (found["state"], found["message"]) == (
        "not_measured",
        "no line has 'lost ([0-9]+)' in it from 0 s to 60 s: nothing was judged",
    )


def test_a_line_that_is_perhaps_outside_proves_nothing(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    assert _judged(scene, ALWAYS, TOOK, 0, 40, **_less("500"))["state"] == "passed"
    found = _judged(scene, ALWAYS, TOOK, 0, 44.95, **_less("500"))
    assert found["state"] == "not_measured"
    assert "after 44.9 s and before 45 s" in found["message"]


def test_a_line_that_is_too_long_may_be_any(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(1, "took 4 ms"), (2, "took 4 ms " + "x" * LINE_BYTES)])
    logged(scene, "b.1", [(3, "took 4 ms")])
    for kind in (ALWAYS, EVENTUALLY):
        found = _judged(scene, kind, TOOK, **_less("5"))
        assert found["state"] == "not_measured" and "more than 65,536 bytes" in found["message"]
    assert _judged(scene, ALWAYS, TOOK, **_less("4"))["state"] == "failed"
    assert _judged(scene, SOMETIMES, TOOK, **_less("5"))["state"] == "passed"


def test_a_pattern_that_takes_years_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_matching, "BATCH_SECONDS", 0.3)
    scene = Scene(tmp_path, TWO)
    logged(scene, "b.0", [(1, "a" * 64 + "!")])
    logged(scene, "b.1", [(1, "a")])
    for kind in (ALWAYS, SOMETIMES, EVENTUALLY):
        found = _judged(scene, kind, "(a|aa)+$", has="b")
        assert found["state"] == "not_measured" and "a simpler pattern" in found["message"]


def test_a_run_that_was_stopped_can_only_fail(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    quit_ns = 47 * SECOND
    happened(scene, {"kind": "quit", "target": "", "planned_ns": quit_ns, "applied_ns": quit_ns})
    how = {"pattern": TOOK, "to_ns": 60 * SECOND}
    states = []
    for number in ("500", "800"):
        wanted = expecting(scene, ALWAYS, "b.0", **how, **_less(number))
        states.append(finding(scene, wanted, outcome="interrupted")["state"])
    assert states == ["failed", "not_measured"]
    wanted = expecting(scene, SOMETIMES, "b.0", pattern="lost", eventually=True, to_ns=60 * SECOND)
    found = finding(scene, wanted, outcome="interrupted")
    assert found["state"] == "not_measured" and "never" not in found


# -- sometimes ------------------------------------------------------------------------------------


def test_once_in_any_of_them_is_enough(tmp_path: Path) -> None:
    found = _judged(_scene(tmp_path), SOMETIMES, TOOK, op=">", number="800")
    assert (found["state"], found["subject"]) == ("passed", "b.1")
    assert found["message"] == "b.1 wrote at 49.9 s: took 900 ms"
    assert found["happened"] == ("expect sometimes",) and "never" not in found


def test_one_run_does_not_decide_what_never_happened(tmp_path: Path) -> None:
    found = _judged(_scene(tmp_path), SOMETIMES, "leader changed")
    assert (found["state"], found["never"]) == ("not_measured", ("expect sometimes",))
    assert "did not happen in this run from 0 s to 60 s" in found["message"]
    assert "happened" not in found


# -- eventually -----------------------------------------------------------------------------------


def test_the_last_line_of_each_counts(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    found = _judged(scene, EVENTUALLY, TOOK, **_less("800"))
    assert (found["state"], found["subject"], found["at_ns"]) == ("failed", "b.1", 60 * SECOND)
    assert found["message"] == (
        "at last b.1 wrote at 49.9 s: took 900 ms (900 is not < 800) (1 of 2 failed)"
    )
    found = _judged(scene, EVENTUALLY, TOOK, 0, 44, **_less("6"))
    assert found["state"] == "passed"
    assert found["message"] == "at last b.0 wrote at 11.9 s: took 4 ms (of 2 all passed)"


def test_one_that_has_no_such_line_has_not_come_to_it(tmp_path: Path) -> None:
    found = _judged(_scene(tmp_path), EVENTUALLY, TOOK, 13, 44, **_less("6"))
    assert found["state"] == "failed"
    said = f"no line of b.0 has {TOOK!r} in it from 13 s to 44 s; it wrote one at 11.9 s"
    assert found["message"] == f"{said} (1 of 2 failed)"


def test_only_a_line_at_the_edge_that_would_change_it_is_in_doubt(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    found = _judged(scene, EVENTUALLY, TOOK, 0, 44.95, **_less("6"))
    assert found["state"] == "not_measured" and "perhaps" in found["message"]
    assert _judged(scene, EVENTUALLY, TOOK, 0, 44.95, **_less("800"))["state"] == "passed"
    assert _judged(scene, EVENTUALLY, TOOK, 0, 44.95, **_less("3"))["state"] == "failed"


# -- JSON -----------------------------------------------------------------------------------------


def test_what_stands_in_the_json_of_a_line_is_compared(tmp_path: Path) -> None:
    scene = Scene(tmp_path, TWO)
    records = [{"op": "put", "ms": {"p99": 4}, "role": "leader"}, {"op": "put", "ms": {"p99": 12}}]
    logged(scene, "b.0", [(n + 1, f"INFO {json.dumps(one)}") for n, one in enumerate(records)])
    logged(scene, "b.1", [(1, json.dumps({"op": "get"})), (2, '"op": "put", no JSON')])
    found = _judged(scene, ALWAYS, '"op": "put"', to_s=1.5, key="ms.p99", **_less("10"))
    assert found["state"] == "passed"
    said = """1 line from 0 s to 1.5 s with '"op": "put"', each: ms.p99 < 10"""
    assert found["message"] == said
    found = _judged(scene, ALWAYS, '"op": "put"', to_s=1.95, key="role", has="^leader$")
    assert found["state"] == "not_measured"
    found = _judged(scene, ALWAYS, "p99", key="ms.p99", **_less("10"))
    assert found["message"].endswith("(12 is not < 10)")
    found = _judged(scene, ALWAYS, "put", key="ms.p99")
    assert found["message"].endswith("no JSON (there is no ms.p99 in it, or it is null)")
    assert _judged(scene, SOMETIMES, "put", key="role", has="^lead")["state"] == "passed"
    assert _judged(scene, SOMETIMES, "put", key="role", has="^$")["never"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ('{"a": [1, {"b": 18446744073709551617}]}', "18446744073709551617"),
        ('x {"a": [1, {"b": "t"}]}', "t"),
        ('{"a": [1, {"b": [true, null]}]}', "[true,null]"),
        ('{"a": [1, {"b": null}]}', None),
        ('{"a": [1, {"b": 1}]} tail', None),
        ('[{"a": 1}]', None),
        ("", None),
        ('{"a":' * 100_000, None),
        ('{"a": [1, {"b": "\\ud800"}]}', "\ud800"),
    ],
)
def test_a_place_in_the_json_of_a_line(line: str, value: str | None) -> None:
    assert in_json(line, "a.1.b") == value
