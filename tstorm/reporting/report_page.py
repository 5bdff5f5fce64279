"""The page of a run, as report.html has it, of what is there now."""

from __future__ import annotations

from runtime.page.page_file import render as render_page
from runtime.rundir.rundir import encode
from tstorm.reporting.run_facts import RunFacts


def render(facts: RunFacts) -> bytes:
    """What is damaged in the run directory is said on the page."""
    return encode(render_page(facts.directory, facts.manifest, facts.summary))
