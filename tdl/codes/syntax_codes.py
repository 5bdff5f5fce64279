"""Codes TS00xx: text and syntax."""

from __future__ import annotations

from tdl.codes.code import Code

SYNTAX = (
    Code(
        "TS0001",
        "the file is not UTF-8",
        "TDL files are UTF-8 text. Save the file as UTF-8; a byte order mark is allowed.",
        "",
    ),
    Code(
        "TS0002",
        "unexpected character",
        "This character has no meaning here. Strings with special characters need quotes.",
        "bridge s1 ?",
    ),
    Code(
        "TS0003",
        "string without an end",
        "A string ends on the line it starts on, with the same kind of quote.",
        'service a exec="sleep 10',
    ),
    Code(
        "TS0004",
        "bracket without its partner",
        "Every `[` needs a `]`. Brackets may span lines, so a missing one would swallow the rest "
        "of the file; the next line that begins with a statement word ends it.",
        "service a command=['x', 'y'\nbridge s1",
    ),
    Code(
        "TS0005",
        "unknown escape in a string",
        "Known escapes: `\\\\`, `\\\"`, `\\'`, `\\n` and `\\t`. Double a backslash to mean it.",
        'service a exec="grep \\d"',
    ),
    Code(
        "TS0006",
        "not a name",
        "A name begins with a letter or `_`, goes on with letters, digits, `_` and single `-`, "
        "does not end with `-`, and has at most 63 characters. The dot is for instances: "
        "`server.3`.",
        "bridge 1st",
    ),
    Code(
        "TS0007",
        "reserved word used as a name",
        "Words that stand between names (actions, `at`, `from`, `to`, `and`, …) cannot be names.",
        "bridge crash",
    ),
    Code(
        "TS0008",
        "unknown statement",
        "A statement begins with bootstrapper, seed, routing, service, bridge, bridges, link, at "
        "or from (or churn and flap, for the whole experiment).",
        "servce a",
    ),
    Code(
        "TS0009",
        "syntax error",
        "The words are known, but not in this order. The message says what was expected.",
        "at 5s from crash",
    ),
    Code(
        "TS0010",
        "statement ends too early",
        "Something is missing at the end of the statement. The message says what.",
        "link a--",
    ),
    Code(
        "TS0011",
        "link written with a single hyphen",
        "`a-b` is one name. The link between a and b is `a--b`; one direction of it is `a->b`.",
        "link a-b latency=5",
    ),
    Code(
        "TS0012",
        "unknown property",
        "This statement has no property of that name.",
        "bridge s1\nlink a--s1 latncy=5",
    ),
    Code(
        "TS0013",
        "property given twice",
        "A property is given once in a statement (and `rate` stands for both `up` and `down`).",
        "link a--b latency=5 latency=6",
    ),
    Code(
        "TS0014",
        "missing '='",
        "A property is written `name=value`.",
        "link a--b latency 5",
    ),
    Code(
        "TS0015",
        "wrong kind of value",
        "The property takes another kind of value. The message says which.",
        "link a--b latency=fast",
    ),
    Code(
        "TS0016",
        "missing value",
        "There is nothing after the `=`.",
        "link a--b latency= up=1Gb",
    ),
    Code(
        "TS0017",
        "statement out of place after 'and'",
        "`and` joins actions that happen at the same time; the time stands once, at the front.",
        "at 5s a leave and at 6s b leave",
    ),
    Code(
        "TS0018",
        "unknown action",
        "The actions are join, leave, crash, restart, churn, disconnect, reconnect, pause, resume, "
        "flap, set, ramp, partition, heal, background and quit.",
        "at 5s a explode",
    ),
    Code(
        "TS0020",
        "not a number",
        "Numbers are decimal, with at most one point: `5`, `0.93`.",
        "link a--b latency=1.2.3",
    ),
    Code(
        "TS0021",
        "missing unit",
        "Times and rates need a unit: `30s`, `100Mb`. Only latency and jitter may go without "
        "(milliseconds) and queue (bytes).",
        "at 30 quit",
    ),
    Code(
        "TS0022",
        "unknown unit",
        "Times: d h m s ms us ns. Rates: b Kb Mb Gb Tb (or …bit, …bps, …b/s). Sizes: B KB KiB MB "
        "MiB GB GiB.",
        "at 5sec quit",
    ),
    Code(
        "TS0023",
        "bytes where bits are meant",
        "Rates are bits per second. `1GB` would be a number of bytes: write `8Gb`, or `1Gb` if "
        "bits were meant.",
        "link a--b up=1GB",
    ),
    Code(
        "TS0024",
        "value is not exact",
        "Values are kept as whole nanoseconds, bits per second, bytes and parts per billion, never "
        "rounded. Give fewer digits.",
        "link a--b latency=0.0000001",
    ),
    Code(
        "TS0025",
        "value too large",
        "The value is beyond the range of the language (docs/tdl.md has the limits).",
        "link a--b latency=48h",
    ),
    Code(
        "TS0026",
        "negative value",
        "Nothing in the language is negative. To take something off with `set`: `latency-=5ms`.",
        "link a--b latency=-5",
    ),
    Code(
        "TS0027",
        "duration out of order",
        "The parts of a duration go from long to short, each unit once: `4h20m`, `1m30s`.",
        "at 20m4h quit",
    ),
    Code(
        "TS0028",
        "not a whole number",
        "Counts, ports, replicas and seeds are whole numbers.",
        "at 5s a leave 2.5",
    ),
    Code(
        "TS0029",
        "not a text file",
        "The file has bytes that no text has. It may be a program, an archive, an image, or text "
        "in UTF-16: TDL files are UTF-8.",
        "",
    ),
    Code(
        "TS0030",
        "file too large",
        "A TDL file has at most 64 MiB.",
        "",
    ),
    Code(
        "TS0031",
        "too many",
        "A file has at most 65,000 services, 65,535 bridges, 524,287 links and 1,000,000 events, a "
        "statement 262,144 words. Reading ends at the first that is too many.",
        "",
    ),
    Code(
        "TS0032",
        "too many errors",
        "After 10,000 errors (or 200,000 errors and warnings) the rest of the file is not read: "
        "they have one reason, most likely near the first of them.",
        "",
    ),
    Code(
        "TS0033",
        "another language",
        "The file begins as XML, JSON, YAML or TOML does, and nothing reads these here. Write the "
        "same in TDL: docs/language-tour.md shows how.",
        'version: "3"\nservices:',
    ),
    Code(
        "TS0034",
        "dialect cannot be read",
        "`dialect kollaps` is the one there is. It says how links and actions are meant, and "
        "stands before the links.",
        "dialect kolaps",
    ),
)
