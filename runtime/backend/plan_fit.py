"""Whether a run's datapath can do what a plan asks, before the run and while the plan grows."""

from __future__ import annotations

from compiler.plan.reader import Plan
from compiler.plan.rules import capabilities
from compiler.plan.rules.datapath_fit import misfit
from compiler.plan.rules.property_limits import HOP_EXACT
from runtime import say
from runtime.errors import UnfitError, unfit
from runtime.options import RunOptions

KERNEL = "kernel"


def check(plan: Plan, options: RunOptions, chosen: str = "") -> None:
    """Raises RunError for what this way of running does not carry out, UnfitError if the plan has
    what the datapath would refuse in the middle of the run. `chosen`: the datapath of a run in a
    cluster, which its nodes have decided."""
    refused = capabilities.refusal(plan, options.backend)
    if refused:
        raise unfit(refused, "leave it out", capabilities.to_blame(plan, options.backend))
    kernel = KERNEL in (options.datapath, chosen)
    whole_paths = bool(options.hosts or chosen)
    end = {} if options.until_ns is None else {"end_ns": options.until_ns}
    datapath = KERNEL if kernel else "user" if whole_paths else HOP_EXACT
    found = misfit(plan, datapath, options.start_at_ns, **end)
    if found is None:
        return
    lacking = "--hosts" if options.hosts else "paths as one queue, as a cluster has them"
    whose = "the kernel" if kernel else "any datapath" if found.limit else lacking
    message = f"{found} with {whose}, at {say.seconds(found.at_ns)}"
    without = "leave --hosts and --datapath out" if options.hosts or kernel else "leave it out"
    remedy = "lower it" if found.limit else without
    if found.what.startswith("the jitter of the path"):
        remedy = f"lower the jitter of {found.link}, or use --datapath user"
    raise UnfitError(found, message, remedy)
