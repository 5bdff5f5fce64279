"""The registry of every diagnostic code of the project, and the generator of docs/errors.md.

Ranges: TS00xx text and syntax, TS01xx declarations, TS02xx selectors and actions, TS03xx the
timeline, TS09xx warnings. A code is never reused for another meaning. `python -m tdl.codes` prints
docs/errors.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One diagnostic: what it means, what to do, and a file that shows it (`example`)."""

    code: str
    title: str
    explanation: str
    example: str


_SYNTAX = (
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
        "Known escapes are `\\\\`, `\\\"`, `\\'`, `\\n` and `\\t`. Double a backslash to mean itself.",
        'service a exec="grep \\d"',
    ),
    Code(
        "TS0006",
        "not a name",
        "A name begins with a letter or `_`, goes on with letters, digits, `_` and single `-`, does "
        "not end with `-`, and has at most 63 characters. The dot is for instances (`server.3`).",
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
        "A statement begins with bootstrapper, seed, routing, service, bridge, bridges, link, at or "
        "from (or churn and flap, for the whole experiment).",
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
        "The actions are join, leave, crash, churn, disconnect, reconnect, flap, set, partition, "
        "heal, background and quit.",
        "at 5s a restart",
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
        "Rates are bits per second. `1GB` would be a number of bytes: write `8Gb`, or `1Gb` if bits "
        "were meant.",
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
        "Nothing in the language is negative. To take something off in `set`, write `latency-=5ms`.",
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
)

_DECLARATIONS = (
    Code(
        "TS0101",
        "declared twice",
        "A name belongs to one service or bridge of the experiment.",
        "bridge s1\nbridge s1",
    ),
    Code(
        "TS0102",
        "link to something undeclared",
        "Both ends of a link must be declared as a service or a bridge, anywhere in the file.",
        "service a\nlink a--s1",
    ),
    Code(
        "TS0103",
        "service without a link",
        "A service that has no link can reach nothing. Give it a link, or remove it.",
        "service a",
    ),
    Code(
        "TS0104",
        "rate of zero",
        "A link of rate zero carries nothing. To cut a link write `at T a--b leave`; without a rate "
        "a link is unlimited.",
        "link a--b up=0Mb",
    ),
    Code(
        "TS0105",
        "jitter greater than latency",
        "Delay cannot be negative, so jitter (the standard deviation) may not be greater than "
        "latency. Raise the latency or lower the jitter.",
        "link a--b latency=5ms jitter=6ms",
    ),
    Code(
        "TS0106",
        "loss outside 0..1",
        "Loss is a probability: `0.01` or `1%`, at most `1` or `100%`.",
        "link a--b loss=5",
    ),
    Code(
        "TS0107",
        "link from something to itself",
        "The two ends of a link differ.",
        "bridge s1\nlink s1--s1",
    ),
    Code(
        "TS0108",
        "second link between the same two elements",
        "Two elements have at most one link. Put a bridge in between for a second way.",
        "bridges s1 s2\nlink s1--s2\nlink s2--s1",
    ),
    Code(
        "TS0109",
        "setting given twice",
        "bootstrapper, seed and routing are given once in a file.",
        "seed 1\nseed 2",
    ),
    Code(
        "TS0110",
        "'symmetric' contradicts the rates",
        "`symmetric` copies `up` to `down`: it needs `up=` and excludes `down=`.",
        "link a--b down=5Mb symmetric",
    ),
    Code(
        "TS0111",
        "command line cannot be split",
        "exec= is split into words as a shell would, but no shell runs it. Quotes inside must be "
        "closed, and there must be at least one word.",
        'service a exec="sh -c \'x"',
    ),
    Code(
        "TS0112",
        "too many instances",
        "An experiment has at most 65,000 instances, because of its address range.",
        "service a replicas=70000\nbridge s1\nlink a--s1",
    ),
    Code(
        "TS0113",
        "not at least one",
        "replicas, cpu, mem and queue are greater than zero.",
        "service a replicas=0",
    ),
    Code(
        "TS0114",
        "port outside 1..65535",
        "TCP and UDP ports go from 1 to 65535.",
        "service a port=70000",
    ),
    Code(
        "TS0115",
        "unknown distribution",
        "dist= is normal, uniform, pareto or paretonormal.",
        "link a--b latency=5 jitter=1 dist=gauss",
    ),
    Code(
        "TS0116",
        "unknown routing",
        "`routing delay` (the default) takes the way of least delay, `routing hops` the one of "
        "fewest links.",
        "routing latency",
    ),
    Code(
        "TS0117",
        "not an environment variable",
        "env= is a list of `NAME:value` separated by `;`. Quote a value with spaces.",
        "service a env=PORT=80",
    ),
    Code(
        "TS0118",
        "not an image",
        "An image is a reference such as `nginx:1.27` or `registry.example/app@sha256:…`, without "
        "spaces.",
        'service a img="my image"',
    ),
    Code(
        "TS0119",
        "a link is declared with both directions",
        "`link a--b up=… down=…` declares both directions; `a->b` names one of them in an event.",
        "link a->b",
    ),
    Code(
        "TS0120",
        "a link is declared between services and bridges",
        "`link server--s1` gives every instance of `server` its own link; instances (`server.0`) "
        "are named in events only.",
        "link server.0--s1",
    ),
    Code(
        "TS0121",
        "environment variable given twice",
        "Each name occurs once in env=.",
        "service a env=A:1;A:2",
    ),
)

