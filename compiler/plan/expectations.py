"""What an experiment expects of its programs and its network: the contract between the statements
`expect …` and whoever judges them.

Expectations draw nothing and change no event: a plan with them has the same timeline and snapshots
as one without. Times are plan time in nanoseconds. Specified in docs/plan.md.
"""

from __future__ import annotations

from dataclasses import dataclass

RTT, THROUGHPUT, LOSS, UNREACHABLE = "rtt", "throughput", "loss", "unreachable"
LOG, NO_LOG, EXIT, RUN, VALID = "log", "no_log", "exit", "run", "valid"
KINDS = (RTT, THROUGHPUT, LOSS, UNREACHABLE, LOG, NO_LOG, EXIT, RUN, VALID)
OF_PAIRS = (RTT, THROUGHPUT, LOSS, UNREACHABLE)
OPERATORS = ("<", "<=", ">", ">=")
STATISTICS = ("median", "mean", "p90", "p99", "max", "min")  # of the round trips in the interval


@dataclass(frozen=True, slots=True)
class PlannedExpectation:
    """One statement. Where a kind has no use for a field, it has its default.

    It is judged over [from_ns, to_ns]. With `eventually` it is enough that it comes true within
    the interval (`at T within D`, `within D after T`); without, it must hold for all of it.
    """

    text: str  # the statement in canonical form
    kind: str  # one of KINDS
    line: int  # of the source
    file: str = ""  # the included file that the line is in, '' = the source itself
    pairs: tuple[tuple[int, int], ...] = ()  # (source, destination): nodes; OF_PAIRS
    nodes: tuple[int, ...] = ()  # instances of LOG, NO_LOG and EXIT; of RUN the one that runs it
    op: str = ""  # one of OPERATORS: RTT, THROUGHPUT, LOSS
    value: int = 0  # RTT: ns; THROUGHPUT: b/s; LOSS: ppb; EXIT: the status
    of_plan: bool = False  # `value` is ppb of what the plan has for the pair at the time
    statistic: str = ""  # RTT: one of STATISTICS
    pattern: str = ""  # LOG, NO_LOG: a regular expression (Python's `re`) that a line has in it
    argv: tuple[str, ...] = ()  # RUN
    from_ns: int = 0
    to_ns: int = 0
    eventually: bool = False
