"""What was planned and measured of a path, in words: one row of the certificate as table cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tstorm import units

HEAD = ("from", "to", "when", "planned", "measured", "lost")
_LEAST_DIGITS = 3


def cells(path: Mapping[str, Any]) -> tuple[str, ...]:
    """By HEAD."""
    epoch = path["epoch"]
    when = f"{seconds(epoch['from_ns'])} to {seconds(epoch['to_ns'])}"
    measured = path["measured"]
    return (
        *(path["from"], path["to"], when, _planned(path["planned"])),
        *(_measured(measured), _lost(measured)),
    )


def seconds(time_ns: int) -> str:
    """`18 s`, `18.25 s`: to the millisecond."""
    return f"{time_ns / 1e9:.3f}".rstrip("0").rstrip(".") + " s"


def short(time_ns: int) -> str:
    """A measured time in three digits: `16.2 ms`, `980 µs`, `1.25 s`."""
    for size, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if time_ns >= size:
            value = time_ns / size
            digits = max(_LEAST_DIGITS - len(str(int(value))), 0)
            return f"{value:.{digits}f} {unit}"
    return f"{time_ns} ns"


def _planned(planned: Mapping[str, int] | None) -> str:
    if planned is None:
        return "no path"
    words = [units.duration(planned["delay_ns"])]
    if planned["jitter_ns"]:
        words.append(f"± {units.duration(planned['jitter_ns'])}")
    if planned["loss_ppb"]:
        words.append(f"loss {units.probability(planned['loss_ppb'])}")
    if planned["rate_bps"]:
        words.append(units.rate(planned["rate_bps"]))
    return ", ".join(words)


def _measured(measured: Mapping[str, Any] | None) -> str:
    if measured is None or measured.get("delay_p50_ns") is None:
        return "-"
    words = short(measured["delay_p50_ns"])
    if measured.get("delay_p99_ns") is not None:
        words += f", 99 % within {short(measured['delay_p99_ns'])}"
    return words


def _lost(measured: Mapping[str, Any] | None) -> str:
    return "-" if measured is None else f"{measured['lost']} of {measured['probes']}"
