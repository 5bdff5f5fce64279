"""Codes TS02xx: selectors and actions, and TS09xx: warnings."""

from __future__ import annotations

from tdl.codes.code import Code
from tdl.tokens.words import SET_PROPERTIES

# Bridges that are as near to each of three groups, and hang together.
_MANY_PLACES = "bridges a b c hub m[0..9]\nfor i in 0..9 {\n" + (
    "".join(f"    link {end}--m$i\n" for end in ("a", "b", "c", "hub"))
    + "}\nat 5s partition a;b;c\nat 9s heal"
)

ACTIONS = (
    Code(
        "TS0201",
        "unknown name",
        "The selector names something that is not declared.",
        "service a\nbridge s1\nlink a--s1\nat 5s b leave",
    ),
    Code(
        "TS0202",
        "unknown link",
        "There is no link between these two, or none of them is called so.",
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
        "This action happens at one moment: `at T …`, or `from T1 to T2 … sometime`.",
        "from 5s to 6s a reconnect",
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
        f"set changes {', '.join(SET_PROPERTIES[:-1])} and {SET_PROPERTIES[-1]} of links.",
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
        "TS0234",
        "aqm and background on one link",
        "A background is a share of the rate and has no packets that a managed queue could drop, "
        "so what it would do to it is not defined.",
        "bridges s1 s2\nlink s1--s2 rate=5Mb aqm=codel\nat 5s s1--s2 background 1Mb",
    ),
    Code(
        "TS0248",
        "only= that means no packets",
        "only= is tcp, udp, sctp (each also with a port, `tcp:5432`), icmp, from:NAME and to:NAME, "
        "several with ';' between, or none alone. It says of which packets a link's latency, "
        "jitter, loss and reject change.",
        "bridges s1 s2\nlink s1--s2\nat 5s s1--s2 set loss=10% only=http",
    ),
    Code(
        "TS0249",
        "a second class of packets on one link",
        "A link tells one class of packets from the rest. `set only=none` ends the first, and so "
        "does the end of its interval; one class may have several protocols and ports.",
        "bridges s1 s2\nlink s1--s2\nat 5s s1--s2 set loss=10% only=tcp\n"
        "at 6s s1--s2 set loss=10% only=udp",
    ),
    Code(
        "TS0260",
        "not of a clock",
        "`set clock=` and `set drift=` are about the clock of an instance: links have other "
        "properties, in statements of their own, and a clock does not ramp.",
        "service a\nbridge s\nlink a--s\nat 5s a set clock=+1s latency=5ms",
    ),
    Code(
        "TS0261",
        "a clock beyond what clocks are",
        "A clock drifts by 10 % at most, and is off by 292 years at most.",
        "service a\nbridge s\nlink a--s\nat 5s a set drift=20%",
    ),
    Code(
        "TS0262",
        "not of a disk",
        "`set disk=` is about the disk of an instance: links and clocks have statements of their "
        "own, and a disk does not ramp.",
        "service a\nbridge s\nlink a--s\nat 5s a set disk=full latency=5ms",
    ),
    Code(
        "TS0263",
        "not what a disk is like",
        "A disk is `slow:TIME`, `full`, `error:SHARE` or `ok`. TIME and SHARE are more than 0.",
        "service a\nbridge s\nlink a--s\nat 5s a set disk=broken",
    ),
    Code(
        "TS0217",
        "a number for a list of names",
        "`a;b leave` means both. To choose a number among several, give them a tag: `tags=x leave "
        "2`.",
        "at 5s a;b leave 2",
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
        "word out of place",
        "What lasts may say how long: `at T … set latency=50ms for 5s`, `for 1s..5s`; "
        "`restart after 2s` comes back by itself. In an interval that draws the moment, and so "
        "does `sometime`; `at T` has one, and join, crash and kill draw one for each target "
        "anyway. `only=` is for set, ramp, leave, reject and partition; a cut of some packets has "
        "its number of links in front: `2 of tags=x leave only=tcp`.",
        "at 5s a crash for 3s",
    ),
    Code(
        "TS0222",
        "no time at all",
        "A disconnect or a pause for 0s would do nothing, nor would a step of a clock by 0s.",
        "at 5s a pause for 0s",
    ),
    Code(
        "TS0223",
        "leave means two things here",
        "`from T1 to T2 … leave` takes each instance away at a moment of its own, drawn from the "
        "interval; a link or a bridge is down from T1 to T2. The selector has both. Write two "
        "statements, or `leave sometime`: all of them at drawn moments, for good.",
        "service a tags=x\nbridge s1 tags=x\nlink a--s1\nfrom 1s to 9s tags=x leave",
    ),
)

