"""Which formats there are, and what each makes of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tstorm.reporting.run_facts import RunFacts

HTML, MARKDOWN, JSON, CSV, JUNIT = "html", "md", "json", "csv", "junit"
OPENMETRICS, PERFETTO, OTLP = "openmetrics", "perfetto", "otlp"
FORMATS = (HTML, MARKDOWN, JSON, CSV, JUNIT, OPENMETRICS, PERFETTO, OTLP)
SUFFIXES = {
    ".html": HTML,
    ".htm": HTML,
    ".md": MARKDOWN,
    ".json": JSON,
    ".csv": CSV,
    ".xml": JUNIT,
    ".om": OPENMETRICS,
}


def of_target(target: str) -> str:
    """What a file of this name probably is to hold."""
    return SUFFIXES.get(Path(target).suffix.lower(), MARKDOWN)


def pieces(facts: RunFacts, form: str, require: str | None = None) -> Iterable[bytes]:
    """All formats but CSV. RunError for what is damaged."""
    if form == HTML:
        from runtime.page import page_file
        from runtime.rundir.rundir import encode

        return [encode(page_file.render(facts.directory, facts.manifest, facts.summary))]
    return [_text(facts, form, require).encode("utf-8", "backslashreplace")]


def _text(facts: RunFacts, form: str, require: str | None) -> str:
    if form == MARKDOWN:
        from tstorm.reporting import markdown

        return markdown.render(facts)
    if form == JSON:
        from tstorm.output import to_json
        from tstorm.reporting import document

        return to_json(document.document(facts)) + "\n"
    if form == OPENMETRICS:
        from tstorm.reporting import openmetrics

        return openmetrics.render(facts)
    if form == PERFETTO:
        from tstorm.reporting import perfetto

        return perfetto.render(facts)
    if form == OTLP:
        from tstorm.reporting import otlp

        return otlp.render(facts)
    from tstorm.reporting import junit

    return junit.render(facts, require)


def tables(facts: RunFacts, names: Iterable[str] = ()) -> Mapping[str, Iterator[bytes]]:
    """Tables of CSV by the names of their files; all of them without names."""
    from tstorm.reporting import csv_tables

    wanted = list(names) or list(csv_tables.TABLES)
    return {f"{name}.csv": csv_tables.encoded(csv_tables.TABLES[name], facts) for name in wanted}


def is_table(name: str, head: bytes) -> bool:
    """Whether a file of this name that begins so is one of the tables."""
    from tstorm.reporting import csv_tables

    table = csv_tables.TABLES.get(name.removesuffix(".csv"))
    if table is None or not name.endswith(".csv"):
        return False
    return head.startswith(csv_tables.line(table.columns))
