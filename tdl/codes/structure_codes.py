"""Codes TS01xx: declarations, with measured paths (TS0183 and up), and TS03xx: the timeline."""

from __future__ import annotations

from tdl.codes.code import Code
from tdl.codes.loop_codes import LOOPS

_ENDS = "service a\nservice b\n"

PATHS = (
    Code(
        "TS0183",
        "path without what was measured",
        "A path needs what is available of it in both directions, abw= (or abw-up= and abw-down=, "
        "or a table by flows), and its round trip without load, rtt= or latency=.",
        _ENDS + "path a--b abw-up=4Mb rtt=20ms",
    ),
    Code(
        "TS0184",
        "not a table of flows",
        "A table has rows FLOWS:RATE, separated by ';': what so many flows get together. The first "
        "is of one flow; rows ascend, to 10,000 flows at most, and there are at most 32.",
        _ENDS + "path a--b abw-flows=2:4Mb;4:6Mb rtt=20ms",
    ),
    Code(
        "TS0185",
        "path that ends at a bridge",
        "A path is what lies between two instances, measured at its ends. Its own routers are not "
        "known, and bridges of the file are not part of it: write a link.",
        "service a\nbridge s\npath a--s abw=4Mb rtt=20ms",
    ),
    Code(
        "TS0186",
        "path without queues that fit",
        "No queues let flows of this window fill what is available over this round trip: "
        "docs/tdl.md, Measured paths.",
        _ENDS + "path a--b abw=80Mb rtt=200ms wmax=64KB",
    ),
    Code(
        "TS0187",
        "bottleneck that a path says more of",
        "A bottleneck has the capacity and the queue of all its paths: they cannot have others. "
        "bottleneck=NAME is a queue for each direction; bottleneck-up= and bottleneck-down= put "
        "one direction of a path into a queue each.",
        _ENDS + "bottleneck n\npath a--b abw=4Mb rtt=20ms bottleneck=n capacity=50Mb",
    ),
    Code(
        "TS0188",
        "path through no bottleneck",
        "The bottleneck that a path names is not declared, or other paths name it for both of "
        "their directions where this one names it for one.",
        _ENDS + "path a--b abw=4Mb rtt=20ms bottleneck=n",
    ),
    Code(
        "TS0243",
        "background that cannot give way so",
        "`flows=` says how many flows make a background, from 1 to 10,000. What flows of programs "
        "get beside it follows from that; of a measured path its table says it.",
        _ENDS + "path a--b abw=4Mb rtt=20ms\nat 1s a--b background 1Mb flows=3",
    ),
    Code(
        "TS0951",
        "more flows get less",
        "A row of a table says that more flows together get less than half of what fewer get. "
        "Networks do not do that; a row has the rate of all, not of each.",
        _ENDS + "path a--b abw-flows=1:4Mb;2:1Mb rtt=20ms",
    ),
    Code(
        "TS0952",
        "queues longer than windows fill",
        "While both queues of a path are full a round trip takes so long that flows of this window "
        "get less than is available.",
        _ENDS + "path a--b abw=8Mb rtt=90ms queue=2MB",
    ),
    Code(
        "TS0953",
        "bottleneck that nothing shares",
        "No path leads through a bottleneck, or one between two instances, which has a queue of "
        "its own without any.",
        _ENDS + "bottleneck n\npath a--b abw=4Mb rtt=20ms bottleneck=n",
    ),
)


