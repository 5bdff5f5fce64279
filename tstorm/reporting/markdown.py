"""A run as a short Markdown page, for a pull request, an issue or a wiki.

Input: the facts of a run. Output: the text, what failed first; of each table at most MOST_ROWS
rows, and how many more there are. Names and messages are foreign: what Markdown or HTML would make
something of is escaped (CommonMark 0.31, 2.4 and 2.5), so a cell shows what the name is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from runtime.judge import verdict_text
from runtime.options import FAILED, INTERRUPTED
from runtime.results.failed import changed, details, told, whose
from runtime.rundir.runfiles import OPEN_PROBES
from tstorm import units
from tstorm.output import visible
from tstorm.reporting.run_facts import EXPECTATION_FAILED, FINISHED, PASSED, SO_FAR, RunFacts
from tstorm.text.ending_text import how

MOST_ROWS = 40
MOST_LOG_LINES = 5  # of an expectation
_MARKS = {PASSED: "✅ passed", EXPECTATION_FAILED: "❌ failed"}
_SPECIAL = re.compile(r"[\\`*\[\]<|~#$]|^>|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_ENTITIES = {"&": "&amp;", "@": "&#64;"}  # the last would call people
_LINK_COLUMNS = (
    *("pkts", "out_pkts", "drop_queue", "drop_loss", "drop_down"),
    *("backlog_bytes",),
)


def render(facts: RunFacts) -> str:
    """The whole page. RunError for what is damaged."""
    title = str(facts.manifest["run_id"])
    parts = [
        f"# {escaped(title)}",
        *_failed(facts),
        *_told(facts),
        "\n".join(_facts(facts)),
        *_expectations(facts),
        *_figures(facts),
        *_failures(facts),
        *_events(facts),
        *_paths(facts),
        *_links(facts),
    ]
    return "\n\n".join(parts) + "\n"


def escaped(text: object) -> str:
    """A text on one line that Markdown shows as it is."""
    known = re.sub("[&@]", lambda found: _ENTITIES[found[0]], visible(str(text)))
    # `&amp;` has no special character, and the `#` of `&#64;` must stay one
    pieces = known.split("&#64;")
    return "&#64;".join(_SPECIAL.sub(lambda found: f"\\{found[0]}", piece) for piece in pieces)


def _failed(facts: RunFacts) -> Iterator[str]:
    """What failed, before anything else; ⚠️ where nobody has said what is right."""
    result = facts.result
    if result["state"] in (FAILED, INTERRUPTED):
        yield f"**{result['state'].upper()}**"
    found = result["failures"]
    lines = [
        f"- {'❌' if one['counts'] else '⚠️'} {escaped(told(one))}" for one in found[:MOST_ROWS]
    ]
    if lines:
        more = [f"- … and {len(found) - MOST_ROWS} more"] if len(found) > MOST_ROWS else []
        yield "\n".join(lines + more)


def _told(facts: RunFacts) -> Iterator[str]:
    if facts.state != FINISHED:
        yield f"**The run {SO_FAR[facts.state]}.**"
    lines = [
        escaped(line.strip()) for line in verdict_text.told(facts.verdict, verdict_text.MOST_LINES)
    ]
    if lines:
        yield "\n".join([f"**{lines[0]}**", *(f"- {line}" for line in lines[1:])])
    yield from (escaped(one["text"]) for one in facts.summary.get("limits", ()))


def _facts(facts: RunFacts) -> Iterator[str]:
    manifest, summary = facts.manifest, facts.summary
    events, lag = summary["events"], summary["events"]["lag"]
    message = f": {summary['message']}" if summary.get("message") else ""
    yield f"- outcome: {escaped(summary['outcome'])}{escaped(message)}"
    yield f"- plan: `{_code(manifest['plan_digest'])}`, seed {manifest['seed']}"
    if isinstance(manifest.get("started"), str):
        yield f"- started: {escaped(manifest['started'])}"
    late = f"99 % within {short(lag['p99_ns'])}, all within"
    yield (
        f"- events: {events['applied']} of {events['planned']} applied, {late} "
        f"{short(lag['max_ns'])}"
    )
    done = Counter(one.get("kind") for one in facts.events() if "refused" not in one)
    if words := changed(done["do"], done["when"]):
        yield f"- {words}"


def _code(text: object) -> str:
    return visible(str(text)).replace("`", "'")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """At most MOST_ROWS rows, and how many more there are."""
    rest = iter(rows)
    shown = list(islice(rest, MOST_ROWS))
    more = sum(1 for _ in rest)
    lines = [_row(head), "|" + "---|" * len(head)]
    lines += [_row([escaped(cell) for cell in row]) for row in shown]
    text = "\n".join(lines)
    return f"{text}\n\n… and {more} more" if more else text


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _expectations(facts: RunFacts) -> Iterator[str]:
    if not facts.expectations:
        return
    passed = sum(one["state"] == PASSED for one in facts.expectations)
    yield f"## Expectations: {passed} of {len(facts.expectations)} passed"
    rows = (
        (_MARKS.get(one["state"], "not measured"), one["text"], one["message"])
        for one in facts.expectations
    )
    yield table(("", "expectation", "measured"), rows)
    for one in facts.expectations:
        if one["state"] == EXPECTATION_FAILED and one.get("log"):
            yield f"Log at the failure of {escaped(one['text'])}:"
            lines = one["log"][-MOST_LOG_LINES:]
            yield "\n".join(
                f"    {visible(line['instance'])}: {visible(line['line'])}" for line in lines
            )


def _figures(facts: RunFacts) -> Iterator[str]:
    found = facts.summary.get("figures", ())
    if found:
        yield "## Figures"
        rows = (
            (one["name"], one["instance"], one["value"] or f"not measured: {one['message']}")
            for one in found
        )
        yield table(("figure", "of", ""), rows)


def _failures(facts: RunFacts) -> Iterator[str]:
    found = facts.summary.get("failures", ())
    if found:
        yield "## Programs that failed"
        rows = ((one["target"], how(one), one["last_log_line"] or "-") for one in found)
        yield table(("instance", "how", "last log line"), rows)


def _events(facts: RunFacts) -> Iterator[str]:
    """Without joins at the start, which every run has."""
    rows = (_event(one) for one in facts.events() if not _is_start(one))
    first = next(rows, None)
    if first is None:
        return
    yield "## Events"
    yield table(("at", "late by", "event", "target", ""), chain([first], rows))


def _is_start(event: Mapping[str, Any]) -> bool:
    return event.get("kind") == "join" and event.get("planned_ns") == 0


def _event(event: Mapping[str, Any]) -> Sequence[str]:
    at_ns, lag = event.get("planned_ns"), event.get("lag_ns")
    if at_ns is None:
        at_ns = event.get("applied_ns")
    said = event.get("args", {}) if event.get("seq") is not None else None
    words = details(event) if said is None else f"{_arguments(said)} {whose(event)}".strip()
    return (
        "-" if at_ns is None else seconds(at_ns),
        "-" if lag is None else short(max(lag, 0)),
        str(event.get("kind", "")),
        str(event.get("target", "")),
        words,
    )


def _arguments(args: Mapping[str, Any]) -> str:
    """`delay=40ms`, as the language has it."""
    words = []
    for key, value in sorted(args.items()):
        text = units.shown(key, value) if isinstance(value, int) and value >= 0 else str(value)
        words.append(f"{units.word(key)}={text}")
    return " ".join(words)


def _paths(facts: RunFacts) -> Iterator[str]:
    """Those that were measured; the others are paths without probes."""
    found = [path for path in facts.paths if path["measured"] is not None]
    if found:
        yield "## Pairs, planned and measured"
        yield table(HEAD, map(cells, found))


def _links(facts: RunFacts) -> Iterator[str]:
    links = facts.summary["links"]
    if links:
        yield "## Links"
        head = ["link", *(name.replace("_", " ") for name in _LINK_COLUMNS)]
        yield table(head, ((one["link"], *(one[key] for key in _LINK_COLUMNS)) for one in links))


# What was planned and measured of a path, in words: one row of the certificate as table cells.

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
    if measured is None:
        return "-"
    open_ = measured.get(OPEN_PROBES)
    return f"{measured['lost']} of {measured['probes']}" + (f", {open_} open" if open_ else "")
