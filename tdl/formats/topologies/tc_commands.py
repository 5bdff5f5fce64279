"""Commands of tc(8) that shape an interface, as what TDL says of one direction of a link.

Input: a command line as labs run it in a node, `tc qdisc add dev eth1 root netem delay 20ms`.
Output: the interface and properties by their words, or None of a command that shapes none; what of
it has no property, and what it means otherwise than it looks. Source: tc-netem(8), tc-tbf(8).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

_SEPARATORS = re.compile(r"&&|;")
_VERBS = ("add", "replace", "change")
_TIME = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(?:(ns|us|ms|s)(?:ecs?)?)?", re.ASCII)
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,7})?)%?", re.ASCII)
_RATE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)([kmg]?)(bit|bps)?", re.IGNORECASE | re.ASCII)
_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_SHARES = ("loss", "duplicate", "corrupt")
_DISTRIBUTIONS = ("uniform", "normal", "pareto", "paretonormal")


class NoShapingError(Exception):
    """What is wrong with a command."""


@dataclass(slots=True)
class Shaping:
    """Of one interface. `lost` are words without a property, `otherwise` what looks like something
    else."""

    device: str
    words: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    otherwise: list[str] = field(default_factory=list)


def shapings(text: str) -> Iterator[Shaping | None]:
    """Of each command of a line, None for what is another one. NoShapingError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise NoShapingError(f"no shell splits this into words: {error}") from None
    if len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash", "ash"):
        text = words[2]
    for command in _SEPARATORS.split(text):
        if command.strip():
            yield _shaping(command.split())


def _shaping(words: list[str]) -> Shaping | None:
    words = words[1:] if words[0] == "sudo" else words
    if words[0].rpartition("/")[2] != "tc" or words[1:2] not in (["qdisc"], ["q"]):
        return None
    if words[2:3] and words[2] not in _VERBS:
        return None
    at = next((n for n, one in enumerate(words) if one in ("netem", "tbf")), 0)
    device = words[words.index("dev") + 1 : at][:1] if "dev" in words else []
    if not at or not device:
        return None
    found = Shaping(device[0])
    left = words[at + 1 :]
    take = _netem if words[at] == "netem" else _tbf
    while left:
        take(found, left.pop(0), left)
    if "jitter" in found.words:
        found.words.setdefault("dist", "uniform")
    else:
        found.words.pop("dist", None)
    return found


def _netem(found: Shaping, word: str, left: list[str]) -> None:
    if word in ("delay", "latency"):
        found.words["latency"] = _time(found, word, left)
        if left and _TIME.fullmatch(left[0]):
            found.words["jitter"] = _time(found, "jitter", left)
            _correlation(found, word, left)
    elif word in _SHARES and left[:1] not in (["state"], ["gemodel"]):
        if left[:1] == ["random"]:
            left.pop(0)
        found.words[word] = f"{_matched(_SHARE, word, left)[1]}%"
        _correlation(found, word, left)
    elif word == "distribution" and left[:1] and left[0] in _DISTRIBUTIONS:
        found.words["dist"] = left.pop(0)
    elif word == "rate":
        found.words["up"] = _rate(left)
    else:
        _lost(found, word, left)


def _tbf(found: Shaping, word: str, left: list[str]) -> None:
    if word == "rate":
        found.words["up"] = _rate(left)
    elif word in ("latency", "lat"):
        found.words["queue"] = _time(found, word, left)
    elif word in ("burst", "buffer", "maxburst", "mtu", "mpu", "minburst"):
        del left[:1]  # how much at once: a link has its rate at every moment
    else:
        _lost(found, word, left)


def _lost(found: Shaping, word: str, left: list[str]) -> None:
    """With its values, up to the next word."""
    found.lost.append(word)
    while left and not left[0].isalpha():
        left.pop(0)
    if word in ("loss", "distribution") and left:
        found.lost[-1] += f" {left.pop(0)}"
        while left and not left[0].isalpha():
            left.pop(0)


def _correlation(found: Shaping, word: str, left: list[str]) -> None:
    if left and _SHARE.fullmatch(left[0]):
        found.lost.append(f"the correlation of {word}")
        left.pop(0)


def _matched(pattern: re.Pattern[str], word: str, left: list[str]) -> re.Match[str]:
    said = left.pop(0) if left else ""
    match = pattern.fullmatch(said)
    if match is None:
        raise NoShapingError(f"'{said[:40]}' is no {word} of tc")
    return match


def _time(found: Shaping, word: str, left: list[str]) -> str:
    match = _matched(_TIME, word, left)
    if match[2] is None and float(match[1]):
        found.otherwise.append(f"{word} {match[1]} without a unit is {match[1]} microseconds")
    return f"{match[1]}{match[2] or 'us'}"


def _rate(left: list[str]) -> str:
    match = _matched(_RATE, "rate", left)
    bits = 8 if (match[3] or "").lower() == "bps" else 1
    exact = Decimal(match[1]) * _SCALES[match[2].lower()] * bits
    return f"{int(exact)}b"
