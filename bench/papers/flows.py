"""Figs 5, 6 and 7 of the Kollaps paper: long, short and mixed flows, where the paper compares with
bare metal. Here the comparison is with the same programs in the kernel's own network in the same
run: namespaces at a bridge, with a tbf of the same rate and queue at each link. Where one link is
full, theory is its rate less headers.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from bench.papers.context import EXACT, HOSTS, SCENES, Context, log
from bench.papers.rows import RELATIVE, TOLD, VIRTUAL, fold, goal, number, row
from bench.papers.said import curl_bps, curl_span, iperf3_bps, iperf3_intervals, wrk_bps
from bench.papers.theory import goodput_bps
from bench.tables import Record

GIGA = 1_000_000_000
LONG_WITHIN, SHORT_WITHIN, MIXED_WITHIN = 0.02, 0.02, 0.05
KERNEL = "kernel, bridge and tbf"
BY_PAIR = "over hosts two pairs share alike, in the kernel the 101 connections do"
BURST = "the first millisecond of an answer passes the kernel's tbf at once, its burst"
_BYTES = 65536
_WEB = f"./web.sh {_BYTES}"


def _program(end: int, argv: str, at_s: float, **more: object) -> Record:
    return {"end": end, "argv": argv.split(), "at_s": at_s, **more}


def _beside(argv: str) -> str:
    """A program of the scenes' folder, from any working directory."""
    return str(SCENES / argv.removeprefix("./"))


def note_default(context: Context) -> None:
    """nginx sends with the machine's own congestion control, in the kernel's network as in ours."""
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    if default != "cubic":
        context.cannot["HTTP with cubic"] = (
            f"nginx has this machine's default, {default}, and a namespace may not choose one that "
            "not everybody may; iperf3 sends with cubic"
        )


def figure_5(context: Context) -> list[Record]:
    seconds = 3 if context.quick else 10
    rows: list[Record] = []
    for control in ("cubic", "reno"):
        peer = _kernel_long(context, control, seconds)
        server = "\"sh -c 'iperf3 -s -4 -p 5200 & exec iperf3 -s -4 -p 5201'\""
        client = f"iperf3 -c server -4 -p 520$TSTORM_INDEX -R -C {control} -t {seconds} -O 2 --json"
        source = context.scene("flows", server=server, client=f'"{client}"')
        what = f"long flows, {control}"
        for place in context.places(EXACT, HOSTS, VIRTUAL):
            with context.attempt(rows, what, place):
                run = context.run(source, place)
                got = sum(iperf3_bps(log(run, f"client.{n}")) for n in (0, 1))
                made = _rate(what, place, got, LONG_WITHIN, context.why(run))
                rows.append({**made, "peers": peer if place == EXACT else {}})
    peer = _kernel_short(context, seconds)
    client = f"wrk -t1 -c50 -d{seconds}s http://server:8080/data"
    source = context.scene("flows", server=f'"{_WEB}"', client=f'"{client}"')
    what = "short requests, wrk"
    for place in context.places(EXACT, HOSTS, VIRTUAL):
        with context.attempt(rows, what, place):
            run = context.run(source, place)
            got = sum(wrk_bps(log(run, f"client.{n}")) for n in (0, 1))
            made = _rate(what, place, got, SHORT_WITHIN, context.why(run))
            rows.append({**made, "peers": peer if place == EXACT else {}})
    note_default(context)
    context.cannot["bare metal"] = "there is one machine; the kernel's bridge and tbf stand for it"
    return fold(rows, EXACT)


def _rate(what: str, place: str, got: float, within: float, why: str) -> Record:
    return row(
        what,
        place,
        "b/s",
        got,
        goodput_bps(GIGA),
        goal=goal(RELATIVE, within),
        paper="error mostly below 2 %, Mininet alike",
        why=why,
    )


def _links(ends: int, rate_bps: int) -> list[list[object]]:
    return [[end, rate_bps, ""] for end in range(ends)]


def _kernel_long(context: Context, control: str, seconds: int) -> dict[str, float]:
    programs = [_program(0, f"iperf3 -s -4 -p 520{n}", 0, serves=True) for n in (0, 1)]
    client = "iperf3 -c {{0}} -4 -p 520{} -R -C {} -t {} -O 2 --json"
    programs += [_program(1 + n, client.format(n, control, seconds), 0.5) for n in (0, 1)]
    task = {"ends": 3, "links": _links(3, GIGA), "programs": programs}
    got = context.peer(KERNEL, task, lambda said: sum(map(iperf3_bps, said[2:])))
    return {} if got is None else {"kernel": got}


def _kernel_short(context: Context, seconds: int) -> dict[str, float]:
    programs = [_program(0, _beside(_WEB), 0, serves=True)]
    client = f"wrk -t1 -c50 -d{seconds}s http://{{0}}:8080/data"
    programs += [_program(1 + n, client, 1) for n in (0, 1)]
    task = {"ends": 3, "links": _links(3, GIGA), "programs": programs}
    got = context.peer(KERNEL, task, lambda said: sum(map(wrk_bps, said[1:])))
    return {} if got is None else {"kernel": got}


