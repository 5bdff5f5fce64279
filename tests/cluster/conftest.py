"""The cluster of the session with the images on it, and experiments of one test."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from compiler.plan.reader import read_plan
from manifests.render_options import DEFAULT_AGENT_IMAGE
from tests.cluster import debian, standins
from tests.cluster.experiments import Experiment, compile_file, compile_text, render, tstorm
from tests.cluster.mkimage import Image, write_archive
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
    """On every node: the image of agent and coordinator, those that stand in for the examples' own,
    and the one with real programs. Workers of one run load them once."""
    base = tmp_path_factory.getbasetemp()
    done = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "images-loaded"
    with done.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            load_images(tmp_path_factory.mktemp("images"), plans)
            done.touch()


def load_images(folder: Path, plans: dict[str, Path]) -> None:
    read = [read_plan(plan) for plan in plans.values()]
    tstorm("image", "build", "--name", DEFAULT_AGENT_IMAGE, "-o", folder / "agent.tar")
    load(folder / "agent.tar")
    workload = standins.workload_rootfs(folder / "workload", read)
    programs = debian.programs_rootfs(folder / "programs")
    real = Image((debian.PROGRAMS_IMAGE,), programs, ("/bin/sh",))
    write_archive(folder / "images.tar", [*standins.images_of(read, workload), real])
    load(folder / "images.tar")
    shutil.rmtree(folder)


def load(archive: Path) -> None:
    done = harness("load", str(archive))
    assert done.returncode == 0, done.stderr


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
