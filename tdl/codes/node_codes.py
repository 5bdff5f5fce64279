"""Machines with parts: TS0620 to TS0629. Machines behind network cards, and ports for the machine
itself: TS0720 to TS0726, TS0943."""

from __future__ import annotations

from tdl.codes.code import Code

_NODE = 'node sat replicas=2 {\n    service app exec="sleep 9"\n    bridge inner\n'
_INNER = _NODE + "    link app--inner\n}\n"

NODE_CODES = (
    Code(
        "TS0620",
        "part that a machine does not have",
        "The parts of a machine are the services and bridges that the block of its `node` "
        "declares. In the block they have their own names, elsewhere `sat.app` is the part of all "
        "machines, `sat.3.app` that of one.",
        _INNER + "at 5s sat.0.ap crash",
    ),
    Code(
        "TS0621",
        "statement that does not stand in a node",
        "The block of a `node` has services, bridges and links. Everything else is about the whole "
        "experiment, or happens at a time, and stands outside of it.",
        _NODE + "    link app--inner\n    at 5s app crash\n}",
    ),
    Code(
        "TS0622",
        "machine without a part",
        "A machine is made of its parts; a `node` declares one service at least.",
        "node sat replicas=2 {\n    bridge inner\n}",
    ),
    Code(
        "TS0623",
        "machine as the end of a link",
        "A machine has no interface of its own: its parts have them. Name the part that the link "
        "leads to.",
        _INNER + "bridge air\nlink sat--air",
    ),
    Code(
        "TS0624",
        "too many parts",
        "An experiment has at most 65,000 instances, and `replicas=` of a node multiplies those of "
        "its parts. Links to a part of each machine count, too.",
        'node sat replicas=60000 {\n    service app replicas=2 exec="sleep 9"\n}',
    ),
    Code(
        "TS0625",
        "link between inside and outside",
        "Links in the block of a `node` are between its own parts, once for each machine. What "
        "leaves the machine is written behind the block, by full names: `link sat.app--air` for "
        "each machine, `link sat.0.app--sat.1.app` from one to another. The bridges and lans of a "
        "machine are for its own parts: nothing of another machine is linked to them.",
        "bridge air\n" + _NODE + "    link app--air\n    link app--inner\n}",
    ),
    Code(
        "TS0626",
        "machine that there is not",
        "The machines of `node sat replicas=12` are `sat.0` to `sat.11`.",
        _INNER + "at 5s sat.2 crash",
    ),
    Code(
        "TS0627",
        "name of a part outside of its machine",
        "What the block of a `node` declares has its short name in the block only: each machine "
        "has one of it. Outside, `sat.app` is that of every machine and `sat.0.app` that of one.",
        _INNER + "bridge air\nlink app--air",
    ),
    Code(
        "TS0628",
        "machine that nothing cuts off",
        "`disconnect` takes down the links that leave a machine; its inner network goes on. This "
        "machine has none.",
        _INNER + "at 5s sat.1 disconnect",
    ),
    Code(
        "TS0629",
        "not of a lan of the kernel's",
        "`lan NAME kernel` in the block of a `node` is a bridge of the kernel's in each machine. "
        "What passes it is not emulated: links to it are in the block, between it and parts that "
        "run, and have `address=` and nothing else, and no event is about it.",
        _NODE.replace("bridge inner", "lan inner kernel") + "    link app--inner latency=1ms\n}",
    ),
)


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
