"""`do`, `hold`, `go` and `skip` with --backend k8s: a real Job and its `steer` behind an API server
that is none."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.reader import decode, read_plan
from runtime.rundir import rundir
from runtime.rundir.runfiles import LOGS, PLAN, PLANNED
from tests.cli.support import status, tstorm
from tests.doubles.api import FakeApi
from tests.job.pod import Mirror as Followed
from tests.job.pod import Pod
from tests.k8s.test_finding import experiment
from tests.k8s.test_finding import pod as put_pod
from tests.ui.served import served
from tests.waiting import wait_until
from tstorm.k8s.coordinator_follower import Mirror

SECONDS = 120


class Steered:
    """The run `run-1` in the namespace `one`."""

    def __init__(self, server: FakeApi, root: Path) -> None:
        self.pod = Pod(root, seconds=600)
        self.job = self.pod.start()
        experiment(server, "one", "run-1")
        labels = {"app.kubernetes.io/component": "coordinator"}
        put_pod(server, "one", "tstorm-coordinator-x", metadata={"labels": labels})
        server.on_talk = lambda argv: self.pod.talk(argv[1])

    def tstorm(self, *words: str) -> Any:
        return tstorm(*words, "--backend", "k8s", "--namespace", "one")

    def did(self, *words: str) -> dict[str, Any]:
        done = self.tstorm(*words, "--json")
        assert status(done) == 0, done.output
        found: dict[str, Any] = json.loads(done.stdout)["ok"]
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.events() if one["kind"] == kind]

    def by_hand(self) -> list[dict[str, Any]]:
        return [one for one in self.events() if "action" in one and one.get("seq", -1) >= 0]

    def events(self) -> list[dict[str, Any]]:
        lines = (self.pod.places.run / "events.jsonl").read_bytes().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def steered(server: FakeApi) -> Iterator[Steered]:
    """It is at 1 s and later. Its folder's path is short, as paths of sockets are."""
    with tempfile.TemporaryDirectory(prefix="tstorm-job-") as name:
        found = Steered(server, Path(name) / "p")
        try:
            wait_until((found.pod.places.run / "events.jsonl").exists, "the run")
            wait_until(lambda: len(found.of("join")) == 4, "all that is planned")
            yield found
        finally:
            found.job.kill()
            found.job.communicate()


def test_a_run_in_a_cluster_is_steered_and_mirrored(
    steered: Steered, server: FakeApi, tmp_path: Path
) -> None:
    first = steered.did("do", "run-1", "b.1 crash", "at +300ms b.1 join")
    assert (first["action"], first["events"]) == (1, 2)
    assert {argv[1] for _, argv in server.execs} == {"steer"}, "no other way leads there"
    held = steered.did("hold", "run-1")
    assert held["text"] == "hold"
    refused = steered.tstorm("hold", "run-1")
    assert status(refused) == 1
    assert "held already" in f"{refused.stderr}{refused.exception}"
    wrong = steered.tstorm("do", "run-1", "b.7 crash")
    assert status(wrong) == 1
    assert "b.7" in wrong.stderr
    assert "nothing was changed" in wrong.stderr
    assert steered.did("go", "run-1")["action"] == 3
    wait_until(lambda: len(steered.by_hand()) == 2, "both events")
    assert [(one["kind"], one["target"]) for one in steered.by_hand()] == [
        ("crash", "b.1"),
        ("join", "b.1"),
    ]
    assert {(one["origin"], one["file"]) for one in steered.by_hand()} == {("manual", "do@1")}
    plan = read_plan(steered.pod.places.run / PLAN)
    assert sorted(plan.attached.includes) == ["do@1", "do@2", "do@3"]

    directory = rundir.begin(tmp_path / "run", read_plan(steered.pod.places.run / PLANNED), {})
    mirror, followed = Mirror(directory), Followed()
    with steered.pod.follow() as follower:
        assert steered.pod.call("stop") == (0, "", "")
        followed.read(follower)
    assert followed.ended
    assert decode(followed.arriving.files()).digest == plan.digest
    for _ in range(2):  # as after a connection that broke
        for number, data in sorted(followed.arriving._found.items()):
            mirror.take_shard(plan.digest, number, len(followed.arriving._found), data)
    assert read_plan(tmp_path / "run" / PLAN).digest == plan.digest
    assert read_plan(tmp_path / "run" / PLANNED).attached.includes == {}
    assert (tmp_path / "run" / LOGS).is_dir()


def test_lines_of_json_change_links_there(steered: Steered, tmp_path: Path) -> None:
    line = {"src": "a.0", "dst": "b.0", "delay_ns": 8_000_000, "id": 1}
    (tmp_path / "lines.json").write_text(f"{json.dumps(line)}\n" * 2)
    done = steered.tstorm("do", "run-1", str(tmp_path / "lines.json"), "--json")
    answers = [json.loads(one) for one in done.stdout.splitlines()]
    assert [one["id"] for one in answers] == [1, 1], done.output
    assert "planned_ns" in answers[0].get("ok", {}) or "write" in answers[0]["error"]


def test_what_is_no_run_and_no_conversation_is_refused(steered: Steered) -> None:
    other = steered.tstorm("do", "run-7", "b.1 crash")
    assert status(other) == 1
    assert "no run 'run-7'" in f"{other.stderr}{other.exception}"
    time = steered.tstorm("hold", "run-1", "--time")
    assert status(time) == 1
    assert "real time" in f"{time.stderr}{time.exception}"


NONSENSE = (
    (b"{}\n", "ask must be an object"),
    (b'{"ask": {"ask": "dance"}}\n', "cannot answer 'dance'"),
    (b'{"ask": {"ask": "do", "text": ""}, "digest": "0", "sizes": [3]}\nabc', "bundle"),
    (b'{"ask": {}, "sizes": [3]}\na', "is cut"),
    (b'{"ask": {}, "sizes": [9999999]}\n', "sizes"),
    (b"[]\n", "must be an object"),
    (b"x", "has no end"),
)


def test_nonsense_is_refused_by_name_and_changes_nothing(steered: Steered) -> None:
    for sent, words in NONSENSE:
        with steered.pod.talk("steer") as process:
            out, error = process.communicate(sent, SECONDS)
        assert words in (out + error).decode()
        assert b"Traceback" not in error
    assert not (steered.pod.places.run / PLANNED).exists()
    assert steered.job.poll() is None


def test_the_page_of_a_run_steers_it_there(
    steered: Steered, server: FakeApi, tmp_path: Path
) -> None:
    """By the directory that is filled here, and the kubeconfig's current context."""
    plan = read_plan(steered.pod.places.run / PLAN)
    rundir.begin(tmp_path / "run", plan, steered.pod.config["manifest"])
    with served(str(tmp_path / "run")) as site:
        done = site.post("do", {"text": "b.1 crash"})
        assert (done[0], done[1]["ok"]["action"]) == (200, 1), done
        refused = site.post("do", {"text": "b.7 crash"})
        assert refused[0] == 409
        assert "b.7" in refused[1]["text"]
        assert site.post("hold", {})[1]["ok"]["action"] == 2
        assert site.post("hold-time", {})[0] == 409
        assert site.post("go", {})[1]["ok"]["action"] == 3
    wait_until(lambda: len(steered.by_hand()) == 1, "the event")
    assert [(one["kind"], one["target"]) for one in steered.by_hand()] == [("crash", "b.1")]
    assert {argv[1] for _, argv in server.execs} == {"steer"}, "no other way leads there"
