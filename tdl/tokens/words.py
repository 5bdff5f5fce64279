"""The words of the language, and what kind of token each of them is."""

from __future__ import annotations

from typing import NamedTuple

MAX_NAME = 63
RUN_VARIABLES = "TSTORM_"  # how the variables begin that a run sets for its programs

# First word of a statement. Elsewhere these may be names.
STATEMENTS = {
    "bootstrapper": "BOOTSTRAPPER",
    "seed": "SEED",
    "routing": "ROUTING",
    "network": "NETWORK",
    "hops": "HOPS",
    "addresses": "ADDRESSES",
    "dialect": "DIALECT",
    "start": "START",
    "service": "SERVICE",
    "external": "EXTERNAL",
    "bridge": "BRIDGE",
    "bridges": "BRIDGES",
    "lan": "LAN",
    "air": "AIR",
    "link": "LINK",
    "path": "PATH",
    "bottleneck": "BOTTLENECK",
    "mobility": "MOBILITY",
    "node": "NODE",
    "at": "AT",
    "from": "FROM",
    "let": "LET",
    "for": "FOR",
    "include": "INCLUDE",
    "matrix": "INCLUDE",
    "param": "PARAM",
    "expect": "EXPECT",
    "figure": "FIGURE",
    "when": "WHEN",
    "hunt": "HUNT",
}
# Of these the next word decides: `expect churn 3` is an event of a service `expect`.
MAYBE_NAMES = ("param", "expect", "figure", "path", "bottleneck", "when", "matrix",
               "mobility", "lan", "air", "addresses", "node",
               "dialect", "external", "hunt")  # fmt: skip

# What can be expected: the word after `expect`.
EXPECTED = {
    "rtt": "MEASURE",
    "throughput": "MEASURE",
    "loss": "MEASURE",
    "unreachable": "UNREACHABLE",
    "log": "LOG",
    "no": "NO",
    "exit": "EXIT",
    "run": "RUN",
    "valid": "VALID",
    "linearizable": "LINEARIZABLE",
    "serializable": "SERIALIZABLE",
    "always": "MODE",
    "sometimes": "MODE",
    "eventually": "MODE",
    "assertions": "ASSERTIONS",
    "drivers": "DRIVERS",
}
MODELS = ("register", "set", "queue", "map")  # of what is linearizable
STATISTICS = ("median", "mean", "p90", "p99", "max", "min")  # of round trips
# What an experiment can react to: the word after `when`; and words behind that.
CONDITIONS = {"log": "LOG", "exit": "EXIT", "ready": "READY", "file": "FILE"}
CONDITION_WORDS = {"once": "ONCE", "every": "EACH", "with": "WITH", "most": "MOST"}
IT = "it"  # in a block of `when`: the instance that it is about
FIGURES = {"log": "LOG", "json": "JSON"}  # where a figure comes from
OPERATORS = ("<", "<=", ">", ">=")
LINE_MODES = ("always", "sometimes", "eventually")  # of lines that programs print
LINE_OPERATORS = (*OPERATORS, "=", "!=")  # of a number in a line
TEST_TEMPLATES = "/opt/antithesis/test/v1"  # where `expect drivers` looks if it names no folder
FAULTS = "faults"  # in `within D after faults`: their end
# What a `hunt` draws, by the first word of a bound: something that happens to instances, a property
# of links, a clock; and what limits it (the first word of `at most N`, `lasting A..B`, `quiet T`).
HUNT_FAULTS = ("partition", "crash", "kill", "pause", "disconnect", "disk")
HUNT_POWER = "crash power"  # the kind of `crash NAMES power`
HUNT_DISKS = ("full", "slow:20ms", "error:1%")  # one of which a drawn `disk` is
HUNT_LINKS = ("latency", "loss", "duplicate", "corrupt")
HUNT_CLOCKS = ("clock", "drift")
HUNT_KINDS = (*HUNT_FAULTS, *HUNT_LINKS, *HUNT_CLOCKS)
HUNT_LIMITS = ("at", "lasting", "quiet")

ACTIONS = {
    "join": "COUNTED",
    "leave": "COUNTED",
    "crash": "COUNTED",
    "disconnect": "COUNTED",
    "reconnect": "COUNTED",
    "kill": "COUNTED",
    "pause": "COUNTED",
    "resume": "COUNTED",
    "restart": "COUNTED",
    "reject": "COUNTED",
    "churn": "CHURN",
    "flap": "FLAP",
    "set": "SET",
    "ramp": "RAMP",
    "partition": "PARTITION",
    "heal": "SOLO",
    "background": "BACKGROUND",
    "quit": "SOLO",
}

INTERFACES, ROUTER, GATEWAY = "interfaces", "router", "gateway"
OF_SERVICES = (INTERFACES, ROUTER, GATEWAY)  # flags behind the name of a service, elsewhere names
KERNEL = "kernel"  # the same behind the name of a lan
FLAGS_OF = {"SERVICE": OF_SERVICES, "LAN": (KERNEL,)}  # by the first token of the statement
_ALWAYS_FLAGS = ("symmetric", "supervisor", "share", "reuse")
FLAGS = (*_ALWAYS_FLAGS, *OF_SERVICES)

