"""Options of commands that may concern a Kubernetes cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import click

from tstorm.options import option_types
from tstorm.options.shared import declared

F = TypeVar("F", bound=Callable[..., Any])
NODES = click.option(
    "--nodes",
    metavar="SELECTOR",
    type=option_types.TextType(),
    help="Kubernetes: use the nodes with these labels only, as 'kubectl get nodes -l' takes them.  "
    "[default: all on which an ordinary pod may run]",
)
_IMAGE = click.option(
    "--agent-image",
    metavar="REF",
    type=option_types.TextType(),
    help="The image of agents and coordinator.  [default: this release's]",
)
OBJECTS = (
    click.option(
        "--namespace",
        metavar="N",
        type=option_types.TextType(),
        help="The Kubernetes namespace.  [default: tstorm- and twelve digits of the plan's "
        "SHA-256]",
    ),
    _IMAGE,
    click.option(
        "--agent-cpu",
        "agent_cpu_millis",
        metavar="CPU",
        type=option_types.CPU,
        help="Processors that an agent asks its node for.  [default: 1]",
    ),
)


def cluster_objects(function: F) -> F:
    """--namespace, --agent-image, --nodes, --agent-cpu: what Kubernetes objects are made like."""
    return declared((*OBJECTS, NODES), function)


def cluster_nodes(function: F) -> F:
    """--nodes, --agent-image: what is looked for in a cluster."""
    return declared((NODES, _IMAGE), function)


BACKEND = click.option(
    "--backend",
    type=click.Choice(["local", "k8s"]),
    help="Where instances run: on this machine, or in a Kubernetes cluster.  [default: local]",
)
CONTEXT = click.option(
    "--context",
    metavar="C",
    type=option_types.TextType(),
    help="With --backend k8s: the context of the kubeconfig.  [default: its current one]",
)
KEEP = click.option(
    "--keep",
    is_flag=True,
    default=None,
    help="With --backend k8s: leave what an ended run has there; a failed start is removed.",
)
_WHERE = click.option(
    "--namespace",
    metavar="N",
    type=option_types.TextType(),
    help="With --backend k8s: the namespace of the run.",
)


def in_cluster(function: F) -> F:
    """--backend, --context, --namespace: where a run is. Passed on as `cluster`, a Where, or None
    for this machine."""

    @functools.wraps(function)
    def inner(backend: str | None, context: str | None, namespace: str | None, **given: Any) -> Any:
        if backend != "k8s":
            only_in_cluster({"context": context, "namespace": namespace})
        cluster = Where(context, namespace) if backend == "k8s" else None
        return function(cluster=cluster, **given)

    return declared((BACKEND, CONTEXT, _WHERE), cast(F, inner))


@dataclass(frozen=True, slots=True)
class Where:
    """In which cluster and namespace a run is; None: the kubeconfig's own, and all."""

    context: str | None
    namespace: str | None


SAID = {
    "context": "--context",
    "namespace": "--namespace",
    "agent_image": "--agent-image",
    "agent_cpu_millis": "--agent-cpu",
    "keep": "--keep",
    "nodes": "--nodes",
}


def only_in_cluster(given: Mapping[str, Any]) -> None:
    """A usage error if anything is said of a cluster where there is none."""
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"{SAID[name]} is for --backend k8s.")
