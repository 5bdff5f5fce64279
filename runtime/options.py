"""What a run is asked to do, and what it came to.

RunOptions is the one record of a run's options, with the one place of their defaults. The command
line fills it, the manifest keeps it for a replay, the driver and every agent are given it whole. A
new option is a row here and its `click.option` (tstorm/options/run_options.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from runtime import thresholds
from runtime.errors import RunError
from runtime.json_schema import (
    FLAG,
    INTEGER,
    NOTHING,
    TEXT,
    Each,
    OneOf,
    Shape,
    check,
)

COMPLETED = "completed"
INTERRUPTED = "interrupted"
FAILED = "failed"

EXIT_CODES: Mapping[str, int] = {COMPLETED: 0, FAILED: 1, INTERRUPTED: 130}
TOO_LATE, PROGRAMS_FAILED = 4, 5  # exit codes of a run that is completed nevertheless

VERSION = 1  # raised when an option goes, or changes its meaning or unit; not for a new one
BACKENDS = LOCAL, K8S = ("local", "k8s")
TIMES = REAL, VIRTUAL = ("real", "virtual")
ON_SPIN = FAIL, CREEP = ("fail", "creep")
CLOCK_START_NS = 946_684_800 * 10**9  # 2000-01-01T00:00:00Z
LEAST_SPIN_LIMIT_NS = 1_000_000_000
# Up to 2100: what kernel and programs bear. A guest starts 10 s before time 0, and not before 1970.
CLOCK_RANGE_NS = 10 * 10**9, 4_102_444_800 * 10**9
# Of services with img=: run the image where there is no exec=, wherever there is one, or nowhere.
IMAGES = ALONE, PREFERRED, NEVER = ("alone", "preferred", "never")
DATAPATHS = ("auto", "user", "kernel")
ON_AGENT_LOSS = KEEP, CLOSE = ("keep", "close")
REQUIRED: Mapping[str, tuple[str, ...]] = {  # by word of --require: the states that it accepts
    "": ("valid", "degraded", "invalid", "unknown"),
    "degraded": ("valid", "degraded"),
    "valid": ("valid",),
}
MAX_HOSTS = 1024
MAX_ENGINE_THREADS = 16
LEAST_PERIOD_NS = 1_000_000
MOST_SCATTER_NS = 1_000_000_000
# To test, by who has them. Of hosts: an agent's clock is wrong; it loses metadata; its wall clock
# is set while it runs; it tells of other counters than it has. Without hosts: the driver's wall
# clock is set; the link of that number has other values than the plan's after a while.
FAULTS: Mapping[str, tuple[str, ...]] = {
    "host": ("clock_offset_ns", "drop_metadata_ppb", "clock_step_ns", "count_ppb"),
    "driver": ("clock_step_ns",),
    "link": ("delay_ns", "rate_bps"),
}
CPU_RANGE_PPB = 1_000_000, 1000 * 10**9  # of a processor of this machine
OF_VIRTUAL_TIME = {  # names of options
    "on_spin": "--on-spin",
    "spin_limit_ns": "--spin-limit",
    "clock_start_ns": "--clock-start",
    "scatter_ns": "--scatter",
    "cpu_ppb": "--cpu",
}
REMEDY = "use the release that made the run"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run a plan. Times are plan time in ns; `pace` divides them (60: sixty-fold speed)."""

    version: int = VERSION
    until_ns: int | None = None  # stop here; events at this time still happen
    start_at_ns: int = 0  # begin with the state of this time, then go on from there
    pace: int = 1
    time: str = REAL  # the machine's, or virtual: a clock that stands still while anything runs
    on_spin: str = FAIL  # virtual: a program that computes on and on holds time
    spin_limit_ns: int = 60_000_000_000  # of processor time, before it is said to do that
    clock_start_ns: int = CLOCK_START_NS  # virtual: the wall clock at time 0, since 1970
    cpu_ppb: int = 0  # virtual: of each second that programs compute here; 0: it takes no time
    scatter_ns: int = 0  # virtual: how late a program that wakes may go on, as the seed draws it
    datapath: str = "auto"
    ports: str = "auto"  # how instances are attached: auto | tap | packet (docs/pktd.md, `open`)
    engine_threads: int = 0  # of pktd, that read and write packets; 0: it chooses
    hosts: int = 0  # how many; 0: none, one engine models every link
    backend: str = LOCAL  # where the instances are: on this machine, or in a Kubernetes cluster
    nodes: str = ""  # k8s: a label selector of the nodes to use; '' = all that take pods
    images: str = ALONE  # on this machine; in a cluster everything is an image
    period_ns: int = 25_000_000  # of the agents' sharing loop
    clock_budget_ns: int = 5_000_000  # how well an agent's clock must be known at the start
    on_agent_loss: str = KEEP  # traffic of a host without agent: as it was last, or closed
    allow_spoofing: bool = False  # instances may send from addresses that are not their own
    faults: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # to test: whose, FAULTS
    probes: bool = True  # light ones between instances, all the time
    packets: bool = False  # a file of packets for each link, where one engine has them all
    max_lateness_ns: int | None = None  # what the user allows anything that is judged
    require: str = ""  # of REQUIRED: with another verdict the run ends with TOO_LATE
    thresholds: Mapping[str, int] = field(default_factory=dict)  # by runtime.thresholds
    fail_on_exit: bool = False  # programs that fail make the run end with PROGRAMS_FAILED
    fail_fast: bool = False  # so they do, and at once
    discard_instances: bool = False  # data directories of instances go at the end

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise RunError(
                f"the options have version {self.version}, and this release reads {VERSION}", REMEDY
            )
        self._check_backend()
        self._check_time()
        self._check_hosts()
        self._check_engine_threads()
        if self.pace < 1:
            raise RunError(f"the pace is {self.pace}", "give a whole number of 1 or more")
        if self.datapath not in DATAPATHS:
            known = " or ".join(DATAPATHS)
            raise RunError(f"there is no datapath {self.datapath!r}", f"use {known}")
        if self.require not in REQUIRED:
            known = " or ".join(filter(None, REQUIRED))
            raise RunError(f"no run can be required to be {self.require!r}", f"use {known}")
        thresholds.check(self.thresholds)
        if self.start_at_ns < 0:
            raise RunError("the start is before the beginning of the timeline")
        if self.max_lateness_ns is not None and self.max_lateness_ns < 1:
            raise RunError("nothing is ever exactly on time", "give --max-lateness 1ms or more")
        if self.until_ns is not None and self.until_ns < self.start_at_ns:
            raise RunError("the end (--until) is before the start (--start-at)")

    def _check_backend(self) -> None:
        if self.backend not in BACKENDS:
            known = " or ".join(BACKENDS)
            raise RunError(f"there is no backend {self.backend!r}", f"use {known}")
        if self.backend == K8S and self.hosts:
            raise RunError(
                "local hosts are for runs on this machine: a cluster has its own",
                "leave --hosts out, and say with --nodes which nodes to use",
            )
        if self.images not in IMAGES:
            known = " or ".join(IMAGES)
            raise RunError(f"there is no {self.images!r} for images", f"use {known}")
        if self.backend == K8S and self.images != ALONE:
            raise RunError(
                "in a cluster every program comes from an image", "leave --images or --programs out"
            )
        if self.backend == LOCAL and self.nodes:
            raise RunError("a run on this machine has no nodes to select", "add --backend k8s")

    def _check_time(self) -> None:
        if self.time not in TIMES:
            raise RunError(f"there is no time {self.time!r}", f"use {' or '.join(TIMES)}")
        if self.on_spin not in ON_SPIN:
            known = " or ".join(ON_SPIN)
            raise RunError(f"there is no {self.on_spin!r} for programs that spin", f"use {known}")
        if self.spin_limit_ns < LEAST_SPIN_LIMIT_NS:
            raise RunError(f"spin_limit_ns is {self.spin_limit_ns}", "give --spin-limit 1s or more")
        least, most = CLOCK_RANGE_NS
        if not least <= self.clock_start_ns <= most:
            raise RunError(
                "the clock cannot start there",
                "give a time from 1970-01-01T00:00:10Z to 2100-01-01T00:00:00Z",
            )
        if not 0 <= self.scatter_ns <= MOST_SCATTER_NS:
            raise RunError(f"scatter_ns is {self.scatter_ns}", "give --scatter 0s to 1s")
        if self.cpu_ppb:
            self._check_cpu()
        if self.time == VIRTUAL and self.backend == K8S:
            raise RunError(
                "a cluster has many clocks, and none of them is virtual",
                "leave --time or --backend k8s out",
            )

    def _check_cpu(self) -> None:
        if self.time != VIRTUAL:
            raise RunError(
                "in real time computing takes as long as it takes",
                "leave --cpu out, or add --time virtual",
            )
        least, most = CPU_RANGE_PPB
        if not least <= self.cpu_ppb <= most:
            raise RunError(f"cpu_ppb is {self.cpu_ppb}", "give --cpu model=0.001 to model=1000")

    def _check_hosts(self) -> None:
        if not 0 <= self.hosts <= MAX_HOSTS:
            raise RunError(
                f"a run cannot have {self.hosts} hosts",
                f"give a whole number from 1 to {MAX_HOSTS}",
            )
        if self.datapath == "kernel" and self.hosts == 0 and self.backend == LOCAL:
            raise RunError(
                "the kernel's datapath knows collapsed paths only, which need an agent",
                "add --hosts 1 (or more), or leave --datapath out",
            )
        if self.on_agent_loss not in ON_AGENT_LOSS:
            known = " or ".join(ON_AGENT_LOSS)
            raise RunError(f"there is no {self.on_agent_loss!r} for lost agents", f"use {known}")
        if self.packets and (self.hosts or self.backend == K8S):
            raise RunError(
                "there are files of packets only where one engine has every link: over hosts and in"
                " a cluster no process sees them",
                "leave --packets out, or --hosts and --backend k8s",
            )
        if self.period_ns < LEAST_PERIOD_NS:
            raise RunError(f"period_ns is {self.period_ns}", f"give {LEAST_PERIOD_NS} or more")
        if self.clock_budget_ns < 1:
            raise RunError("no clock is known exactly", "give --clock-budget 100us or more")
        self._check_faults()

    def _check_faults(self) -> None:
        known = f"host0 to host{self.hosts - 1}" if self.hosts else "driver, link0, link1 and so on"
        for name, faults in self.faults.items():
            kind = name.rstrip("0123456789")
            number = name.removeprefix(kind)
            here = kind == "host" and number and int(number) < self.hosts
            here = here or (not self.hosts and (kind == "link" if number else kind == "driver"))
            if not here:
                raise RunError(f"there is no {name!r} that could have a fault", f"known: {known}")
            for wrong in sorted(faults.keys() - set(FAULTS[kind])):
                kinds = " and ".join(FAULTS[kind])
                raise RunError(f"{name} cannot have the fault {wrong!r}", f"known: {kinds}")

    def _check_engine_threads(self) -> None:
        if not 0 <= self.engine_threads <= MAX_ENGINE_THREADS:
            raise RunError(
                f"the packet engine cannot have {self.engine_threads} threads",
                f"give --engine-threads auto, or 1 to {MAX_ENGINE_THREADS}",
            )
        if self.engine_threads > 1 and self.time == VIRTUAL:
            raise RunError(
                "in virtual time packets take no real time, and the engine has one thread",
                "leave --engine-threads or --time virtual out",
            )
        if self.engine_threads and (self.backend == K8S or self.datapath == "kernel"):
            raise RunError(
                "--engine-threads is for the packet engine on this machine: in a cluster that of"
                " each node chooses itself, and --datapath kernel has none",
                "leave --engine-threads out",
            )

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


