"""What a run is asked to do.

RunOptions is the one record of a run's options, with the one place of what they are, how they are
asked for and their defaults. The command line fills it, the manifest keeps it for a replay, the
driver and every agent are given it whole. A new option is a row here: docs/howto/add-an-option.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from runtime import say, thresholds
from runtime.errors import RunError
from runtime.json_schema import MAX_INTEGER, check, shape_of

COMPLETED = "completed"
INTERRUPTED = "interrupted"
FAILED = "failed"

VERSION = 1  # raised when an option goes, or changes its meaning or unit; not for a new one
BACKENDS = LOCAL, K8S = ("local", "k8s")
TIMES = REAL, VIRTUAL = ("real", "virtual")
ON_SPIN = FAIL, CREEP = ("fail", "creep")
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
MAX_RESEEDS = 14  # the guest's kernel keeps 16, and two are those of its start
# To test, by who has them. Of hosts: an agent's clock is wrong; it loses metadata; its wall clock
# is set while it runs; it tells of other counters than it has. Without hosts: the driver's wall
# clock is set; the link of that number has other values than the plan's after a while.
FAULTS: Mapping[str, tuple[str, ...]] = {
    "host": ("clock_offset_ns", "drop_metadata_ppb", "clock_step_ns", "count_ppb"),
    "driver": ("clock_step_ns",),
    "link": ("delay_ns", "rate_bps"),
}
CPU_RANGE_PPB = 1_000_000, 1000 * 10**9  # of a processor of this machine
REMEDY = "use the release that made the run"


OF_CLUSTERS = "cluster"  # kind of an option that other commands have, too: tstorm.options.cluster
# With what alone an option means anything, in words.
WITH_VIRTUAL_TIME, WITH_AGENTS = "--time virtual", "runs with --hosts or --backend k8s"


@dataclass(frozen=True, slots=True)
class Asked:
    """How the command line asks for an option of a run.

    help     what it does, in a sentence or two, and its default
    flag     '': that of the field's name, without `_ns`
    metavar  what stands for the value; '' for one of `choices`, for a switch and for words
    kind     what reads the value (tstorm.options.run_options), '': the field's type and unit say it
    value    what the flag alone means
    """

    help: str
    flag: str = ""
    metavar: str = ""
    kind: str = ""
    value: str = ""


def flag_of(row: Field[Any], asked: Asked) -> str:
    """`--pace`."""
    return asked.flag or f"--{row.name.removesuffix('_ns').replace('_', '-')}"


def _row(
    default: Any,
    *asked: Asked,
    only: str = "",
    choices: Iterable[str] = (),
    within: tuple[int, int, str] | None = None,
) -> Any:
    """A field of RunOptions. Without `asked` no command asks for it. `only`: WITH_…; `within`: the
    least value, the largest, and what to do instead, which integers need that are no durations."""
    about = {"asked": asked, "only": only, "choices": tuple(choices), "within": within}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=about)
    return field(default=default, metadata=about)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run a plan. Times are plan time in ns; `pace` divides them (60: sixty-fold speed).

    Commands ask in the order of the rows.
    """

    version: int = VERSION
    until_ns: int | None = _row(
        None, Asked("End at this time of the plan; events at this time still happen.", metavar="T")
    )
    start_at_ns: int = _row(
        0,
        Asked("Begin with the state of this time of the plan and go on from there.", metavar="T"),
        within=(0, MAX_INTEGER, "the timeline begins at 0"),
    )
    pace: int = _row(
        1,
        Asked(
            "Run the timeline N times faster; the network's properties stay.  [default: 1]",
            metavar="N",
        ),
        within=(1, MAX_INTEGER, "give a whole number of 1 or more"),
    )
    time: str = _row(
        REAL,
        Asked(
            "Run on this machine's time, or in virtual time: exact however slow or busy the "
            "machine is, and the same to the last byte each time.  [default: real]"
        ),
        choices=TIMES,
    )
    on_spin: str = _row(
        FAIL,
        Asked(
            "With --time virtual: end the run if a program computes on and on, which stops time; "
            "or let time go on beside it.  [default: fail]"
        ),
        only=WITH_VIRTUAL_TIME,
        choices=ON_SPIN,
    )
    spin_limit_ns: int = _row(
        60_000_000_000,
        Asked(
            "With --time virtual: for how long a program may compute (processor time of this "
            "machine) before it counts as such.  [default: 60s]",
            metavar="T",
        ),
        only=WITH_VIRTUAL_TIME,
        within=(1_000_000_000, MAX_INTEGER, "give --spin-limit 1s or more"),
    )
    clock_start_ns: int = _row(  # the wall clock at time 0, since 1970
        946_684_800 * 10**9,
        Asked(
            "With --time virtual: what clocks say when the experiment begins.  "
            "[default: 2000-01-01T00:00:00Z]",
            metavar="DATE",
            kind="instant",
        ),
        only=WITH_VIRTUAL_TIME,
        # What kernel and programs bear. A guest starts 10 s before time 0, and not before 1970.
        within=(
            10 * 10**9,
            4_102_444_800 * 10**9,
            "give a time from 1970-01-01T00:00:10Z to 2100-01-01T00:00:00Z",
        ),
    )
    cpu_ppb: int = _row(  # of each second that programs compute here; 0: it takes no time
        0,
        Asked(
            "With --time virtual: computing takes time, FACTOR virtual seconds for each second of "
            "this machine's processor time, longer with less than one processor (cpu=). Then no "
            "two runs are the same. With none, it takes no time.  [default: none]",
            metavar="model=FACTOR",
            flag="--cpu",
            kind="cpu model",
        ),
        only=WITH_VIRTUAL_TIME,
    )
    scatter_ns: int = _row(
        0,
        Asked(
            "With --time virtual: delay programs that wake, and pause them in between, by up to "
            "T, as the seed draws it: other orders, which may show races.  [default: 0s]",
            metavar="T",
        ),
        only=WITH_VIRTUAL_TIME,
        within=(0, 1_000_000_000, "give --scatter 0s to 1s"),
    )
    preempt_ns: int = _row(
        0,
        Asked(
            "With --time virtual: take the processor away from programs inside computing, too, for "
            "up to T, at instructions that the seed draws: races between two system calls. Costs "
            "time of the machine.  [default: 0s]",
            metavar="T",
        ),
        only=WITH_VIRTUAL_TIME,
        within=(0, 1_000_000_000, "give --preempt 0s to 1s"),
    )
    reseeds: Mapping[str, int] = _row(  # by the moment in ns, in decimal: from then on which seed
        {},
        Asked(
            "With --time virtual: the same run until T, and from then on what is drawn is drawn by "
            "another SEED. May be repeated, for several moments; a replay that is given any has no "
            "others.",
            flag="--reseed",
            metavar="T=SEED",
            kind="reseed",
        ),
        only=WITH_VIRTUAL_TIME,
    )
    datapath: str = _row(
        "auto",
        Asked(
            "What emulates the network: the packet engine (auto and user), or, with --hosts, the "
            "kernel's queueing disciplines.  [default: auto]"
        ),
        choices=DATAPATHS,
    )
    page: bool = True  # whether one is written (of storms of a hunt none is)
    ports: str = "auto"  # how instances are attached: auto | tap | packet (docs/pktd.md, `open`)
    engine_threads: int = _row(  # of pktd, that read and write packets; 0: it chooses
        0,
        Asked(
            "Threads of the packet engine, all but one of which help only under load; packets "
            "are the same with any number.  [default: auto: half of the processors, at most 4]",
            metavar="auto|N",
            kind="threads",
        ),
        within=(0, MAX_ENGINE_THREADS, f"give auto, or 1 to {MAX_ENGINE_THREADS}"),
    )
    hosts: int = _row(
        0,
        Asked(
            "Spread the instances over N local hosts, with an agent and a datapath each.  "
            "[default: 0; one engine models every link]",
            metavar="N",
        ),
        within=(0, MAX_HOSTS, f"give a whole number from 1 to {MAX_HOSTS}"),
    )
    backend: str = _row(LOCAL, Asked("Where instances run.", kind=OF_CLUSTERS), choices=BACKENDS)
    nodes: str = _row(  # a label selector; '': all nodes that take pods
        "", Asked("Which nodes of a cluster to use.", kind=OF_CLUSTERS)
    )
    images: str = _row(  # on this machine; in a cluster everything is an image
        ALONE,
        Asked(
            "Run the image of every service that has one (img=), also where exec= is stated.  "
            "[default: where exec= is not stated]",
            value=PREFERRED,
        ),
        Asked("Run no images: services without exec= are idle.", flag="--programs", value=NEVER),
        choices=IMAGES,
    )
    period_ns: int = _row(  # of the agents' sharing loop
        25_000_000, within=(1_000_000, MAX_INTEGER, "give 1000000 or more")
    )
    clock_budget_ns: int = _row(
        5_000_000,
        Asked(
            "With agents: do not start if a host's clock is known less well than this.  "
            "[default: 5ms]",
            metavar="T",
        ),
        only=WITH_AGENTS,
        within=(1, MAX_INTEGER, "give --clock-budget 100us or more"),
    )
    on_agent_loss: str = _row(
        KEEP,
        Asked(
            "With agents: what a host without its agent does with traffic until the agent is "
            "back: as it was last, or drop it.  [default: keep]"
        ),
        only=WITH_AGENTS,
        choices=ON_AGENT_LOSS,
    )
    allow_spoofing: bool = _row(
        False,
        Asked(
            "Let packets through whose source address is not that of the instance that sends "
            "them.  [default: they are dropped and reported]"
        ),
    )
    faults: Mapping[str, Mapping[str, int]] = _row({})  # to test: whose, FAULTS
    probes: bool = _row(
        True,
        Asked(
            "Measure paths all the time with light probes between instances (probes.jsonl of the "
            "run directory): at most a thousandth of the smallest rate of each link.  [default: "
            "they are measured]"
        ),
    )
    packets: bool = _row(
        False,
        Asked(
            "Keep every packet of every link in packets/LINK.pcapng of the run directory, also "
            "those that were dropped, with the reason."
        ),
    )
    max_lateness_ns: int | None = _row(
        None,
        Asked(
            "End with 4 if anything that is judged was later than this: events, programs' starts, "
            "packets, stalls.",
            metavar="T",
        ),
    )
    require: str = _row(
        "",
        Asked(
            "End with 4 if the verdict is not VALID; with 'degraded', if it is neither VALID nor "
            "DEGRADED."
        ),
        choices=REQUIRED,
    )
    thresholds: Mapping[str, int] = _row(  # by runtime.thresholds
        {},
        Asked(
            "Decide the verdict by this bound in the place of the default; may be repeated "
            "(docs/certificate.md has the names).",
            flag="--threshold",
            metavar="NAME=VALUE",
            kind="threshold",
        ),
    )
    fail_on_exit: bool = _row(
        False,
        Asked(
            "End with 5 if a program ended by itself with another status than 0 or by a signal, "
            "also where its service does not state expect=. One that cannot be started ends any "
            "run."
        ),
    )
    fail_fast: bool = _row(
        False,
        Asked(
            "As --fail-on-exit, and end the run at the first such failure, or the first program "
            "that does not do what expect= of its service states."
        ),
    )
    discard_instances: bool = _row(
        False,
        Asked("Remove the data directories of all instances at the end; logs and results stay."),
    )

    @property
    def reseeded(self) -> tuple[tuple[int, int], ...]:
        """Moments in ns of the plan, and the seed from each of them on, in order."""
        return tuple(sorted((int(at_ns), seed) for at_ns, seed in self.reseeds.items()))

    @property
    def repeats(self) -> bool:
        """It is the same each time that it is carried out: in virtual time, if computing takes
        none."""
        return self.time == VIRTUAL and not self.cpu_ppb

    @property
    def can_branch(self) -> bool:
        """It can be the same until a moment and another after it: it repeats to the last byte, on
        one engine."""
        return self.repeats and not self.hosts

    @property
    def on_this_machine(self) -> bool:
        """Programs run here: whoever carries the run out sees their processes, files and logs, and
        probes have one way. In a cluster agents tell of programs, and probes are echoes."""
        return self.backend == LOCAL

    @property
    def hop_exact(self) -> bool:
        """Every link is emulated by itself, so that there are bridges between them."""
        return self.on_this_machine and self.hosts == 0

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise RunError(
                f"the options have version {self.version}, and this release reads {VERSION}", REMEDY
            )
        for row in fields(self):
            _check_row(row, getattr(self, row.name))
        thresholds.check(self.thresholds)
        self._check_place()
        self._check_time()
        self._check_reseeds()
        self._check_engine()
        self._check_faults()

    def _check_place(self) -> None:
        if self.on_this_machine:
            if self.nodes:
                raise RunError("a run on this machine has no nodes to select", "add --backend k8s")
        elif self.hosts:
            raise RunError(
                "local hosts are for runs on this machine: a cluster has its own",
                "leave --hosts out, and say with --nodes which nodes to use",
            )
        elif self.images != ALONE:
            raise RunError(
                "in a cluster every program comes from an image", "leave --images or --programs out"
            )

    def _check_time(self) -> None:
        if self.max_lateness_ns is not None and self.max_lateness_ns < 1:
            raise RunError("nothing is ever exactly on time", "give --max-lateness 1ms or more")
        if self.until_ns is not None and self.until_ns < self.start_at_ns:
            raise RunError("the end (--until) is before the start (--start-at)")
        if self.time == VIRTUAL and not self.on_this_machine:
            raise RunError(
                "a cluster has many clocks, and none of them is virtual",
                "leave --time or --backend k8s out",
            )
        if self.cpu_ppb and self.time != VIRTUAL:
            raise RunError(
                "in real time computing takes as long as it takes",
                "leave --cpu out, or add --time virtual",
            )
        if self.cpu_ppb and self.preempt_ns:
            raise RunError(
                "where computing takes time, the machine's time says when programs are interrupted "
                "inside it, and no seed can",
                "leave --preempt or --cpu out",
            )
        least, most = CPU_RANGE_PPB
        if self.cpu_ppb and not least <= self.cpu_ppb <= most:
            raise RunError(f"cpu_ppb is {self.cpu_ppb}", "give --cpu model=0.001 to model=1000")

    def _check_reseeds(self) -> None:
        if not self.reseeds:
            return
        if not self.can_branch:
            raise RunError(
                "a run can be the same until a moment and draw anew after it (--reseed) only where "
                "runs repeat to the last byte, on one engine: in virtual time, in which computing "
                "takes none",
                "add --time virtual, and leave --cpu and --hosts out",
            )
        if len(self.reseeds) > MAX_RESEEDS:
            raise RunError(
                f"{len(self.reseeds)} moments from which on to draw anew are too many",
                f"give --reseed up to {MAX_RESEEDS} times",
            )
        for text, seed in self.reseeds.items():
            if not text.isascii() or not text.isdecimal() or not 0 <= seed <= MAX_INTEGER >> 1:
                raise RunError(f"reseeds has {text!r:.40}: {seed}", "use T=SEED")
        first_ns = self.reseeded[0][0]
        if first_ns < max(self.start_at_ns, 1):
            raise RunError(
                f"there is nothing before {say.seconds(first_ns)} that could stay the same",
                "use --seed for another run from its start on",
            )

    def _check_engine(self) -> None:
        if self.datapath == "kernel" and self.hosts == 0 and self.on_this_machine:
            raise RunError(
                "the kernel's datapath knows collapsed paths only, which need an agent",
                "add --hosts 1 (or more), or leave --datapath out",
            )
        if self.packets and (self.hosts or not self.on_this_machine):
            raise RunError(
                "there are files of packets only where one engine has every link: over hosts and in"
                " a cluster no process sees them",
                "leave --packets out, or --hosts and --backend k8s",
            )
        if self.engine_threads > 1 and self.time == VIRTUAL:
            raise RunError(
                "in virtual time packets take no real time, and the engine has one thread",
                "leave --engine-threads or --time virtual out",
            )
        if self.engine_threads and (not self.on_this_machine or self.datapath == "kernel"):
            raise RunError(
                "--engine-threads is for the packet engine on this machine: in a cluster that of"
                " each node chooses itself, and --datapath kernel has none",
                "leave --engine-threads out",
            )

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

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def has_agents(options: RunOptions) -> bool:
    """Whether the network of a run with these options is that of agents, which take whole plans."""
    return bool(options.hosts) or options.backend == K8S


def _check_row(row: Field[Any], value: Any) -> None:
    choices, within = row.metadata.get("choices"), row.metadata.get("within")
    if choices and value not in choices:
        raise RunError(f"{row.name} is {value!r:.60}", f"use {' or '.join(filter(None, choices))}")
    if within is not None and not within[0] <= value <= within[1]:
        raise RunError(f"{row.name} is {value}", within[2])


DEFAULTS = RunOptions()


def decode(record: Any, place: str) -> RunOptions:
    """Options out of JSON; what is missing has its default. RunError that begins with `place` and
    names what is unknown, of another type, or makes no sense."""
    check(record, shape_of(RunOptions), place)
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