# Words that are never names.
RESERVED = {
    **ACTIONS,
    **dict.fromkeys(_ALWAYS_FLAGS, "FLAG"),
    "at": "AT",
    "from": "FROM",
    "to": "TO",
    "and": "AND",
    "replace": "REPLACE",
    "freq": "FREQ",
    "for": "TAIL",
    "after": "TAIL",
    "every": "TAIL",
    "sometime": "SOMETIME",
}

# Properties whose value is bare text rather than a number or a name.
TEXT_PROPERTIES = ("img", "image", "exec", "network", "user", "cwd", "setup", "ready",
                   "trace", "trace-up", "trace-down", "dist", "address", "gateway",
                   "if", "prefix", "own", "disk")  # fmt: skip
# Those with several texts, separated by ';', each of which may be NAME:"some value".
LIST_PROPERTIES = ("files", "mount", "sysctl", "abw-flows", "abw-flows-up", "abw-flows-down", "aqm",
                   "only", "after", "alias", "publish", "nodes")  # fmt: skip

# Other spellings of a property, mostly of the public dialect, by statement.
SERVICE_ALIASES = {"image": "img", "memory": "mem", "ports": "port"}
LINK_ALIASES = {"drop": "loss", "bandwidth": "rate", "bw": "rate", "lat": "latency", "j": "jitter"}

# What other tools call these things, for suggestions.
OTHER_PROPERTIES = {
    "delay": "latency",
    "ping": "latency",
    "speed": "rate",
    "capacity": "rate",
    "throughput": "rate",
    "upload": "up",
    "uplink": "up",
    "upstream": "up",
    "download": "down",
    "downlink": "down",
    "downstream": "down",
    "plr": "loss",
    "buffer": "queue",
    "limit": "queue",
    "tag": "tags",
    "labels": "tags",
    "cmd": "command",
    "args": "command",
    "run": "exec",
    "environment": "env",
    "count": "replicas",
    "instances": "replicas",
    "scale": "replicas",
    "cpus": "cpu",
    "uid": "user",
    "workdir": "cwd",
    "chdir": "cwd",
    "file": "files",
    "copy": "files",
    "volume": "mount",
    "mounts": "mount",
    "sysctls": "sysctl",
    "volumes": "mount",
    "healthcheck": "ready",
    "init": "setup",
    "signal": "stop",
    "stopsignal": "stop",
    "timeout": "grace",
    "exit": "expect",
    "depends_on": "after",
    "aliases": "alias",
    "published": "publish",
    "forward": "publish",
}
OTHER_ACTIONS = {
    "start": "join",
    "add": "join",
    "up": "join",
    "stop": "leave",
    "remove": "leave",
    "down": "leave",
    "fail": "crash",
    "isolate": "disconnect",
    "freeze": "pause",
    "suspend": "pause",
    "sigstop": "pause",
    "thaw": "resume",
    "continue": "resume",
    "sigcont": "resume",
    "unpause": "resume",
    "reboot": "restart",
    "recover": "join",
    "refuse": "reject",
    "deny": "reject",
    "change": "set",
    "clock": "set",
    "split": "partition",
    "end": "quit",
    "exit": "quit",
}
OTHER_STATEMENTS = {
    "host": "service",
    "container": "service",
    "switch": "bridge",
    "router": "service",
    "edge": "link",
    "connect": "link",
    "assert": "expect",
    "metric": "figure",
    "parameter": "param",
    "var": "let",
}
OTHER_EXPECTATIONS = {
    "latency": "rtt",
    "delay": "rtt",
    "ping": "rtt",
    "roundtrip": "rtt",
    "rate": "throughput",
    "bandwidth": "throughput",
    "drop": "loss",
    "reachable": "unreachable",
    "line": "log",
    "status": "exit",
    "exits": "exit",
    "command": "run",
    "exec": "run",
    "verdict": "valid",
    "linearisable": "linearizable",
    "linear": "linearizable",
    "atomic": "linearizable",
    "serialisable": "serializable",
    "history": "linearizable",
    "invariant": "always",
    "every": "always",
    "each": "always",
    "never": "no",
    "ever": "sometimes",
    "once": "sometimes",
    "finally": "eventually",
    "assertion": "assertions",
    "asserts": "assertions",
    "driver": "drivers",
    "template": "drivers",
    "templates": "drivers",
    "tests": "drivers",
}

