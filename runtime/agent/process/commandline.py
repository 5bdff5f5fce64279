"""The command line of an agent, both ways: the words for a process, and what they mean."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.rpc import endpoint
from runtime.rpc.endpoint import Endpoint

CONTROL_PORT = 7474  # TCP: the agent listens, the coordinator connects
METADATA_PORT = 7473  # UDP: between agents
PPB = 1_000_000_000
WAIT_SECONDS = 60  # for the first coordinator, where nobody says how long


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How one agent is started; what the experiment asks of it comes with `prepare`."""

    plan: Path
    listen: Endpoint
    metadata: Endpoint
    key: str  # a file, or `fd:N`
    datapath_fd: int  # a connected stream socket to the datapath of this host
    resume: bool = False  # wait for a `prepare` that says where the experiment is
    clock_offset_ns: int = 0  # fault injection: this agent's clock is wrong by so much
    drop_metadata_ppb: int = 0  # fault injection: this part of incoming metadata is lost
    clock_step_ns: int = 0  # fault injection: its wall clock is set by so much after a while
    count_ppb: int = PPB  # fault injection: it tells of this part of what was counted
    wait_seconds: int = WAIT_SECONDS  # for the first coordinator; 0: as long as it takes
    ports: Path | None = None  # every interface is entered here before it is attached
    captures: Path | None = None  # programs beside it ask here for packets (LocalCaptures)
    turns_fd: int = -1  # of rt_lock: who shares this machine's processors with it


def argv(options: AgentOptions, python: str = sys.executable) -> list[str]:
    """The command that starts an agent with these options.

    Descriptors named in it (`datapath_fd`, a key of `fd:N`) must be inherited by the process.
    """
    words = [python, "-P", "-m", "runtime.agent", "--plan", str(options.plan)]
    words += ["--listen", endpoint.text(options.listen)]
    words += ["--metadata", endpoint.text(options.metadata)]
    words += ["--key", options.key, "--datapath-fd", str(options.datapath_fd)]
    if options.resume:
        words.append("--resume")
    if options.clock_offset_ns:
        words.append(f"--clock-offset={options.clock_offset_ns}")  # may begin with a minus sign
    if options.drop_metadata_ppb:
        words += ["--drop-metadata", str(options.drop_metadata_ppb)]
    if options.clock_step_ns:
        words.append(f"--clock-step={options.clock_step_ns}")
    if options.count_ppb != PPB:
        words += ["--count", str(options.count_ppb)]
    if options.wait_seconds != WAIT_SECONDS:
        words += ["--wait", str(options.wait_seconds)]
    if options.turns_fd >= 0:
        words += ["--turns-fd", str(options.turns_fd)]
    if options.ports is not None:
        words += ["--ports", str(options.ports)]
    if options.captures is not None:
        words += ["--captures", str(options.captures)]
    return words


def parse(words: Sequence[str]) -> AgentOptions:
    """Exits with status 2 and a message on stderr for words that argv() does not make."""
    parser = argparse.ArgumentParser(prog="runtime.agent", allow_abbrev=False)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--listen", type=_endpoint, required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--metadata", type=_endpoint, required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--key", required=True, metavar="FILE|fd:N")
    parser.add_argument("--datapath-fd", type=_natural, required=True, metavar="N")
    parser.add_argument("--resume", action="store_true")
    offset, lost = "clock_offset_ns", "drop_metadata_ppb"
    parser.add_argument("--clock-offset", dest=offset, type=int, default=0, metavar="NS")
    parser.add_argument("--drop-metadata", dest=lost, type=_ppb, default=0, metavar="PPB")
    step, part = "clock_step_ns", "count_ppb"
    parser.add_argument("--clock-step", dest=step, type=int, default=0, metavar="NS")
    parser.add_argument("--count", dest=part, type=_natural, default=PPB, metavar="PPB")
    patience, seconds = "wait_seconds", WAIT_SECONDS
    parser.add_argument("--wait", dest=patience, type=_natural, default=seconds, metavar="SECONDS")
    parser.add_argument("--ports", type=Path, metavar="FILE")
    parser.add_argument("--captures", type=Path, metavar="FOLDER")
    parser.add_argument("--turns-fd", type=_natural, default=-1, metavar="N")
    return AgentOptions(**vars(parser.parse_args(words)))


def _endpoint(text: str) -> Endpoint:
    try:
        return endpoint.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)


def _ppb(text: str) -> int:
    value = _natural(text)
    if value > PPB:
        raise argparse.ArgumentTypeError(f"{text} is more than {PPB} parts per billion")
    return value
