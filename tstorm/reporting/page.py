"""The page of a run, as report.html has it, of what is there now."""

from __future__ import annotations

from runtime.page.render import render as render_page
from runtime.rundir.rundir import encode
from tstorm.reporting.facts import Facts


def render(facts: Facts) -> bytes:
    """What is damaged in the run directory is said on the page."""
    return encode(render_page(facts.directory, facts.manifest, facts.summary))
