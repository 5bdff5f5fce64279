"""What the command line says about a cluster, made into a connection and an experiment to apply."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.plan.reader import Plan
from manifests import bundle, kubernetes, kubernetes_checks
from manifests.refusal import ManifestError
from manifests.render_options import Options
from manifests.write import encoded
from runtime.errors import RunError
from runtime.options import RunOptions
from tstorm.k8s.apply import AppliedExperiment
from tstorm.k8s.clusterrun import ClusterPlace, deadline_seconds
from tstorm.k8s.connection import connect, demand_client
from tstorm.k8s.documents import split


@dataclass(frozen=True, slots=True)
class ClusterAsked:
    """Options of `tstorm run --backend k8s` that a replay does not repeat; None: the default."""

    context: str | None = None
    namespace: str | None = None
    agent_image: str | None = None
    agent_cpu_millis: int | None = None
    keep: bool | None = None


def place(plan: Plan, options: RunOptions, asked: ClusterAsked) -> ClusterPlace:
    """RunError for what cannot be rendered or reached; nothing was asked of the cluster yet."""
    demand_client()
    try:
        carried = bundle.make(plan)
        wanted = Options(
            namespace=asked.namespace or "",
            agent_image=asked.agent_image or "",
            nodes=options.nodes,
            deadline_seconds=deadline_seconds(plan, options),
        )
        if asked.agent_cpu_millis is not None:
            wanted = replace(wanted, agent_cpu_millis=asked.agent_cpu_millis)
        chosen = wanted.resolve(carried)
        files = encoded(kubernetes.render(carried, chosen))
    except ManifestError as error:
        raise RunError(error.what, error.hint) from error
    documents = tuple(split({name: data.decode("ascii") for name, data in files.items()}))
    experiment = AppliedExperiment(
        chosen.namespace, carried.digest, documents, is_named=bool(asked.namespace)
    )
    connection = connect(asked.context)
    warnings = kubernetes_checks.warnings(plan.topology, chosen.agent_cpu_millis)
    return ClusterPlace(connection, experiment, chosen.agent_image, bool(asked.keep), warnings)
