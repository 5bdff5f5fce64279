"""Codes TS06xx: routers, lans, and the links between them that carry frames."""

from __future__ import annotations

from tdl.codes.code import Code

FRAME_CODES = (
    Code(
        "TS0600",
        "router or lan at a bridge",
        "Bridges forward packets by the plan's routes. Links at routers and lans carry frames, and "
        "where packets go there is for the programs of routers to decide: both ends are services, "
        "of which a router says `router`, or lans.",
        "service r router\nbridge s\nlink r--s",
    ),
    Code(
        "TS0601",
        "not an address of an interface",
        "`address=` is ADDRESS/PREFIX of the end that is a service's, or of both ends with `--` "
        "between them, as in the name of the link; an end may have one address of IPv4 and one of "
        "IPv6, with a comma between them.",
        "service r router\nlan l\nlink r--l address=10.0.0.1",
    ),
    Code(
        "TS0602",
        "address twice in one network",
        "Ends that hear each other, over a link or over lans, have different addresses. With a `+` "
        "behind it an address is the first instance's, and each further one has the next.",
        "service c replicas=2\nlan l\nlink c--l address=10.0.0.1/24",
    ),
    Code(
        "TS0603",
        "loop of lans",
        "Lans have no spanning tree: over a second way between two of them a frame to all would "
        "come back for ever.",
        "lan l\nlan m\nservice a\nlink a--l\nlink l--m name=one\nlink l--m name=two",
    ),
    Code(
        "TS0604",
        "several links that are no interfaces",
        "Where frames pass, each link of an instance is an interface of its own, as `interfaces` "
        "says, and `router` with it.",
        "service a\nlan l\nlan m\nlink a--l\nlink a--m",
    ),
    Code(
        "TS0605",
        "address where there is none to state",
        "Instances at bridges have the addresses of the plan (docs/tdl.md), and lans have none.",
        "service a\nbridge s\nlink a--s address=10.0.0.1/24",
    ),
    Code(
        "TS0606",
        "no address left",
        "A `+` has run out of its network, or `addresses auto` out of 10.78.0.0/16 (32,768 links "
        "between two ends) or 10.79.0.0/16 (256 networks of lans with 254 ends each).",
        "service c replicas=9\nlan l\nlink c--l address=10.0.0.1/29+",
    ),
    Code(
        "TS0607",
        "unknown word after addresses",
        "`addresses auto` gives an address to each end of a link that carries frames and has no "
        "`address=`.",
        "addresses all",
    ),
    Code(
        "TS0608",
        "gateway that is no neighbour",
        "The next hop of a default route is in the network of the interface's own address, and "
        "another one's.",
        "service r router\nservice c\nlink c--r address=10.0.0.2/30--10.0.0.1/30 gateway=10.1.1.1",
    ),
    Code(
        "TS0609",
        "expectation of what a run does not know",
        "Where routers are between two instances their programs decide, and nothing probes that "
        "way; what passes a lan is counted by link and not by pair. A program of the experiment "
        "measures it, and `expect log` or `figure` says what it should find.",
        "service r router\nservice a\nservice b\naddresses auto\nlink a--r\nlink b--r\n"
        "expect rtt max a b < 30ms",
    ),
)
FRAME_WARNINGS = (
    Code(
        "TS0983",
        "router with one link",
        "A router forwards from one of its links to another.",
        "service r router\nservice c\nlink c--r",
    ),
    Code(
        "TS0984",
        "several routers and no default route",
        "A service that is no router has a default route to the only router of its network. Among "
        "several none is chosen: `gateway=` says which, `gateway=none` that there is none.",
        "service r replicas=2 router\nservice c\nlan l\naddresses auto\nlink r--l\nlink c--l\n"
        "link r--r",
    ),
    Code(
        "TS0985",
        "address in a network of its own",
        "Ends that hear each other reach the addresses of their own network, and others by a "
        "router in it. Here nobody else has an address in the network of this end, so that nothing "
        "is sent over the link unless a program sets addresses or routes.",
        "service a\nservice b\nlan l\nlink a--l address=10.0.0.1/24\nlink b--l address=10.0.1.2/24",
    ),
)
