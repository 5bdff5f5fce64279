"""Codes of files of other tools, which `include` and the command read (tdl/formats/)."""

from __future__ import annotations

from tdl.codes.code import Code

COMPOSE_CODES = (
    Code(
        "TS0500",
        "not YAML",
        "The file cannot be read as YAML, has a key twice, is empty, or has several documents.",
        "",
    ),
    Code(
        "TS0501",
        "not what the file of that tool has there",
        "A field that the tool does not know, or a value of another kind than the field takes.",
        "",
    ),
    Code(
        "TS0502",
        "cannot be carried over",
        "The experiment would be about something else than the file: a device, the host's "
        "network, an address, data that several containers share. Change it in an override file, "
        "where `!reset null` takes a field away; docs/from-compose.md says what to do instead.",
        "",
    ),
    Code(
        "TS0503",
        "variable that has to be set",
        "`${NAME:?why}` has no value, or what follows the `$` is no variable. Values are those of "
        "`let` and `param` before the `include`, `--param NAME=VALUE` and the file `.env`, in this "
        "order; the environment of the shell is not looked at, so that the same files are always "
        "the same experiment.",
        "",
    ),
    Code(
        "TS0504",
        "file of another tool's file",
        "A file that it names cannot be read, or is not below the folder of the Compose file: "
        "nothing outside is read.",
        "",
    ),
    Code(
        "TS0505",
        "not declared in the file",
        "A service, network, volume, config or secret that the file does not have, or a service "
        "that depends on itself or extends itself.",
        "",
    ),
    Code(
        "TS0506",
        "too much for one file",
        "A YAML file has at most 256 KiB, 64 values in one another, and 50,000 values with all "
        "that aliases stand for; a value has at most 65,536 characters.",
        "",
    ),
    Code(
        "TS0507",
        "name that an experiment cannot have",
        "Names of services are as in TDL: letters, digits, `_` and single hyphens, at most 63 "
        "characters, and no word of the language.",
        "",
    ),
    Code(
        "TS0970",
        "variable that is not set",
        "A variable of a Compose file has no value and no default: it stands for nothing.",
        "",
    ),
    Code(
        "TS0971",
        "not carried over",
        "What the file says there has no effect in an experiment; the message says what is so "
        "instead.",
        "",
    ),
    Code(
        "TS0972",
        "ports are not published",
        "An instance's ports are reached inside of the experiment. `tstorm run --publish` and "
        "`tstorm forward` make them reachable on this machine while the experiment runs.",
        "",
    ),
)


# Of topologies of other tools (tdl/formats/topologies/), beside those of Compose files.

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
