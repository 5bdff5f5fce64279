"""The properties of a link: the one table that plans, limits, paths, datapaths and texts follow.

A new property is a field of LinkState, a row of PROPERTIES and, where it composes along a path, a
field of Totals, at the same place in the order of each. docs/howto/add-a-link-property.md has the
rest. Change anything here and bump FORMAT_VERSION in compiler/plan/format.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from compiler.plan import packet_class
from compiler.plan.format import DISTRIBUTIONS, MAX_INT, MAX_TRACES, PPB

# What a table of delays is called (compiler/plan/parts/delay_tables.py)
MEASURED = r"measured-[0-9a-f]{16}-[0-9]{1,9}-[0-9]{1,5}-[0-9]{1,5}"
_DAY_NS = 86_400 * 10**9


class Along(Enum):
    """What the values of links become along a path (compiler/plan/paths/path_properties.py)."""

    LEAST = "the least, where 0 means unlimited"
    SUM = "the sum"
    SQUARES = "the root of the sum of the squares"
    SHARES = "1 - product of (1 - share)"


class LinkState(NamedTuple):
    """The properties of one link direction in one epoch. A tuple, since nothing is made and
    compared as often."""

    up: bool  # usable: not taken down, and both its ends present
    rate_bps: int  # what is left for traffic (background already taken off), 0 = unlimited
    delay_ns: int
    jitter_ns: int
    loss_ppb: int
    queue_bytes: int
    distribution: str  # of DISTRIBUTIONS, or measured (MEASURED); meaningless at jitter 0
    burst_milli: int = 0  # mean packets of a burst of losses, times 1000; 0: each is drawn alone
    burst_pass_ppb: int = 0  # of packets in a burst, that get through
    gap_loss_ppb: int = 0  # of packets between bursts, that are lost
    duplicate_ppb: int = 0
    corrupt_ppb: int = 0
    reorder_ppb: int = 0  # of packets that keep no order
    reorder_ns: int = 0  # how much later these come; 0: each draws its own jitter
    reject_ppb: int = 0  # of packets that are refused, with an answer
    mtu_bytes: int = 0  # of IP packets; 0: any
    capacity_bps: int = 0  # at which packets leave where others have a part; 0: the rate
    wmax_bytes: int = 0  # of a measured path: a flow has no more on its way
    flow_rates: str = ""  # of a measured path: rate and queue by flows (see FlowRate)
    trace: int = 0  # which of the plan's it follows, from 1 on; the properties above are its means
    aqm: str = ""  # what the queue drops before it is full (docs/plan.md); "": nothing
    queue_packets: int = 0  # the queue is full with, whatever their bytes; 0: only bytes count
    only: str = (
        ""  # a further class of packets, and what it has (compiler/plan/packet_class.py); "": none
    )
    neck: str = ""  # the bottleneck whose queue it shares; "": it has one of its own
    rtt_ns: int = 0  # of a path that shares one, without queues; 0: that queue is as stated


@dataclass(frozen=True, slots=True)
class Property:
    field: str  # of LinkState, with the unit at its end
    word: str  # what datapaths call it
    most: int = 0  # of one link; the language and the datapaths allow as much
    along: Along | None = None  # None: a path has what one of its links has
    stored: int = MAX_INT  # the largest number that a plan can hold
    words: tuple[str, ...] = ()  # in place of a number
    form: str = ""  # of a text in place of a number, or of other words: a regular expression
    rare: bool = False  # 0 of most links: left out of texts and lines where it is
    table: bool = False  # a text of FlowRates; '' for none
    told: bool = True  # to datapaths
    called: str = ""  # in messages, where that is not what datapaths call it

    @property
    def name(self) -> str:
        """For people."""
        return self.called or self.word


PROPERTIES = (
    Property("rate_bps", "rate", 10**13, Along.LEAST),
    Property("delay_ns", "delay", _DAY_NS, Along.SUM),
    Property("jitter_ns", "jitter", _DAY_NS, Along.SQUARES),
    Property("loss_ppb", "loss", PPB, Along.SHARES, stored=PPB),
    Property("queue_bytes", "queue", 1 << 30),
    Property(
        "distribution", "dist", words=DISTRIBUTIONS, form=MEASURED, called="measured distribution"
    ),
    Property("burst_milli", "burst", 10**9, rare=True),
    Property("burst_pass_ppb", "burst-pass", PPB, stored=PPB, rare=True),
    Property("gap_loss_ppb", "gap-loss", PPB, stored=PPB, rare=True),
    Property("duplicate_ppb", "duplicate", PPB, stored=PPB, rare=True),
    Property("corrupt_ppb", "corrupt", PPB, stored=PPB, rare=True),
    Property("reorder_ppb", "reorder", PPB, stored=PPB, rare=True),
    Property("reorder_ns", "by", _DAY_NS, rare=True),
    Property("reject_ppb", "reject", PPB, stored=PPB, rare=True),
    Property("mtu_bytes", "mtu", 65_535, rare=True),
    Property("capacity_bps", "cap", 10**13, rare=True, called="capacity"),
    Property("wmax_bytes", "wmax", 1 << 30, rare=True, told=False),
    Property("flow_rates", "flows", rare=True, table=True),
    Property("trace", "trace", MAX_TRACES, rare=True),
    Property("aqm", "aqm", form=r"[a-z_]{1,20}(;[a-z]{1,20}:[0-9]{1,19}){1,12}|", rare=True),
    Property("queue_packets", "pkts", 715_827, rare=True, called="queue in packets"),
    Property("only", "only", form=packet_class.FORM, rare=True, called="further class"),
    Property(
        "neck",
        "neck",
        form=r"[A-Za-z_][A-Za-z0-9_-]{0,62}(\.up|\.down)?|",
        rare=True,
        called="shared bottleneck",
    ),
    Property("rtt_ns", "rtt", _DAY_NS, rare=True, called="queue by round trip"),
)
RARE = sum(row.rare for row in PROPERTIES)  # they stand at the end
NUMBERS = tuple(row for row in PROPERTIES if not (row.words or row.table or row.form))
COMPOSED = tuple(row for row in PROPERTIES if row.along)
BY_FIELD = {row.field: row for row in PROPERTIES}
BY_WORD = {row.word: row for row in PROPERTIES}


MAX_DRIFT_PPB = 10**8  # of the clock of an instance
MAX_FLOWS = 10_000  # that a table, or a background, tells apart


class FlowRate(NamedTuple):
    """What a path has with so many flows, and as it is written: `2:6000000:844000`, several
    separated by ';', ascending from 2 flows. Between them, and from what the link has with one
    flow, rates and queues lie on straight lines; beyond the last one they are as there."""

    flows: int
    rate_bps: int
    queue_bytes: int


def flow_rates(text: str) -> tuple[FlowRate, ...]:
    """ValueError if it is not written so."""
    return tuple(FlowRate(*map(int, row.split(":"))) for row in text.split(";") if text)


def flow_rates_text(rows: Iterable[FlowRate]) -> str:
    return ";".join(":".join(map(str, row)) for row in rows)


def at_flows(table: Sequence[tuple[int, int]], flows: int) -> int:
    """Of numbers of flows and what these have: between two rows on the straight line, rounded half
    up; beyond the last one as there."""
    last = table[0]
    for row in table:
        if row[0] >= flows:
            steps, part = row[0] - last[0], flows - last[0]
            rise = (row[1] - last[1]) * part
            return last[1] + (2 * rise + steps) // (2 * steps) if steps else row[1]
        last = row
    return last[1]


def flow_table(state: LinkState) -> tuple[FlowRate, ...]:
    """What it has with one flow, and its rows."""
    return (FlowRate(1, state.rate_bps, state.queue_bytes), *flow_rates(state.flow_rates))


def with_flows(table: Sequence[FlowRate], flows: int) -> FlowRate:
    """What so many have."""
    rate = at_flows([(row.flows, row.rate_bps) for row in table], flows)
    queue = at_flows([(row.flows, row.queue_bytes) for row in table], flows)
    return FlowRate(flows, rate, queue)


# Enough rows for straight lines between them to be within 3 % of a hyperbola.
_REACTIVE_ROWS = (*range(2, 17), 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512, 1024)


def beside_flows(state: LinkState, taken_bps: int, flows: int) -> LinkState:
    """What a background that so many flows make leaves: to n flows of programs n parts of as many
    as there are flows, and no less than what it does not take. Source: docs/tdl.md, background."""
    whole = state.rate_bps
    turn = flows * (whole - taken_bps) // taken_bps  # up to so many flows that is the more
    counts = {*_REACTIVE_ROWS, *(n for n in (turn, turn + 1) if 2 <= n < _REACTIVE_ROWS[-1])}

    def left(count: int) -> int:
        return max(whole - taken_bps, whole * count // (count + flows))

    rows = (FlowRate(count, left(count), state.queue_bytes) for count in sorted(counts))
    return state._replace(rate_bps=left(1), capacity_bps=whole, flow_rates=flow_rates_text(rows))


def least_rate(state: LinkState) -> int:
    """What it has with as many flows as have least, 0 = unlimited."""
    return min([state.rate_bps, *(row.rate_bps for row in flow_rates(state.flow_rates))])


def most_rate(state: LinkState) -> int:
    """What it has with as many flows as have most, 0 = unlimited."""
    return max([state.rate_bps, *(row.rate_bps for row in flow_rates(state.flow_rates))])


def least_queue(state: LinkState) -> int:
    return min([state.queue_bytes, *(row.queue_bytes for row in flow_rates(state.flow_rates))])


def most_queue(state: LinkState) -> int:
    return max([state.queue_bytes, *(row.queue_bytes for row in flow_rates(state.flow_rates))])


def has_rare(state: LinkState) -> bool:
    return any(state[-RARE:])


def shown(state: LinkState) -> dict[str, int | str]:
    """All but `up`, by field, and what is rare only where it is not 0."""
    values: tuple[int | str, ...] = state[1:]
    both = zip(PROPERTIES, values, strict=True)
    return {row.field: value for row, value in both if value or not row.rare}


T = TypeVar("T")


class Totals(NamedTuple, Generic[T]):
    """One thing for each property that composes along a path, in the order of COMPOSED."""

    rate_bps: T
    delay_ns: T
    jitter_ns: T
    loss_ppb: T