DECLARATIONS = (
    Code(
        "TS0101",
        "declared twice",
        "A name belongs to one service, bridge, bottleneck or link of the experiment, and what a "
        "link is called is no tag, either.",
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
        "A link of rate zero carries nothing. `at T a--b leave` cuts a link, and what waits there "
        "is dropped. Where it is to wait, write a rate that is nearly none, such as `up=1Kb`, and "
        "a `queue=` that holds it. Without a rate a link is unlimited.",
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
        "The two ends of a link differ. `link pg--pg` links each two instances of the service "
        "`pg`; a bridge is one element.",
        "bridge s1\nlink s1--s1",
    ),
    Code(
        "TS0108",
        "second link between the same two elements",
        "Several links between the same two elements are told apart by `name=`, which each of them "
        "needs. A link of a service is a link of each of its instances: `a--s1` and `a.0--s1` are "
        "two for `a.0`. Beside a `path` there is no link between its ends.",
        "bridges s1 s2\nlink s1--s2\nlink s2--s1",
    ),
    Code(
        "TS0109",
        "setting given twice",
        "bootstrapper, seed, routing, network, hops, `start when` and `quit when` are given once "
        "in a file.",
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
        "exec=, setup= and ready= are split into words as a shell would, but no shell runs them. "
        "Quotes inside must be closed, and there must be at least one word.",
        'service a exec="sh -c \'x"',
    ),
    Code(
        "TS0112",
        "too many instances",
        "An experiment has at most 65,000 instances, because of its address range, 65,535 nodes "
        "and 1,048,574 link directions. Its table of routes has a row for each bridge and a column "
        "for each bridge with instances; an instance with several links, or linked to another, is "
        "a row and a column of its own. It has at most 67,108,864 cells.",
        "service a replicas=70000\nbridge s1\nlink a--s1",
    ),
    Code(
        "TS0113",
        "not at least one",
        "replicas, cpu, mem, queue, grace and ready-timeout are greater than zero.",
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
        "dist= is normal, uniform, pareto or paretonormal, or a file of measured delays, which "
        "has a `.` or a `/` in its name, or quotes around it.",
        "link a--b latency=5 jitter=1 dist=gauss",
    ),
    Code(
        "TS0116",
        "unknown routing",
        "`routing delay` (the default) takes the path of least delay, `routing hops` the one of "
        "fewest links, `routing direct` the link from one to the other wherever there is one, "
        "`routing ecmp` shares flows out over all paths of least delay with the fewest links.",
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
        "one direction of a link without the other",
        "`link a--b` declares both directions. `link a->b` declares the one, with `up=` as its "
        "rate, and `link b->a` has to declare the other.",
        "service a\nbridge s1\nlink a->s1 latency=16ms",
    ),
    # TS0120 is spent: links of single instances were an error once.
    Code(
        "TS0121",
        "environment variable given twice",
        "Each name occurs once in env=.",
        "service a env=A:1;A:2",
    ),
    Code(
        "TS0122",
        "entrypoint without a program",
        "entrypoint= is the whole program that an instance starts on a cluster, instead of the "
        "image's own. Its first word is the program's name or path. Without entrypoint= the "
        "image's own program runs.",
        "service a entrypoint=[]",
    ),
    Code(
        "TS0123",
        "instance without a link",
        "`link server--s1` links every instance of `server`, `link server.0--s1` that one only. "
        "Where a service has links of single instances and none of its own, every instance needs "
        "one, also those that joins add.",
        "service a replicas=2\nbridge s1\nlink a.0--s1",
    ),
    Code(
        "TS0138",
        "properties of a link that do not go together",
        "What losses in bursts and packets out of order may be, and what they need beside them: "
        "docs/tdl.md, Losses in bursts, and Out of order.",
        "bridges s1 s2\nlink s1--s2 loss=80% burst=2",
    ),
    Code(
        "TS0139",
        "order of the start, or name of a host",
        "after= is a list of services that this one starts after, with `start when ready`: `db` is "
        "ready, `db:start` is started, `db:exit` has ended with 0. Nobody can start after itself. "
        "alias= is a list of further host names, which are no addresses, and which are not in "
        "/etc/hosts already, in capitals or not: no service, instance (`db.0`, `db-0`), interface "
        "or bridge has them, nor the loopback address (`localhost`). No service or bridge can be "
        "called as that is.",
        "start when ready\nservice a after=b\nservice b after=a\nlink a--b",
    ),
    *PATHS,
    Code(
        "TS0166",
        "not a way to manage a queue",
        "aqm= is codel, fq_codel, pie, red or none, and behind semicolons parameters as tc(8) has "
        "them: docs/tdl.md, Queues that drop early.",
        "bridges s1 s2\nlink s1--s2 rate=10Mb aqm=codel;target:5h",
    ),
    Code(
        "TS0167",
        "aqm without a rate",
        "Packets wait only where the link has a rate; without one there is no queue to manage.",
        "bridges s1 s2\nlink s1--s2 latency=5ms aqm=codel",
    ),
    Code(
        "TS0169",
        "managed queue on a link that follows a trace",
        "A trace serves bytes, and its queue counts them: aqm= and a queue= in packets are for "
        "links with a rate.",
        "",
    ),
    Code(
        "TS0168",
        "queue of a path in another unit",
        "The queues of a measured path follow from what was measured, in bytes; what stands in "
        "their place is in bytes, too.",
        "service a\nservice b\npath a--b abw=4Mb rtt=50ms queue=100pkt",
    ),
    *LOOPS,
)

TIMELINE = (
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
        "bridges s1 s2\nlink s1--s2 up=9Mb symmetric\nfrom 1s to 9s s1--s2 background 1Mb\n"
        "from 2s to 5s s1->s2 background 2Mb",
    ),
)
