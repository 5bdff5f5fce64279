"""Writes what a run came to: outcomes of expectations, summary, page and the manifest.

Whoever holds the run directory does it: `tstorm run` for the driver beside it, and for one in a
cluster whose directory it has mirrored. A page that cannot be written, since the disk has filled
up, is left out and said so: all else of the run is there, and the page can be made later.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from compiler.plan.collector import collector_paused
from compiler.plan.reader import Plan
from runtime.certify import certificate
from runtime.errors import RunError, filesystem_remedy, unwritten
from runtime.expectations import judging, kept_files, measured_figures
from runtime.expectations.run_evidence import RunEvidence
from runtime.judge.lateness import smallest_delay
from runtime.judge.run_end import RunEnd
from runtime.judge.verdict import Judge
from runtime.options import FAILED, VIRTUAL, RunOptions
from runtime.page.page_file import render
from runtime.results.summary import summarise
from runtime.rundir import discard, rundir
from runtime.rundir.eventlog import read_events
from runtime.rundir.held_directory import HeldDirectory, write_all
from runtime.rundir.line_files import encode
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import (
    CERTIFICATE,
    EVENTS,
    EXPECTATION,
    LOGS_INCOMPLETE,
    REPORT,
    SUMMARY,
)
from runtime.schedule import Schedule

# Clocks as they were to the end; what was tried after the start; logs that lack lines.
_LATE_FACTS = ("hosts", "proof", LOGS_INCOMPLETE)
UNWRITTEN = "cannot write the results of the run"


@collector_paused()
def results(
    directory: RunDirectory,
    plan: Plan,
    schedule: Schedule,
    options: RunOptions,
    end: RunEnd,
) -> Mapping[str, Any]:
    """Summary and page, then the manifest with the outcome. Returns the summary, in which `no_page`
    says why there is no page.

    RunError if the directory was removed, the disk is full or what was recorded was damaged; the
    manifest, for which there is space, then has the outcome `failed`.
    """
    schedule = until_its_end(directory, plan, schedule)
    delay_ns, virtual = smallest_delay(schedule), options.time == VIRTUAL
    judge = Judge(
        delay_ns,
        options.max_lateness_ns,
        virtual,
        options.cpu_ppb,
        thresholds=options.thresholds,
    )
    more = {name: end.facts[name] for name in _LATE_FACTS if end.facts.get(name)}
    try:
        planned = schedule.total if end.planned is None else end.planned
        files = end.facts.get("figures")
        if files is None:  # nobody was left to read them
            files = measured_figures.of_files(directory, plan, here=options.on_this_machine)
        unkept = end.facts.get("unkept")
        if unkept is None:
            unkept = kept_files.keep(directory, plan, here=options.on_this_machine)
        left = discard.discard(directory, directory.manifest_so_far().get("discards", ()))
        evidence = certificate.gather(directory, plan, schedule, end.facts, judge)
        summary = summarise(directory, plan, planned, end, judge)
        if plan.expectations:
            found = judging.judged(directory, plan, schedule, evidence, summary, unkept)
            summary["expectations"] = found
            append_expectations(directory, found)
        if plan.figures:
            records = RunEvidence(directory, plan, schedule, evidence, summary)
            summary["figures"] = measured_figures.measured(plan, records, files)
        if left:
            more["not_discarded"] = summary["not_discarded"] = left
        directory.write_json(SUMMARY, summary)
        known = directory.manifest_so_far(**more)
        verdict = summary["verdict"]
        directory.write_json(
            CERTIFICATE, certificate.certificate(evidence, verdict, summary, known, options)
        )
        why = _write_page(directory, known, summary) if options.page else ""
        if why:
            more["no_page"] = summary["no_page"] = why
            with suppress(OSError):  # whoever called is told all the same, and the manifest has it
                directory.write_json(SUMMARY, summary)
        if not directory.is_where_it_was():
            raise FileNotFoundError(errno.ENOENT, "it was moved or removed", str(directory.path))
        directory.close_manifest(end.outcome, end.message, **more)
    except (OSError, RunError) as error:
        reason = f"; the run: {end.message}" if end.message else ""
        what = unwritten(error).message if isinstance(error, OSError) else error.message
        text = f"{UNWRITTEN}: {what}{reason}"
        with suppress(OSError, RunError):
            directory.close_manifest(FAILED, text, **more)
        remedy = filesystem_remedy(error) if isinstance(error, OSError) else error.remedy
        raise RunError(text, remedy) from error
    return summary


def until_its_end(directory: HeldDirectory, plan: Plan, schedule: Schedule) -> Schedule:
    """Of a run that ended early, by its programs or from outside, the part of its timeline that it
    was there for: neither what was planned later nor the winding down is judged."""
    with suppress(RunError):  # a damaged record is told by who reads all of it
        for record in read_events(directory) if directory.has(EVENTS) else ():
            if record.get("kind") == "quit" and "seq" not in record:
                end_ns = min(record["planned_ns"], schedule.end_ns)
                return Schedule(plan, replace(schedule.options, until_ns=end_ns))
    return schedule


def _write_page(
    directory: RunDirectory, manifest: Mapping[str, Any], summary: Mapping[str, Any]
) -> str:
    """Why there is none; '' if there is."""
    try:
        directory.write(REPORT, rundir.encode(render(directory, manifest, summary)))
    except OSError as error:
        return unwritten(error).message
    return ""


_OF_EXPECTATIONS = ("text", "line", "file", "state", "message")


def append_expectations(directory: HeldDirectory, found: Iterable[Mapping[str, Any]]) -> None:
    """What became of them, at the end of events.jsonl, a line each. A file whose last line was cut,
    because its writer was killed, stays as it is: a line more would make a damaged one of it.
    OSError, RunError."""
    if not directory.has(EVENTS) or directory.tail(EVENTS, 1) != b"\n":
        return
    data = b"".join(encode(_expectation_record(one)) for one in found)
    descriptor = directory.append_to(EVENTS)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _expectation_record(one: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: one[name] for name in _OF_EXPECTATIONS}
    return {"kind": EXPECTATION, "target": one["subject"], "planned_ns": one["at_ns"], **said}
