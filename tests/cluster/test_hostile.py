"""Values that mean something to YAML, Kubernetes or a shell arrive in the pod byte for byte."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.plan.format import PlanError
from compiler.plan.reader import Plan, read_plan
from compiler.plan.routes.routing import snapshots
from compiler.plan.types import Service
from compiler.plan.writer import PlanContents, encode, write_plan
from tests.cluster.conftest import Make
from tests.cluster.standins import WORKLOAD
from tests.cluster.support import ROOT, Cluster

pytestmark = pytest.mark.cluster

VALUES = (
    "a: b",
    "- x",
    "? x",
    "{a: 1}",
    "[1, 2",
    "}}",
    "{{ digest }}",
    "{% raw %}",
    "# none",
    "x #none",
    "&a *a !!str",
    "|",
    "> ",
    "%YAML 1.1",
    "---",
    "...",
    "\n---\nkind: Secret\n",
    "\"double' single`",
    "\\n \\x41 \\u0041",
    "null",
    "~",
    "yes",
    "NO",
    "0x10",
    "010",
    "1_000",
    "1e3",
    ".inf",
    "12:30:45",
    "2026-01-01",
    "",
    " before",
    "after ",
    "tab\tbell\x07esc\x1b[0m",
    "line\nreturn\r\nseparator\u2028\ufeff",
    "é 日本 😀",
    "$(TSTORM_SEED) $TSTORM_SEED ${TSTORM_SEED} $$ $(",
    "`id` ; rm -rf / && $(id)",
    "<b>&amp;</b>",
)
ENV = tuple((f"weird.name-{index}_", value) for index, value in enumerate(VALUES))
TAGS = ("a: b", "-", "x" * 80, "Upper", "é", "tag")


def plan_with(plan: Plan, folder: Path, **changes: object) -> Path:
    """The plan with every service changed."""
    services = tuple(replace(service, **changes) for service in plan.topology.services)  # type: ignore[arg-type]
    topology = replace(plan.topology, services=services)
    made = snapshots(topology, plan.events)
    contents = PlanContents(plan.source, plan.seed, topology, plan.events, plan.end_ns, made)
    target = folder / "hostile.plan"
    write_plan(target, contents)
    return target


@pytest.mark.parametrize("entrypoint", [(), (WORKLOAD, "a: b", "$(TSTORM_SEED)")])
def test_values_arrive_byte_for_byte(
    cluster: Cluster,
    plans: dict[str, Path],
    experiment: Make,
    tmp_path: Path,
    entrypoint: tuple[str, ...],
) -> None:
    plan = read_plan(plans["quickstart"])
    changed = plan_with(plan, tmp_path, env=ENV, command=VALUES, tags=TAGS, entrypoint=entrypoint)
    made = experiment(changed)
    made.ready(cluster)
    for pod in made.instances().values():
        found = cluster.environment(made.namespace, pod)
        assert {name: found.get(name) for name, _ in ENV} == dict(ENV)
        words = [_replaced(word, plan.seed) for word in (*entrypoint[1:], *VALUES)]
        assert cluster.arguments(made.namespace, pod) == words


def _replaced(word: str, seed: int) -> str:
    """With the run's own variable put in; nothing else in a word means anything."""
    return word.replace("${TSTORM_SEED}", str(seed)).replace("$TSTORM_SEED", str(seed))


@pytest.mark.parametrize("name", ["a: b", "a\n---", "{{x}}", "-a", "", "A B", "a.0"])
def test_hostile_names_are_no_plan(plans: dict[str, Path], name: str) -> None:
    plan = read_plan(plans["quickstart"])
    first, *others = plan.topology.services
    topology = replace(plan.topology, services=(replace(first, name=name), *others))
    made = snapshots(plan.topology, plan.events)
    contents = PlanContents(plan.source, plan.seed, topology, plan.events, plan.end_ns, made)
    with pytest.raises(PlanError):
        encode(contents)


def test_a_hostile_image_is_refused_and_nothing_written(
    plans: dict[str, Path], tmp_path: Path
) -> None:
    plan = plan_with(read_plan(plans["quickstart"]), tmp_path, image="nginx:1\n---\nkind: Secret")
    target = tmp_path / "out"
    command = [sys.executable, "-m", "tstorm", "render", str(plan), "-o", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is not an image" in done.stderr
    assert not target.exists()


def test_names_that_a_cluster_would_refuse_are_mapped(cluster: Cluster, experiment: Make) -> None:
    """Upper case, underscores, our own prefix, and names that become the same."""
    names = ["Web_Server", "web_server", "_x", "tstorm-agent", "a" * 60]
    services = "".join(
        f"service {name} img=alpine:3\nlink {name}--s latency=1ms\n" for name in names
    )
    made = experiment(f"bridge s\n{services}at 1s quit\n")
    pods = {pod.name: pod for pod in made.ready(cluster)}
    for instance, pod in made.instances().items():
        assert cluster.environment(made.namespace, pod)["TSTORM_INSTANCE"] == instance
    assert len(pods) == made.pods


def test_service_is_what_the_test_changes() -> None:
    """plan_with() relies on these names."""
    assert {"env", "command", "tags", "entrypoint", "image"} <= set(Service.__slots__)
