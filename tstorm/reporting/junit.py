"""A run as JUnit XML, for the pages that CI services make of tests.

Input: the facts of a run. Output: one testsuite with a testcase for the run itself, one for its
verdict, one for each expectation and one for each program that failed. Elements and attributes are
those of Jenkins' schema (junit-10.xsd of its xUnit plugin, which refuses any other), as GitHub's
reporters and GitLab read them, too: so the line of a statement stands in the text of its case. XML
1.0 has no way to write most control characters: they appear as escapes (`\\x1b`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from runtime.judge import verdict_text
from runtime.options import COMPLETED, REQUIRED
from tstorm.output import visible
from tstorm.reporting.run_facts import (
    EXPECTATION_FAILED,
    NOT_MEASURED,
    RUNNING,
    SO_FAR,
    UNSEEN,
    RunFacts,
)
from tstorm.text.ending_text import how

_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII)


def render(facts: RunFacts, require: str | None = None) -> str:
    """The document. `require`: which verdict is no failure, as --require of a run has it; None:
    what the run was asked for. RunError for what is damaged."""
    if require is None:
        require = facts.manifest["options"].get("require", "")
    suite = ET.Element("testsuite", _attributes(facts))
    _properties(facts, suite)
    _run(facts, suite)
    _verdict(facts, suite, require)
    for one in facts.expectations:
        _expectation(facts, suite, one)
    for one in facts.summary.get("failures", ()):
        _program(facts, suite, one)
    counts = {
        "tests": str(len(suite.findall("testcase"))),
        "failures": str(len(suite.findall("testcase/failure"))),
        "errors": str(len(suite.findall("testcase/error"))),
        "skipped": str(len(suite.findall("testcase/skipped"))),
    }
    suite.attrib.update(counts)
    total = {name: counts[name] for name in ("tests", "failures", "errors")}
    root = ET.Element("testsuites", {"name": "tstorm", **total, "time": suite.attrib["time"]})
    root.append(suite)
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _attributes(facts: RunFacts) -> dict[str, str]:
    last_ns = max((one.get("applied_ns", 0) for one in facts.events()), default=0)
    found = {"name": visible(facts.manifest["run_id"]), "time": f"{max(last_ns, 0) / 1e9:.3f}"}
    started = facts.manifest.get("started")
    stamp = _STAMP.fullmatch(started) if isinstance(started, str) else None
    if stamp:
        year, month, day, hour, minute, second = stamp.groups()
        found["timestamp"] = f"{year}-{month}-{day}T{hour}:{minute}:{second}"
    return found


def _properties(facts: RunFacts, suite: ET.Element) -> None:
    inner = ET.SubElement(suite, "properties")
    for name in ("plan_digest", "seed"):
        value = visible(str(facts.manifest[name]))
        ET.SubElement(inner, "property", {"name": name, "value": value})
    state = visible(str(facts.verdict.get("state", "unknown")))
    ET.SubElement(inner, "property", {"name": "verdict", "value": state})


def _case(facts: RunFacts, suite: ET.Element, name: str, time_ns: int = 0) -> ET.Element:
    words = {
        "classname": visible(facts.manifest["experiment"]),
        "name": visible(name),
        "time": f"{max(time_ns, 0) / 1e9:.3f}",
    }
    return ET.SubElement(suite, "testcase", words)


def _result(case: ET.Element, tag: str, message: str, lines: list[str], kind: str = "") -> None:
    words = {"message": visible(message), **({"type": visible(kind)} if kind else {})}
    ET.SubElement(case, tag, words).text = "\n".join(map(visible, lines))


def _run(facts: RunFacts, suite: ET.Element) -> None:
    """That it came to its end is a test, too: a suite without one would pass for nothing."""
    case = _case(facts, suite, "the run comes to its end")
    summary = facts.summary
    if facts.state in (RUNNING, UNSEEN):
        _result(case, "skipped", f"the run {SO_FAR[facts.state]}", [])
    elif summary["outcome"] != COMPLETED:
        message = summary.get("message") or summary["outcome"]
        _result(case, "error", message, [message], summary["outcome"])


def _verdict(facts: RunFacts, suite: ET.Element, require: str) -> None:
    case = _case(facts, suite, "verdict")
    lines = list(verdict_text.told(facts.verdict))
    said = lines[0] if lines else "UNKNOWN"
    state = facts.verdict.get("state", "unknown")
    if facts.state in (RUNNING, UNSEEN):
        _result(case, "skipped", f"the run {SO_FAR[facts.state]}", [])
    elif require and state not in REQUIRED[require]:
        asked = f"--require {require} asks for another one"
        _result(case, "failure", said, [*lines, asked], "verdict")
    else:
        ET.SubElement(case, "system-out").text = "\n".join(map(visible, lines))


def _expectation(facts: RunFacts, suite: ET.Element, one: Mapping[str, Any]) -> None:
    case = _case(facts, suite, one["text"], one.get("at_ns") or 0)
    said = f"{verdict_text.place(one)}: {one['message']}"
    if one["state"] == EXPECTATION_FAILED:
        log = [f"{line['instance']}: {line['line']}" for line in one.get("log", ())]
        _result(case, "failure", one["message"], [said, *log], one.get("kind", ""))
    elif one["state"] == NOT_MEASURED:
        _result(case, "skipped", one["message"], [])
    else:
        ET.SubElement(case, "system-out").text = visible(said)


def _program(facts: RunFacts, suite: ET.Element, one: Mapping[str, Any]) -> None:
    at_ns = one.get("applied_ns") or 0
    case = _case(facts, suite, f"the program of {one['target']} does what is right", at_ns)
    said = how(one)
    last = one["last_log_line"]
    lines = [said, *([f"last log line: {last}"] if last else [])]
    _result(case, "failure", said, lines, "program")
