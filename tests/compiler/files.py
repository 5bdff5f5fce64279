"""Random TDL files for the comparison with the oracle: every name in them exists.

Times are few and round, so that statements fall together; counts are small, so that many statements
are legal and some are not.
"""

from __future__ import annotations

from hypothesis import strategies as st

TAGS = ("red", "green", "blue")
VERBS = (
    *("join", "join", "join", "leave", "crash", "disconnect", "reconnect", "churn", "churn"),
    *("pause", "pause", "resume", "restart", "restart", "set", "clock", "clock", "disk", "disk"),
    *("flap", "set", "ramp", "background", "partition", "heal"),
)
CLOCKS = (
    "clock=+2s",
    "clock=-7ms drift=33ppb",
    "clock+=1s",
    "clock-=5s",
    "drift=-0.3ppm",
    "drift=7%",
)
DISKS = ("ok", "full", "slow:3ms", "slow:1s", "error:2%")
times = st.integers(0, 24).map(lambda half: f"{half * 500}ms")
percents = st.sampled_from(["10%", "25%", "33.3%", "50%", "75%", "100%"])
counts = st.one_of(st.integers(0, 3).map(str), percents)
maybe_count = st.one_of(st.just(""), counts)


@st.composite
def tags(draw: st.DrawFn) -> str:
    chosen = draw(st.lists(st.sampled_from(TAGS), max_size=2, unique=True))
    return f" tags={';'.join(chosen)}" if chosen else ""


@st.composite
def links(draw: st.DrawFn, a: str, b: str, name: str) -> str:
    if draw(st.booleans()):
        return f"{draw(one_way(a, b, name))}\n{draw(one_way(b, a, name))}"
    text = f"link {a}--{b}{name} latency={draw(st.integers(0, 9))}"
    up = draw(st.sampled_from(["", " up=1Mb", " up=10Mb", " up=10.1Mb"]))
    text += up + draw(st.sampled_from([" symmetric", " down=2Mb", ""]) if up else st.just(""))
    text += draw(st.sampled_from(["", " queue=50KB"])) + draw(tags())
    return text


@st.composite
def one_way(draw: st.DrawFn, a: str, b: str, name: str) -> str:
    text = f"link {a}->{b}{name} latency={draw(st.integers(0, 9))}"
    text += draw(st.sampled_from(["", " up=1Mb", " rate=10Mb"]))
    return text + draw(st.sampled_from(["", " queue=50KB"])) + draw(tags())


class Names:
    """What a file declares."""

    def __init__(self) -> None:
        self.services: dict[str, int | None] = {}
        self.bridges: list[str] = []
        self.pairs: list[tuple[str, str]] = []
        self.called: dict[str, tuple[str, str]] = {}  # links with names of their own
        self.used_tags: list[str] = []
        self.placed: set[str] = set()  # services with links of single instances

    def free(self, a: str, b: str) -> bool:
        """Whether the two may get a link."""
        return (a, b) not in self.pairs and a not in self.placed and b not in self.placed


@st.composite
def static_part(draw: st.DrawFn) -> tuple[list[str], Names]:
    names, lines = Names(), []
    for name in "ab"[: draw(st.integers(1, 2))]:
        replicas = draw(st.sampled_from([4, 3, 2, 1, None]))
        names.services[name] = replicas
        given_text = "" if replicas is None else f" replicas={replicas}"
        lines.append(f"service {name}{given_text}{draw(tags())}")
    for number in range(draw(st.integers(1, 3))):
        names.bridges.append(f"s{number}")
        lines.append(f"bridge s{number}{draw(tags())}")
    for service, replicas in names.services.items():
        if replicas is not None and draw(st.integers(0, 2)) == 0:
            names.placed.add(service)
            for index in range(replicas):
                names.pairs.append((f"{service}.{index}", draw(st.sampled_from(names.bridges))))
            continue
        names.pairs.append((service, draw(st.sampled_from(names.bridges))))
        others = [bridge for bridge in names.bridges if bridge != names.pairs[-1][1]]
        if others and draw(st.integers(0, 3)) == 0:
            names.placed.add(service)
            index = draw(st.integers(0, (replicas or 3) - 1))
            names.pairs.append((f"{service}.{index}", draw(st.sampled_from(others))))
    everyone = [*names.services, *names.bridges]
    for a in everyone:
        for b in everyone:
            if a < b and names.free(a, b) and draw(st.integers(0, 2)) == 0:
                names.pairs.append((a, b))
    names.pairs = [p if draw(st.booleans()) else (p[1], p[0]) for p in names.pairs]
    lines += [line for pair in names.pairs for line in draw(between(*pair, names))]
    names.used_tags = [t for t in TAGS if any(t in line for line in lines)]
    return lines, names


@st.composite
def between(draw: st.DrawFn, a: str, b: str, names: Names) -> list[str]:
    """A link without a name, or some that have one."""
    found = []
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3]))):
        name = f"l{len(names.called)}"
        names.called[name] = (a, b)
        found.append(draw(links(a, b, f" name={name}")))
    return found or [draw(links(a, b, ""))]


@st.composite
def members(draw: st.DrawFn, names: Names) -> str:
    choices = [*names.services]
    for name, replicas in names.services.items():
        choices += [f"{name}.{i}" for i in range(replicas or 1)]
    return draw(st.sampled_from(choices))


