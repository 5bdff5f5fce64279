"""`tstorm doctor`: what this machine or a cluster can do, found out by trying."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.exit_codes import CANNOT, CommandError
from tstorm.options.cluster import Where, cluster_nodes, in_cluster, only_in_cluster
from tstorm.options.shared import table_or_json

if TYPE_CHECKING:
    from runtime.doctor.findings import Check


def _of_cluster(where: Where, nodes: str, image: str) -> list[Check]:
    from manifests import object_names
    from manifests.refusal import ManifestError
    from manifests.render_options import DEFAULT_AGENT_IMAGE
    from runtime.errors import RunError
    from tstorm.k8s import connection, preflight

    try:
        namespace = object_names.namespace(where.namespace or "tstorm-doctor")
    except ManifestError as error:
        raise RunError(error.what, error.hint) from error
    with connection.connect(where.context) as there:
        given = where.namespace is not None and preflight.is_given(there, namespace)
        asked = preflight.WantedOfCluster(namespace, nodes, image or DEFAULT_AGENT_IMAGE, given)
        return preflight.checks(there, asked)


@click.command()
@in_cluster
@cluster_nodes
@table_or_json
def command(form: str, cluster: Where | None, nodes: str | None, agent_image: str | None) -> None:
    """Check whether this machine can run experiments, how well, and what to do about problems.

    It tries everything for real, in throw-away namespaces: "ok" works in a run, "warn" works less
    well, and "fail" makes runs impossible. Ends with 3 if anything is "fail".

    \b
    Examples:
      tstorm doctor
      tstorm doctor --format json | jq '.[] | select(.status != "ok")'
      tstorm doctor --backend k8s --nodes pool=lab
    """
    from tstorm.command_support import errors_shown

    if cluster is None:
        only_in_cluster({"nodes": nodes, "agent_image": agent_image})
    with errors_shown():
        from runtime.doctor.checks import probe
        from runtime.doctor.findings import FAIL

        checks = _of_cluster(cluster, nodes or "", agent_image or "") if cluster else probe()
    if form == "json":
        output.emit_json_rows(asdict(check) for check in checks)
    else:
        output.emit_table(
            ("CHECK", "STATUS", "DETAIL"),
            ((check.name, check.status, check.detail) for check in checks),
        )
        for check in checks:
            if check.remedy:
                output.note(f"{check.name}: {check.remedy}")
    if any(check.status == FAIL for check in checks):
        what = "this cluster" if cluster else "this machine"
        raise CommandError(f"error: {what} cannot run experiments as it is", CANNOT)
