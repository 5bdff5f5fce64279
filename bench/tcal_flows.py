"""Traffic of the queue measurement, a program of its own in a namespace: TCP flows or datagrams.

    python -m bench.tcal_flows sink                              both ports, until killed
    python -m bench.tcal_flows tcp HOST --cc cubic --flows 4 --seconds 20 --skip 5
    python -m bench.tcal_flows udp HOST --rate BPS --seconds 10

Prints one JSON object. TCP is looked at from where it matters, the sender's own TCP_INFO
(linux/tcp.h) every 20 ms: congestion window, smoothed round-trip time, retransmissions.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import selectors
import socket
import statistics
import struct
import sys
import threading
import time

TCP_PORT, UDP_PORT, ASK_PORT = 7500, 7501, 7502
PAYLOAD_BYTES = 1472  # a full packet of 1500 bytes
_SAMPLE_S = 0.02
_TCP_INFO = 11
# Offsets in struct tcp_info.
_RTT, _CWND, _RETRANSMITTED, _ACKED, _SENT = 68, 80, 100, 120, 156


def _info(flow: socket.socket) -> dict[str, int]:
    raw = flow.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 256)
    word = struct.Struct("=I").unpack_from
    return {
        "rtt_us": word(raw, _RTT)[0],
        "cwnd": word(raw, _CWND)[0],
        "retransmitted": word(raw, _RETRANSMITTED)[0],
        "acked": struct.unpack_from("=Q", raw, _ACKED)[0],
        "sent": word(raw, _SENT)[0],
    }


def tcp(host: str, cc: str, flows: int, seconds: float, skip: float) -> dict[str, float]:
    """Bulk flows side by side; figures of the time after `skip`."""
    sockets = []
    selector = selectors.DefaultSelector()
    for _ in range(flows):
        flow = socket.socket()
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        flow.connect((host, TCP_PORT))
        flow.setblocking(False)
        selector.register(flow, selectors.EVENT_WRITE)
        sockets.append(flow)
    rtts: list[int] = []
    windows: list[int] = []
    first: list[dict[str, int]] = []
    data = bytes(65536)
    start = time.monotonic()
    sample = start + skip
    while time.monotonic() < start + seconds:
        for key, _ in selector.select(_SAMPLE_S / 4):
            flow = key.fileobj
            assert isinstance(flow, socket.socket)
            with contextlib.suppress(BlockingIOError):
                flow.send(data)
        if time.monotonic() < sample:
            continue
        sample += _SAMPLE_S
        found = [_info(flow) for flow in sockets]
        if not first:
            first, began = found, time.monotonic()
        rtts += [row["rtt_us"] for row in found]
        windows.append(sum(row["cwnd"] for row in found))
    last, ended = [_info(flow) for flow in sockets], time.monotonic()
    moved = {
        name: sum(b[name] - a[name] for a, b in zip(first, last, strict=True)) for name in first[0]
    }
    return {
        "goodput_bps": moved["acked"] * 8 / (ended - began),
        "cwnd_mean": statistics.fmean(windows),
        "cwnd_p5": _percentile(windows, 5),
        "cwnd_p95": _percentile(windows, 95),
        "rtt_ms_mean": statistics.fmean(rtts) / 1000,
        "rtt_ms_p5": _percentile(rtts, 5) / 1000,
        "rtt_ms_p95": _percentile(rtts, 95) / 1000,
        "retransmitted": moved["retransmitted"],
        "loss_percent": 100 * moved["retransmitted"] / max(moved["sent"], 1),
    }


def _percentile(values: list[int], percent: int) -> float:
    ordered = sorted(values)
    return float(ordered[min(len(ordered) - 1, len(ordered) * percent // 100)])


def udp(host: str, rate_bps: float, seconds: float) -> dict[str, float]:
    """Datagrams of 1500-byte packets at a constant rate; what the far end counted."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect((host, UDP_PORT))
    gap = (PAYLOAD_BYTES + 28) * 8 / rate_bps
    data = bytes(PAYLOAD_BYTES)
    sent = refused = 0
    start = time.monotonic()
    while (now := time.monotonic()) < start + seconds:
        if now < start + sent * gap:
            time.sleep(max(0.0, start + sent * gap - now))
            continue
        try:
            sender.send(data)
        except OSError:
            refused += 1
        sent += 1
    time.sleep(1)
    with socket.create_connection((host, ASK_PORT)) as asked:
        received = int(asked.makefile().readline())
    return {
        "sent": sent,
        "refused": refused,
        "received": received,
        "loss_percent": 100 * (1 - received / sent),
        "received_bps": received * (PAYLOAD_BYTES + 28) * 8 / seconds,
    }


class _Datagrams(threading.Thread):
    """Counts datagrams; a count is asked for once and starts again at 0."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.bind(("", UDP_PORT))

    def run(self) -> None:
        while True:
            self._socket.recv(2048)
            self.count += 1


def sink() -> None:
    """Takes everything. Says `ready` when it can."""
    counted = _Datagrams()
    counted.start()
    selector = selectors.DefaultSelector()
    listeners = {port: socket.create_server(("", port)) for port in (TCP_PORT, ASK_PORT)}
    for listener in listeners.values():
        selector.register(listener, selectors.EVENT_READ)
    print("ready", flush=True)
    buffer = bytearray(1 << 18)
    while True:
        for key, _ in selector.select():
            made = key.fileobj
            assert isinstance(made, socket.socket)
            if made is listeners[TCP_PORT]:
                selector.register(made.accept()[0], selectors.EVENT_READ)
            elif made is listeners[ASK_PORT]:
                with made.accept()[0] as asking:
                    asking.sendall(f"{counted.count}\n".encode())
                counted.count = 0
            elif _ended(made, buffer):
                selector.unregister(made)
                made.close()


def _ended(flow: socket.socket, buffer: bytearray) -> bool:
    try:
        return flow.recv_into(buffer) == 0
    except ConnectionResetError:
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("sink", "tcp", "udp"))
    parser.add_argument("host", nargs="?")
    parser.add_argument("--cc", default="cubic")
    parser.add_argument("--flows", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1e6)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--skip", type=float, default=3)
    given = parser.parse_args()
    if given.kind == "sink":
        sink()
    elif given.kind == "tcp":
        print(json.dumps(tcp(given.host, given.cc, given.flows, given.seconds, given.skip)))
    else:
        print(json.dumps(udp(given.host, given.rate, given.seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
