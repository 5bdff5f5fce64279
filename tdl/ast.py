"""The syntax tree of a TDL file: frozen dataclasses, each node with the span it came from.

Units end at the parser: durations are integer nanoseconds (`_ns`), rates integer bits per second
at layer 3 (`_bps`), probabilities integer parts per billion (`_ppb`), sizes integer bytes.
Source: docs/tdl.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of the source. Lines and columns count from 1, columns in characters.

    `file` is the included file as `include` names it, from the file that was read first (which is
    ""); `note` says in which round of a loop the line stood: `$i = 3`.
    """

    line: int
    col: int
    end_line: int
    end_col: int
    file: str = ""
    note: str = ""

    @property
    def place(self) -> tuple[str, int]:
        """File and line, as events have them."""
        return self.file, self.line

    def over(self, line: int, col: int, end_line: int, end_col: int) -> Span:
        """Another range of the same file, in the same round."""
        return Span(line, col, end_line, end_col, self.file, self.note)


def said(place: tuple[str, int]) -> str:
    """`line 7`, `line 7 of net.tdl`."""
    file, line = place
    return f"line {line} of {file}" if file else f"line {line}"


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, with its place."""

    text: str
    span: Span


# --- static part -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bootstrapper:
    image: str
    span: Span


@dataclass(frozen=True, slots=True)
class Seed:
    value: int
    span: Span


@dataclass(frozen=True, slots=True)
class Routing:
    """`routing delay` (default), `routing hops`, `routing direct` or `routing ecmp`."""

    metric: str
    span: Span


@dataclass(frozen=True, slots=True)
class Network:
    """`network dual` (default), `network ipv4` or `network ipv6`."""

    family: str
    span: Span


@dataclass(frozen=True, slots=True)
class Hops:
    """`hops answer` or `hops silent`: whether bridges show to programs that trace paths."""

    word: str
    span: Span


@dataclass(frozen=True, slots=True)
class AutoAddresses:
    """`addresses auto`: link ends that carry frames and have no `address=` get one."""

    span: Span


@dataclass(frozen=True, slots=True)
class Dialect:
    """`dialect kollaps`: what another tool means by the same words is what they mean here."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class StartWhenReady:
    """`start when ready`."""

    span: Span


@dataclass(frozen=True, slots=True)
class QuitWhen:
    """`quit when a;b exit`, or `quit when all exit` with no names."""

    services: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FileItem:
    """One of `files=`: SOURCE[:TARGET] as written, a file or a folder."""

    source: str
    target: str  # '' = not stated
    span: Span


@dataclass(frozen=True, slots=True)
class TraceFile:
    """What a link follows. `number` and `means` are the compiler's: which of the plan's traces it
    is, and what its properties are on the whole (compiler/declare/named/named_files.py)."""

    source: str
    holds: bool  # its last values stay; else it begins again at its end
    span: Span
    number: int = 0
    means: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class DelayFile:
    """Measured delays. What follows is the compiler's (compiler/declare/named/named_files.py):
    the `distribution` that a plan's states have, and the mean and the deviation of the delays, 0
    where the file has neither."""

    source: str
    span: Span
    distribution: str = ""
    mean_ns: int = 0
    deviation_ns: int = 0


@dataclass(frozen=True, slots=True)
class MountItem:
    """One of `mount=`: SOURCE:TARGET[:ro]."""

    source: str
    target: str
    read_only: bool
    span: Span


@dataclass(frozen=True, slots=True)
class External:
    """What `external` says: real machines behind a network card of this machine."""

    card: str
    behind: str  # their address or addresses, as the network of a prefix
    own: str = ""  # ADDRESS/PREFIX that the run has on the card, '' for none
    gateway: str = ""  # the machine that leads to them, '' where they are at the card itself


