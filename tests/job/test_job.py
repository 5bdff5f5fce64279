"""The coordinator's Job and its commands, as processes: what is followed is what was written,
however often the connection breaks; whatever ends the Job, there is an end to read or a reason."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from runtime.job.__main__ import probe
from tests.job.pod import Mirror, Pod
from tests.waiting import wait_until

SECONDS = 120


@pytest.fixture
def pods() -> Iterator[Any]:
    """Makes pods; ends what they still run. Not in pytest's folder, whose path is too long for a
    socket where tests have workers."""
    started: list[subprocess.Popen[bytes]] = []

    class Tracked(Pod):
        def start(
            self, *command: str, around: Sequence[str] = (), stdin: bytes = b""
        ) -> subprocess.Popen[bytes]:
            started.append(super().start(*command, around=around, stdin=stdin))
            return started[-1]

    with tempfile.TemporaryDirectory(prefix="tstorm-job-") as name:
        yield lambda **options: Tracked(Path(name) / "p", **options)
        for process in started:
            process.kill()
            process.communicate()


def test_a_run_is_followed_to_its_end_and_then_let_go(pods: Any) -> None:
    pod = pods()
    job = pod.start()
    mirror = Mirror()
    follower = pod.follow()
    mirror.read(follower)
    assert follower.wait(SECONDS) == 0
    assert mirror.ended
    assert mirror.files == pod.grown()
    kinds = [next(iter(message)) for message in mirror.messages]
    assert kinds.count("started") == kinds.count("final") == 1
    assert kinds[-1] == "final"
    texts = [one["progress"]["message"] for one in mirror.messages if "progress" in one]
    assert "everything is there ✓" in texts
    assert {one["message"] for one in mirror.progress} == {""}, "each message is told once"
    assert mirror.files["logs/quiet.log"] == b""
    assert mirror.final["outcome"] == "completed", mirror.final
    assert mirror.final["facts"]["totals"] == {}
    assert mirror.progress[-1]["applied"] == mirror.progress[-1]["total"] == 6
    assert mirror.beats > 0
    assert job.poll() is None, "it waits for who fetches the results"
    assert "the run has ended: completed" in pod.call("state")[2]
    assert pod.call("fetched") == (0, "", "")
    assert job.wait(SECONDS) == 0


def test_a_follower_that_is_killed_is_resumed_by_offsets_byte_for_byte(pods: Any) -> None:
    pod = pods(seconds=4, log=40_000)
    job = pod.start()
    mirror, killed = Mirror(), 0
    while not mirror.ended:
        assert job.poll() is None, job.communicate()
        follower = pod.follow(mirror.have)
        mirror.read(follower, most=1_500_000)
        if not mirror.ended:
            follower.kill()
            killed += 1
        follower.wait(SECONDS)
    assert killed > 2
    assert mirror.files == pod.grown()
    lines = (pod.places.home / "messages.jsonl").read_bytes().splitlines()
    assert mirror.messages == [*map(json.loads, lines), {"final": mirror.final}]
    late = Mirror()
    follower = pod.follow(mirror.have)
    late.read(follower)
    assert (late.files, late.messages, late.ended) == ({}, [{"final": mirror.final}], True)


def test_commands_reach_the_job_while_it_runs(pods: Any) -> None:
    pod = pods(seconds=600)
    assert probe(pod.places) == 1
    assert pod.call("state")[0] == pod.call("stop")[0] == 1, "there is nobody"
    job = pod.start()
    mirror = Mirror()
    follower = pod.follow()
    wait_until((pod.places.run / "events.jsonl").exists, "the run")
    assert probe(pod.places) == 0
    state = wait_until(lambda: _state(pod), "a state")
    assert (state["run_id"], state["total"]) == ("run-1", 6)
    assert {one["name"] for one in state["instances"]} == {"a.0", "b.0", "b.1"}
    status, _, error = pod.call("fetched")
    assert (status, error) == (1, "error: the run has not ended: there is nothing to fetch yet\n")
    assert pod.call("stop") == (0, "", "")
    mirror.read(follower)
    assert mirror.final["outcome"] == "interrupted"
    assert pod.call("stop")[0] == 0, "a second one changes nothing"
    assert pod.call("fetched")[0] == 0
    assert job.wait(SECONDS) == 1


def _state(pod: Pod) -> dict[str, Any]:
    status, out, _ = pod.call("state")
    return {} if status else json.loads(out)


def test_sigterm_winds_the_run_down_and_does_not_wait_for_long(pods: Any) -> None:
    pod = pods(seconds=600, linger=100_000)
    job = pod.start()
    wait_until((pod.places.run / "logs/a.0.log").exists, "a program")
    job.terminate()
    assert job.wait(SECONDS) == 1
    final = json.loads((pod.places.home / "final.json").read_text())["final"]
    assert (final["outcome"], final["message"]) == ("interrupted", "")


def test_a_run_that_does_not_wind_down_is_given_up_and_has_an_end(pods: Any) -> None:
    pod = pods(seconds=600)
    pod.variables.update(HANGS="1", WIND_DOWN="1")
    pod.start()
    wait_until((pod.places.run / "logs/a.0.log").exists, "a program")
    assert pod.call("stop")[0] == 0
    mirror = Mirror()
    mirror.read(pod.follow())
    assert mirror.final["outcome"] == "interrupted"
    assert mirror.final["message"] == "given up: it had not wound down after 1 s"


def test_sigterm_while_it_lingers_ends_it(pods: Any) -> None:
    pod = pods(seconds=1, linger=100_000)
    job = pod.start()
    wait_until((pod.places.home / "final.json").exists, "the end")
    job.terminate()
    assert job.wait(SECONDS) == 0


def test_results_that_nobody_fetches_are_given_up(pods: Any) -> None:
    pod = pods(seconds=1, linger=0)
    job = pod.start()
    _, errors = job.communicate(timeout=SECONDS)
    assert job.returncode == 0
    assert errors.decode().splitlines()[-2:] == ["completed", "nobody has fetched the results"]


def test_a_follower_of_a_job_that_was_killed_says_so(pods: Any) -> None:
    pod = pods(seconds=600)
    job = pod.start()
    mirror = Mirror()
    wait_until((pod.places.run / "logs/a.0.log").exists, "a program")
    follower = pod.follow()  # one that comes before the Job waits for it for a minute
    job.send_signal(signal.SIGKILL)
    job.wait(SECONDS)
    mirror.read(follower)
    assert not mirror.ended
    assert follower.wait(SECONDS) == 1
    assert mirror.files == pod.grown(), "what was written by then is there"
    assert follower.stderr is not None
    assert follower.stderr.read() == b"error: the coordinator's Job has ended without a word\n"
    assert probe(pod.places) == 1


def test_a_follower_nobody_listens_to_ends(pods: Any) -> None:
    pod = pods(seconds=600)
    pod.start()
    follower = pod.follow()
    assert follower.stdout is not None
    follower.stdout.readline()
    follower.stdout.close()
    assert follower.wait(SECONDS) == 1
    assert follower.stderr is not None
    assert follower.stderr.read() == b""


@pytest.mark.parametrize("command", [["follow", '{"have": {}}'], ["dance"], ["stop", "now"]])
def test_other_commands_are_refused_with_the_usage(ended_pod: Pod, command: list[str]) -> None:
    found, out, error = ended_pod.call(*command)
    assert (found, out) == (2, "")
    assert "usage:" in error


@pytest.mark.parametrize(
    ("request_line", "status", "words"),
    [
        ("", 1, "error: the request is damaged"),
        ("{", 1, "error: the request is damaged"),
        ("[]", 1, "error: the request: it must be an object"),
        ("{}", 1, "error: the request: have is missing"),
        ('{"have": {"events.jsonl": -1}}', 1, "have.events.jsonl must be an integer"),
        ('{"have": {"events.jsonl": 1e3}}', 1, "have.events.jsonl must be an integer"),
        ('{"have": {"events.jsonl": true}}', 1, "have.events.jsonl must be an"),
        ('{"have": {"events.jsonl": %s}}' % ("9" * 30), 1, "is too large"),
        ('{"have": {"a": ' + "[" * 5000 + "]" * 5000 + "}}", 1, "nested too deeply"),
        ('{"have": {"events.jsonl": 99999999}}', 1, "99999999 bytes of events.jsonl"),
        ('{"have": {"messages.jsonl": 9999999}}', 1, "9999999 bytes of messages.jsonl"),
        ('{"have": {"../../auth/key": 0, "logs/nobody.log": 7}}', 0, ""),
        ('{"have": {}}\nmore', 0, ""),
        (" " * (4 << 20) + '{"have": {}}', 1, "error: the request has more than 4194304 bytes"),
    ],
)
def test_hostile_requests_are_refused_by_name(
    ended_pod: Pod, request_line: str, status: int, words: str
) -> None:
    found, out, error = ended_pod.call("follow", stdin=request_line.encode())
    assert found == status
    assert words in error
    assert "auth" not in out
    assert "Traceback" not in error


def test_a_request_may_name_more_logs_than_an_argument_has_room_for(ended_pod: Pod) -> None:
    have = {f"logs/a-service-with-a-name.{index}.log": 10**6 for index in range(5000)}
    line = json.dumps({"have": have}).encode()
    assert len(line) > 1 << 17
    found, out, error = ended_pod.call("follow", stdin=line)
    assert (found, error) == (0, "")
    assert '"file":"logs/a.0.log","offset":0' in out
    assert out.endswith('{"end":true}\n')


@pytest.fixture(scope="module")
def ended_pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pod]:
    """One whose run is over and waits to be fetched."""
    pod = Pod(tmp_path_factory.mktemp("p") / "p", seconds=1)
    job = pod.start()
    wait_until((pod.places.home / "final.json").exists, "the end")
    yield pod
    job.kill()
    job.communicate()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"config": {"run_id": 7}}, "run.json: run_id must be a text"),
        ({"config": {"linger_seconds": -1}}, "run.json: linger_seconds must be an integer of 0"),
        ({"config": {"options": {"warp": 1}}}, "does not know the option 'warp'"),
        ({"config": {"options": {}}}, "is for the backend local, not k8s"),
        ({"config": {"manifest": {}}}, "run.json: manifest is not the manifest of a run"),
        ({"variables": {"TSTORM_VERSION": "0.0"}}, "were rendered by release 0.0, and this image"),
        ({"variables": {"TSTORM_EXPERIMENT": "0" * 64}}, "instead of 000000000000"),
        ({"variables": {"TSTORM_EXPERIMENT": ""}}, "the variable TSTORM_EXPERIMENT is not set"),
        ({"remove": "auth/key"}, "cannot read the run's key"),
        ({"remove": "run-config/run.json"}, "run.json: No such file"),
        ({"remove": "plan/plan-000"}, "it has no shards"),
    ],
)
def test_a_job_that_cannot_begin_has_an_end_that_says_why(
    pods: Any, change: dict[str, Any], words: str
) -> None:
    pod = pods()
    pod.configure(**change.get("config", {}))
    pod.variables.update(change.get("variables", {}))
    if "remove" in change:
        (pod.root / change["remove"]).unlink()
    job = pod.start()
    mirror = Mirror()
    mirror.read(pod.follow())
    assert mirror.ended
    assert mirror.final["outcome"] == "failed"
    assert words in mirror.final["message"]
    assert pod.call("fetched")[0] == 0
    _, errors = job.communicate(timeout=SECONDS)
    assert job.returncode == 1
    assert words in errors.decode().splitlines()[-1], "the pod's status has the last line"
    assert "Traceback" not in errors.decode()


@pytest.mark.root
def test_a_disk_that_fills_up_fails_the_run_and_still_gets_its_end(pods: Any) -> None:
    """Logs of programs take it all."""
    pod = pods(seconds=600, log=300_000)
    mount = f'mount -t tmpfs -o size=12m none {pod.places.home} && exec "$@"'
    job = pod.start(around=["unshare", "--mount", "sh", "-c", mount, "sh"])  # only it sees that
    final = wait_until(lambda: _final_within(job, pod), "the end")
    assert final["outcome"] == "failed"
    assert "No space left on device" in final["message"]


def _final_within(job: subprocess.Popen[bytes], pod: Pod) -> dict[str, Any]:
    """Out of the mount namespace of the Job."""
    place = Path(f"/proc/{job.pid}/root{pod.places.home}/final.json")
    try:
        found: dict[str, Any] = json.loads(place.read_text())["final"]
    except FileNotFoundError:
        assert job.poll() is None, job.communicate()
        return {}
    return found