_ACTIONS = (
    Code(
        "TS0201",
        "unknown name",
        "The selector names something that is not declared.",
        "service a\nbridge s1\nlink a--s1\nat 5s b leave",
    ),
    Code(
        "TS0202",
        "unknown link",
        "There is no link between these two.",
        "bridges s1 s2 s3\nlink s1--s2\nat 5s s1--s3 leave",
    ),
    Code(
        "TS0203",
        "unknown instance",
        "Instances count from 0 to replicas - 1.",
        "service a replicas=2\nbridge s1\nlink a--s1\nat 5s a.2 crash",
    ),
    Code(
        "TS0204",
        "action does not apply to this",
        "Each action applies to some kinds of elements only (docs/tdl.md has the table).",
        "bridges s1 s2\nlink s1--s2\nat 5s s1 crash",
    ),
    Code(
        "TS0205",
        "action takes no selector",
        "partition, heal and quit concern the whole experiment.",
        "at 5s a quit",
    ),
    Code(
        "TS0206",
        "action needs an interval",
        "churn and flap go on for a while: `from T1 to T2 …`.",
        "at 5s a churn 2",
    ),
    Code(
        "TS0207",
        "action needs an instant",
        "This action happens at one moment: `at T …`.",
        "from 5s to 6s a--b set latency=5",
    ),
    Code(
        "TS0208",
        "percentage over 100",
        "Not more than all of them can be chosen.",
        "at 5s a leave 150%",
    ),
    Code(
        "TS0209",
        "a count of one thing",
        "An instance, a bridge or a link named by itself is one thing; a number makes no sense.",
        "service a replicas=3\nbridge s1\nlink a--s1\nat 5s a.1 leave 2",
    ),
    Code(
        "TS0210",
        "flap period of zero",
        "A flapping link changes its state every PERIOD, which must be greater than zero.",
        "from 1s to 2s a--b flap 0s",
    ),
    Code(
        "TS0211",
        "partition needs at least two groups",
        "The groups are separated by `;`, the members of a group by spaces: `partition a b;c`.",
        "at 5s partition a b",
    ),
    Code(
        "TS0212",
        "member of two groups",
        "An element can be on one side of a partition only.",
        "service a\nservice b\nbridge s1\nlink a--s1\nlink b--s1\nat 5s partition a b;b",
    ),
    Code(
        "TS0213",
        "property cannot be changed",
        "set changes latency, jitter, loss, up, down, rate, queue and dist of links.",
        "at 5s a--b set tags=x",
    ),
    Code(
        "TS0214",
        "no relative change of this",
        "A percentage or += and -= need a number to start from.",
        "at 5s a--b set dist+=normal",
    ),
    Code(
        "TS0215",
        "change leads to an illegal value",
        "After the change the property would be out of range (negative, rate of zero, jitter above "
        "latency, loss above 1), or it is relative to an unlimited rate.",
        "bridges s1 s2\nlink s1--s2 latency=5\nat 5s s1--s2 set latency-=6",
    ),
    Code(
        "TS0216",
        "background traffic leaves nothing",
        "The background rate must be below the link's rate, and the link must have a rate.",
        "bridges s1 s2\nlink s1--s2 up=5Mb symmetric\nat 5s s1--s2 background 5Mb",
    ),
    Code(
        "TS0217",
        "a number for a list of names",
        "`a;b leave` means both. To choose a number among several, give them a tag: `tags=x leave "
        "2`.",
        "at 5s a;b leave 2",
    ),
    Code(
        "TS0218",
        "not in this version",
        "The word is reserved for a later version of the language.",
        "from 1s to 5s a--b ramp latency=5",
    ),
    Code(
        "TS0219",
        "nothing to act on",
        "The selection has no element that this action applies to.",
        "bridges s1 s2\nlink s1--s2\nat 5s crash",
    ),
    Code(
        "TS0220",
        "action misses an argument",
        "The action needs more than its name. The message says what.",
        "from 1s to 2s a churn",
    ),
    Code(
        "TS0221",
        "no cut separates the groups",
        "The groups are joined in a way that no set of links can separate (two members of "
        "different groups are the same element, or replicas of one service).",
        "",
    ),
)

