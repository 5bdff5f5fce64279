"""What a run's verdict is decided by: the one table of names, units, defaults and what they bound.

A name is a figure of runtime/judge/verdict.py. `--threshold NAME=VALUE` replaces a default; the
reason for each is in docs/certificate.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtime.errors import RunError

NS, PPM, PPB, BYTES = "ns", "ppm", "ppb", "bytes"
MS = 1_000_000
PPM_WHOLE, PPB_WHOLE = 10**6, 10**9


@dataclass(frozen=True, slots=True)
class Threshold:
    """`default` in `unit`; `about` completes "at most"."""

    unit: str
    default: int
    about: str


THRESHOLDS: Mapping[str, Threshold] = {
    "network_change": Threshold(NS, 100 * MS, "a change of the network may be so late"),
    "process_change": Threshold(NS, 100 * MS, "a join, leave or crash may be so late"),
    "program_start": Threshold(NS, 250 * MS, "a program may run so late"),
    "engine_late_p50": Threshold(NS, MS, "half of the packets may leave an engine so late"),
    "engine_late_p99": Threshold(NS, MS, "1 of 100 packets may leave an engine later"),
    "engine_late_max": Threshold(NS, 100 * MS, "the latest packet may leave an engine so late"),
    "driver_stall": Threshold(NS, 500 * MS, "the driver may stand still so long"),
    "engine_stall": Threshold(NS, 500 * MS, "an engine may be silent so long"),
    "agent_stall": Threshold(NS, 500 * MS, "an agent may be held up so long"),
    "agent_away": Threshold(NS, 500 * MS, "an agent may be away so long"),
    "clock_away": Threshold(NS, 100 * MS, "a host's clock may move by so much after the start"),
    "path_late": Threshold(NS, MS, "a path may be longer than planned by so much"),
    "path_early": Threshold(NS, MS // 2, "a path may be shorter than planned by so much"),
    "path_tail": Threshold(NS, 10 * MS, "1 of 100 probes may be later than planned by more"),
    "path_jitter": Threshold(PPM, 250_000, "jitter may differ from the planned one by this part"),
    "path_loss": Threshold(PPB, 5_000_000, "a path may lose so much more than planned"),
    "path_rate": Threshold(PPM, 50_000, "a path may carry this part more than its rate"),
    "path_open": Threshold(PPM, 0, "of the probes, where there is no path, may arrive"),
    "unseen": Threshold(PPM, 50_000, "of the time of a pair may pass without a known probe"),
    "drops": Threshold(PPB, 10_000, "of the packets an engine or a device may lose"),
    "counters": Threshold(PPM, 100_000, "counters may differ from the instances' own by this part"),
    "cpu": Threshold(PPM, PPM_WHOLE, "of a machine's processor time may be used"),
    "steal": Threshold(PPM, 100_000, "of a machine's processor time may be taken by its host"),
    "throttled": Threshold(NS, 100 * MS, "the run may be kept from its processors in a second"),
    "swapped": Threshold(BYTES, 16 << 20, "a machine may swap so much in a second"),
    "clock_step": Threshold(NS, 10 * MS, "a host's clock may be set by so much"),
}


def check(given: Mapping[str, int]) -> None:
    """RunError for a name that is none, or a value that makes no sense."""
    for name, value in sorted(given.items()):
        if name not in THRESHOLDS:
            raise RunError(
                f"there is no threshold {name!r:.60}", f"known: {', '.join(sorted(THRESHOLDS))}"
            )
        if value < 0:
            raise RunError(f"the threshold {name} is {value}", "give a value of 0 or more")


def in_force(given: Mapping[str, int]) -> dict[str, int]:
    """Of all of them, in their units."""
    return {name: given.get(name, row.default) for name, row in THRESHOLDS.items()}