COMMANDS = (
    Code(
        "TS0320",
        "not for a running experiment",
        "What is done to a running experiment (`tstorm do`) changes what there is: it declares no "
        "services, links or expectations, and it takes no instances, traces or delays that the "
        "plan of the run does not have.",
        "",
    ),
    Code(
        "TS0321",
        "a time that is over",
        "What is done to a running experiment (`tstorm do`) happens at a moment that is still to "
        "come: `at now`, `at +5s`, `from now to +10s`.",
        "",
    ),
    Code(
        "TS0322",
        "not a change of a link",
        "A line of `tstorm do RUN --json FILE` is a JSON object, or a list of them: `src`, `dst`, "
        "and what is to be another, as whole numbers (`rate_bps`, `delay_ns`, ...), or `up`, or "
        "`reset`; besides `at_ns`, `both` and `id`. docs/live.md has all of them.",
        "",
    ),
    Code(
        "TS0323",
        "end of a link that is not there",
        "`src` and `dst` of a change are the names of instances (`client.0`) or their addresses, "
        "as `tstorm inspect` shows them.",
        "",
    ),
    Code(
        "TS0324",
        "no link of these two alone",
        "A change of a link by its ends is about what only these two have: the one link between "
        "them, or the one link of their path that carries no other pair. Any other link is changed "
        'by its name: `tstorm do RUN "s1--s2 set latency=20ms"`.',
        "",
    ),
    Code(
        "TS0940",
        "program that is not there",
        "A program of `exec=`, `setup=` or `ready=` is not on this machine: in no folder of PATH "
        "(with /usr/sbin and /sbin, where daemons live, and without a virtual environment that is "
        "active), or not at the path that is written, which begins at the TDL file. `tstorm check` "
        "and `run` look.",
        "",
    ),
    Code(
        "TS0941",
        "shell syntax without a shell",
        "A command line is split into words, and the first is started with the others. `&&`, `|`, "
        "`>`, `;` and variables other than `$TSTORM_…` mean something to a shell only, which would "
        "be `sh -c '…'`.",
        'service a exec="sleep 5 && echo done"\nbridge s1\nlink a--s1',
    ),
)

