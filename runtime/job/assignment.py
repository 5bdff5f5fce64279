"""What a Job is to do: run.json, which the command made for this run, the key, and the variables
that the manifests state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.plan.format import TOOL_VERSION
from compiler.plan.reader import read_plan
from compiler.plan.storage import delivery
from runtime.errors import RunError
from runtime.job.container_paths import ContainerPaths
from runtime.json_schema import (
    COUNT,
    TEXT,
    Shape,
    check,
    parse,
)
from runtime.options import K8S, RunOptions, decode
from runtime.rpc.secure import read_key
from runtime.rundir import rundir
from runtime.rundir.runfiles import check_manifest

MAX_CONFIG_BYTES = 1 << 20  # a ConfigMap has no more
_CONFIG = Shape({"run_id": TEXT, "options": {}, "manifest": {}, "linger_seconds": COUNT})


@dataclass(frozen=True, slots=True)
class JobAssignment:
    run_id: str
    options: RunOptions
    manifest: Mapping[str, Any]  # the first one of the run directory
    linger_seconds: int  # so long results wait for who fetches them
    key: bytes  # of the run, which its agents have, too
    digest: str  # of the plan
    namespace: str
    address: str  # of this pod


def read(places: ContainerPaths, variables: Mapping[str, str]) -> JobAssignment:
    """RunError names what is missing or wrong."""
    digest = _variable(variables, "TSTORM_EXPERIMENT")
    rendered = _variable(variables, "TSTORM_VERSION")
    if rendered != TOOL_VERSION:
        raise RunError(
            f"the manifests were rendered by release {rendered:.40}, and this image has release "
            f"{TOOL_VERSION}",
            "use an image of the release that renders (--agent-image)",
        )
    config = _config(places.config)
    options = decode(config["options"], f"{places.config}: options")
    if options.backend != K8S:
        raise RunError(f"{places.config} is for the backend {options.backend}, not {K8S}")
    return JobAssignment(
        run_id=config["run_id"],
        options=options,
        manifest=check_manifest(config["manifest"], f"{places.config}: manifest"),
        linger_seconds=config["linger_seconds"],
        key=read_key(str(places.key)),
        digest=digest,
        namespace=_variable(variables, "TSTORM_NAMESPACE"),
        address=_variable(variables, "TSTORM_POD_IP"),
    )


def _config(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise RunError(f"{path} has more than {MAX_CONFIG_BYTES} bytes")
    found = parse(data, str(path))
    check(found, _CONFIG, str(path))
    return dict(found)


def _variable(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(name, "")
    if not value:
        raise RunError(f"the variable {name} is not set", "start it as the manifests do")
    return value


def unpack(places: ContainerPaths, assignment: JobAssignment) -> None:
    """The run directory with the plan of this digest. RunError, PlanError, OSError."""
    delivery.receive(places.shards, places.plan, assignment.digest)
    plan = read_plan(places.plan, lazy=True)
    rundir.begin(places.run, plan, assignment.manifest)
