"""Machines behind network cards, and ports for the machine itself: TS0720 to TS0726, TS0943."""

from __future__ import annotations

from tdl.codes.code import Code

_BEGIN = "bridge s1\nservice server\nlink server--s1\n"
_END = "link pc--s1 latency=1ms\n"

EXTERNAL_CODES = (
    Code(
        "TS0720",
        "external without a card or an address",
        "An `external` names the network card that real machines are behind, `if=`, and either the "
        "`address=` of one machine or the `prefix=` of a network of them.",
        f"{_BEGIN}external pc if=eth1\n{_END}",
    ),
    Code(
        "TS0721",
        "not an address of an external",
        "`address=` and `gateway=` take an address of IPv4, `prefix=` a network without bits beyond"
        " its length, `own=` an address with the length of its network's prefix. What the run has"
        " on the card and who leads to the machines are neighbours.",
        f"{_BEGIN}external pc if=eth1 prefix=10.1.0.7/16\n{_END}",
    ),
    Code(
        "TS0722",
        "address of an external that is another's",
        "Packets find a machine by its address, so no two externals have the same, and none has one"
        " that the experiment itself gives to instances, bridges or gateways.",
        f"{_BEGIN}external pc if=eth1 address=10.77.0.9\n{_END}",
    ),
    Code(
        "TS0723",
        "one card for two externals",
        "What comes by a card enters the experiment at one place. Several machines behind one card "
        "are one external with a `prefix=`.",
        f"{_BEGIN}external pc if=eth1 address=10.1.0.1\nexternal tv if=eth1 address=10.1.0.2\n"
        f"{_END}link tv--s1",
    ),
    Code(
        "TS0724",
        "event of a process at an external",
        "A run starts, stops and kills processes of its own. A real machine has none of them: its "
        "links are changed, taken down and cut off like all others.",
        f"{_BEGIN}external pc if=eth1 address=10.1.0.1\n{_END}at 5s pc crash",
    ),
    Code(
        "TS0725",
        "external at a router or a lan",
        "To an external the plan's routes lead, by address. Links at routers and lans carry frames,"
        " which have no such routes.",
        "lan office\nservice a\nlink a--office\nexternal pc if=eth1 address=10.1.0.1\n"
        "link pc--office",
    ),
    Code(
        "TS0726",
        "not a port to publish",
        "publish= is a list of ports of the program, separated by `;`: `80`, or `8080:80` with the "
        "port of this machine first. Of a service with several instances the first one is at 8080, "
        "the next at 8081. No two of an experiment are at the same port of this machine, and "
        "the last port is 65535.",
        "service a exec=b publish=80:http\nbridge s1\nlink a--s1",
    ),
    Code(
        "TS0943",
        "published port of a service without a program",
        "publish= leads to a port that a program of the service listens at. This service has no "
        "`exec=` and no image, so nobody listens unless `tstorm exec` starts somebody.",
        "service a publish=80\nbridge s1\nlink a--s1",
    ),
)
