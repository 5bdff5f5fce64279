"""Tables and the machine's line as the generated part of docs/performance.md has them."""

from __future__ import annotations

from collections.abc import Sequence

from bench.engine.probing import Record


def machine_line(machine: Record) -> str:
    """What `bench.machine.describe` found, as a paragraph."""
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mib']} MiB, "
        f"{machine['kernel']}, virtual machine: {machine['hypervisor']}, load average before: "
        f"{machine['load_1min_before']}.\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
