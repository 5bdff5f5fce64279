"""`tstorm run --backend k8s` on an API server that is none: what it applies, follows and leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from runtime.rundir.rundir import RunDirectory
from tests.cli.support import status, tstorm
from tests.doubles.api import FakeApi, Frames, ended
from tests.doubles.coordinator import FACTS, Coordinator, final, progress
from tests.waiting import wait_until
from tstorm.k8s import coordinator_follower
from tstorm.k8s.connection import ApiConnection, ServerError
from tstorm.k8s.waiting import Waiting

TEXT = """\
service c img=alpine:3 entrypoint=['sleep'] command=['9']
service d img=alpine:3 entrypoint=['sleep'] command=['9']
link c--d latency=1ms
at 1s quit
"""
NAMESPACE = "trial"
NAMESPACES = f"/api/v1/namespaces/{NAMESPACE}"
EVENT = {"kind": "start", "target": "c.0", "applied_ns": 5, "started_ns": 6}


@pytest.fixture
def coordinator(server: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    """There as soon as its Job is, and says that the run is completed."""
    made = Coordinator(server, NAMESPACE)
    made.files = {
        "events.jsonl": json.dumps(EVENT).encode() + b"\n",
        "logs/c.0.log": b"hello\n",
        "driver.log": b"",
    }
    made.messages = [progress(message="it said this"), {"started": FACTS}, final()]
    server.on_exec = made.exec

    def applied(method: str, path: str) -> None:
        if method == "PATCH" and path.endswith("/jobs/tstorm-coordinator"):
            made.appear()

    server.on_change = applied
    monkeypatch.setattr(coordinator_follower, "AGAIN_SECONDS", 0.01)
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "exp.tdl").write_text(TEXT)
    return tmp_path / "exp.tdl"


def run(source: Path, *options: str) -> Result:
    out = source.parent / "run"
    arguments = ["--backend", "k8s", "--namespace", NAMESPACE, "--out", str(out), *options]
    return tstorm("run", str(source), *arguments)


def said(result: Result) -> str:
    """Also what the process would say at its end."""
    return f"{result.stderr}{result.exception or ''}"


def test_a_run_applies_follows_concludes_and_leaves_nothing(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    result = run(source, "--format", "json")
    assert status(result) == 0, result.output
    directory = source.parent / "run"
    assert (directory / "logs/c.0.log").read_bytes() == b"hello\n"
    assert (directory / "report.html").exists()
    manifest = json.loads((directory / "manifest.json").read_bytes())
    assert manifest["outcome"] == "completed"
    assert manifest["start_unix_ns"] == FACTS["start_unix_ns"]
    assert manifest["cluster"]["namespace"] == NAMESPACE
    assert manifest["cluster"]["version"] == "v1.33.0"
    assert manifest["options"]["backend"] == "k8s"
    assert "it said this" in result.stderr
    assert "fetched" in coordinator.said
    assert NAMESPACES not in server.objects
    assert server.names(NAMESPACE) == set()


def test_what_is_applied_is_what_render_writes(
    server: FakeApi, coordinator: Coordinator, source: Path, tmp_path: Path
) -> None:
    assert status(run(source, "--keep")) == 0
    rendered = tmp_path / "rendered"
    done = tstorm("render", str(source), "--namespace", NAMESPACE, "-o", str(rendered))
    assert status(done) == 0
    texts = [path.read_text() for path in sorted(rendered.iterdir())]
    written = [text for one in texts for text in f"\n{one}".split("\n---\n") if text.strip()]
    applied = [
        server.bodies[path].decode() for method, path in server.requests if method == "PATCH"
    ]
    assert len(applied) == len(written)
    for one, other in zip(applied, written, strict=True):
        if "kind: Job" not in one:  # its deadline follows from the run's options
            assert one.strip() == other.strip()
    first = [path for method, path in server.requests if method in ("POST", "PATCH")]
    assert [path for path in first if "/selfsubject" not in path][:4] == [
        "/api/v1/namespaces",
        f"{NAMESPACES}/secrets",
        f"{NAMESPACES}/configmaps",
        NAMESPACES,
    ]


def test_what_a_run_is_told_and_by_what_it_is_found(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    assert status(run(source, "--keep", "--until", "500ms")) == 0
    manifest = json.loads((source.parent / "run/manifest.json").read_bytes())
    config = server.objects[f"{NAMESPACES}/configmaps/tstorm-run"]
    told = json.loads(config["data"]["run.json"])
    assert told["run_id"] == manifest["run_id"]
    assert told["options"] == manifest["options"]
    assert told["options"]["until_ns"] == 500_000_000
    assert told["manifest"]["plan_digest"] == manifest["plan_digest"]
    notes = server.objects[NAMESPACES]["metadata"]["annotations"]
    assert notes["thunderstorm.dev/run"] == manifest["run_id"]
    assert notes["thunderstorm.dev/owner"] == "somebody"
    assert notes["thunderstorm.dev/plan"] == manifest["plan_digest"]
    secret = server.objects[f"{NAMESPACES}/secrets/tstorm-auth"]
    assert len(secret["data"]["key"]) == 44  # 32 bytes


def test_each_run_has_a_key_of_its_own(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    keys = set()
    for _ in range(2):
        assert status(run(source, "--keep")) == 0
        keys.add(server.objects[f"{NAMESPACES}/secrets/tstorm-auth"]["data"]["key"])
        assert status(tstorm("destroy", "--backend", "k8s")) == 0
        (source.parent / "run").rename(source.parent / f"run{len(keys)}")
    assert len(keys) == 2


def test_a_stream_that_breaks_is_continued(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    coordinator.files["logs/c.0.log"] = b"0123456789" * 1000
    coordinator.breaks = 3
    assert status(run(source)) == 0
    log = (source.parent / "run/logs/c.0.log").read_bytes()
    assert log == coordinator.files["logs/c.0.log"]
    assert coordinator.haves[0] == {}
    assert coordinator.haves[1]["logs/c.0.log"] == 5000
    assert len(coordinator.haves) == 4


def test_outcomes_are_those_of_the_coordinator(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    coordinator.messages[-1] = final("failed", "agent n0 was lost")
    result = run(source)
    assert status(result) == 1
    assert "agent n0 was lost" in said(result)
    assert NAMESPACES not in server.objects


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"started": 7}, "the start is 7"),
        ({"final": {"outcome": 7}}, "the end: outcome must be a text, not 7"),
        ({"progress": {}}, "progress: phase is missing"),
    ],
)
def test_a_coordinator_of_another_release_is_not_understood(
    coordinator: Coordinator, source: Path, message: dict[str, Any], words: str
) -> None:
    coordinator.messages.insert(1, message)
    result = run(source)
    assert result.exit_code == 1
    assert f"says what this release does not understand: {words}" in said(result)
    assert "use the release that made its image" in said(result)


def test_how_long_setting_up_took_is_known_here(coordinator: Coordinator, source: Path) -> None:
    coordinator.messages[1] = {"started": {**FACTS, "setup_ns": -7}}
    assert run(source).exit_code == 0
    assert json.loads((source.parent / "run" / "manifest.json").read_text())["setup_ns"] > 0


def test_a_coordinator_that_dies_ends_the_run(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    notice = "the output of c.0 is not followed now: it is about something else"
    ended = {"exitCode": 137, "reason": "OOMKilled", "message": notice}

    def dies(method: str, path: str) -> None:
        if method == "PATCH" and path.endswith("/jobs/tstorm-coordinator"):
            coordinator.appear()
            pod = server.objects[f"{NAMESPACES}/pods/tstorm-coordinator-x"]
            states = [{"name": "coordinator", "state": {"terminated": ended}}]
            pod["status"] = {"phase": "Failed", "containerStatuses": states}

    server.on_change = dies
    result = run(source)
    assert status(result) in (1, 3)
    assert "137 (OOMKilled)" in said(result)
    assert notice not in said(result)
    manifest = json.loads((source.parent / "run/manifest.json").read_bytes())
    assert manifest["outcome"] == "failed"
    assert NAMESPACES not in server.objects


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(28, "No space left on device", "manifest.json"), 1, "No space left on device"),
        (ZeroDivisionError("a fault"), 1, "the command failed: ZeroDivisionError('a fault')"),
    ],
)
def test_a_run_whose_directory_cannot_be_written_has_an_outcome(
    server: FakeApi,
    coordinator: Coordinator,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    code: int,
    words: str,
) -> None:
    """The manifest's last version has its space since the beginning."""

    update = RunDirectory.update_manifest

    def full(directory: RunDirectory, **values: object) -> None:
        if "start_unix_ns" in values:
            raise error
        update(directory, **values)

    monkeypatch.setattr(RunDirectory, "update_manifest", full)
    result = run(source)
    assert status(result) == code
    manifest = json.loads((source.parent / "run/manifest.json").read_bytes())
    assert manifest["outcome"] == "failed"
    assert words in manifest["message"]
    assert NAMESPACES not in server.objects


