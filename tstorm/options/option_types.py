"""Types of values that options take, each with its own words for what is wrong."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from compiler.plan.paths.flows import FlowTuple


class MeasureType(click.ParamType[int]):
    """A number with a unit as TDL writes it, as an integer in the unit of tdl.values.

    `reads` is the name of the function there that reads it.
    """

    def __init__(self, name: str, reads: str, missing: str) -> None:
        self.name = name
        self._reads = reads
        self._missing = missing

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from tdl import values

        if not value:
            self.fail(self._missing, param, ctx)
        try:
            found: int = getattr(values, self._reads)(value)
        except values.ValueProblem as problem:
            hint = f" ({problem.hint})" if problem.hint else ""
            self.fail(f"{problem.message}{hint}", param, ctx)
        if found == 0 and self._reads not in ("time", "cpu"):
            self.fail(f"a {self.name} of zero compares with nothing", param, ctx)
        return found


DURATION = MeasureType("duration", "time", "a duration is missing, such as 90s, 1h30m or 250ms")
RATE = MeasureType("rate", "rate", "a rate is missing, such as 10Gb or 800Mb")
CPU = MeasureType("number of processors", "cpu", "a number of processors is missing, such as 0.5")
ROUND_TRIP = MeasureType("round trip", "latency", "a time is missing, such as 0.5ms or 200us")


class AroundType(click.ParamType[tuple[int, int]]):
    """A moment and how far to look before and after it: `45s±3s`, both in ns."""

    name = "moment"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        at, sign, reach = value.replace("+-", "±").partition("±")
        found = DURATION.convert(at.strip(), param, ctx)
        return found, DURATION.convert(reach.strip(), param, ctx) if sign else 10**9


AROUND = AroundType()
_FLOW = re.compile(
    r"(?:(?P<name>tcp|udp|sctp)(?P<six>6?):(?P<source>[0-9]{1,5})>(?P<dest>[0-9]{1,5})"
    r"|icmp(?P<icmp>6?)|(?P<number>[0-9]{1,3}))(?:@(?P<label>0x[0-9a-fA-F]{1,8}|[0-9]{1,7}))?"
)


class FlowType(click.ParamType["FlowTuple"]):
    """What the packets of a flow have in common: `tcp:5001>80`, `udp6:1>2@0x1234`, `icmp`, `47`."""

    name = "flow"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> FlowTuple:
        from compiler.plan.paths import flows

        if isinstance(value, flows.FlowTuple):
            return value
        found = _FLOW.fullmatch(value)
        if found is None:
            hint = "a flow is tcp:PORT>PORT, udp:…, sctp:…, icmp or the number of a protocol"
            self.fail(f"{hint}, quoted for the shell: --flow 'tcp:5001>80'", param, ctx)
        names = {"tcp": flows.TCP, "udp": flows.UDP, "sctp": flows.SCTP, None: flows.ICMP}
        protocol = int(found["number"] or names[found["name"]])
        source, dest = (int(found[end] or 0) for end in ("source", "dest"))
        label = int(found["label"] or "0", 0)
        if protocol > 255 or max(source, dest) > 65535 or label > 0xFFFFF:
            self.fail("ports end at 65535, protocols at 255, labels at 0xfffff", param, ctx)
        six = found["six"] or found["icmp"] or found["label"]
        return flows.FlowTuple(protocol, source, dest, label, 6 if six else 0)


FLOW = FlowType()
_TOO_FINE = re.compile(r"[.,]\d{7}")


class InstantType(click.ParamType[int]):
    """A date, or date and time, of ISO 8601, in ns since 1970; UTC unless it says more."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is no date such as 2026-03-01 or 2026-03-01T12:00:00Z", param, ctx
            )
        if _TOO_FINE.search(value):  # fromisoformat would leave the rest out
            self.fail(f"{value!r} is too exact: microseconds are kept", param, ctx)
        known = found if found.tzinfo else found.replace(tzinfo=UTC)
        since = known - datetime(1970, 1, 1, tzinfo=UTC)
        return since // timedelta(microseconds=1) * 1000


INSTANT = InstantType()


class CpuModelType(click.ParamType[int]):
    """What computing costs: `model=FACTOR` in billionths, `none` as 0."""

    name = "model"
    _known = "say model=FACTOR, such as model=1 or model=0.25, or none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from decimal import Decimal

        from runtime.options import CPU_RANGE_PPB

        if value == "none":
            return 0
        word, _, text = value.partition("=")
        if word != "model" or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
            self.fail(f"{value!r} says not what computing costs: {self._known}", param, ctx)
        found = int(Decimal(text) * 10**9)
        least, most = CPU_RANGE_PPB
        if not least <= found <= most:
            self.fail(f"the factor is {text}; give one from 0.001 to 1000", param, ctx)
        return found


CPU_MODEL = CpuModelType()


class ThreadsType(click.ParamType[int]):
    """How many threads, `auto` as 0."""

    name = "threads"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        from runtime.options import MAX_ENGINE_THREADS

        known = [str(number) for number in range(1, MAX_ENGINE_THREADS + 1)]
        if value not in ("auto", *known):
            self.fail(f"{value!r} is neither auto nor 1 to {MAX_ENGINE_THREADS}", param, ctx)
        return 0 if value == "auto" else int(value)


THREADS = ThreadsType()


# Whether it can be read is found out by reading it, with the kernel's own words.
INPUT = click.Path(allow_dash=True, readable=False)


class TextType(click.ParamType[str]):
    """A text. An empty one is more likely an unset variable than meant."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            self.fail("nothing is given", param, ctx)
        return value


class DirectoryType(click.Path):
    """A directory to write. An empty name is more likely an unset variable than meant."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail("the name of a directory is missing", param, ctx)
        return super().convert(value, param, ctx)


DIRECTORY = DirectoryType()


MOST_SEED = 2**63 - 1


class WholeNumber(click.IntRange):
    """An integer in a range, called so in messages."""

    name = "whole number"
