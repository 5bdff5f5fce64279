"""A plan as a file for Docker Compose or a Swarm, with the plan's shards beside it.

Input: a bundle and options (Compose knows no namespaces). Output: docker-compose.yaml and
plan/plan-000, plan/plan-001, … by name. Every instance is a service of its own there, since
instances are not alike: each has its name. What is exact and what is not: docs/compose.md.

Compose expands `$VAR` in every value of its file, so each `$` of a plan is written twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compiler.plan.format import TOOL_VERSION
from compiler.plan.types import Service
from manifests import compose_checks as checks
from manifests.bundle import Bundle
from manifests.kubernetes_labels import LABELS, TAGS, common
from manifests.names import doubled, labels, tags
from manifests.settings import Options
from manifests.templating import fill

FILE = "docker-compose.yaml"
HOLD = "/tstorm/tstorm-hold"  # in a volume that Docker fills from the agent image
USER = 65_532  # of what needs no privilege; any number but 0 would do
_READABLE = 0o444
_SECRET = 0o400


def render(bundle: Bundle, options: Options) -> dict[str, str | bytes]:
    """The files by name. Raises ManifestError for what Compose would not take."""
    chosen = options.resolve(bundle)
    topology = bundle.plan.topology
    names = labels(service.name for service in topology.services)
    checks.image("the agent image", chosen.agent_image, "give --agent-image")
    checks.topology(topology, names)
    values: dict[str, object] = {
        "agent_image": doubled(chosen.agent_image),
        "agent_labels": _labels("tstorm-agent", "agent", bundle),
        "coordinator_labels": _labels("tstorm-coordinator", "coordinator", bundle),
        "environment": [
            f"TSTORM_EXPERIMENT={bundle.digest}",
            f"TSTORM_VERSION={TOOL_VERSION}",
        ],
        "agent_key": _key("0"),
        "coordinator_key": _key(str(USER)),
        "plan": [
            {"source": name, "target": f"/plan/{name}", "mode": _READABLE} for name in bundle.shards
        ],
        "services": [_service(s, names[s.name], bundle) for s in topology.services],
        "shards": list(bundle.shards),
        "user": str(USER),
    }
    text = fill("compose/docker-compose.yaml.j2", values)
    return {FILE: text, **{f"plan/{name}": data for name, data in bundle.shards.items()}}


def _key(owner: str) -> list[dict[str, object]]:
    """The secret that messages are signed with. Only a Swarm gives it an owner."""
    return [{"source": "tstorm-auth", "target": "/auth/key", "uid": owner, "mode": _SECRET}]


def _labels(name: str, component: str, bundle: Bundle) -> dict[str, str]:
    return {**common(name, component, bundle.digest), f"{LABELS}/plan": bundle.digest}


def _service(service: Service, name: str, bundle: Bundle) -> dict[str, object]:
    """What the instances of a service have in common, and the instances."""
    found = _labels(name, "instance", bundle)
    found[f"{LABELS}/service"] = service.name
    found |= {f"{TAGS}/{tag}": "true" for tag in tags(dict.fromkeys(service.tags)).values()}
    return {
        "name": service.name,
        "image": doubled(service.image),
        "held": bool(service.entrypoint),
        "entrypoint": [HOLD, "run", "--", *(doubled(word) for word in service.entrypoint)],
        "arguments": [doubled(word) for word in service.command],
        "labels": found,
        "ports": [str(port) for port in dict.fromkeys(service.ports)],
        "resources": _resources(service),
        "instances": _instances(service, name, bundle),
    }


def _instances(service: Service, name: str, bundle: Bundle) -> Iterator[dict[str, object]]:
    """One at a time: there can be 65,000."""
    for index in range(service.replicas):
        own = {
            "TSTORM_SERVICE": service.name,
            "TSTORM_INDEX": str(index),
            "TSTORM_INSTANCE": f"{service.name}.{index}",
            "TSTORM_SEED": str(bundle.plan.seed),
            "TSTORM_EXPERIMENT": bundle.digest,
        }
        # What a run itself says wins (docs/tdl.md, env=).
        variables = {**own, **dict(service.env), **own}
        yield {
            "name": f"{name}-{index}",
            "environment": [doubled(f"{key}={value}") for key, value in variables.items()],
            "aliases": [f"{service.name}.{index}", service.name],
        }


def _resources(service: Service) -> Mapping[str, object]:
    """Reserved and limited alike: what an instance gets does not depend on its neighbours."""
    amounts = {}
    if service.cpu_millis:
        whole, thousandths = divmod(service.cpu_millis, 1000)
        amounts["cpus"] = f"{whole}.{thousandths:03}"
    if service.mem_bytes:
        amounts["memory"] = f"{service.mem_bytes}b"
    return {"limits": amounts, "reservations": amounts} if amounts else {}
