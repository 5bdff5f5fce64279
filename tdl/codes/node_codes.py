"""Machines with parts: TS0620 to TS0629."""

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
