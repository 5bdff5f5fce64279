"""What histories say: beside oracles that try every order, and what is wrong with a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.expectations.history import linearizable, serializable
from runtime.expectations.history.operations import (
    HistoryError,
    LongHistoryError,
    Operation,
    read,
    words_of,
)
from tests.certify.scene import SECOND, Scene
from tests.expectations.histories import explained, history, line, one_after_another, text
from tests.expectations.support import expecting, finding, happened

_FUNCTIONS = {
    "register": {"write": 1, "read": 0, "cas": 2},
    "map": {"put": 1, "get": 0, "delete": 0},
    "set": {"add": 1, "remove": 1, "contains": 1, "read": 0},
    "queue": {"enqueue": 1, "dequeue": 0},
}
_SMALL = st.integers(0, 2)


def _result(model: str, f: str) -> st.SearchStrategy[Any]:
    if f == "contains":
        return st.booleans()
    if (model, f) == ("set", "read"):
        return st.lists(_SMALL, max_size=2, unique=True)
    return st.none() | _SMALL if f in ("read", "get", "dequeue") else st.none()


@st.composite
def histories(draw: st.DrawFn, model: str) -> list[Operation]:
    """At most six operations of three processes at two keys, with moments that are often the
    same."""
    records = []
    keys = draw(st.sampled_from(["x", "xy"]))
    for process, many in enumerate(draw(st.sampled_from([[2, 2], [1, 3], [4], [2, 2, 2], [3, 2]]))):
        at = 0
        for _ in range(many):
            key = draw(st.sampled_from(keys))
            f = draw(st.sampled_from(sorted(_FUNCTIONS[model])))
            given = [draw(_SMALL) for _ in range(_FUNCTIONS[model][f])]
            value = given if len(given) > 1 else next(iter(given), None)
            at += draw(_SMALL)
            records.append(line(process, "invoke", f, at, key=key, value=value))
            kind = draw(st.sampled_from(["ok", "ok", "ok", "info", "fail"]))
            at += draw(_SMALL)
            result = draw(_result(model, f))
            records.append(line(process, kind, f, at, key=key, value=result))
    return history(*records)


@pytest.mark.parametrize("model", sorted(_FUNCTIONS))
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_an_order_is_found_where_one_of_all_orders_is(model: str, data: st.DataObject) -> None:
    operations = data.draw(histories(model))
    found = linearizable.check(model, operations)
    assert (found is None) == explained(model, operations)
    if found is not None:
        assert found.guilty in found.near


@pytest.mark.parametrize(
    "between",
    [
        [],
        [line(1, "invoke", "put", 5, key="x", value=0), line(1, "info", "put", 5, key="x")],
        [line(1, "invoke", "put", 5, key="x", value=0), line(1, "fail", "put", 5, key="x")],
        [line(1, "invoke", "put", 5, key="y", value=0), line(1, "ok", "put", 5, key="y")],
    ],
)
def test_a_process_has_its_order_at_one_moment_too(between: list[dict[str, Any]]) -> None:
    read = [line(1, "invoke", "get", 5, key="x"), line(1, "ok", "get", 5, key="x", value=1)]
    write = [line(1, "invoke", "put", 5, key="x", value=1), line(1, "ok", "put", 10, key="x")]
    found = linearizable.check("map", history(*read, *between, *write))
    assert found is not None and found.guilty.f == "get"
    other = [{**one, "process": 2} for one in read]
    assert linearizable.check("map", history(*other, *write)) is None


def test_orders_of_processes_at_one_moment_hold_over_all_keys() -> None:
    def did(process: int, mine: str, other: str, begin: int) -> list[dict[str, Any]]:
        return [
            line(process, "invoke", "put", begin, key=mine, value=1),
            line(process, "ok", "put", 5, key=mine),
            line(process, "invoke", "get", 5, key=other),
            line(process, "ok", "get", 5, key=other, value=None),
        ]

    missed = history(*did(0, "x", "y", 4), *did(1, "y", "x", 5))
    found = linearizable.check("map", missed)
    assert found is not None and found.guilty in found.near
    assert sorted(found.keys) == ['"x"', '"y"']
    apart = [*did(0, "x", "y", 4)[:2], *did(1, "y", "z", 5)]
    assert linearizable.check("map", history(*apart)) is None


@st.composite
def transaction_histories(draw: st.DrawFn, write: str) -> list[Operation]:
    """At most five transactions; each value is written once, and what is read is drawn."""
    records: list[dict[str, Any]] = []
    values = iter(range(1, 100))
    for process in range(draw(st.integers(2, 5))):
        begun: list[list[Any]] = []
        ended: list[list[Any]] = []
        for _ in range(draw(st.integers(1, 3))):
            key = draw(st.sampled_from("xy"))
            if draw(st.booleans()):
                begun.append([write, key, next(values)])
                ended.append(begun[-1])
                continue
            some = st.lists(st.integers(1, 4), max_size=3, unique=True)
            seen = draw(some) if write == "append" else draw(st.none() | st.integers(1, 4))
            begun.append(["r", key, None])
            ended.append(["r", key, seen])
        kind = draw(st.sampled_from(["ok", "ok", "ok", "info", "fail"]))
        records.append(line(process, "invoke", "txn", 0, value=begun))
        records.append(line(process, kind, "txn", 9, value=ended if kind == "ok" else begun))
    return history(*records)


def _anomalous(operations: list[Operation]) -> bool | None:
    try:
        return serializable.check(operations)[0] is not None
    except HistoryError:  # a key of which only reads are there, with a list
        return None


@given(operations=transaction_histories("append"))
@settings(max_examples=300, deadline=None)
def test_lists_are_serializable_where_one_of_all_orders_is(operations: list[Operation]) -> None:
    found = _anomalous(operations)
    if found is not None:
        assert found == (not one_after_another(operations))


@given(operations=transaction_histories("w"))
@settings(max_examples=300, deadline=None)
def test_registers_with_an_anomaly_have_no_order(operations: list[Operation]) -> None:
    if _anomalous(operations):
        assert not one_after_another(operations)


def test_every_anomaly_has_its_name() -> None:
    def name(*those: tuple[str, list[Any]]) -> str:
        records = []
        for process, (kind, steps) in enumerate(those):
            begun = [[f, key, None if f == "r" else value] for f, key, value in steps]
            records.append(line(process, "invoke", "txn", process, value=begun))
            ended = steps if kind == "ok" else begun
            records.append(line(process, kind, "txn", 10 + process, value=ended))
        found, _ = serializable.check(history(*records))
        return "" if found is None else found.name

    def append(key: str, value: int) -> list[Any]:
        return ["append", key, value]

    def seen(key: str, *values: int) -> list[Any]:
        return ["r", key, list(values)]

    both = [append("x", 1), append("y", 1)], [append("x", 2), append("y", 2)]
    mixed = [seen("x", 1, 2), seen("y", 2, 1)]
    assert name(("ok", both[0]), ("ok", both[1]), ("ok", mixed)) == "G0"
    assert name(("fail", [append("x", 1)]), ("ok", [seen("x", 1)])) == "G1a"
    half = [append("x", 1), append("x", 2)]
    assert name(("ok", half), ("ok", [seen("x", 1)])) == "G1b"
    other = "ok", [append("x", 3)]
    for turned in (seen("x", 2, 1, 3), seen("x", 2)):
        assert name(("ok", half), other, ("ok", [turned])) == "incompatible order"
    round_ = [append("x", 1), seen("y", 1)], [append("y", 1), seen("x", 1)]
    assert name(("ok", round_[0]), ("ok", round_[1])) == "G1c"
    skew = [seen("x"), append("y", 1)], [seen("y"), append("x", 1)]
    assert name(("ok", skew[0]), ("ok", skew[1])) == "G2"
    lost = [["r", "x", 1], ["w", "x", 2]], [["r", "x", 1], ["w", "x", 3]]
    assert name(("ok", [["w", "x", 1]]), ("ok", lost[0]), ("ok", lost[1])) == "G2"
    assert name(("ok", [append("x", 1), seen("x")])) == "internal"
    assert name(("ok", [seen("x", 4)])) == "unwritten"
    ones = ("ok", [append("x", 1)]), ("ok", [append("x", 2)])
    orders = ("ok", [seen("x", 1, 2)]), ("ok", [seen("x", 2, 1)])
    assert name(*ones, *orders) == "incompatible order"
    assert name(("info", [append("x", 1)]), ("ok", [seen("x", 1)]), ("ok", [seen("x")])) == ""


_INVOKE = line(0, "invoke", "write", 5, value=1)
_WRONG: list[tuple[Any, str]] = [
    ("{", "line 2: no JSON"),
    ("[" * 100, "line 2: no JSON"),
    ("7", "line 2: no JSON object"),
    ({"process": 0}, "line 2: it has no 'type'"),
    (line(0, "done", "write", 6), 'line 2: the type "done" is none of invoke, ok, fail, info'),
    ({**_INVOKE, "type": "ok", "time": 1.5}, "line 2: the time 1.5 is no whole number of ns"),
    (line(0, "ok", "write", 4), "line 2: time goes backwards for process 0"),
    (line(1, "ok", "write", 6), "line 2: ok of process 1, which has begun nothing"),
    (line(0, "ok", "read", 6), "line 2: ok of read, and write has begun"),
    (
        '{"process": 0, "type": "ok", "f": "write", "value": 1, "value": 2, "time": 6}',
        "line 2: no JSON: damaged: 'value' is in one object twice",
    ),
    (line(0, "ok", "write", 6, key="x"), 'line 2: ok of "x", and write of no key has begun'),
    (line([], "invoke", "read", 6), "line 2: 'f' is a text, 'process' a text or a number"),
]


@pytest.mark.parametrize(("second", "why"), _WRONG)
def test_what_is_wrong_with_a_line_has_its_number(second: Any, why: str) -> None:
    more = second if isinstance(second, str) else json.dumps(second)
    with pytest.raises(HistoryError) as caught:
        read({"client.0": text([_INVOKE]) + more.encode() + b"\n"}, "h.jsonl")
    assert f"client.0's h.jsonl, {why}" in str(caught.value)


@pytest.mark.parametrize(
    ("model", "records", "why"),
    [
        ("queue", [_INVOKE], "'write' is nothing that a queue does: enqueue, dequeue"),
        ("register", [line(0, "invoke", "write", 1)], "write has no value"),
        ("register", [line(0, "invoke", "cas", 1, value=3)], "the value of a cas is [old, new]"),
        (
            "register",
            [line(0, "invoke", "read", 1), line(0, "ok", "read", 2)],
            "read is ok, and its end has no value",
        ),
    ],
)
def test_what_a_model_does_not_have(model: str, records: list[Any], why: str) -> None:
    with pytest.raises(HistoryError) as caught:
        linearizable.check(model, history(*records))
    assert str(caught.value) == f"client.0's h.jsonl, line 1: {why}"


def test_what_ends_is_what_has_begun() -> None:
    changed = history(_INVOKE, line(0, "ok", "write", 6, value=7))
    said = "client.0's h.jsonl, line 2: write 7 is ok, and write 1 has begun"
    with pytest.raises(HistoryError, match=said):
        linearizable.check("register", changed)
    assert linearizable.check("register", history(_INVOKE, line(0, "ok", "write", 6))) is None


@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        ([["r", "x", None]], [["r", "y", []]]),
        ([["append", "x", 1]], [["append", "x", 7]]),
        ([["r", "x", None]], [["r", "x", []], ["append", "x", 5]]),
        ([["r", "x", None], ["w", "x", 5]], [["r", "x", None]]),
    ],
)
def test_the_steps_of_a_transaction_are_those_with_which_it_has_begun(
    begun: list[Any], ended: list[Any]
) -> None:
    both = [line(0, "invoke", "txn", 1, value=begun), line(0, "ok", "txn", 2, value=ended)]
    with pytest.raises(HistoryError, match="line 2: the steps of a transaction that is ok are not"):
        serializable.check(history(*both))


def test_a_client_that_was_killed_leaves_what_it_did_unknown() -> None:
    again = line(0, "invoke", "read", 8)
    data = text([_INVOKE, again, line(0, "ok", "read", 9, value=None)]) + b'{"process": 0, "ty'
    operations = read({"client.0": data}, "h.jsonl")
    assert [one.ended for one in operations] == ["info", "ok"]
    assert words_of(operations) == "2 operations of 1 processes, 1 of them without a known end"
    assert linearizable.check("register", operations) is None


def test_what_was_not_decided_has_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = [line(n, "invoke", "write", 0, key="x", value=n) for n in range(9)]
    ended = [line(n, "ok", "write", 9, key="x") for n in range(9)]
    reads = [line(9, "invoke", "read", 10, key="x"), line(9, "ok", "read", 11, key="x", value=99)]
    operations = history(*begun, *ended, *reads)
    found = linearizable.check("register", operations)
    assert found is not None and found.guilty.f == "read"
    monkeypatch.setattr(linearizable, "MOST_NODES", 50)
    with pytest.raises(LongHistoryError, match='not decided: the 10 operations of "x" overlap'):
        linearizable.check("register", operations)
    monkeypatch.setattr("runtime.expectations.history.operations.MOST_OPERATIONS", 5)
    with pytest.raises(LongHistoryError, match="more than 5 operations"):
        history(*begun)


# -- of a run -------------------------------------------------------------------------------------


def put(scene: Scene, name: str, data: bytes) -> None:
    place = scene.place / "instances" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "h.jsonl").write_bytes(data)


def _judged(scene: Scene, kind: str = "linearizable", **how: Any) -> dict[str, Any]:
    more = {"model": "register"} if kind == "linearizable" else {}
    return finding(scene, expecting(scene, kind, "a.0", "b.0", path="h.jsonl", **more), **how)


def _second(at: float) -> int:
    return int(at * SECOND)


def _stale() -> dict[str, bytes]:
    writes = [
        line(0, "invoke", "write", _second(1), value=1),
        line(0, "ok", "write", _second(2.5), value=1),
        line(0, "invoke", "write", _second(3), value=2),
        line(0, "ok", "write", _second(4), value=2),
    ]
    reads = [
        line(0, "invoke", "read", _second(5)),
        line(0, "ok", "read", _second(5.5), value=1),
    ]
    return {"a.0": text(writes), "b.0": text(reads)}


def test_a_stale_read_is_named_with_place_and_moment(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for name, data in _stale().items():
        put(scene, name, data)
    found = _judged(scene)
    said = "read → 1 of b.0, from 5 s to 5.5 s: no order explains it (b.0's h.jsonl, line 1)"
    assert (found["state"], found["message"]) == ("failed", said)
    assert (found["subject"], found["at_ns"]) == ("b.0", _second(5.5))
    assert found["log"][0] == {
        "instance": "a.0",
        "at_ns": _second(1),
        "line": "process 0: write 1 (to 2.5 s; a.0's h.jsonl, line 1)",
    }
    assert [(one["process"], one["guilty"]) for one in found["operations"]] == [
        ("a.0 0", False), ("a.0 0", False), ("b.0 0", True)
    ]  # fmt: skip
    assert (tmp_path / "kept/b.0/h.jsonl").read_bytes() == _stale()["b.0"]


def test_transactions_of_a_cycle_are_named(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for name, mine, other in (("a.0", "x", "y"), ("b.0", "y", "x")):
        steps = [["r", mine, None], ["append", other, 1]]
        ended = [["r", mine, []], ["append", other, 1]]
        begun = line(0, "invoke", "txn", _second(1), value=steps)
        put(scene, name, text([begun, line(0, "ok", "txn", _second(2), value=ended)]))
    found = _judged(scene, "serializable")
    assert found["state"] == "failed"
    assert found["message"].startswith("G2, each has missed a write of the next")
    assert "a.0's h.jsonl, line 1" in found["message"] and "(rw " in found["message"]
    assert len(found["operations"]) == 2


def test_what_cannot_be_judged_is_not_measured(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    put(scene, "a.0", _stale()["a.0"])
    missing = _judged(scene)
    why = "h.jsonl of b.0 cannot be read: No such file or directory"
    assert (missing["state"], missing["message"]) == ("not_measured", why)
    put(scene, "b.0", b"x\n")
    assert "b.0's h.jsonl, line 1: no JSON" in _judged(scene)["message"]


def test_a_history_without_operations_shows_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for name in ("a.0", "b.0"):
        put(scene, name, b"")
    found = _judged(scene)
    assert (found["state"], found["message"]) == (
        "not_measured", "there is no operation in h.jsonl"
    )  # fmt: skip


_QUIT = {"kind": "quit", "target": "", "planned_ns": _second(10), "applied_ns": _second(10)}


def test_an_interrupted_run_can_only_fail(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "good")
    for name, data in {"a.0": _stale()["a.0"], "b.0": b""}.items():
        put(scene, name, data)
    assert _judged(scene)["state"] == "passed"
    happened(scene, _QUIT)
    assert _judged(scene, outcome="interrupted")["state"] == "not_measured"
    scene = Scene(tmp_path / "bad")
    for name, data in _stale().items():
        put(scene, name, data)
    happened(scene, _QUIT)
    assert _judged(scene, outcome="interrupted")["state"] == "failed"


def _moved(data: bytes, by_ns: int) -> bytes:
    records = [json.loads(one) for one in data.splitlines()]
    return text([{**one, "time": one["time"] + by_ns} for one in records])


def _began_at(scene: Scene, since: str, at_ns: int) -> None:
    """Time 0, by one of the two clocks."""
    path = scene.place / "events.jsonl"
    header, *more = path.read_text(encoding="utf-8").splitlines()
    lines = [json.dumps({**json.loads(header), f"start_{since}_ns": at_ns}), *more]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_times_of_a_clock_that_was_set_prove_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    _began_at(scene, "unix", 10**18)
    for name, data in _stale().items():
        put(scene, name, _moved(data, 10**18))
    assert _judged(scene)["state"] == "failed"
    happened(scene, {"kind": "clock", "target": "a.0", "planned_ns": 1, "applied_ns": 1})
    said = "the clock of a.0 was set, and the history has its time"
    assert _judged(scene)["message"].startswith(said)


@pytest.mark.parametrize("by_s", [-12, 64])
def test_times_outside_of_the_run_prove_nothing(tmp_path: Path, by_s: int) -> None:
    scene = Scene(tmp_path)
    began_ns = _second(100)
    _began_at(scene, "monotonic", began_ns)
    put(scene, "a.0", _moved(_stale()["a.0"], began_ns))
    put(scene, "b.0", _moved(_stale()["b.0"], began_ns + _second(by_s)))
    at = 5 + by_s
    said = f"b.0's h.jsonl, line 1: the time {_second(100 + at)} is {at} s, which is not within"
    assert _judged(scene)["message"].startswith(said)
    happened(scene, {"kind": "start", "target": "b.0", "applied_ns": 0, "started_ns": _second(-9)})
    happened(scene, {"kind": "killed", "target": "b.0", "applied_ns": _second(69)})
    assert _judged(scene)["state"] == "failed"


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([1 * SECOND, 2 * SECOND, 2 * SECOND, 2 * SECOND], "all times are whole seconds"),
        ([1500, 1500, 1500, 1500], "all operations are at one moment"),
    ],
)
def test_times_that_are_too_coarse_do_not_pass(tmp_path: Path, times: list[int], said: str) -> None:
    scene = Scene(tmp_path)
    begin, end, again, last = times
    write = [line(0, "invoke", "write", begin, value=1), line(0, "ok", "write", end)]
    read = [line(0, "invoke", "read", again), line(0, "ok", "read", last, value=None)]
    put(scene, "a.0", text(write))
    put(scene, "b.0", text(read))
    found = _judged(scene)
    assert found["state"] == "not_measured"
    assert found["message"].startswith(f"a.0's h.jsonl, line 1: {said}")
