"""Nodes that move: TS0190 to TS0196, TS0630 and TS0631, and TS0980 to TS0982."""

from __future__ import annotations

from tdl.codes.code import Code

MOBILITY_CODES = (
    Code(
        "TS0190",
        "movement that cannot be read",
        "`mobility` names a file on the machine that compiles, relative to the folder of the TDL "
        "file, and so do its `rate=` and `loss=`. They are read when the text is compiled; what "
        "follows from them is part of the plan.",
        "mobility missing.json",
    ),
    Code(
        "TS0191",
        "file that tells of no movement",
        "The file is not what its format says: a visibility graph in JSON, scripts of ns-2's "
        "`setdest`, BonnMotion, CSV or GPX (docs/mobility.md has what they look like). What format "
        "it has the end of its name tells, or `format=`. The message names line and column of the "
        "file.",
        "",
    ),
    Code(
        "TS0192",
        "too much movement",
        "There are at most 512 nodes, 1,000,000 positions of all of them together, and 50,000,000 "
        "times that two nodes are looked at; a file has at most 1 GiB. A longer `every=` has fewer "
        "positions.",
        "",
    ),
    Code(
        "TS0193",
        "nodes that do not fit",
        "`nodes=SERVICE:PREFIX` puts an instance of the service at each node of the file whose "
        "name begins so, in the order of the file. The service is declared, has as many "
        "`replicas=` as there are such nodes, or none, and each node is one service's at most. "
        "What the file calls nodes are names of bridges, so no two of them are alike.",
        "",
    ),
    Code(
        "TS0194",
        "mobility that cannot be so",
        "A property of `mobility` has a value that it does not take, or says something beside "
        "another one that does not go together. There is one `mobility` in an experiment.",
        "mobility a.csv format=kml",
    ),
    Code(
        "TS0195",
        "table of distances that cannot be used",
        "`rate=FILE` is CSV with the header `distance,rate` or `distance,rate,loss`, `loss=FILE` "
        "with `distance,loss`. Distances are in m or have a unit, begin at 0 and ascend; a row "
        "holds from its distance on. With a rate of 0 nodes do not reach each other.",
        "",
    ),
    Code(
        "TS0196",
        "too much that a link follows",
        "What delays, rates and losses of links follow over time is kept in the plan, 64 MiB "
        "together. A larger `latency-step=` keeps fewer steps.",
        "",
    ),
    Code(
        "TS0630",
        "nodes of which some are routers",
        "A router that moves is the node itself, and its links to others that move carry frames, "
        "which a bridge does not. So all nodes of a file are routers, each named by `nodes=`, or "
        "none is.",
        "",
    ),
    Code(
        "TS0631",
        "radios that nobody leads",
        "With `allocate=program` the programs of a node ask for its links and send packets over "
        "them, which routers do: where bridges move, routes are planned with the links.",
        "",
    ),
    Code(
        "TS0632",
        "air in which nobody is heard",
        "An `air` joins stations that a file of `mobility` says the places of, while they reach "
        "each other. Each node that moves is a station then, by a link to the air, and each "
        "station is an instance that `nodes=` puts at one. Where all hear each other write `lan`.",
        "air wifi\nservice a\nlink a--wifi rate=6Mb",
    ),
    Code(
        "TS0633",
        "link to an air that cannot be so",
        "`link SERVICE--AIR` begins at the station, and says at which rate, after which queue and "
        "with which loss it sends, once for all who hear it. What reaches others, after which time "
        "and with which loss, the `mobility` says: it has no rate= and no transceivers= here.",
        "",
    ),
    Code(
        "TS0980",
        "records that are not in order",
        "Times of a node in a file go back. They were sorted.",
        "",
    ),
    Code(
        "TS0981",
        "nodes without a record",
        "A visibility graph has a record of each node for each time. Where there is none, the "
        "node stands where it was and sees what it saw.",
        "",
    ),
    Code(
        "TS0982",
        "one node sees the other, and is not seen",
        "A line of sight is mutual. These two are not linked as long as only one of them has it.",
        "",
    ),
)