def figure_6(context: Context) -> list[Record]:
    """What all clients got together while all of them had answers; wanted is the kernel's."""
    seconds = 3 if context.quick else 10
    note_default(context)
    rows: list[Record] = []
    for clients in (2,) if context.quick else (1, 4, 8):
        peer = _kernel_curl(context, clients, seconds)
        source = context.scene("curl", clients=clients, seconds=seconds)
        what = f"{clients} clients of curl"
        for place in context.places(EXACT, HOSTS):
            with context.attempt(rows, what, place):
                run = context.run(source, place)
                made = row(
                    what,
                    place,
                    "b/s",
                    _curls([log(run, f"client.{n}") for n in range(clients)]),
                    peer,
                    of_peer="kernel",
                    goal=goal(RELATIVE, MIXED_WITHIN) if peer else goal(TOLD),
                    why="; ".join(filter(None, (context.why(run), BURST))),
                    paper="like bare metal; Mininet falls behind",
                )
                rows.append(made)
    return rows


def _curls(texts: list[str]) -> float:
    return curl_bps(texts, *curl_span(texts))


def _kernel_curl(context: Context, clients: int, seconds: int) -> float | None:
    programs = [_program(0, _beside(_WEB), 0, serves=True)]
    script = f"{SCENES / 'curl.sh'} {{0}} {seconds}"
    programs += [_program(1 + n, script, 1) for n in range(clients)]
    task = {"ends": 1 + clients, "links": _links(1 + clients, GIGA // 10), "programs": programs}
    return context.peer(KERNEL, task, lambda said: _curls(said[1:]))


def figure_7(context: Context) -> list[Record]:
    """Three thirds: the long flow alone, with requests beside it, alone again."""
    long_s, short_s, pace = (12, 4, 3) if context.quick else (36, 12, 1)
    own = [_kernel_mixed(context, long_s, short_s) for _ in range(1 if context.quick else 2)]
    note_default(context)
    source = context.scene("mixed", long=long_s, short=short_s)
    rows: list[Record] = []
    for place in context.places(EXACT, HOSTS):
        with context.attempt(rows, "long flow and requests", place):
            run = context.run(source, place, "--pace", str(pace))
            found = thirds(log(run, "one.0"), log(run, "two.0"), long_s)
            why = context.why(run)
            rows += [_third(name, got, place, own, why) for name, got in found.items()]
    return rows


def _third(name: str, got: float, place: str, own: list[dict[str, float]], run_said: str) -> Record:
    """Two that share a link have no theory: there the mean of the kernel's own runs is wanted."""
    theory = "alone" in name
    kernel = [one[name] for one in own if name in one]
    mean = statistics.fmean(kernel) if kernel else None
    causes = [run_said]
    if not theory:
        causes[:0] = [BY_PAIR if place == HOSTS else "", _apart(kernel)]
    return row(
        name,
        place,
        "b/s",
        got,
        goodput_bps(GIGA) if theory else mean,
        of_peer="" if theory else "kernel",
        goal=goal(RELATIVE, MIXED_WITHIN) if theory or kernel else goal(TOLD),
        why="; ".join(filter(None, causes)),
        paper="error mostly below 5 %, Mininet alike",
        peers={"kernel": mean} if theory and kernel and place == EXACT else {},
    )


def _apart(kernel: list[float]) -> str:
    """How far the kernel's own runs are apart, in words."""
    if len(kernel) < 2:
        return ""
    return "the kernel's own runs had " + " and ".join(number(one, "b/s") for one in kernel)


def thirds(long_text: str, short_text: str, seconds: int) -> dict[str, float]:
    """Means over each third, without a tenth of the whole on either side of a change."""
    third, margin = seconds / 3, seconds / 12
    parts: list[float] = []
    for part in range(3):
        low, high = part * third + margin, (part + 1) * third - margin
        inside = [rate for a, b, rate in iperf3_intervals(long_text) if low <= a and b <= high]
        parts.append(statistics.fmean(inside))
    return {
        "long flow alone": parts[0],
        "long flow beside requests": parts[1],
        "requests beside it (wrk)": wrk_bps(short_text),
        "long flow alone again": parts[2],
    }


def _kernel_mixed(context: Context, long_s: int, short_s: int) -> dict[str, float]:
    programs = [
        _program(0, _beside(_WEB), 0, serves=True),
        _program(2, "iperf3 -s -4", 0, serves=True),
        _program(0, f"iperf3 -c {{2}} -4 -C cubic -t {long_s} -i 0.5 --json", 1),
        _program(1, f"wrk -t2 -c100 -d{short_s}s http://{{0}}:8080/data", 1 + long_s / 3),
    ]
    task = {"ends": 3, "links": _links(3, GIGA), "programs": programs}
    return context.peer(KERNEL, task, lambda said: thirds(said[2], said[3], long_s)) or {}
