"""A plan as a file for Docker Compose or a Swarm, with the plan's shards beside it.

Input: a bundle and options (Compose knows no namespaces). Output: docker-compose.yaml and
plan/plan-000, plan/plan-001, … by name. Every instance is a service of its own there, since
instances are not alike: each has its name. What is exact and what is not: docs/compose.md.

Compose expands `$VAR` in every value of its file, so each `$` of a plan is written twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compiler.plan.format import TOOL_VERSION
from compiler.plan.rules.capabilities import COMPOSE
from compiler.plan.types import DEFAULT_READY_TIMEOUT_NS, Service, Topology
from manifests import hold_options, images, unsupported
from manifests.bundle import Bundle
from manifests.kubernetes_labels import LABELS, TAGS, common
from manifests.object_names import doubled, labels, tags
from manifests.refusal import ManifestError, demand_carried, raise_all
from manifests.render_options import Options
from manifests.templating import fill

FILE = "docker-compose.yaml"
USER = 65_532  # of what needs no privilege; any number but 0 would do
_READABLE = 0o444
_SECRET = 0o400


def render(bundle: Bundle, options: Options) -> dict[str, str | bytes]:
    """The files by name. Raises ManifestError for what Compose would not take."""
    demand_carried(bundle.plan, COMPOSE)
    chosen = options.resolve(bundle)
    topology = bundle.plan.topology
    names = labels(service.name for service in topology.services)
    _demand_image("the agent image", chosen.agent_image, "give --agent-image")
    _demand_possible(topology, names)
    contents = _contents(bundle)
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
        "contents": list(contents),
    }
    text = fill("compose/docker-compose.yaml.j2", values)
    plan = {f"plan/{name}": data for name, data in bundle.shards.items()}
    return {FILE: text, **plan, **{f"files/{name}": data for name, data in contents.items()}}


def _contents(bundle: Bundle) -> dict[str, bytes]:
    """Of the files of services, by digest."""
    return dict(sorted(bundle.plan.attached.contents.items()))


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
        "held": unsupported.held(service),
        "entrypoint": [doubled(word) for word in hold_options.argv(service)],
        "settings": _settings(service),
        "labels": found,
        "volumes": _volumes(service),
        "end_seconds": f"{hold_options.end_seconds(service)}s",
        "ports": [str(port) for port in dict.fromkeys(service.ports)],
        "resources": _resources(service),
        "instances": _instances(service, name, bundle),
    }


def _settings(service: Service) -> dict[str, object]:
    """What is stated of its containers, by the keys of the Compose specification."""
    command = unsupported.ready_command(service)
    user = "0:0" if unsupported.held(service) and unsupported.named_user(service) else service.user
    check = {
        "test": ["CMD", *map(doubled, command)],
        "interval": "1s",
        "start_period": _wait(service),
    }
    found: dict[str, object] = {
        "user": user,
        "working_dir": doubled(service.cwd),
        "sysctls": {name: doubled(value) for name, value in service.sysctls},
        "stop_signal": "" if unsupported.held(service) else service.stop,
        "configs": _files(service),
        "healthcheck": check if command and not unsupported.held(service) else {},
    }
    return {name: value for name, value in found.items() if value}


def _wait(service: Service) -> str:
    return f"{-(-(service.ready_timeout_ns or DEFAULT_READY_TIMEOUT_NS) // 10**9)}s"


def _files(service: Service) -> list[dict[str, object]]:
    return [
        {
            "source": file.digest,
            "target": doubled(unsupported.file_path(service, file.path)),
            "mode": file.mode,
        }
        for file in service.files
    ]


def _volumes(service: Service) -> list[dict[str, object]]:
    """That of tstorm-hold, and folders of the machine."""
    held: dict[str, object] = {
        "type": "volume",
        "source": "tstorm",
        "target": unsupported.HOLD_FOLDER,
    }
    held |= {"read_only": True, "volume": {"nocopy": True}}
    binds: list[dict[str, object]] = [
        {
            "type": "bind",
            "source": doubled(one.source),
            "target": doubled(one.target),
            "read_only": one.read_only,
        }
        for one in service.mounts
    ]
    return [*([held] if unsupported.held(service) else []), *binds]


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
            "arguments": [_argument(service, word, own) for word in service.command],
            "aliases": [f"{service.name}.{index}", service.name],
        }


def _argument(service: Service, word: str, own: Mapping[str, str]) -> str:
    """tstorm-hold replaces the run's variables; without it they are replaced here."""
    if unsupported.held(service):
        return doubled(word)
    return unsupported.replaced(word, lambda name: doubled(own[name]), doubled)


def _resources(service: Service) -> Mapping[str, object]:
    """Reserved and limited alike: what an instance gets does not depend on its neighbours."""
    amounts = {}
    if service.cpu_millis:
        whole, thousandths = divmod(service.cpu_millis, 1000)
        amounts["cpus"] = f"{whole}.{thousandths:03}"
    if service.mem_bytes:
        amounts["memory"] = f"{service.mem_bytes}b"
    return {"limits": amounts, "reservations": amounts} if amounts else {}


# What a plan may say and Compose cannot carry, found before anything is written.
#
# All findings of a plan are reported together.


def _demand_image(what: str, reference: str, hint: str = "") -> None:
    """Raises ManifestError for an image that no machine could pull."""
    raise_all(_image(what, reference, hint))


def _demand_possible(found: Topology, names: Mapping[str, str]) -> None:
    """Raises ManifestError. `names`: what the services are called in the file."""
    errors = [error for service in found.services for error in _of_service(service)]
    errors += _names(found, names)
    errors += unsupported.refusals(found, COMPOSE)
    raise_all(errors)


def _of_service(service: Service) -> Iterator[ManifestError]:
    who = f"service {service.name!r}"
    if not service.image:
        yield ManifestError(f"{who} has no image, and a container needs one", "add img=IMAGE")
    else:
        yield from _image(f"{who}: its image", service.image)
    for name, _ in service.env:
        if not name or "=" in name:
            yield ManifestError(
                f"{who}: {name!r:.80} cannot be the name of a variable", "choose another name"
            )


def _image(what: str, reference: str, hint: str = "") -> Iterator[ManifestError]:
    if reason := images.problem(reference):
        yield ManifestError(f"{what} {reference!r:.80} is not an image reference", hint or reason)


def _names(found: Topology, names: Mapping[str, str]) -> Iterator[ManifestError]:
    """In a network of Docker the names of services and of instances are of one kind."""
    by_name = {names[service.name]: service for service in found.services}
    for service in found.services:
        base, _, index = service.name.rpartition("-")
        other = by_name.get(base)
        if other and index in {str(number) for number in range(other.replicas)}:
            yield ManifestError(
                f"service {service.name!r} is called like an instance of {other.name!r}, and "
                "Compose could not tell them apart",
                f"rename {service.name!r}",
            )