DEFAULTS = RunOptions()
_KINDS = {  # by annotation
    "int": INTEGER,
    "int | None": OneOf(INTEGER, NOTHING),
    "str": TEXT,
    "bool": FLAG,
    "Mapping[str, int]": Each(INTEGER),
    "Mapping[str, Mapping[str, int]]": Each(Each(INTEGER)),
}
_SHAPE = Shape({f"{row.name}?": _KINDS[str(row.type)] for row in fields(RunOptions)})


def decode(record: Any, place: str) -> RunOptions:
    """Options out of JSON; what is missing has its default. RunError that begins with `place` and
    names what is unknown, of another type, or makes no sense."""
    check(record, _SHAPE, place)
    unknown = sorted(record.keys() - DEFAULTS.to_record().keys())
    if unknown:
        raise RunError(f"{place}: this release does not know the option {unknown[0]!r:.60}", REMEDY)
    try:
        return RunOptions(**record)
    except RunError as error:
        raise RunError(f"{place}: {error.message}", error.remedy) from None


@dataclass(frozen=True, slots=True)
class RunPlaces:
    """What a run is called and where its files are: not options, since they are not repeated."""

    out: Path | None = None  # the run directory itself; None = runs/NAME-UTCSTAMP
    name: str = ""  # NAME; '' = run
    start_directory: str = ""  # where the run was called; '' = here
    source_directory: str = ""  # where relative programs are; '' = where the run was called
    kept_directory: str = ""  # of a recorded run: copies of those programs
    digests: Mapping[str, str] = field(default_factory=dict)  # of images, by img=, that it must be


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. `summary` is what summary.json holds."""

    outcome: str  # COMPLETED | INTERRUPTED | FAILED
    run_id: str
    directory: Path
    message: str = ""  # why it failed
    summary: Mapping[str, Any] = field(default_factory=dict)
    programs_failed: bool = False  # they, or the run, did not do what was expected or asked for
    options: RunOptions = DEFAULTS

    @property
    def not_as_required(self) -> bool:
        """Whether the verdict is another than --require accepts."""
        state = self.summary.get("verdict", {}).get("state", "unknown")
        return state not in REQUIRED[self.options.require]

    @property
    def exit_code(self) -> int:
        """A result that is not to be trusted says nothing of programs either. A run that programs
        have ended (fail_fast) has failed because of them."""
        if self.outcome != COMPLETED:
            because = self.outcome == FAILED and self.programs_failed
            return PROGRAMS_FAILED if because else EXIT_CODES[self.outcome]
        if self.summary.get("verdict", {}).get("too_late") or self.not_as_required:
            return TOO_LATE
        return PROGRAMS_FAILED if self.programs_failed else EXIT_CODES[COMPLETED]