_TIMELINE = (
    Code(
        "TS0301",
        "interval ends before it begins",
        "In `from T1 to T2`, T2 is later than T1.",
        "from 5s to 5s a churn 2",
    ),
    Code(
        "TS0302",
        "not enough legal targets",
        "The statement asks for more instances than are in the right state at that time.",
        "service a replicas=2\nbridge s1\nlink a--s1\nat 5s a leave 3",
    ),
    Code(
        "TS0303",
        "joining more than the declared replicas",
        "replicas= was given, so no more can join. Raise it, or leave it out.",
        "service a replicas=2\nbridge s1\nlink a--s1\nat 5s a join 3",
    ),
    Code(
        "TS0304",
        "open end without quit",
        "A churn or flap without an end goes on until `at T quit`, which is missing.",
        "service a replicas=2\nbridge s1\nlink a--s1\nchurn a 1",
    ),
    Code(
        "TS0305",
        "more than one quit",
        "The experiment ends once.",
        "at 5s quit\nat 6s quit",
    ),
    Code(
        "TS0306",
        "heal without partition",
        "Nothing is partitioned at that time.",
        "bridges s1 s2\nlink s1--s2\nat 5s heal",
    ),
    Code(
        "TS0307",
        "element is not in the right state",
        "The named element cannot do this now: it is already (or not) joined or connected.",
        "service a\nbridge s1\nlink a--s1\nat 5s a.0 leave\nat 6s a.0 crash",
    ),
    Code(
        "TS0308",
        "only churn and flap can go on without an end",
        "Other actions need `at T` or `from T1 to T2`.",
        "from 5s a leave",
    ),
    Code(
        "TS0309",
        "too many events",
        "The statement expands to more events than an experiment can hold.",
        "",
    ),
    Code(
        "TS0310",
        "two background loads at once",
        "A link carries one background load at a time; end the first one before the second.",
        "",
    ),
)

_WARNINGS = (
    Code(
        "TS0901",
        "undeclared tag",
        "Nothing carries this tag, so the statement does nothing.",
        "service a tags=backend\nbridge s1\nlink a--s1\nat 5s tags=be leave 60%",
    ),
    Code(
        "TS0902",
        "option without effect",
        "The option belongs to another tool's dialect; it is accepted and kept, but changes nothing.",
        "service a share",
    ),
    Code(
        "TS0903",
        "zero of them",
        "The percentage, of what there is at that moment, rounds to none.",
        "service a replicas=3\nbridge s1\nlink a--s1\nat 5s a leave 10%",
    ),
    Code(
        "TS0904",
        "event after quit",
        "The experiment has ended by then; the event is left out of the plan.",
        "service a\nbridge s1\nlink a--s1\nat 5s quit\nat 6s a leave",
    ),
    Code(
        "TS0905",
        "everything is lost",
        "`loss=1` loses every packet. For one percent write `1%`.",
        "link a--b loss=1",
    ),
    Code(
        "TS0906",
        "queue smaller than a packet",
        "A queue below 1500 bytes drops full-size packets whenever the link is busy.",
        "link a--b up=5Mb queue=1000",
    ),
    Code(
        "TS0907",
        "given twice",
        "The same tag, name or port stands twice in one list; once is enough.",
        "bridge s1 tags=x;x",
    ),
    Code(
        "TS0908",
        "flaps only once",
        "The period is as long as the interval, so the link goes down once and comes back at the "
        "end.",
        "from 1s to 2s a--b flap 5s",
    ),
    Code(
        "TS0909",
        "bridge without links",
        "Nothing is connected to this bridge.",
        "bridge s1",
    ),
    Code(
        "TS0910",
        "tag has the name of an element",
        "In a selector the element wins; write `tags=name` for the tag.",
        "",
    ),
    Code(
        "TS0911",
        "no change",
        "The statement asks for what is already so.",
        "",
    ),
    Code(
        "TS0912",
        "not reconnected at the end",
        "An interval of disconnect brings the same instances back at its end. This one has left, "
        "joined anew or been reconnected in the meantime.",
        "service a\nbridge s1\nlink a--s1\nfrom 1s to 9s a disconnect\nat 5s a crash",
    ),
)

CODES: dict[str, Code] = {
    c.code: c for c in (*_SYNTAX, *_DECLARATIONS, *_ACTIONS, *_TIMELINE, *_WARNINGS)
}

_HEADINGS = {
    "TS00": "Text and syntax",
    "TS01": "Declarations",
    "TS02": "Selectors and actions",
    "TS03": "Timeline",
    "TS09": "Warnings",
}


def markdown() -> str:
    """The whole of docs/errors.md."""
    lines = [
        "# Errors and warnings",
        "",
        "Every diagnostic has one of these codes. TS09xx are warnings (errors with `--strict`). "
        "This page is generated: `python -m tdl.codes > docs/errors.md`.",
    ]
    heading = ""
    for code in sorted(CODES):
        entry = CODES[code]
        if _HEADINGS[code[:4]] != heading:
            heading = _HEADINGS[code[:4]]
            lines += ["", f"## {heading}"]
        lines += ["", f"### {code}: {entry.title}", "", entry.explanation]
        if entry.example:
            lines += ["", "```", entry.example, "```"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
