"""Which program carries packets, and whether this machine can run it."""

from __future__ import annotations

import os
from pathlib import Path

from compiler.plan.reader import Plan
from compiler.plan.rules.datapath_fit import Misfit
from compiler.plan.types import kernel_lans
from runtime.backend import instance_clocks, instance_disks, plan_fit
from runtime.backend.local import cards, environment, outside
from runtime.backend.local.cards import CardError
from runtime.datapath import kernelprobe
from runtime.errors import MachineError, RunError, UnfitError
from runtime.options import VIRTUAL, RunOptions
from runtime.system import compiled_programs, machine_facts, namespaces

PROBE_SECONDS = 20.0
_NO_WAY = (1, 0, "", 0, "")  # of a Misfit: more than the limit of none
MAX_LOCAL_HOSTS = 64  # they share this machine's processors and memory
_CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
_CONGESTION_CONTROL_ALLOWED = "net.ipv4.tcp_allowed_congestion_control"
MODULES = {"htb": "sch_htb", "tbf": "sch_tbf", "netem": "sch_netem", "u32": "cls_u32"}


def choose(options: RunOptions, keeper: Path) -> tuple[str, ...]:
    """The command. Raises MachineError if it is missing, or the kernel lacks what it needs."""
    if options.datapath == "kernel":
        tcald = compiled_programs.find("tcald")
        lacking = kernel_lacks(tcald, keeper)
        if lacking:
            reasons = "; ".join(f"{name}: {why}" for name, why in lacking.items())
            raise MachineError(
                f"the kernel's datapath does not work here: {reasons}", kernel_remedy(lacking)
            )
        return (str(tcald),)
    share = ("--cpu-share", str(options.hosts)) if options.hosts > 1 else ()
    threads = ("--engine-threads", str(options.engine_threads)) if options.engine_threads else ()
    spoofing = ("--allow-spoofing",) if options.allow_spoofing and not options.hosts else ()
    # In real time no two runs have the same packets at the same nanosecond.
    virtual = ("--virtual-time", "--digest-times") if options.time == VIRTUAL else ()
    return (str(compiled_programs.find("pktd")), *share, *threads, *spoofing, *virtual)


def check(plan: Plan, options: RunOptions) -> None:
    """Raises RunError for what cannot be carried out, such as more hosts than one machine is good
    for, UnfitError if the plan has what the datapath would refuse in the middle of the run."""
    if options.hosts > MAX_LOCAL_HOSTS:
        raise RunError(
            f"a run cannot have {options.hosts} local hosts", f"give --hosts 1 to {MAX_LOCAL_HOSTS}"
        )
    if plan.topology.traces and options.pace != 1:
        name = plan.topology.traces[0].name
        message = f"links follow traces ({name}), which take the time that they take"
        raise RunError(message, "leave --pace out")
    plan_fit.check(plan, options)
    instance_clocks.check(plan, options)
    instance_disks.check(plan, options)
    _check_gateways(plan, options)
    _check_externals(plan, options)
    _check_kernel_lans(plan, options)
    if options.on_this_machine and options.time != VIRTUAL:
        check_congestion_control(plan)


def _check_gateways(plan: Plan, options: RunOptions) -> None:
    """The outside has a time of its own. Raises UnfitError, or MachineError where the program is
    not there that leads to it."""
    for service in plan.topology.services:
        if service.gateway and options.time == VIRTUAL:
            file, line = service.interfaces_at
            found = Misfit(
                f"a way of {service.name} to the outside (gateway)", *_NO_WAY, line, file
            )
            message = f"{found} in virtual time: what lies there has a time of its own"
            raise UnfitError(found, message, "leave --time virtual out")
        if service.gateway:
            outside.find()


def _check_kernel_lans(plan: Plan, options: RunOptions) -> None:
    """What passes one takes no time of the plan's, but the machine's. UnfitError."""
    for lan in kernel_lans(plan.topology.machines) if options.time == VIRTUAL else ():
        what = f"a lan of the kernel's (lan {lan.name} kernel)"
        found = Misfit(what, *_NO_WAY, lan.line, lan.file)
        message = f"{found} in virtual time: what passes it takes no time there"
        raise UnfitError(found, message, "leave `kernel` or --time virtual out")


def _check_externals(plan: Plan, options: RunOptions) -> None:
    """Raises UnfitError where one cannot be the end of a link, or not now."""
    for service in plan.topology.services:
        external = service.external
        if external is None:
            continue
        what = f"a network card as the end of a link (external {service.name})"
        found = Misfit(what, *_NO_WAY, external.line, external.file)
        if options.time == VIRTUAL:
            message = f"{found} in virtual time: real machines have a time of their own"
            raise UnfitError(found, message, "leave --time virtual out")
        if os.geteuid() != 0:
            message = f"{found} for an ordinary user: network cards are the machine's"
            raise UnfitError(found, message, "run it as root")
        try:
            cards.check(external.card)
        except CardError as error:
            message = f"external {service.name}: {error.message}"
            raise UnfitError(found, message, error.remedy) from error


def check_congestion_control(plan: Plan, net: Path = machine_facts.NET) -> None:
    """Raises MachineError where a service wants (`sysctl=`) one that the kernel has, and lets no
    network namespace but the machine's own have as its default, or one that it has not."""
    for service in plan.topology.services:
        wanted = dict(service.sysctls).get(_CONGESTION_CONTROL)
        if wanted is None:
            continue
        allowed, available = (
            machine_facts.network_words(f"ipv4/{name}", net) or []
            for name in ("tcp_allowed_congestion_control", "tcp_available_congestion_control")
        )
        if not allowed or wanted in allowed:
            continue
        asked = f"service {service.name} wants sysctl={_CONGESTION_CONTROL}:{wanted}"
        if wanted in available:
            machines = f"{asked}, and this machine lets instances have {' and '.join(allowed)} only"
            setting = f"{_CONGESTION_CONTROL_ALLOWED}='{' '.join([*allowed, wanted])}'"
            raise MachineError(machines, f"as root: sysctl -w {setting}")
        raise MachineError(
            f"{asked}, which this kernel does not have: {', '.join(available)}",
            f"as root: modprobe tcp_{wanted}, and name it in {_CONGESTION_CONTROL_ALLOWED}",
        )


def kernel_remedy(lacking: dict[str, str]) -> str:
    """What to do about it: mostly modules are not loaded, or not there."""
    modules = [MODULES[name] for name in lacking if name in MODULES]
    load = f"; or load what is missing as root: modprobe -a {' '.join(modules)}" if modules else ""
    return f"use --datapath user, which needs none of it{load}"


def kernel_lacks(tcald: Path, keeper: Path) -> dict[str, str]:
    """What is missing and why, found out by tcald, which adds all of it in a throw-away namespace.

    Empty if the kernel has everything.
    """
    caller = environment.inherited(os.environ)
    try:
        done = namespaces.probe(keeper, [str(tcald), "--probe"], caller, PROBE_SECONDS)
    except RunError as error:
        return {"the probe": error.message}
    return kernelprobe.lacks(done)