SERVICE_PROPERTIES = (
    "img",
    "exec",
    "command",
    "entrypoint",
    "replicas",
    "tags",
    "env",
    "port",
    "cpu",
    "mem",
    "user",
    "cwd",
    "files",
    "mount",
    "fs",
    "sysctl",
    "setup",
    "ready",
    "ready-timeout",
    "stop",
    "grace",
    "expect",
    "keep",
    "after",
    "alias",
    "publish",
    "network",
)
BRIDGE_PROPERTIES = ("tags",)
EXTERNAL_PROPERTIES = ("if", "address", "prefix", "own", "gateway", "tags")
NODE_PROPERTIES = ("replicas", "cpu", "mem", "tags")
MOBILITY_PROPERTIES = (
    "format",
    "unit",
    "nodes",
    "range",
    "body",
    "every",
    "latency",
    "latency-step",
    "rate",
    "loss",
    "transceivers",
    "allocate",
)
MOBILITY_TEXTS = ("rate", "loss")  # of it, a value or a file
MOTION_FORMATS = ("visibility", "setdest", "bonnmotion", "csv", "gpx")
LENGTHS = ("m", "km")
ALLOCATIONS = ("nearest", "program")


class LinkWord(NamedTuple):
    """A property of links."""

    # of value: time, share, rate, size, queue, packets, name, aqm, table, file, end
    kind: str
    field: str = ""  # of ast.LinkStatement, where both directions have one value
    verb: str = ""  # what a share does to packets


# All that `set` changes. A new one has a row here and a field in tdl/ast.py.
LINK_WORDS = {
    "latency": LinkWord("time", "latency_ns"),
    "jitter": LinkWord("time", "jitter_ns"),
    "loss": LinkWord("share", "loss_ppb", "loses"),
    "up": LinkWord("rate"),
    "down": LinkWord("rate"),
    "rate": LinkWord("rate"),
    "queue": LinkWord("queue"),
    "dist": LinkWord("name"),
    "burst": LinkWord("packets", "burst_milli"),
    "burst-pass": LinkWord("share", "burst_pass_ppb", "passes"),
    "gap-loss": LinkWord("share", "gap_loss_ppb", "loses"),
    "duplicate": LinkWord("share", "duplicate_ppb", "duplicates"),
    "corrupt": LinkWord("share", "corrupt_ppb", "corrupts"),
    "reorder": LinkWord("share", "reorder_ppb", "reorders"),
    "by": LinkWord("time", "reorder_ns"),
    "reject": LinkWord("share", "reject_ppb", "rejects"),
    "mtu": LinkWord("size", "mtu_bytes"),
    "trace": LinkWord("file"),
    "trace-up": LinkWord("file"),
    "trace-down": LinkWord("file"),
    "trace-end": LinkWord("end"),
    "aqm": LinkWord("aqm"),
}
# What only paths have; those without a direction are of both.
PATH_WORDS = {
    "abw": LinkWord("rate"),
    "abw-up": LinkWord("rate"),
    "abw-down": LinkWord("rate"),
    "abw-flows": LinkWord("table"),
    "abw-flows-up": LinkWord("table"),
    "abw-flows-down": LinkWord("table"),
    "capacity": LinkWord("rate"),
    "rtt": LinkWord("time"),
    "wmax": LinkWord("size"),
    "queue-up": LinkWord("size"),
    "queue-down": LinkWord("size"),
}
CHANGEABLE = {**LINK_WORDS, **PATH_WORDS}  # by `set`, of links or of paths
CLOCK_WORDS = ("clock", "drift")  # by `set`, of instances
HOST_WORDS = (*CLOCK_WORDS, "disk")
DISK_FAULTS = ("ok", "slow", "full", "error")
ONLY = "only"  # in `set`, of which packets it is
CLASS_PROPERTIES = ("latency", "jitter", "loss", "reject")  # that some packets may have others of
TRACE_ENDS = ("loop", "hold")
_TRACES = ("trace", "trace-up", "trace-down", "trace-end")
_OF_LINKS = ("up", "down", "rate", "aqm", *_TRACES)  # rates of paths follow from `abw`
_NECKS = ("bottleneck", "bottleneck-up", "bottleneck-down")
PATH_PROPERTIES = (
    *(word for word in LINK_WORDS if word not in _OF_LINKS),
    *PATH_WORDS,
    *_NECKS,
    "name",
    "tags",
)
BOTTLENECK_PROPERTIES = ("capacity", "queue")
SET_PROPERTIES = tuple(LINK_WORDS)
LINK_PROPERTIES = (*SET_PROPERTIES, "name", "address", "gateway", "tags", "network")
DISTRIBUTIONS = ("normal", "uniform", "pareto", "paretonormal")
ROUTINGS = ("delay", "hops", "direct", "ecmp")
NETWORKS = ("dual", "ipv4", "ipv6")
HOPS = ("answer", "silent")
ADDRESSES = ("auto",)
DIALECTS = ("kollaps",)
FILE_SYSTEMS = ("private",)
EXPECTATIONS = ("success", "run", "any")
SIGNALS = ("SIGABRT", "SIGALRM", "SIGCONT", "SIGHUP", "SIGINT", "SIGKILL", "SIGPWR", "SIGQUIT",
           "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH")  # fmt: skip