@dataclass(frozen=True, slots=True)
class ServiceStatement:
    name: Name
    span: Span
    image: str | None = None
    exec: str | None = None
    command: tuple[str, ...] | None = None
    entrypoint: tuple[str, ...] | None = None
    replicas: int | None = None
    tags: tuple[Name, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    ports: tuple[int, ...] = ()
    cpu_millis: int | None = None
    mem_bytes: int | None = None
    user: str | None = None
    cwd: str | None = None
    files: tuple[FileItem, ...] = ()
    mounts: tuple[MountItem, ...] = ()
    fs: str | None = None
    sysctls: tuple[tuple[str, str], ...] = ()
    setup: str | None = None
    ready: str | None = None
    ready_timeout_ns: int | None = None
    stop: str | None = None
    grace_ns: int | None = None
    expect: str | None = None
    keep: bool | None = None
    # Options of the public dialect, accepted and carried: supervisor, share, reuse, network.
    options: tuple[tuple[Name, str], ...] = ()
    aliases: tuple[Name, ...] = ()  # alias= has them, too
    interfaces: Name | None = None  # the word, where each link is an interface of its own
    router: Name | None = None  # the word, where instances forward by themselves
    gateway: Name | None = None  # the word, where they forward to the outside as well
    external: External | None = None  # no program: machines outside (`external NAME …`)

    @property
    def own_interfaces(self) -> Name | None:
        """The word by which each link is an interface of its own."""
        return self.interfaces or self.forwards

    @property
    def forwards(self) -> Name | None:
        """The word by which instances forward by themselves."""
        return self.router or self.gateway


@dataclass(frozen=True, slots=True)
class Bridges:
    """`bridge NAME [tags=…]` or `bridges N1 N2 …`, or `lan NAME [kernel] [tags=…]`, or `air NAME
    [tags=…]`: of an air the compiler makes
    a radio for each station, which is an air, too. An air is a lan, of which others are not."""

    names: tuple[Name, ...]
    span: Span
    tags: tuple[Name, ...] = ()
    lan: bool = False
    air: bool = False
    of_kernel: bool = False  # a bridge of the kernel's, in a machine with parts


class InterfaceAddress(NamedTuple):
    """An address with the length of its network's prefix, of an end of a link. `counts`: that of
    the first instance; each further one has the next."""

    text: str  # canonical
    prefix: int
    counts: bool = False


class EndAddresses(NamedTuple):
    """What `address=` says of an end: at most one address of each family, IPv4 first."""

    found: tuple[InterfaceAddress, ...]
    span: Span


FlowTable = tuple[tuple[int, int], ...]  # flows and the rate of all of them, ascending from 1 flow


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """`bottleneck NAME …`: a queue that several paths share."""

    name: Name
    span: Span
    capacity_bps: int
    queue_bytes: int | None = None  # None: it follows from its paths


class Neck(NamedTuple):
    """What a direction of a path shares with others: a bottleneck, which of the two queues of one
    that is named for both directions, in `name`."""

    name: str
    capacity_bps: int
    queue_bytes: int | None


class PathTerms(NamedTuple):
    """What a `path A--B` says beside what links have, or a `set` has made of it. `up` is A to B.
    None: it follows from the rest (compiler/path_queues.py)."""

    abw_up: FlowTable
    abw_down: FlowTable
    capacity_bps: int
    wmax_bytes: int | None
    rtt_ns: int  # of both directions together
    queue_up: int | None  # bytes
    queue_down: int | None
    neck_up: Neck | None = None  # None: the path has a queue of its own
    neck_down: Neck | None = None


class QueueSize(NamedTuple):
    """The size of a queue as it is given: in bytes, in packets, or in ns at the link's rate."""

    value: int
    unit: str  # 'bytes', 'packets' or 'ns'


@dataclass(frozen=True, slots=True)
class LinkStatement:
    """`link A--B …`. `up` is A to B, `down` is B to A; None = unlimited. A `link A->B …` is
    `directed`: it says the one direction, and `back`, which the compiler finds, the other. Of a
    `path A--B …` rates, latency and queues are in `path`.

    An end with an index is one instance of the service (`link server.3--s1`). Two ends that are one
    service without an index link each two of its instances, the lower one as A.
    """

    a: Name
    b: Name
    span: Span
    latency_ns: int = 0
    jitter_ns: int = 0
    loss_ppb: int = 0
    burst_milli: int = 0
    burst_pass_ppb: int = 0
    gap_loss_ppb: int = 0
    duplicate_ppb: int = 0
    corrupt_ppb: int = 0
    reorder_ppb: int = 0
    reorder_ns: int = 0
    reject_ppb: int = 0
    mtu_bytes: int = 0
    up_bps: int | None = None
    down_bps: int | None = None
    symmetric: bool = False
    queue: QueueSize | None = None
    aqm: str = ""  # canonical (tdl/aqm.py)
    distribution: str | DelayFile | None = None
    tags: tuple[Name, ...] = ()
    # Options of the public dialect that are accepted and carried (network).
    options: tuple[tuple[Name, str], ...] = ()
    a_index: int | None = None
    b_index: int | None = None
    directed: bool = False
    back: LinkStatement | None = None
    path: PathTerms | None = None
    neck_up: Name | None = None  # bottlenecks of a path; the same one twice: `bottleneck=`
    neck_down: Name | None = None
    trace_up: TraceFile | None = None
    trace_down: TraceFile | None = None
    name: Name | None = None  # of `name=`, which no other link and no element has
    address_a: EndAddresses | None = None
    address_b: EndAddresses | None = None
    several: bool = False  # one of those that a link to a part of each machine stands for
    gateway: str | None = None  # an address, or 'none'; None: it follows from the network

    @property
    def is_mesh(self) -> bool:
        """Between all instances of one service."""
        return self.a.text == self.b.text and self.a_index is None


@dataclass(frozen=True, slots=True)
class NodeStatement:
    """`node NAME … { … }`: machines with parts, which are services, bridges and links of their own.
    What the body names is a part (compiler/declare/nodes/machines.py)."""

    name: Name
    span: Span  # of its first line
    replicas: int = 1
    cpu_millis: int | None = None  # of all parts of a machine together
    mem_bytes: int | None = None
    tags: tuple[Name, ...] = ()
    body: tuple[ServiceStatement | Bridges | LinkStatement, ...] = ()


# --- selectors -------------------------------------------------------------------------------


class Unit(Enum):
    NUMBER = "number"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Count:
    """How many: `3` (value 3) or `40%` (value in parts per billion of the whole, 400_000_000)."""

    unit: Unit
    value: int
    span: Span


@dataclass(frozen=True, slots=True)
class Everything:
    """No selector: everything that the action can apply to."""

    span: Span


@dataclass(frozen=True, slots=True)
class Element:
    """A service, a bridge, or with `index` one instance (`server.3`)."""

    name: Name
    span: Span
    index: int | None = None


@dataclass(frozen=True, slots=True)
class LinkSelector:
    """`a--b` (both directions) or `a->b` (`directed`). Ends may be instances. With `name`, as in
    `fast:a->b`, the one of several links between them that is called so."""

    a: Element
    b: Element
    directed: bool
    span: Span
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class Tagged:
    """`tags=x;y`: whatever carries any of these tags."""

    tags: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Members:
    """The compiler's: what a name of machines or of their parts stands for. `whole`: of machines as
    a whole, with the links that leave one of them in `leaving`."""

    written: Element | LinkSelector
    found: tuple[Element | LinkSelector, ...]
    span: Span
    whole: bool = False
    leaving: tuple[LinkSelector, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """`3 of tags=place`: so many of what is selected, drawn when the statement happens."""

    count: Count
    of: Element | LinkSelector | Tagged | Members
    span: Span


Selector = Everything | Element | LinkSelector | Tagged | Members | Some


def drawn_from(selector: Selector) -> Selector:
    """What is selected before some of it are drawn."""
    return selector.of if isinstance(selector, Some) else selector


# --- actions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Join:
    count: Count | None
    span: Span


@dataclass(frozen=True, slots=True)
class Leave:
    """`sometime`: in an interval, each at a moment of its own and for good, whatever it is."""

    count: Count | None
    span: Span
    sometime: bool = False


@dataclass(frozen=True, slots=True)
class Crash:
    """`power`: its disk keeps what was synced, and of the rest what is drawn."""

    count: Count | None
    span: Span
    power: bool = False


@dataclass(frozen=True, slots=True)
class Kill:
    """The programs die, the host stays."""

    count: Count | None
    span: Span


@dataclass(frozen=True, slots=True)
class Churn:
    count: Count
    replace_ppb: int
    span: Span


@dataclass(frozen=True, slots=True)
class Disconnect:
    """`for_ns`: reconnects the same after so long; None where an interval says it, or nothing."""

    count: Count | None
    span: Span
    for_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Reconnect:
    count: Count | None
    span: Span


@dataclass(frozen=True, slots=True)
class Pause:
    """`for_ns` as in Disconnect: when the same are resumed."""

    count: Count | None
    span: Span
    for_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    count: Count | None
    span: Span


@dataclass(frozen=True, slots=True)
class Restart:
    """A crash, and a join of the same instances `after_ns` later."""

    count: Count | None
    span: Span
    after_ns: int = 0


@dataclass(frozen=True, slots=True)
class Flap:
    period_ns: int
    span: Span


class Op(Enum):
    """How `set` writes a value: `=5ms`, `=200%` (value in ppb), `+=5ms`, `-=5ms`."""

    ASSIGN = "="
    SCALE = "%"
    ADD = "+="
    SUB = "-="


@dataclass(frozen=True, slots=True)
class Assignment:
    """One `prop=value`. `prop` is one of CHANGEABLE (tdl/tokens/words.py).

    `value` is in the property's own unit (ns, ppb, bps, bytes), or ppb for SCALE; None stands for
    `unlimited`; `dist` and `aqm` carry their text in `word`, `queue` the unit of its value where it
    is not bytes, or `auto` of a path, a trace its file (beside `trace`: None for none), and so a
    measured `dist` (beside `delays`); a table has `rows`.
    """

    prop: Name
    op: Op
    value: int | None
    span: Span
    word: str | None = None
    rows: FlowTable = ()
    trace: TraceFile | None = None
    delays: DelayFile | None = None


@dataclass(frozen=True, slots=True)
class Only:
    """Some of a link's packets: of one of the protocols ('tcp', 'udp:53'), from one of the sources
    and to one of the destinations, where there are any; without all of them `only=none`."""

    span: Span
    protocols: tuple[str, ...] = ()
    sources: tuple[Element, ...] = ()
    dests: tuple[Element, ...] = ()

    @property
    def is_none(self) -> bool:
        return not (self.protocols or self.sources or self.dests)


@dataclass(frozen=True, slots=True)
class Set:
    """`verb` is how it is written: `leave only=…` loses all of these packets, `reject` refuses
    them, or all packets."""

    assignments: tuple[Assignment, ...]
    span: Span
    only: Only | None = None
    verb: str = "set"


@dataclass(frozen=True, slots=True)
class SetClock:
    """`set clock=+200ms drift=50ppm`: how far the real-time clock of instances is off, and how fast
    it drifts; None: not stated. With `op` ADD or SUB it steps by `offset_ns`, which is not negative
    then."""

    offset_ns: int | None
    op: Op
    drift_ppb: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class SetDisk:
    """`set disk=slow:20ms`: what the disk of instances is like. `fault`: one of DISK_FAULTS
    (tdl/tokens/words.py). `amount`: of slow in ns, of error in ppb, else 0."""

    fault: str
    amount: int
    span: Span


@dataclass(frozen=True, slots=True)
class Ramp:
    """From what the properties are at the beginning to these values at the end, in steps
    `every_ns` apart."""

    assignments: tuple[Assignment, ...]
    every_ns: int
    span: Span
    only: Only | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups of members; a member is an element or a tag selector. `one_way`: of two groups, from
    the first to the second only. `only`: for these packets, the links stay. `count`: so many of the
    one group, drawn, from all others of it."""

    groups: tuple[tuple[Element | Tagged, ...], ...]
    span: Span
    one_way: bool = False
    only: Only | None = None
    count: Count | None = None


@dataclass(frozen=True, slots=True)
class Heal:
    span: Span


@dataclass(frozen=True, slots=True)
class Background:
    """`flows`: so many flows make it, which give way to those of programs; 0: it takes its rate
    whatever happens."""

    rate_bps: int
    span: Span
    flows: int = 0


@dataclass(frozen=True, slots=True)
class Quit:
    span: Span


@dataclass(frozen=True, slots=True)
class Move:
    """The compiler's: which links come up and go down at which times, by names of their two ends.
    Those that are not up at 0 s are down at first."""

    links: tuple[tuple[str, str], ...]
    changes: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]  # time, up, down
    span: Span


Counted = Join | Leave | Crash | Kill | Disconnect | Reconnect | Pause | Resume | Restart
Action = (
    Counted
    | Churn
    | Flap
    | Set
    | SetClock
    | SetDisk
    | Ramp
    | Partition
    | Heal
    | Background
    | Quit
    | Move
)


@dataclass(frozen=True, slots=True)
class DrawnTiming:
    """What a statement draws of itself: its `moment`, from its interval, and how long it lasts.
    Both lengths 0: for good (`sometime`)."""

    moment: bool
    shortest_ns: int = 0
    longest_ns: int = 0


@dataclass(frozen=True, slots=True)
class Dynamic:
    """`at T …` (`end_ns` None) or `from T1 to T2 …`; one selector and action.

    `… and …` chains and lists of names (`a;b leave`) become several Dynamic nodes with the same
    times and their own spans. `from T1 …` without an end has `open_ended` (churn and flap only): it
    goes on until `quit`. `drawn`: `for 1s..2s`, or `sometime` in an interval.
    """

    start_ns: int
    end_ns: int | None
    selector: Selector
    action: Action
    span: Span
    open_ended: bool = False
    drawn: DrawnTiming | None = None


# --- expectations ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Everyone:
    """`*`: every instance."""

    span: Span


Subject = Element | Everyone


@dataclass(frozen=True, slots=True)
class Window:
    """When an expectation is about the run; None: from its beginning, to its end.

    `eventually`: once within the window is enough (`within D after T`, `at T within D`). A moment
    (`at T`) has both ends at T. `after_faults`: both count from the last event of the timeline
    (`within D after faults`).
    """

    from_ns: int | None
    to_ns: int | None
    span: Span
    eventually: bool = False
    after_faults: bool = False


@dataclass(frozen=True, slots=True)
class Expect:
    """`expect …`. Each kind has the fields that it needs; the others are empty."""

    kind: str  # one of EXPECTED (tdl/tokens/words.py), or 'no_log'
    span: Span
    subjects: tuple[tuple[Subject, ...], ...] = ()  # both ends of pairs; else whose; `on` of run
    window: Window | None = None
    statistic: str = ""  # rtt: one of STATISTICS
    op: str = ""
    value: int = 0  # rtt: ns, throughput: b/s, loss: ppb, exit: the status; ppb with `of_plan`
    of_plan: bool = False
    # Of lines: the pattern; run: the command line; of histories: the file; drivers: the folder
    text: str = ""
    model: str = ""  # linearizable: one of MODELS
    # always, sometimes, eventually: what of a line has to be `op` `number`, or has to have the
    # pattern `has` in it: the value at this key of the JSON in it; without, its group or all of it
    key: str = ""
    number: str = ""
    has: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """`figure NAME = log …` or `figure NAME = json …`: a number that programs give."""

    name: Name
    span: Span
    subjects: tuple[Subject, ...]
    pattern: str = ""  # of a line of the log, with one group
    path: str = ""  # of a JSON file, in the directory of the instance
    key: str = ""  # where in it


@dataclass(frozen=True, slots=True)
class When:
    """`when … { … }`: what happens when something is seen of an instance, which is `it` in the
    `body`. Times of the body count from then."""

    kind: str  # one of CONDITIONS (tdl/tokens/words.py)
    span: Span  # of its first line
    subjects: tuple[Subject, ...]
    pattern: str = ""  # log: of a line; file: its path
    status: int | None = None  # exit: with this one only
    every: bool = False  # else once, for all of the instances together
    after_ns: int = 0
    most: int | None = None  # with `every`: how often; None: not stated
    body: tuple[Dynamic, ...] = ()


@dataclass(frozen=True, slots=True)
class HuntBound:
    """A bound of a `hunt`. `kind`: one of HUNT_KINDS or HUNT_POWER (tdl/tokens/words.py), `most`,
    `lasting` or `quiet`. `low` and `high` are in ns, of shares and drifts in ppb; of a clock they
    differ in their sign only. `count`: how many at a time, of `most` how many faults; None: not
    stated."""

    kind: str
    span: Span
    subjects: tuple[Subject, ...] = ()  # none: any
    count: int | None = None
    low: int = 0
    high: int = 0
    at: str = ""  # quiet: `start` or `end`


@dataclass(frozen=True, slots=True)
class Hunt:
    """`hunt { … }`: the bounds of a space of storms. A run does not look at it."""

    span: Span  # of its first line
    body: tuple[HuntBound, ...] = ()


@dataclass(frozen=True, slots=True)
class MobileNodes:
    """One of `nodes=`: SERVICE:PREFIX, whose instances are at the nodes with such names."""

    service: Name
    prefix: str  # '' = all


@dataclass(frozen=True, slots=True)
class Mobility:
    """`mobility FILE …`: nodes that move, and the links between them. None = not stated; of rates
    and losses one of value and file at most is."""

    source: str
    span: Span
    place: Span  # of the file's name
    format: str | None = None
    unit: str | None = None
    nodes: tuple[MobileNodes, ...] = ()
    range_mm: int | None = None
    body_mm: int | None = None
    every_ns: int | None = None
    latency_ns: int | None = None  # None: what light takes
    latency_step_ns: int | None = None
    rate_bps: int | None = None
    rate_file: str | None = None
    loss_ppb: int | None = None
    loss_file: str | None = None
    transceivers: int | None = None
    allocate: str | None = None


Setting = (
    Bootstrapper
    | Seed
    | Routing
    | Network
    | Hops
    | AutoAddresses
    | Dialect
    | StartWhenReady
    | QuitWhen
)
Statement = (
    Setting
    | ServiceStatement
    | Bridges
    | Bottleneck
    | LinkStatement
    | Mobility
    | NodeStatement
    | Dynamic
    | Expect
    | Figure
    | When
    | Hunt
    | HuntBound
)


@dataclass(frozen=True, slots=True)
class File:
    statements: tuple[Statement, ...]
