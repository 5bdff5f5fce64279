"""inspect, exec, destroy and doctor with --backend k8s: runs are found by label, from anywhere."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from runtime.errors import RunError
from tests.cli.support import status, tstorm
from tests.doubles.api import FakeApi, ended
from tstorm.k8s import podexec, remove_runs, waiting
from tstorm.k8s.connection import connect
from tstorm.k8s.find import Root

LABELS = {"app.kubernetes.io/managed-by": "tstorm", "app.kubernetes.io/component": "experiment"}
NAMESPACE_UID = "/api/v1/namespaces/one"  # as the fake server gives them
STATE = {
    "run_id": "exp-1",
    "directory": "/run/tstorm/run",
    "at_ns": 10**9,
    "end_ns": 2 * 10**9,
    "elapsed_ns": 10**9,
    "applied": 1,
    "total": 2,
    "next_events": [{"at_ns": 2 * 10**9, "kind": "quit", "target": ""}],
    "instances": [
        {
            "name": f"c.{index}",
            "state": shown,
            "ipv4": "10.1.0.1",
            "ipv6": "",
            "program": ["sleep"],
            "started": True,
        }
        for index, shown in enumerate(("up", "down"))
    ],
    "links": [],
    "pairs": [],
}


def experiment(server: FakeApi, name: str, run: str, owner: str = "somebody") -> None:
    notes = {"thunderstorm.dev/run": run, "thunderstorm.dev/owner": owner}
    server.put(f"/api/v1/namespaces/{name}", metadata={"labels": LABELS, "annotations": notes})


def pod(server: FakeApi, namespace: str, name: str, **more: Any) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    server.put(path, **{"spec": {"containers": []}, "status": {"phase": "Running"}, **more})


@pytest.fixture
def run(server: FakeApi) -> FakeApi:
    """The run exp-1 in the namespace one, whose c.0 is up and whose c.1 is down."""
    experiment(server, "one", "exp-1")
    labels = {"app.kubernetes.io/component": "coordinator"}
    pod(server, "one", "tstorm-coordinator-x", metadata={"labels": labels})
    for index in range(2):
        meta = {
            "labels": {"apps.kubernetes.io/pod-index": str(index)},
            "annotations": {"thunderstorm.dev/service": "c"},
        }
        pod(server, "one", f"c-{index}", metadata=meta)
    server.on_exec = answers(b"")
    return server


def answers(output: bytes, code: dict[str, Any] | None = None) -> Any:
    """The coordinator says its state; other commands print `output`."""

    def said(_pod: str, argv: list[str]) -> Iterator[tuple[int, bytes]]:
        if argv[0].endswith("tstorm-coordinator"):
            yield 1, json.dumps(STATE).encode()
            yield 3, json.dumps(ended(0)).encode()
            return
        yield 1, output
        yield 3, json.dumps(code or ended(0)).encode()

    return said


# -- inspect --------------------------------------------------------------------------------------


def test_inspect_asks_the_coordinator(run: FakeApi) -> None:
    result = tstorm("inspect", "exp-1", "--backend", "k8s", "--format", "json")
    assert status(result) == 0, result.output
    assert json.loads(result.stdout) == {**STATE, "live": True, "namespace": "one"}
    text = tstorm("inspect", "--backend", "k8s").stdout
    assert "exp-1: at 1s of 2s, 1/2 events" in text
    assert "namespace: one" in text


def test_inspect_says_why_a_run_has_not_begun(run: FakeApi) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    states = [{"name": "coordinator", "image": "i:1", "state": {"waiting": waiting}}]
    status_of = {"phase": "Pending", "containerStatuses": states}
    run.objects["/api/v1/namespaces/one/pods/tstorm-coordinator-x"]["status"] = status_of
    result = tstorm("inspect", "--backend", "k8s")
    assert status(result) == 1
    assert "run exp-1 has not begun" in str(result.exception)
    assert "no such image" in str(result.exception)


def test_inspect_of_a_run_that_is_over_says_how_it_ended(run: FakeApi) -> None:
    over = {"exitCode": 1, "reason": "Error", "message": "first\nlast words\n"}
    states = [{"name": "coordinator", "state": {"terminated": over}}]
    status_of = {"phase": "Failed", "containerStatuses": states}
    run.objects["/api/v1/namespaces/one/pods/tstorm-coordinator-x"]["status"] = status_of
    result = tstorm("inspect", "--backend", "k8s")
    assert status(result) == 1
    assert "is over: status 1 (Error): last words" in str(result.exception)
    assert "tstorm destroy --backend k8s --namespace one" in str(result.exception)


def test_runs_are_found_by_name_namespace_or_alone(run: FakeApi) -> None:
    experiment(run, "two", "exp-2")
    for options, words in (
        ([], "more than one run"),
        (["exp-3"], "no run 'exp-3'"),
        (["--namespace", "three"], "namespace three has no run"),
    ):
        result = tstorm("inspect", *options, "--backend", "k8s")
        assert status(result) == 1
        assert words in str(result.exception)
    assert status(tstorm("inspect", "--namespace", "one", "--backend", "k8s")) == 0


def test_who_may_not_list_namespaces_is_told_to_name_one(run: FakeApi) -> None:
    run.refused["GET", "/api/v1/namespaces"] = (403, 'namespaces is forbidden: User "u" cannot')
    result = tstorm("inspect", "--backend", "k8s")
    assert status(result) == 3
    assert "--namespace" in str(result.exception)
    assert status(tstorm("inspect", "--backend", "k8s", "--namespace", "one")) == 0


# -- exec -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (ended(0), 0),
        (ended(7), 7),
        (ended(137), 137),
        ({"status": "Failure", "message": 'exec: "x": executable file not found in $PATH'}, 127),
        ({"status": "Failure", "message": 'exec: "/x": permission denied'}, 126),
        ({"status": "Failure", "message": "container not found"}, 125),
        ({"status": "Failure", "details": {"causes": [{"reason": "ExitCode"}]}}, 125),
    ],
)
def test_exec_has_the_status_of_the_command(run: FakeApi, said: dict[str, Any], code: int) -> None:
    run.on_exec = answers(b"hello", said)
    result = tstorm("exec", "--backend", "k8s", "exp-1", "c.0", "--", "x", "--flag")
    assert status(result) == code
    assert ("c-0", ["x", "--flag"]) in run.execs


def test_exec_whose_connection_breaks_says_so(run: FakeApi) -> None:
    def breaks(pod: str, argv: list[str]) -> Iterator[tuple[int, bytes]]:
        if argv[0].endswith("tstorm-coordinator"):
            yield from answers(b"")(pod, argv)

    run.on_exec = breaks
    result = tstorm("exec", "--backend", "k8s", "exp-1", "c.0", "--", "x")
    assert status(result) == 125
    assert "broke" in result.stderr


def flood(over: threading.Event) -> Any:
    """A command that never stops printing; `over` when nobody listens any more."""

    def said(pod: str, argv: list[str]) -> Iterator[tuple[int, bytes]]:
        if argv[0].endswith("tstorm-coordinator"):
            yield from answers(b"")(pod, argv)
            return
        try:
            while True:
                yield 1, b"y\n" * 1000
        finally:
            over.set()

    return said


def exec_process(output: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """`tstorm exec` of what never stops, as a process: its pipes are the system's."""
    command = ["exec", "--backend", "k8s", "exp-1", "c.0", "--", "yes"]
    return subprocess.Popen(
        [sys.executable, "-m", "tstorm", *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE,
    )


def test_exec_ends_quietly_with_its_reader(run: FakeApi) -> None:
    """As a program that SIGPIPE ends in an instance on one machine."""
    over = threading.Event()
    run.on_exec = flood(over)
    with exec_process(subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE
    assert over.wait(60)


def test_exec_whose_output_cannot_be_written_blames_no_connection(run: FakeApi) -> None:
    run.on_exec = flood(threading.Event())
    with Path("/dev/full").open("wb") as full, exec_process(full) as process:
        assert process.stderr is not None
        assert process.stderr.read() == b"error: writing the output: No space left on device\n"
    assert process.returncode == 1


def test_exec_that_is_forbidden_is_an_error_and_no_broken_connection(run: FakeApi) -> None:
    """A run would try a broken one again for ever."""
    run.refused["GET", "/api/v1/namespaces/one/pods/tstorm-coordinator-x/exec"] = (403, "no")
    place = podexec.ContainerPlace("one", "tstorm-coordinator-x", "coordinator")
    with connect(None) as connection, pytest.raises(RunError) as found:
        podexec.answer(connection, place, ["tstorm-coordinator", "state"])
    assert not isinstance(found.value, podexec.BrokenStreamError)
    assert found.value.message == "you may not start a command in pod tstorm-coordinator-x"


@pytest.mark.parametrize(
    ("instance", "words"), [("c.1", "instance c.1 is down now"), ("d.0", "no instance 'd.0'")]
)
def test_exec_into_what_is_not_there(run: FakeApi, instance: str, words: str) -> None:
    result = tstorm("exec", "--backend", "k8s", "exp-1", instance, "--", "x")
    assert status(result) == 1
    assert words in str(result.exception)


# -- destroy --------------------------------------------------------------------------------------


def test_destroy_removes_one_and_leaves_the_other(run: FakeApi) -> None:
    experiment(run, "two", "exp-2")
    result = tstorm("destroy", "exp-2", "--backend", "k8s")
    assert status(result) == 0
    assert "exp-2" in result.stdout
    assert "/api/v1/namespaces/two" not in run.objects
    assert "/api/v1/namespaces/one" in run.objects


def test_destroy_all_leaves_what_others_began(run: FakeApi) -> None:
    experiment(run, "two", "exp-2", owner="another")
    result = tstorm("destroy", "--all", "--backend", "k8s", "--format", "json")
    assert status(result) == 0
    rows = {row["run"]: row["removed"] for row in json.loads(result.stdout)}
    assert rows == {"exp-1": True, "exp-2": False}
    assert "another began it" in result.stderr
    assert "/api/v1/namespaces/two" in run.objects


@pytest.mark.parametrize("owner", ["another", ""])
def test_destroy_without_a_name_leaves_what_others_began(run: FakeApi, owner: str) -> None:
    experiment(run, "one", "exp-1", owner)
    result = tstorm("destroy", "--backend", "k8s")
    assert status(result) == 0
    assert f"exp-1: {owner or 'somebody who is not known'} began it" in result.stderr
    assert "left alone" in result.stdout
    assert "/api/v1/namespaces/one" in run.objects
    experiment(run, "two", "exp-2")
    assert status(tstorm("destroy", "--backend", "k8s")) == 0
    assert "/api/v1/namespaces/one" in run.objects
    assert "/api/v1/namespaces/two" not in run.objects


@pytest.mark.parametrize("named", [["exp-1"], ["--namespace", "one"]])
def test_destroy_says_whose_the_run_was_that_was_named(run: FakeApi, named: list[str]) -> None:
    experiment(run, "one", "exp-1", "another")
    result = tstorm("destroy", *named, "--backend", "k8s")
    assert status(result) == 0
    assert "another began exp-1" in result.stderr
    assert "/api/v1/namespaces/one" not in run.objects


def test_destroy_of_two_runs_of_ones_own_asks_which(run: FakeApi) -> None:
    experiment(run, "two", "exp-2")
    result = tstorm("destroy", "--backend", "k8s")
    assert status(result) == 1
    assert "exp-1 in one, exp-2 in two" in str(result.exception)
    assert "/api/v1/namespaces/one" in run.objects


@pytest.mark.parametrize("options", [[], ["--all"], ["--all", "--namespace", "one"]])
def test_destroy_asks_which_run_if_the_cluster_does_not_say_who_asks(
    run: FakeApi, options: list[str]
) -> None:
    """A cluster without such reviews has runs whose owner is not known either."""
    experiment(run, "one", "exp-1", "")
    run.refused["POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"] = (404, "no such path")
    result = tstorm("destroy", *options, "--backend", "k8s")
    assert status(result) == 1
    assert "give RUN, or without --all the --namespace" in str(result.exception)
    assert "/api/v1/namespaces/one" in run.objects
    assert status(tstorm("destroy", "--namespace", "one", "--backend", "k8s")) == 0
    assert "/api/v1/namespaces/one" not in run.objects


@pytest.mark.parametrize("named", [[], ["exp-1"], ["--namespace", "one"]])
def test_destroy_twice_is_no_error(run: FakeApi, named: list[str]) -> None:
    for said in ("removed", ""):
        result = tstorm("destroy", *named, "--backend", "k8s")
        assert status(result) == 0
        assert said in result.stdout
    assert "nothing to destroy" in result.stderr


@pytest.mark.parametrize("named", [[], ["exp-1"], ["--namespace", "one"], ["--all"]])
def test_destroy_waits_for_a_run_that_is_being_removed(
    run: FakeApi, named: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_seconds: float) -> bool:
        del run.objects[NAMESPACE_UID]
        return True

    monkeypatch.setattr(remove_runs, "_sleep", gone)
    run.objects[NAMESPACE_UID]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    run.refused["DELETE", NAMESPACE_UID] = (409, "it is being removed")
    result = tstorm("destroy", *named, "--backend", "k8s")
    assert status(result) == 0
    assert "removed" in result.stdout
    assert NAMESPACE_UID not in run.objects


def test_destroy_of_what_goes_on_does_not_ask_about_what_is_leaving(run: FakeApi) -> None:
    experiment(run, "two", "exp-2")
    run.objects["/api/v1/namespaces/two"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    result = tstorm("destroy", "--backend", "k8s")
    assert status(result) == 0
    assert "exp-1" in result.stdout
    assert "/api/v1/namespaces/one" not in run.objects


def test_destroy_never_touches_a_namespace_that_is_not_an_experiments(run: FakeApi) -> None:
    run.put("/api/v1/namespaces/mine")
    result = tstorm("destroy", "--backend", "k8s", "--namespace", "mine")
    assert status(result) == 0
    assert "/api/v1/namespaces/mine" in run.objects


def test_what_keeps_a_namespace_is_said(run: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remove_runs, "GONE_SECONDS", 0.0)
    conditions = [{"status": "True", "message": "a finalizer of storage.example remains"}]
    run.objects["/api/v1/namespaces/one"]["status"] = {"conditions": conditions}
    run.refused["DELETE", "/api/v1/namespaces/one"] = (409, "it is being removed")
    result = tstorm("destroy", "--backend", "k8s")
    assert status(result) == 3
    assert "a finalizer of storage.example remains" in str(result.exception)


@pytest.mark.parametrize("lost", ["DELETE", "GET"])
def test_a_deletion_whose_answers_are_lost_is_seen_to_its_end(
    run: FakeApi, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    def away(method: str, path: str) -> None:
        run.down = method == "DELETE"

    def back(_seconds: float) -> bool:
        run.down = False
        run.refused.clear()
        return True

    monkeypatch.setattr(remove_runs, "_sleep", back)
    if lost == "DELETE":
        run.refused["DELETE", "/api/v1/namespaces/one"] = (503, "no leader")
    else:
        run.on_change = away
    result = tstorm("destroy", "exp-1", "--backend", "k8s")
    assert status(result) == 0, result.exception
    assert "removed" in result.stdout
    assert "/api/v1/namespaces/one" not in run.objects


def test_a_server_that_stays_away_is_the_reason_that_is_said(
    run: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remove_runs, "GONE_SECONDS", 0.0)
    run.refused["DELETE", "/api/v1/namespaces/one"] = (503, "no leader")
    result = tstorm("destroy", "exp-1", "--backend", "k8s")
    assert status(result) == 3
    assert "one may still be there" in str(result.exception)
    assert "no leader" in str(result.exception)


def test_only_the_namespace_that_was_meant_is_removed(run: FakeApi) -> None:
    """Another run may have taken its name between the look and the deletion."""
    with connect(None) as connection:
        for uid, there in (("that of before", True), (NAMESPACE_UID, False)):
            root = Root("one", uid=uid)
            assert remove_runs.remove(connection, root, lambda _: False, print) == ""
            assert ("/api/v1/namespaces/one" in run.objects) == there


def test_a_removal_that_takes_long_says_what_it_waits_for(
    run: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "REMOVING_SECONDS", 0.0)
    run.refused["DELETE", "/api/v1/namespaces/one"] = (409, "it is being removed")
    del run.objects["/api/v1/namespaces/one/pods/tstorm-coordinator-x"]
    for index in range(2):
        pod(run, "one", f"c-{index}", spec={"nodeName": f"n{index}"})
    said: list[str] = []
    with connect(None) as connection:
        kept = remove_runs.remove(connection, Root("one"), lambda _: False, said.append)
    assert kept == "the cluster has not removed it yet"
    where = "waiting for the end of the run's namespace one: c-0 on n0, c-1 on n1 ("
    assert said == [f"{where}a node that is away keeps its pods until it is back)"]


# -- doctor ---------------------------------------------------------------------------------------


def rows(*options: str) -> tuple[int, dict[str, dict[str, str]]]:
    result = tstorm("doctor", "--backend", "k8s", "--format", "json", *options)
    return status(result), {row["name"]: row for row in json.loads(result.stdout)}


def test_doctor_asks_what_a_run_would_need(server: FakeApi) -> None:
    code, found = rows()
    assert code == 0
    assert found["rights"]["status"] == "ok"
    assert found["nodes"]["detail"] == "1 of 1 take pods"
    assert found["agent image"]["status"] == "warn"  # the node has no images
    images = [{"names": ["docker.io/library/mine:1"]}]
    server.objects["/api/v1/nodes/n0"]["status"]["images"] = images
    assert rows("--agent-image", "mine:1")[1]["agent image"]["status"] == "ok"
    assert {method for method, _ in server.requests} == {"GET", "POST"}
    posted = {path.rpartition("/")[2] for method, path in server.requests if method == "POST"}
    assert posted == {"selfsubjectaccessreviews"}  # it makes nothing


def test_doctor_ends_with_3_where_no_run_is_possible(server: FakeApi) -> None:
    server.denied = {("create", "pods")}  # with the subresource exec
    code, found = rows()
    assert code == 3
    assert found["rights"]["detail"] == "you may not: create pods/exec"
    assert found["nodes"]["status"] == "ok"


def test_doctor_of_nodes_that_nobody_may_list(server: FakeApi) -> None:
    server.refused["GET", "/api/v1/nodes"] = (403, "nodes is forbidden: User u cannot list")
    code, found = rows()
    assert code == 0
    assert found["nodes"]["status"] == "warn"


def test_doctor_refuses_nodes_that_are_none_only_where_they_take_pods(server: FakeApi) -> None:
    """Such nodes normally have a taint, and no pod of ours tolerates any."""
    server.node("fargate-1", **{"eks.amazonaws.com/compute-type": "fargate"})
    code, found = rows()
    assert (code, found["node kernels"]["status"]) == (3, "fail")
    assert found["node kernels"]["detail"] == "fargate-1 is Fargate"
    taint = {"key": "eks.amazonaws.com/compute-type", "effect": "NoSchedule"}
    for spec, why in (
        ({"taints": [taint]}, "taint eks.amazonaws.com/compute-type"),
        ({"unschedulable": True}, "cordoned"),
    ):
        server.objects["/api/v1/nodes/fargate-1"]["spec"] = spec
        code, found = rows()
        assert (code, found["node kernels"]["status"]) == (0, "ok")
        assert found["nodes"]["detail"] == f"1 of 2 take pods; not fargate-1 ({why})"


@pytest.mark.parametrize("option", ["--nodes", "--agent-image", "--context", "--namespace"])
def test_options_of_a_cluster_are_no_options_of_this_machine(option: str) -> None:
    result = tstorm("doctor", option, "x")
    assert status(result) == 2
    assert f"{option} is for --backend k8s" in result.stderr


def test_a_recorded_run_replays_where_the_command_line_says(
    server: FakeApi, tmp_path: Path
) -> None:
    """One over local hosts, in a cluster: hosts, faults and datapath are not taken along."""
    from runtime.options import RunOptions
    from tstorm.command_support import options_of

    recorded = RunOptions(hosts=3, datapath="kernel", pace=2).to_record()
    found = options_of({"backend": "k8s", "nodes": "a=b"}, {"options": recorded})
    assert (found.backend, found.hosts, found.datapath) == ("k8s", 0, "auto")
    assert (found.nodes, found.pace) == ("a=b", 2)
    again = options_of({}, {"options": found.to_record()})
    assert (again.backend, again.nodes) == ("k8s", "a=b")
    here = options_of({"backend": "local"}, {"options": found.to_record()})
    assert (here.backend, here.nodes, here.pace) == ("local", "", 2)
