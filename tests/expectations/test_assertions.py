"""`expect assertions`: what programs assert of themselves by an SDK (docs/assertions.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.parts.expectations import ASSERTIONS
from runtime.expectations import kept_files
from runtime.expectations.assertions import sdk_records
from runtime.options import RunOptions
from tests.certify.scene import SECOND, Scene
from tests.expectations.sdk_lines import SDK, SETUP, assertion, guidance, text
from tests.expectations.support import expecting, finding, happened

HERE = ".assertions"
NONE_LOST, CHANGED = "no write is lost", "leader changed"


def _put(scene: Scene, name: str, *files: bytes) -> Path:
    place = scene.place / "instances" / name / HERE
    place.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(files, 1):
        (place / f"program-{number:03}.jsonl").write_bytes(data)
    return place


def _judged(scene: Scene, **how: Any) -> dict[str, Any]:
    for name in ("a.0", "b.0"):
        (scene.place / "instances" / name / HERE).mkdir(parents=True, exist_ok=True)
    wanted = expecting(scene, ASSERTIONS, "a.0", "b.0", text="expect assertions *")
    return finding(scene, wanted, **how)


def _named(name: str) -> str:
    return f"{name} (expect assertions *)"


def test_what_holds_in_all_instances_together_passes(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    declared = [assertion("sometimes", CHANGED, None), assertion("always", NONE_LOST, None)]
    own = assertion("always", NONE_LOST, True)
    never = assertion("always", "quorum", None, must_hit=False)
    panic = assertion("reachability", "panicked", None, must_hit=False)
    _put(scene, "a.0", text(SDK, SETUP, *declared, own, never, panic, guidance("lag")))
    waiting = text(SDK, *declared, assertion("sometimes", CHANGED, False))
    done = text(SDK, {"my_event": {"x": 1}}, assertion("sometimes", CHANGED, True))
    _put(scene, "b.0", waiting, done.rstrip(b"\n"))
    found = _judged(scene)
    assert (found["state"], found["message"]) == ("passed", "4 assertions hold")
    both = [_named(f'always "{NONE_LOST}"'), _named(f'sometimes "{CHANGED}"')]
    assert sorted(found["happened"]) == both and "never" not in found
    kept = tmp_path / "kept/b.0" / HERE / "program-002.jsonl"
    assert b"my_event" in kept.read_bytes()


def test_an_always_that_was_false_is_told_with_its_places(tmp_path: Path) -> None:
    """Also where a later start of the program says that it was true."""
    scene = Scene(tmp_path)
    lost = assertion("always", NONE_LOST, False, details={"key": "x", "seen": 3})
    _put(scene, "a.0", text(SDK, lost), text(SDK, assertion("always", NONE_LOST, True)))
    found = _judged(scene)
    assert (found["state"], found["subject"]) == ("failed", "a.0")
    assert found["message"] == (
        'always "no write is lost" was false at raft.go:7 in elect with {"key": "x", "seen": 3}'
        " (a.0's .assertions/program-001.jsonl, line 2)"
    )
    assert found["log"] == ({"instance": "a.0", "at_ns": None, "line": found["message"]},)


def test_every_kind_of_violation_is_told(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    panic = assertion("reachability", "panicked", True, must_hit=False, location=None)
    _put(scene, "a.0", text(assertion("always", "quorum", False, must_hit=False), panic))
    found = _judged(scene)
    assert found["message"].endswith("line 1) (2 of 2 assertions failed)")
    assert found["message"].startswith('always or unreachable "quorum" was false')
    assert found["log"][1]["line"] == (
        'unreachable "panicked" was reached (a.0\'s .assertions/program-001.jsonl, line 2)'
    )


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (assertion("sometimes", CHANGED, False), f'sometimes "{CHANGED}"'),
        (assertion("sometimes", CHANGED, None), f'sometimes "{CHANGED}"'),
        (assertion("reachability", "recovered", None), 'reachable "recovered"'),
        (assertion("always", NONE_LOST, None), f'always "{NONE_LOST}"'),
    ],
)
def test_one_run_does_not_decide_what_never_happened(
    tmp_path: Path, record: dict[str, Any], name: str
) -> None:
    scene = Scene(tmp_path)
    _put(scene, "a.0", text(record))
    found = _judged(scene)
    assert (found["state"], found["never"]) == ("not_measured", (_named(name),))
    assert found["message"].startswith(
        f"of 1 assertion none is violated; in this run never happened: {name}; one run"
    )


def test_a_run_that_failed_tells_what_never_happened(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    violated, lacking = (
        assertion("always", NONE_LOST, False),
        assertion("sometimes", CHANGED, False),
    )
    _put(scene, "a.0", text(violated, lacking))
    found = _judged(scene)
    assert (found["state"], found["never"]) == ("failed", (_named(f'sometimes "{CHANGED}"'),))


def test_without_records_nothing_was_judged(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    _put(scene, "a.0", text(SDK))
    found = _judged(scene)
    assert found["message"] == "no assertion was written by a.0, b.0"
    assert found["state"] == "not_measured"


BAD = [
    (b"{\n", "a.0's .assertions/program-001.jsonl, line 1: no JSON"),
    (b"[" * 100_000 + b"\n", "line 1: no JSON"),
    (b"[]\n", "line 1: no JSON object"),
    (text({"antithesis_assert": []}), "line 1: the assertion is no JSON object"),
    (text(assertion("always", "x", True, hit="yes")), "line 1: 'hit' is neither true nor false"),
    (text(assertion("always", 5, True)), "line 1: 'message' is no text"),
    (
        text(assertion("always", "x", True, assert_type="every")),
        'line 1: the assert_type "every" is none of always, sometimes, reachability',
    ),
    (b"x" * (sdk_records.LINE_BYTES + 1) + b"\n", "line 1: more than 1,048,576 bytes"),
    (b"x" * 3 * sdk_records.LINE_BYTES, "line 1: more than 1,048,576 bytes"),
    (b"\0" * 40 + text(assertion("always", "x", True)), "line 1: no JSON"),
]


@pytest.mark.parametrize(("data", "why"), BAD)
def test_a_line_that_cannot_be_read_may_have_been_anything(
    tmp_path: Path, data: bytes, why: str
) -> None:
    """But for what others say is violated."""
    scene = Scene(tmp_path)
    _put(scene, "a.0", data, text(assertion("always", NONE_LOST, True)))
    found = _judged(scene)
    assert found["state"] == "not_measured" and why in found["message"]
    assert "never" not in found
    _put(scene, "b.0", text(assertion("always", NONE_LOST, False)))
    assert _anew(scene)["state"] == "failed"


def _anew(scene: Scene) -> dict[str, Any]:
    """Judged again; copies of before are not replaced."""
    (scene.place / "kept").rename(scene.place / "kept.before")
    return _judged(scene)


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    torn = text(assertion("always", NONE_LOST, True))
    strange = {"antithesis_lease": {}, "other": 1}
    _put(scene, "a.0", text(strange, strange) + torn + torn[:-20])
    found = _judged(scene)
    assert found["state"] == "passed"
    assert found["message"] == (
        "1 assertion holds; records 'antithesis_lease' are not known here"
        " (a.0's .assertions/program-001.jsonl, line 1)"
        "; the last line of a.0's .assertions/program-001.jsonl was not written to its end and is"
        " left out"
    )


def test_a_directory_or_a_link_in_the_way_is_told(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    place = _put(scene, "a.0")
    (place / "program-001.jsonl").mkdir()
    found = _judged(scene)
    assert found["state"] == "not_measured"
    assert "program-001.jsonl of a.0 cannot be read" in found["message"]
    (place / "program-001.jsonl").rmdir()
    (place / "program-001.jsonl").symlink_to("/etc/passwd")
    assert "cannot be read" in _judged(scene)["message"]
    (place / "program-001.jsonl").unlink()
    place.rmdir()
    place.write_bytes(b"")
    wanted = expecting(scene, ASSERTIONS, "a.0")
    assert finding(scene, wanted)["message"] == ".assertions of a.0 cannot be read: Not a directory"


def test_there_are_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_records, "MOST_ASSERTIONS", 3)
    monkeypatch.setattr(kept_files, "MOST_FILES", 2)
    scene = Scene(tmp_path)
    _put(scene, "a.0", text(*(assertion("always", f"a{n}", True) for n in range(5))))
    found = _judged(scene)
    assert found["state"] == "not_measured"
    assert found["message"].endswith("line 4: more than 3 assertions")
    _put(scene, "b.0", b"", b"", b"")
    assert "(and 1 more)" in _anew(scene)["message"]


def test_a_long_or_strange_message_has_a_name_of_its_own(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    messages = ["x" * 1000, "x" * 1001, "\x1b[31mred\ud800"]
    _put(scene, "a.0", text(*(assertion("sometimes", one, None) for one in messages)))
    found = _judged(scene)
    assert len(set(found["never"])) == 3 and max(map(len, found["never"])) < 220
    json.dumps(found).encode()
    assert all(one.isprintable() for one in found["never"])
    assert found["message"].isprintable()


def test_an_interrupted_run_can_only_fail(tmp_path: Path) -> None:
    quit_ = {"kind": "quit", "target": "", "planned_ns": 10 * SECOND, "applied_ns": 10 * SECOND}
    states = []
    for kind, condition in (("always", True), ("sometimes", False), ("always", False)):
        scene = Scene(tmp_path / f"{kind} {condition}")
        lacking = assertion("sometimes", CHANGED, False)
        _put(scene, "a.0", text(assertion(kind, "x", condition), lacking))
        happened(scene, quit_)
        found = _judged(scene, outcome="interrupted")
        states.append(found["state"])
        assert "never" not in found
    assert states == ["not_measured", "not_measured", "failed"]


def test_in_a_cluster_nothing_is_read(tmp_path: Path) -> None:
    scene = Scene(tmp_path, options=RunOptions(backend="k8s"))
    found = _judged(scene)
    assert (found["state"], found["message"]) == (
        "not_measured", f"{kept_files.AWAY} (and 1 more)"
    )  # fmt: skip
    assert kept_files.not_in_cluster(scene.plan).startswith("not measured: expect assertions *")