@st.composite
def link_selector(draw: st.DrawFn, names: Names) -> str:
    name = draw(st.sampled_from(["", *names.called])) if draw(st.booleans()) else ""
    if name and draw(st.booleans()):
        return name
    a, b = names.called[name] if name else draw(st.sampled_from(names.pairs))
    if draw(st.booleans()):
        a, b = b, a
    if a in names.services and draw(st.integers(0, 3)) == 0:
        a = f"{a}.0"
    elif "." in a and draw(st.booleans()):
        a = a.partition(".")[0]
    between = draw(st.sampled_from(["--", "--", "->"]))
    return f"{name}:{a}{between}{b}" if name else f"{a}{between}{b}"


@st.composite
def some_tag(draw: st.DrawFn, names: Names) -> str:
    chosen = draw(st.lists(st.sampled_from(names.used_tags), min_size=1, max_size=2, unique=True))
    return f"tags={';'.join(chosen)}"


def selector(names: Names, kind: str) -> st.SearchStrategy[str]:
    """`kind`: 'service', 'link' or 'any'."""
    found = [st.just("")] if kind != "link" else []
    if names.used_tags:
        found.append(some_tag(names))
    if kind != "link":
        found += [members(names)] * 4
    if kind != "service":
        found += [link_selector(names)] * 3
    if kind == "any":
        found.append(st.sampled_from(names.bridges))
    return st.one_of(found)


@st.composite
def changes(draw: st.DrawFn) -> str:
    found = [
        draw(st.sampled_from(["latency=5", "latency=200%", "latency+=2ms", "latency-=1ms", ""])),
        draw(st.sampled_from(["jitter=1", "jitter+=0.5", "loss=1%", "loss=0.5", "loss+=60%", ""])),
        draw(st.sampled_from(["rate=5Mb", "up=3Mb", "rate=33.3%", "queue=9KB", "dist=pareto"])),
    ]
    return " ".join(word for word in found if word)


@st.composite
def partitions(draw: st.DrawFn, names: Names) -> str:
    everyone = [*names.services, *names.bridges]
    if len(everyone) < 2:
        return "heal"
    first, second, *rest = draw(st.permutations(everyone))
    longer = bool(rest) and draw(st.booleans())
    more = f" {rest[0]}" if longer else ""
    between = draw(st.sampled_from([";", ";", "->"]))
    return f"partition {first}{more}{between}{second}"


def spans(draw: st.DrawFn) -> str:
    first, last = sorted(draw(st.lists(st.integers(0, 24), min_size=2, max_size=2, unique=True)))
    return f"from {first * 500}ms to {last * 500}ms"


@st.composite
def statements(draw: st.DrawFn, names: Names) -> str:
    verb = draw(st.sampled_from(VERBS))
    now = f"at {draw(times)}"
    when = now if draw(st.booleans()) else spans(draw)
    if verb == "join" and draw(st.booleans()):
        services = st.sampled_from([*names.services])
        return f"{when} {draw(services)} join {draw(st.integers(1, 3))}"
    if verb in ("join", "leave"):
        what = draw(selector(names, "any"))
        word = " sometime" if verb == "leave" and when != now and draw(st.booleans()) else ""
        return f"{when} {what} {verb}{with_count(draw, what, names)}{word}"
    if verb in ("crash", "disconnect", "reconnect", "pause", "resume", "restart"):
        what = draw(selector(names, "service"))
        when = now if verb in ("reconnect", "resume", "restart") else when
        word = {"disconnect": " for 3s", "pause": " for 4s", "restart": " after 2s"}.get(verb, "")
        tail = word if when == now and draw(st.booleans()) else ""
        return f"{when} {what} {verb}{with_count(draw, what, names)}{tail}"
    if verb == "clock":
        clock = draw(st.sampled_from(CLOCKS))
        return f"{when} {draw(selector(names, 'service'))} set {clock}"
    if verb == "disk":
        disk = draw(st.sampled_from(DISKS))
        return f"{when} {draw(selector(names, 'service'))} set disk={disk}"
    if verb == "churn":
        what = draw(st.sampled_from(["", *names.services]))
        replace = draw(st.sampled_from(["", " replace 50%", " replace 100%"]))
        return f"{spans(draw)} {what} churn {draw(counts)}{replace}"
    what = draw(selector(names, "link"))
    if verb == "flap":
        return f"{spans(draw)} {what} flap {draw(st.sampled_from(['700ms', '1s', '2.3s', '9s']))}"
    if verb == "set":
        return f"{when} {what} set {draw(changes())}"
    if verb == "ramp":
        every = draw(st.sampled_from(["", " every 300ms", " every 1s", " every 9s"]))
        words = [word for word in draw(changes()).split(" ") if not word.startswith("dist")]
        return f"{spans(draw)} {what} ramp {' '.join(words) or 'loss=2%'}{every}"
    if verb == "background":
        return f"{when} {what} background {draw(st.sampled_from(['500Kb', '2Mb', '0b']))}"
    return f"{now} {draw(partitions(names))}" if verb == "partition" else f"{now} heal"


def with_count(draw: st.DrawFn, what: str, names: Names) -> str:
    """Only what can be several has a count."""
    several = what in names.services or what.startswith("tags") or not what
    return f" {draw(counts)}" if several and draw(st.booleans()) else ""


@st.composite
def files(draw: st.DrawFn) -> str:
    lines, names = draw(static_part())
    for _ in range(draw(st.integers(3, 12))):
        lines.append(draw(statements(names)))
    if draw(st.integers(0, 4)) == 0:
        lines.append(f"at {draw(times)} quit")
    return "\n".join(lines) + "\n"
