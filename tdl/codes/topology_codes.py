"""Codes of topologies of other tools (tdl/formats/topologies/) that Compose files do not have."""

from __future__ import annotations

from tdl.codes.code import Code

TOPOLOGY_CODES = (
    Code(
        "TS0508",
        "not in its format",
        "The file is no XML, GML, CSV or JSON, or has a line that is no line of its format.",
        "",
    ),
    Code(
        "TS0035",
        "program that describes no topology",
        "A Python file with a Mininet topology is loaded in a process without rights, which has "
        "512 MiB, 10 s of a processor, no network, and its own folder to read. It ends with an "
        "error there, uses more than `Topo` and links, or has no topology of that name.",
        "",
    ),
    Code(
        "TS0973",
        "means something else here",
        "A part of another tool's file is carried over as something that behaves differently: a "
        "router becomes a bridge, since routes are the plan's, and an instance forwards nothing "
        "between its links. docs/import.md says what is so of each format.",
        "",
    ),
)