def test_what_is_here_is_told_on_stdin_however_much_it_is(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    """As an argument it would be too long for Linux, and as an address for a proxy."""
    logs = {f"logs/a-service-with-a-name.{index}.log": b"ab" for index in range(2000)}
    coordinator.files.update(logs)
    coordinator.breaks = 2
    assert status(run(source)) == 0
    assert coordinator.haves[1]["logs/a-service-with-a-name.1999.log"] == 1
    assert len(json.dumps(coordinator.haves[1])) > 1 << 16
    assert {tuple(argv) for _, argv in server.execs if "follow" in argv} == {
        ("/usr/bin/tstorm-coordinator", "follow")
    }


@pytest.mark.parametrize("code", [0, 429, 500, 503])
def test_one_request_that_fails_does_not_end_a_run(
    server: FakeApi, coordinator: Coordinator, source: Path, code: int
) -> None:
    agents = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/tstorm-agent"
    for place in (("GET", "/version"), ("PATCH", agents), ("DELETE", NAMESPACES)):
        server.failing[place] = [code]
    server.failing["POST", "/api/v1/namespaces"] = [0]  # it is made, and nobody hears of it
    assert status(run(source)) == 0
    assert not any(server.failing.values())
    assert NAMESPACES not in server.objects


def test_a_failed_run_keeps_the_logs_of_its_agents(
    server: FakeApi, coordinator: Coordinator, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its messages say that they are, and says which it could not have."""
    for node in ("n0", "n1"):
        server.put(
            f"{NAMESPACES}/pods/tstorm-agent-{node}",
            metadata={"labels": {"app.kubernetes.io/component": "agent"}},
            spec={"nodeName": node, "containers": []},
            status={"phase": "Running"},
        )
    coordinator.messages[-1] = final("failed", "the agent of n0 ended with signal 11")
    server.write("tstorm-agent-n0", b"what it said", b"its last words")
    server.write("tstorm-coordinator-x", b"failed: the agent")
    server.refused["GET", f"{NAMESPACES}/pods/tstorm-agent-n1/log"] = (500, "no answer of kubelet")
    result = run(source)
    assert status(result) == 1
    directory = source.parent / "run"
    assert (directory / "agents/n0.log").read_text() == "what it said\nits last words\n"
    assert (directory / "coordinator.log").read_text() == "failed: the agent\n"
    assert "there is no log of the agent on n1: " in said(result)
    assert "no answer of kubelet" in said(result)


def test_a_run_that_goes_well_keeps_none(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    assert status(run(source)) == 0
    assert not [path for _, path in server.requests if path.endswith("/log")]


@pytest.mark.parametrize("outcome", ["failed", "interrupted"])
def test_a_run_that_was_destroyed_says_so(
    server: FakeApi, coordinator: Coordinator, source: Path, outcome: str
) -> None:
    """Its coordinator has only seen that a pod went, or was told to end."""
    coordinator.messages[-1] = final(outcome, "the agent pod of n0 was deleted or replaced")

    def destroyed(pod: str, argv: list[str]) -> Frames:
        server.objects[NAMESPACES]["metadata"]["deletionTimestamp"] = "now"
        return coordinator.exec(pod, argv)

    server.on_exec = destroyed
    result = run(source)
    assert status(result) == 1
    assert "the run was destroyed: somebody is removing the run's namespace trial" in said(result)
    summary = json.loads((source.parent / "run/summary.json").read_bytes())
    assert summary["message"].startswith("the run was destroyed")


# -- in a namespace that the user was given -------------------------------------------------------


@pytest.fixture
def given(server: FakeApi) -> FakeApi:
    """He may do nothing with namespaces, and is not alone in this one."""
    server.denied = {(verb, "namespaces") for verb in ("create", "get", "patch", "delete")}
    server.put(NAMESPACES)
    theirs = {"labels": {"app.kubernetes.io/part-of": "another"}}
    server.put(f"{NAMESPACES}/secrets/theirs", metadata=theirs)
    waiting = {"reason": "InvalidImageName", "message": "couldn't parse"}
    container = {"name": "theirs", "image": "A", "state": {"waiting": waiting}}
    server.put(
        f"{NAMESPACES}/pods/theirs",
        metadata=theirs,
        spec={"containers": [{"name": "theirs"}]},
        status={"phase": "Pending", "containerStatuses": [container]},
    )
    return server


THEIRS = {"secrets/theirs", "pods/theirs"}
POD = {"pods/tstorm-coordinator-x"}  # of a Job that is none


def test_a_run_in_a_given_namespace_leaves_it_as_it_was(
    given: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    result = run(source)
    assert status(result) == 0, said(result)
    assert NAMESPACES in given.objects
    assert given.names(NAMESPACE) == THEIRS | POD
    asked = {path for method, path in given.requests if method in ("POST", "PATCH", "DELETE")}
    assert NAMESPACES not in asked and "/api/v1/namespaces" not in asked


def test_a_kept_run_in_a_given_namespace_is_found_and_destroyed(
    given: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    assert status(run(source, "--keep")) == 0
    assert "configmaps/tstorm-experiment" in given.names(NAMESPACE)
    again = tstorm("run", str(source), "--backend", "k8s", "--namespace", NAMESPACE)
    assert status(again) == 1
    assert "is in namespace trial" in said(again)
    result = tstorm("destroy", "--backend", "k8s", "--namespace", NAMESPACE)
    assert status(result) == 0, said(result)
    assert "removed" in result.stdout
    assert given.names(NAMESPACE) == THEIRS | POD


def test_who_may_see_nothing_of_a_namespace_is_told_so(given: FakeApi) -> None:
    inspect = ("inspect", "--backend", "k8s", "--namespace", NAMESPACE)
    given.refused["GET", NAMESPACES] = (403, "you may not")
    assert "has no run" in said(tstorm(*inspect))
    given.refused["GET", f"{NAMESPACES}/configmaps/tstorm-experiment"] = (403, "you may not")
    assert "you may not" in said(tstorm(*inspect))


def test_a_given_namespace_that_is_none_is_said_to_be(given: FakeApi, source: Path) -> None:
    given.refused["POST", f"{NAMESPACES}/configmaps"] = (404, "not found")
    words = "the cluster has no namespace trial, and you may not create one"
    refused(run(source), 1, words, given, source)


def test_a_given_namespace_that_takes_no_agents_is_refused(given: FakeApi, source: Path) -> None:
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    given.objects[NAMESPACES]["metadata"]["labels"] = level
    words = "namespace trial takes no pods above the Pod Security level restricted"
    refused(run(source), 3, words, given, source)


def gone(server: FakeApi, path: str) -> Callable[[str, list[str]], Frames]:
    """A stream that breaks when an object and what is in it disappear."""

    def breaks(_pod: str, argv: list[str]) -> Frames:
        if argv[1] == "follow":
            yield 1, b'{"beat": true}\n'
            with server.lock:
                for key in [key for key in server.objects if f"{key}/".startswith(f"{path}/")]:
                    del server.objects[key]

    return breaks


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"{NAMESPACES}/pods/tstorm-coordinator-x", "the coordinator's pod is gone"),
        (NAMESPACES, "somebody has removed the run's namespace trial"),
    ],
)
def test_a_coordinator_that_is_removed_ends_the_run(
    server: FakeApi, coordinator: Coordinator, source: Path, path: str, words: str
) -> None:
    """From elsewhere: `tstorm destroy`, a pod deleted by force, a node that is lost."""
    server.on_exec = gone(server, path)
    result = run(source)
    assert status(result) == 1
    assert words in said(result)
    manifest = json.loads((source.parent / "run/manifest.json").read_bytes())
    assert manifest["outcome"] == "failed"
    assert words in manifest["message"]
    assert NAMESPACES not in server.objects


@pytest.mark.parametrize("terminating", [False, True])
def test_a_namespace_that_is_removed_before_the_start_ends_the_run(
    server: FakeApi, coordinator: Coordinator, source: Path, terminating: bool
) -> None:
    def removed(method: str, path: str) -> None:
        if (method, path) == ("GET", f"{NAMESPACES}/events"):
            with server.lock:
                if terminating:
                    server.objects[NAMESPACES]["metadata"]["deletionTimestamp"] = "now"
                else:
                    server.objects.pop(NAMESPACES, None)

    server.on_change = removed
    result = run(source)
    assert status(result) == 1
    what = "is removing" if terminating else "has removed"
    assert f"somebody {what} the run's namespace {NAMESPACE}" in said(result)


def test_another_run_in_a_namespace_of_the_same_name_is_left_alone(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    """It is not followed, stopped or removed."""
    messages, coordinator.messages = coordinator.messages, []
    coordinator.breaks = 1

    def replaced(pod: str, argv: list[str]) -> Frames:
        yield from coordinator.exec(pod, argv)
        server.objects[NAMESPACES]["metadata"]["uid"] = "another"
        coordinator.messages = messages

    server.on_exec = replaced
    result = run(source)
    assert status(result) == 1
    assert "somebody has removed the run's namespace trial" in said(result)
    assert coordinator.said == ["follow"]
    assert NAMESPACES in server.objects
    assert "is still there" not in said(result)


def test_a_proxy_that_takes_no_websocket_is_told_of_and_given_up(
    server: FakeApi, coordinator: Coordinator, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_follower, "TELL_SECONDS", 0.05)
    monkeypatch.setattr(coordinator_follower, "GIVE_UP_SECONDS", 0.5)
    path = f"{NAMESPACES}/pods/tstorm-coordinator-x/exec"
    server.refused["GET", path] = (400, "no upgrade here")
    result = run(source)
    assert status(result) == 1
    assert result.stderr.count("cannot follow the run, trying on: no connection into pod") == 1
    assert "the coordinator could not be reached for" in said(result)
    assert "400" in said(result)


def test_an_api_server_that_is_away_is_never_given_up(
    server: FakeApi, coordinator: Coordinator, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long; and what `follow` has said at its end is told."""
    monkeypatch.setattr(coordinator_follower, "TELL_SECONDS", 0.0)
    monkeypatch.setattr(coordinator_follower, "GIVE_UP_SECONDS", 0.001)
    failures = [ServerError("no leader", 503)] * 20
    look = coordinator_follower.pod_of

    def away(connection: ApiConnection, namespace: str) -> dict[str, Any] | None:
        if coordinator.said and failures:
            raise failures.pop()
        return look(connection, namespace)

    def refuses_twice(pod: str, argv: list[str]) -> Frames:
        if len(coordinator.said) > 1:
            yield from coordinator.exec(pod, argv)
            return
        coordinator.said.append(argv[1])
        yield 2, b"error: what it said\n"
        yield 3, json.dumps(ended(1)).encode()

    monkeypatch.setattr(coordinator_follower, "pod_of", away)
    server.on_exec = refuses_twice
    result = run(source)
    assert status(result) == 0, said(result)
    assert failures == []
    assert "cannot follow the run, trying on: /usr/bin/tstorm-coordinator follow" in said(result)
    assert "error: what it said" in said(result)


def test_a_namespace_without_pods_is_not_said_to_run(connection: ApiConnection) -> None:
    heard: list[str] = []
    times = iter(range(0, 1000, 60))
    waiting = Waiting(
        connection, NAMESPACE, lambda text, _: heard.append(text), lambda: float(next(times))
    )
    waiting.look()
    assert heard == ["waiting for the cluster to make pods: there are none yet"]


def test_what_does_not_start_is_named_and_removed(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    def refuses(method: str, path: str) -> None:
        if method == "PATCH" and path.endswith("/statefulsets/c"):
            waiting = {"reason": "InvalidImageName", "message": "couldn't parse"}
            container = {"name": "instance", "image": "A", "state": {"waiting": waiting}}
            server.put(
                f"{NAMESPACES}/pods/c-0",
                spec={"containers": [{"name": "instance"}]},
                status={"phase": "Pending", "containerStatuses": [container]},
            )

    server.on_change = refuses
    result = run(source)
    assert status(result) == 3
    assert "c-0: InvalidImageName: A: couldn't parse" in said(result)
    manifest = json.loads((source.parent / "run/manifest.json").read_bytes())
    assert manifest["outcome"] == "failed"
    assert "InvalidImageName" in manifest["message"]
    assert NAMESPACES not in server.objects


def test_a_container_that_the_cluster_put_in_is_refused(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    coordinator.messages = []

    def injects(method: str, path: str) -> None:
        if method == "PATCH" and path.endswith("/statefulsets/c"):
            server.put(
                f"{NAMESPACES}/pods/c-0",
                spec={"containers": [{"name": "instance"}, {"name": "istio-proxy"}]},
                status={"phase": "Running"},
            )

    server.on_change = injects
    result = run(source)
    assert status(result) == 3
    assert "Istio" in said(result)
    assert NAMESPACES not in server.objects


@pytest.mark.parametrize(
    ("path", "method"),
    [
        (f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/tstorm-agent", "PATCH"),
        (f"{NAMESPACES}/secrets", "POST"),
    ],
)
def test_a_refusal_in_the_middle_leaves_nothing(
    server: FakeApi, coordinator: Coordinator, source: Path, path: str, method: str
) -> None:
    server.refused[method, path] = (403, "admission webhook says no")
    result = run(source)
    assert status(result) == 3
    assert "admission webhook says no" in said(result)
    assert NAMESPACES not in server.objects


# -- bad input: nothing is made -------------------------------------------------------------------


def refused(result: Result, code: int, words: str, server: FakeApi, source: Path) -> None:
    assert status(result) == code, result.output
    assert words in said(result)
    assert not (source.parent / "run").exists()
    assert not [path for method, path in server.requests if method in ("PATCH", "DELETE")]


def taken(server: FakeApi, **annotations: str) -> None:
    labels = {
        "app.kubernetes.io/managed-by": "tstorm",
        "app.kubernetes.io/component": "experiment",
    }
    notes = {f"thunderstorm.dev/{name}": value for name, value in annotations.items()}
    server.put(NAMESPACES, metadata={"labels": labels, "annotations": notes})


def test_a_run_that_is_there_is_left_alone(server: FakeApi, source: Path) -> None:
    taken(server, run="exp-1", version="0.0.1")
    refused(run(source), 1, "run exp-1 is in namespace trial, of release 0.0.1", server, source)
    assert NAMESPACES in server.objects


def test_a_namespace_of_somebody_else_is_left_alone(server: FakeApi, source: Path) -> None:
    server.put(NAMESPACES)
    refused(run(source), 1, "that is not an experiment's", server, source)
    assert NAMESPACES in server.objects


def test_a_selector_that_matches_nothing(server: FakeApi, source: Path) -> None:
    refused(run(source, "--nodes", "pool=none"), 3, "no node has the labels", server, source)


def test_no_node_takes_pods(server: FakeApi, source: Path) -> None:
    node = server.objects["/api/v1/nodes/n0"]
    node["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    refused(run(source), 3, "n0 (taint k)", server, source)


def test_nodes_that_are_none(server: FakeApi, source: Path) -> None:
    server.node("f", **{"eks.amazonaws.com/compute-type": "fargate"})
    refused(run(source), 3, "f is Fargate", server, source)


def test_rights_that_are_missing_are_all_named(server: FakeApi, source: Path) -> None:
    server.denied = {("delete", "namespaces"), ("create", "daemonsets")}
    words = "you may not: delete namespaces, create daemonsets.apps"
    refused(run(source), 3, words, server, source)


@pytest.mark.parametrize("package", ["kubernetes", "yaml", "websocket"])
def test_packages_that_are_missing_are_named_with_the_remedy(
    server: FakeApi, source: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    result = run(source)
    refused(result, 3, f"--backend k8s needs the Python package '{package}'", server, source)
    assert "pip install 'tstorm[k8s]'" in said(result)


def test_what_means_little_on_a_cluster_is_said_before_the_start(
    server: FakeApi, coordinator: Coordinator, source: Path
) -> None:
    source.write_text(f'service e img=nginx:1 exec="tprobe serve"\nlink e--c\n{TEXT}')
    result = run(source, "--agent-cpu", "100m")
    assert "means nothing on a cluster: e (nginx:1) will run what the image" in said(result)
    assert "an agent that asks for 100m of a processor runs late" in said(result)
    assert said(result).index("means nothing") < said(result).index("applying to namespace")


def test_an_api_server_that_is_away(server: FakeApi, source: Path) -> None:
    server.down = True
    refused(run(source), 3, "does not answer", server, source)


def test_an_old_api_server(server: FakeApi, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.objects["/version"] = {}
    server.refused["GET", "/version"] = (200, "")
    refused(run(source), 3, "or newer is needed", server, source)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--context", "nowhere"], 1, "no context 'nowhere'"),
        (["--namespace", "Kube_System"], 1, "cannot name a namespace"),
        (["--namespace", "kube-system"], 1, "kube-system"),
        (["--nodes", "a=b=c"], 1, "a=b=c"),
        (["--agent-image", "A B"], 1, "agent image"),
        (["--hosts", "3"], 1, "local hosts"),
    ],
)
def test_what_no_cluster_is_asked_for(
    server: FakeApi, source: Path, options: list[str], code: int, words: str
) -> None:
    refused(run(source, *options), code, words, server, source)
    assert server.requests == []


@pytest.mark.parametrize("text", [None, "{", "[]", "apiVersion: v1"])
def test_a_kubeconfig_that_is_none(
    server: FakeApi, source: Path, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = source.parent / "other"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))
    refused(run(source), 1, "kubeconfig", server, source)


def test_a_rejoin_without_a_known_program_is_refused_with_its_line(
    server: FakeApi, source: Path
) -> None:
    text = TEXT.replace(" entrypoint=['sleep']", "", 1).replace(
        "at 1s quit", "at 0s c join\nat 1s c leave\nat 2s c join\nat 3s quit"
    )
    source.write_text(text)
    refused(run(source), 1, "TS0922", server, source)


@pytest.mark.parametrize("option", [["--context", "x"], ["--namespace", "x"], ["--keep"]])
def test_options_of_a_cluster_are_for_a_cluster(source: Path, option: list[str]) -> None:
    result = tstorm("run", str(source), *option)
    assert status(result) == 2
    assert f"{option[0]} is for --backend k8s" in result.stderr


# -- requests to stop, in a process of their own --------------------------------------------------


@pytest.fixture
def process(server: FakeApi, source: Path) -> Iterator[subprocess.Popen[str]]:
    out = source.parent / "run"
    argv = [sys.executable, "-m", "tstorm", "run", str(source), "--backend", "k8s"]
    argv += ["--namespace", NAMESPACE, "--out", str(out)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as found:
        yield found
        found.kill()


def test_ctrl_c_tells_the_coordinator_and_keeps_what_it_says_at_the_end(
    server: FakeApi, coordinator: Coordinator, process: subprocess.Popen[str], source: Path
) -> None:
    messages, coordinator.messages = coordinator.messages, [{"started": FACTS}]
    coordinator.breaks = 10**6  # it goes on
    wait_until(lambda: "follow" in coordinator.said, lambda: "a follower")

    def breaks_once(pod: str, argv: list[str]) -> Frames:
        frames = list(coordinator.exec(pod, argv))
        if argv[1] != "stop" or coordinator.said.count("stop") > 1:
            yield from frames

    server.on_exec = breaks_once

    def stopped(method: str, path: str) -> None:
        if coordinator.said.count("stop") > 1:
            coordinator.messages, coordinator.breaks = [*messages[:-1], final("interrupted")], 0

    server.on_change = stopped
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    manifest = json.loads((source.parent / "run/manifest.json").read_bytes())
    assert manifest["outcome"] == "interrupted"
    assert (source.parent / "run/logs/c.0.log").read_bytes() == b"hello\n"
    assert NAMESPACES not in server.objects


def test_a_second_ctrl_c_removes_at_once(
    server: FakeApi, coordinator: Coordinator, process: subprocess.Popen[str]
) -> None:
    coordinator.breaks = 10**6
    wait_until(lambda: "follow" in coordinator.said, lambda: "a follower")
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "stop" in coordinator.said, lambda: "a request to stop")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert NAMESPACES not in server.objects


def test_ctrl_c_before_anything_runs_removes_it(
    server: FakeApi, process: subprocess.Popen[str]
) -> None:
    wait_until(lambda: ("GET", f"{NAMESPACES}/events") in server.requests, lambda: "a look")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert NAMESPACES not in server.objects


def test_a_killed_command_changes_nothing_in_the_cluster(
    server: FakeApi, coordinator: Coordinator, process: subprocess.Popen[str]
) -> None:
    coordinator.breaks = 10**6
    wait_until(lambda: "follow" in coordinator.said, lambda: "a follower")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    assert NAMESPACES in server.objects
    assert "daemonsets/tstorm-agent" in server.names(NAMESPACE)
    result = tstorm("destroy", "--backend", "k8s", "--format", "json")
    assert status(result) == 0, result.output
    [removed] = json.loads(result.stdout)
    assert removed["namespace"] == NAMESPACE
    assert removed["removed"]
    assert NAMESPACES not in server.objects


def test_rendered_texts_are_read_for_their_names_only(server: FakeApi) -> None:
    """The separator of documents stands in no string, whatever a plan says."""
    from manifests.templating import serialize

    text = serialize("x\n---\ny")
    assert "\n" not in text
    assert yaml.safe_load(text) == "x\n---\ny"