WARNINGS = (
    Code(
        "TS0901",
        "undeclared tag",
        "Nothing carries this tag, so the statement does nothing.",
        "service a tags=backend\nbridge s1\nlink a--s1\nat 5s tags=be leave 60%",
    ),
    Code(
        "TS0902",
        "option without effect",
        "The option belongs to another tool's dialect; it is accepted and kept. `supervisor` keeps "
        "the service out of what actions without a selector concern; `reuse` and `network=` have "
        "no effect.",
        "service a reuse",
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
        "service a tags=a\nbridge s1\nlink a--s1",
    ),
    Code(
        "TS0911",
        "no change",
        "The statement asks for what is already so. Of a trace (from four `at … set` of the same "
        "properties of the same link on, or four `background`) steps may repeat a value.",
        "bridges s1 s2\nlink s1--s2 latency=5\nat 5s s1--s2 set latency=5",
    ),
    Code(
        "TS0912",
        "not set back",
        "At the end of `from T1 to T2 … disconnect` the same instances come back, but this one "
        "has left, crashed or been reconnected in the meantime. The same goes for `pause`, "
        "`restart … after`, and `leave` of a link or a bridge in an interval.",
        "service a\nbridge s1\nlink a--s1\nfrom 1s to 9s a disconnect\nat 5s a crash",
    ),
    Code(
        "TS0913",
        "tag that looks like an option",
        "In `tags=a b` every word is a tag. This one is spelt almost like an option or property, "
        "so it may be a mistake. Separate tags with `;` and the warning goes away.",
        "link a--b up=5Mb tags=x symetric",
    ),
    Code(
        "TS0914",
        "no path for good",
        "Instances that are joined and connected at the end have no path to each other then, and "
        "none since the time that the message says, or ever. Usually a `heal` or a `join` is "
        "missing.",
        "service a\nservice b\nbridge s1\nlink a--s1\nlink b--s1\nat 5s partition a;b\nat 9s quit",
    ),
    Code(
        "TS0915",
        "changes faster than can be applied",
        "The same link, bridge or instance changes again before a run can have made the last "
        "change (docs/limits.md says how fast that is), so the run will differ from what is "
        "written.",
        "service a\nbridge s1\nlink a--s1\nfrom 1s to 2s a--s1 flap 100us",
    ),
    Code(
        "TS0916",
        "rate above the budget",
        "The link has a rate above what `--budget` says that one machine can carry, so it cannot "
        "be reached. With `--budget 1Gb`:",
        "service a\nservice b\nlink a--b up=2Gb symmetric",
    ),
    Code(
        "TS0917",
        "all together above the budget",
        "If all instances send at once, at the full rate of their links, they ask for more than "
        "`--budget` says that one machine can carry. That is a limit from above: the experiment "
        "may well ask for less. With `--budget 1Gb`:",
        "service a replicas=3\nbridge s1\nlink a--s1 up=500Mb symmetric",
    ),
    Code(
        "TS0918",
        "never joins",
        "No instance of the service ever joins, or the join of some of them comes after the end.",
        "service a replicas=2\nbridge s1\nlink a--s1\nat 5s quit\nat 6s a join",
    ),
    Code(
        "TS0919",
        "tag that may be a slip",
        "No event selects this tag, and one selects another that is the same but for case, "
        "hyphens, two letters swapped or an `s` at the end. Tags that only say what an element is "
        "are no reason for a warning.",
        "service a tags=clients\nservice b tags=client\nbridge s1\nlink a--s1\nlink b--s1\n"
        "at 5s tags=client leave",
    ),
    Code(
        "TS0920",
        "round trip below the underlay's",
        "The network between the machines of a cluster takes longer (`--underlay`) than the "
        "planned round trip between these instances, which will be right on one machine only. With "
        "`--underlay 500us`:",
        "service a replicas=2\nbridge s1\nlink a--s1 latency=0.1",
    ),
    Code(
        "TS0921",
        "every replica is at several bridges",
        "The links of a service are made for every instance, so each replica is attached to all of "
        "these bridges. To put each in a place of its own, link single instances: `link a.0--s1`, "
        "`link a.1--s2`. Where it is meant, an event that names one of the links as a whole "
        "(`a--s1`, or a tag of it) makes this warning go away: it shows that they are known to be "
        "several.",
        "service a replicas=2\nbridges s1 s2\nlink a--s1\nlink a--s2",
    ),
    Code(
        "TS0922",
        "comes back late on Kubernetes",
        "An instance joins again, and its service has no `entrypoint=`. A cluster then knows no "
        "program that could be started: it makes the pod's containers anew, which takes about a "
        "second, and waits before it does so repeatedly, 10 seconds, then 20 and so on up to five "
        "minutes. State the program, and the image's own arguments as `command=`. Where programs "
        "are run otherwise nothing changes. `compile` tells where it renders manifests, so do "
        "`render` and, as an error, `run --backend k8s`:",
        "service a img=nginx\nbridge s1\nlink a--s1\nat 0s a join\nat 5s a crash\nat 9s a join",
    ),
    Code(
        "TS0924",
        "perhaps not the smallest cut",
        "`partition` cuts as few links as possible. Of three groups and more in a large network "
        "that could not be found out in a short time: the cut has at most twice as many links. "
        "Each bridge that a group names makes it easier.",
        _MANY_PLACES,
    ),
    Code(
        "TS0925",
        "link that is never used",
        "Packets take the way of least delay (`routing hops`: of fewest links), and at no time is "
        "this link on the best way between two instances. So what is said of it has no effect. A "
        "matrix of measured latencies often has such entries, where the way through a third place "
        "is quicker than the direct one: `routing direct` takes it all the same. Of networks with "
        "more than about four million pairs of a place with instances and one on its ways nothing "
        "is said.",
        "service a\nservice b\nbridges x y z\nlink a--x\nlink b--y\n"
        "link x--y latency=9ms\nlink x--z latency=1ms\nlink z--y latency=1ms",
    ),
    Code(
        "TS0960",
        "nothing to share out",
        "`routing ecmp` shares flows out over all paths whose latencies add up to the same least "
        "sum, to the nanosecond, and that have as many links. At no time have two instances more "
        "than one: latencies that were measured, or drawn at random, are hardly ever equal.",
        "routing ecmp\nservice a\nservice b\nbridges x y\nlink a--x\nlink b--y\n"
        "link x--y latency=9ms",
    ),
    Code(
        "TS0963",
        "interfaces of one link",
        "With `interfaces` an instance has a device for each of its links: eth0, eth1 and so on. "
        "With one link, or none, it has eth0 as always.",
        "service a interfaces\nbridge s1\nlink a--s1",
    ),
    Code(
        "TS0926",
        "a limit for one way only",
        "`up=` alone leaves the way back unlimited, and `down=` the way there. `up=10Mb symmetric` "
        "or `rate=10Mb` limit both; `down=unlimited` says that one is meant to be without a limit.",
        "service a\nbridge s1\nlink a--s1 up=10Mb",
    ),
    Code(
        "TS0930",
        "what a statement has begun, another ends",
        "`from … to … set` sets properties back at its end to what they were before. What another "
        "statement has set in the meantime with `at T … set` stays. A `ramp` ends where another "
        "statement sets one of its properties, and does not reach its target.",
        "bridges s1 s2\nlink s1--s2 latency=1ms\n"
        "from 1s to 9s s1--s2 set latency=5ms\nat 5s s1--s2 set latency=2ms",
    ),
    Code(
        "TS0935",
        "start when ready waits for nothing",
        "Time 0 comes when all programs that have a `ready=` are ready, and those without one "
        "start then. No service has one, so all of them start at once.",
        'service a exec="x"\nbridge s1\nlink a--s1\nstart when ready',
    ),
    Code(
        "TS0936",
        "started after what nobody can tell of",
        "`after=db` waits until all instances of `db` are ready. Without `ready=`, and without an "
        "image that may have a health check, they count as ready when their programs are started, "
        "which may be long before they answer.",
        'service db exec="x"\nservice app exec="y" after=db\nbridge s1\nlink db--s1\nlink app--s1\n'
        "start when ready",
    ),
)
