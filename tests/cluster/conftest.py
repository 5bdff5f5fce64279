"""The cluster of the session with the stand-ins on it, and experiments of one test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from compiler.plan.reader import read_plan
from tests.cluster import standins
from tests.cluster.experiments import Experiment, compile_file, compile_text, render
from tests.cluster.mkimage import write_archive
from tests.cluster.support import ROOT, Cluster, harness

Make = Callable[..., Experiment]


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Skipped where no cluster is up, unless the tests were to be run on one."""
    found = harness("kubeconfig")
    if found.returncode != 0:
        reason = "no cluster is up: make test-cluster"
        if "TSTORM_TEST_CLUSTER" in os.environ:
            pytest.fail(found.stderr)
        pytest.skip(reason)
    return Cluster(Path(found.stdout.strip()))


@pytest.fixture(scope="session")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The examples' plans by name."""
    folder = tmp_path_factory.mktemp("plans")
    return {
        source.stem: compile_file(source, folder)
        for source in sorted((ROOT / "examples").glob("*.tdl"))
    }


@pytest.fixture(scope="session")
def loaded(
    cluster: Cluster, plans: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The stand-ins are on every node, under all names in the examples."""
    folder = tmp_path_factory.mktemp("images")
    agent = standins.agent_rootfs(folder / "agent")
    read = [read_plan(plan) for plan in plans.values()]
    workload = standins.workload_rootfs(folder / "workload", read)
    found = standins.images_of(read, agent, workload)
    archive = folder / "images.tar"
    write_archive(archive, [*standins.agents(agent), *found])
    done = harness("load", str(archive))
    assert done.returncode == 0, done.stderr
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def namespaces() -> Iterator[str]:
    """Names of which none is used twice, so that no test waits for the end of another's."""
    return (f"test-{os.getpid()}-{index}" for index in count())


@pytest.fixture
def experiment(
    cluster: Cluster, loaded: None, namespaces: Iterator[str], tmp_path: Path
) -> Iterator[Make]:
    """Renders and applies a text or a plan in a namespace of its own; it goes after the test."""
    started: list[str] = []

    def make(source: str | Path, *options: str) -> Experiment:
        started.append(next(namespaces))
        folder = tmp_path / started[-1]
        folder.mkdir()
        plan = compile_text(source, folder) if isinstance(source, str) else source
        made = render(plan, folder / "manifests", "--namespace", started[-1], *options)
        made.prepare(cluster)
        made.apply(cluster)
        return made

    yield make
    if started:
        cluster.delete(*started)
