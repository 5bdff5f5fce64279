"""Codes TS0183 and up: measured paths."""

from __future__ import annotations

from tdl.codes.code import Code

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
