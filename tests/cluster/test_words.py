"""What services state of how they run, on the cluster: a user of the image by name, his folder,
files, a setup, readiness before time 0, a pause, a kill on a host that stays, an end by its own
signal, and an end of the run with a program."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from runtime.rundir import logmarks
from tests.cluster.debian import PROGRAMS_IMAGE, WORKER
from tests.cluster.experiments import tstorm
from tests.cluster.runs import ClusterRun
from tests.cluster.support import Cluster

pytestmark = pytest.mark.cluster

MOST_OF_PAUSE_NS = 1_500_000_000
TEXT = f"""
start when ready
quit when client exits
service server img="{PROGRAMS_IMAGE}" entrypoint=['/bin/sh'] command=['serve.sh', '$TSTORM_IPV4'] \\
    user={WORKER} cwd=/srv/www files=page.html;serve.sh setup="cp page.html index.html" \\
    ready="wget -q -O /dev/null http://$TSTORM_IPV4:8080/index.html" \\
    stop=SIGUSR1 grace=3s expect=run
service client img="{PROGRAMS_IMAGE}" entrypoint=['/bin/sh', '/fetch.sh'] \\
    files=fetch.sh:/fetch.sh expect=success
service victim img="{PROGRAMS_IMAGE}" entrypoint=['/bin/sh'] \
    command=['-c', 'echo up; httpd -f -p 9090']
bridge s
link victim--s latency=2ms
link server--s latency=2ms
link client--s latency=2ms
at 500ms client join
at 1s victim kill
at 2s server pause for 2s
at 4s victim join
at 120s quit
"""
FILES = {
    "page.html": "it works\n",
    "serve.sh": """
echo "$(id -un) $(id -gn) $(pwd) $1"
sleep 0.5
httpd -f -p 8080 & server=$!
trap 'echo told; kill $server; exit 0' USR1
while :; do wait; done
""",
    "fetch.sh": """
for try in $(seq 100); do
    wget -q -O /dev/null http://victim.0:9090/ 2>&1 | grep -q refused && echo refused && break
    sleep 0.05
done
for try in $(seq 40); do
    wget -q -O - http://server.0:8080/index.html || exit 1
    sleep 0.1
done
""",
}


@pytest.fixture(scope="module")
def run(
    cluster: Cluster,
    loaded: None,
    namespaces: Iterator[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ClusterRun]:
    """A run that has ended."""
    folder = tmp_path_factory.mktemp("words")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "words.tdl").write_text(TEXT)
    tstorm("compile", folder / "words.tdl", "-o", folder / "plan")
    found = ClusterRun(cluster, folder / "plan", next(namespaces), folder)
    found.ended()
    yield found
    print(found.log.read_text())
    found.end()


def log(run: ClusterRun) -> list[str]:
    return (run.out / "logs/server.0.log").read_text().splitlines()


def said(run: ClusterRun) -> list[str]:
    """By the server."""
    return [line for line in log(run) if logmarks.parse(line) is None]


def test_the_run_completes_and_ends_with_its_client(run: ClusterRun) -> None:
    assert run.process.returncode == 0, run.log.read_text()
    summary = json.loads((run.out / "summary.json").read_text())
    assert summary["outcome"] == "completed"
    assert run.events("quit")[-1]["reason"] == "the programs of client have ended"


def test_the_server_is_a_user_of_its_image_in_a_folder_of_his(run: ClusterRun) -> None:
    who, group, folder, address = said(run)[0].split()
    assert (who, group, folder) == (WORKER, WORKER, "/srv/www")
    assert address.startswith("10.244.")


def test_it_was_set_up_and_ready_before_time_0(run: ClusterRun) -> None:
    marks = [line for line in log(run) if logmarks.parse(line)]
    assert [line.partition(": ")[2] for line in marks[:2]] == ["setup", "setup ended with 0"]
    [setup], [ready] = run.events("setup"), run.events("ready")
    assert (setup["target"], setup["status"]) == ("server.0", 0)
    assert setup["applied_ns"] < ready["ready_ns"] < 0
    assert ready["took_ns"] >= 400_000_000


def test_every_request_was_answered_and_none_in_the_pause(run: ClusterRun) -> None:
    said = (run.out / "logs/client.0.log").read_text().splitlines()
    assert said == ["refused", *["it works"] * 40]
    [pause], [resume] = run.events("pause"), run.events("resume")
    assert resume["applied_ns"] - pause["applied_ns"] >= MOST_OF_PAUSE_NS
    [ended] = [event for event in run.events("exit") if event["target"] == "client.0"]
    assert ended["status"] == 0 and ended["applied_ns"] > resume["applied_ns"]


def test_a_killed_program_is_gone_and_its_host_stays(run: ClusterRun) -> None:
    """Connections were refused there, and a join starts it again."""
    [kill] = run.events("kill")
    ends = [event for event in run.events("exit") if event["target"] == "victim.0"]
    assert (ends[0]["signal"], ends[0]["asked"]) == (9, True)
    assert kill["applied_ns"] <= ends[0]["applied_ns"]
    lines = (run.out / "logs/victim.0.log").read_text().splitlines()
    assert [line for line in lines if logmarks.parse(line) is None] == ["up", "up"]


def test_it_was_told_to_end_by_its_own_signal(run: ClusterRun) -> None:
    assert said(run)[-1] == "told"
