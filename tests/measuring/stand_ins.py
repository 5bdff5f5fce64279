"""Hosts without a network: `env PATH=…` is how commands are run there, and ping and iperf3 are
scripts that print what real ones did.

The server says that it listens and serves until it is ended; the client's report has the rate that
the scene gives to so many flows.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.runs.layout import executables

PING = """\
PING h1 (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=210 ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=212 ms
64 bytes from 10.0.0.2: icmp_seq=3 ttl=64 time=230 ms

--- h1 ping statistics ---
4 packets transmitted, 3 received, 25% packet loss, time 613ms
rtt min/avg/max/mdev = 210.123/217.456/230.789/9.123 ms
"""
MSS = 1448
# A shell's: Python takes ten times as long to start. It waits on a pipe that nobody writes to.
_IPERF3 = """\
#!/bin/sh
here=${0%/*}
echo "$*" >>"$here/calls"
wait_for_ever() { read -r _ <"$here/nothing"; }
case " $* " in
*" -s "*)
    if [ -e "$here/in-use" ]; then
        echo "iperf3: error - unable to start listener for connections: Address already in use"
        exit 1
    fi
    echo "Server listening on 5201 (test #1)"
    wait_for_ever
    ;;
esac
if [ -e "$here/hangs" ]; then
    : >"$here/testing"
    wait_for_ever
elif [ -e "$here/refused" ]; then
    echo '{"error": "unable to connect to server: Connection refused"}'
else
    while [ $# -gt 0 ]; do
        case $1 in -P) flows=$2 ;; -t) seconds=$2 ;; esac
        shift
    done
    cat "$here/report $flows $seconds"
fi
"""


def report(rates: list[int], flows: int = 1, remote: str = "10.0.0.2") -> dict[str, object]:
    """Of iperf3: `rates` are of IP packets in bits a second, an interval each, all flows together,
    by IPv4 with time stamps."""
    payload = [bps * MSS // (MSS + 52) // 8 for bps in rates]
    intervals = [
        {
            "streams": [{"seconds": 1.0, "bytes": count // flows} for _ in range(flows)],
            "sum": {"seconds": 1.0, "bytes": count},
        }
        for count in payload
    ]
    connected = [{"remote_host": remote}] * flows
    return {
        "start": {"tcp_mss_default": MSS, "connected": connected},
        "intervals": intervals,
        "end": {},
    }


def lay_out(folder: Path, reports: dict[str, dict[str, object]], names: tuple[str, ...]) -> Path:
    """The hosts file. `reports`: by flows and seconds, `2 12`."""
    programs = folder / "programs"
    programs.mkdir()
    executables(programs, {"iperf3": _IPERF3, "ping": f"#!/bin/sh\ncat <<'END'\n{PING}END\n"})
    os.mkfifo(programs / "nothing")
    put(programs, reports)
    command = json.dumps(["env", f"PATH={programs}:/usr/bin:/bin"])
    tables = (f'[hosts.{name}]\ncommand = {command}\naddress = "{name}"\n' for name in names)
    (folder / "hosts.toml").write_text("\n".join(tables))
    return folder / "hosts.toml"


def put(programs: Path, reports: dict[str, dict[str, object]]) -> None:
    for name, found in reports.items():
        (programs / f"report {name}").write_text(json.dumps(found))
