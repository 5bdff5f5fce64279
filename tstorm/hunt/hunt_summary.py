"""What a hunt covered and found, beside an earlier hunt's: as data, and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from tstorm.campaign.results import never_in_any
from tstorm.hunt.hunt_directory import FINDS, HuntRecord
from tstorm.hunt.hunt_results import FAILED, PASSED, SILENT, FindResult, StormResult

SHOWN = 20  # of what is new, gone or rare
_CLASSES = {
    "state": "states that programs name",
    "states": "states of all instances together",
    "heard": "who heard from whom after whom, how often",
    "lost": "losses",
    "near": "distances of expectations from their bounds",
    "figure": "sizes of figures",
}


def gathered(
    place: Path,
    record: HuntRecord,
    storms: Mapping[int, StormResult],
    finds: Mapping[int, FindResult],
    earlier: tuple[Mapping[int, StormResult], Mapping[int, FindResult]] | None = None,
) -> dict[str, Any]:
    """`earlier`: the results of a hunt before, if there is one to compare with."""
    outcomes = Counter(one.outcome for one in storms.values())
    reached = Counter(word for one in storms.values() for word in one.reached)
    found: dict[str, Any] = {
        "experiment": record.experiment,
        "directory": str(place),
        "seed": record.seed,
        "storms": len(storms),
        "outcomes": {name: outcomes[name] for name in (PASSED, FAILED, SILENT)},
        "faults": dict(sorted(_faults(storms).items())),
        "reached": _by_class(reached),
        "rare": sorted(word for word, count in reached.items() if count == 1),
        "finds": [_find(place, one, finds) for one in _firsts(finds)],
        "not_again": sorted(one.storm for one in finds.values() if not one.find),
        "never": never_in_any((one.happened, one.never) for one in storms.values()),
    }
    if earlier is not None:
        before = {word for one in earlier[0].values() for word in one.reached}
        found["beside"] = {
            "storms": len(earlier[0]),
            "new": _apart(reached, before),
            "gone": _apart(before, reached),
            "finds": _beside(finds, earlier[1]),
        }
    return found


def _faults(storms: Mapping[int, StormResult]) -> Counter[str]:
    return Counter(fault.kind for one in storms.values() for fault in one.storm.faults)


def _by_class(words: Collection[str]) -> dict[str, int]:
    counts = Counter(word.partition(" ")[0] for word in words)
    return {name: counts[name] for name in _CLASSES}


def _apart(some: Collection[str], others: Collection[str]) -> list[str]:
    return sorted(set(some) - set(others))


def _firsts(finds: Mapping[int, FindResult]) -> list[FindResult]:
    return sorted((one for one in finds.values() if one.is_first), key=lambda one: one.find)


def _find(place: Path, one: FindResult, finds: Mapping[int, FindResult]) -> dict[str, Any]:
    storms = sorted(other.storm for other in finds.values() if other.find == one.find)
    return {
        "find": one.find,
        "failures": list(one.failures),
        "kinds": list(one.kinds),
        "faults": one.faults,
        "faults_before": one.faults_before,
        "attempts": one.attempts,
        "runs": one.runs,
        "seed": one.seed,
        "storms": storms,
        "note": one.message,
        "folder": str(place / FINDS / f"{one.find:04}"),
    }


def _beside(
    finds: Mapping[int, FindResult], before: Mapping[int, FindResult]
) -> dict[str, list[str]]:
    now, then = ({_words(one) for one in _firsts(some)} for some in (finds, before))
    return {"new": sorted(now - then), "gone": sorted(then - now), "both": sorted(now & then)}


def _words(one: FindResult) -> str:
    return f"{'; '.join(one.failures)} (by {', '.join(one.kinds) or 'no fault'})"


def counts(found: Mapping[str, Any]) -> Iterator[str]:
    """What there was, in lines for people; first what has to happen in some storm and did in
    none."""
    for name in found["never"][:SHOWN]:
        yield f"never happened in any of {found['storms']} storms: {name}"
    if len(found["never"]) > SHOWN:
        yield f"and {len(found['never']) - SHOWN} more that never happened (--format json has all)"
    outcomes = found["outcomes"]
    yield (
        f"{found['storms']} storms of {found['experiment']}: {outcomes[PASSED]} passed,"
        f" {outcomes[FAILED]} failed, {outcomes[SILENT]} say nothing"
    )
    faults = (f"{count} {word}" for word, count in found["faults"].items())
    yield f"faults: {', '.join(faults) or 'none'}"
    for name, count in found["reached"].items():
        if count:
            yield f"reached: {count} {_CLASSES[name]}"
    if any(found["reached"].values()):
        yield f"rare: {len(found['rare'])} of these by one storm each"
    else:
        yield "reached: nothing that is looked for"


def text(found: Mapping[str, Any]) -> Iterator[str]:
    """Lines for people."""
    yield from counts(found)
    for one in found["finds"]:
        yield from _find_text(one)
    if not found["finds"]:
        yield "no find"
    if found["not_again"]:
        numbers = ", ".join(map(str, found["not_again"]))
        yield f"failed, and not again when they were carried out once more: storms {numbers}"
    if "beside" in found:
        yield from _beside_text(found["beside"])


def _find_text(one: Mapping[str, Any]) -> Iterator[str]:
    many = len(one["storms"])
    storms = f"{many} storm{'s' if many > 1 else ''}"
    kinds = ", ".join(one["kinds"]) or "without a fault"
    yield ""
    yield f"find {one['find']}: {'; '.join(one['failures'])}"
    yield (
        f"  {kinds}; {one['faults_before']} -> {one['faults']} faults in {one['runs']} runs;"
        f" {storms}, the first is number {one['storms'][0]}"
    )
    if one["note"]:
        yield f"  {one['note']}"
    yield f"  {one['folder']}"


def _beside_text(beside: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"beside {beside['storms']} storms before:"
    for name, words in beside["finds"].items():
        yield from (f"  find, {'in both' if name == 'both' else name}: {one}" for one in words)
    for name in ("new", "gone"):
        words = beside[name]
        yield f"  {name}: {len(words)}"
        yield from (f"    {one}" for one in words[:SHOWN])
        if len(words) > SHOWN:
            yield f"    and {len(words) - SHOWN} more (--format json has all)"


def row(one: StormResult | FindResult) -> str:
    """A line of progress; '' for what needs none."""
    if isinstance(one, FindResult):
        if not one.find:
            return f"storm {one.storm}: {one.message or 'it did not fail again'}"
        return f"storm {one.storm}: {'find' if one.is_first else 'find again:'} {one.find}"
    if one.outcome == PASSED:
        return ""
    what = "; ".join(f"{failed.name}" for failed in one.failed) or one.message
    return f"storm {one.storm.number}: {one.outcome}: {what}"
