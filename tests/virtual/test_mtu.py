"""Links that take smaller packets than the interfaces of instances: path MTU discovery works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs.layout import executables

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

EXPERIMENT = """\
service sender exec="./send.py"
service receiver exec="./receive.py"
bridges s t
link sender--s latency=5ms
link s--t mtu=1300
link receiver--t
at 0s receiver join
at 1s sender join
at 20s quit
"""
SEND = """\
#!/usr/bin/python3
import json, socket, time
TCP_MAXSEG, IP_MTU, IPV6_MTU, IP_MTU_DISCOVER, DONT = 2, 14, 24, 10, 0
found = {}
for family, name in ((socket.AF_INET, "4"), (socket.AF_INET6, "6")):
    address = socket.getaddrinfo("receiver.0", 7000, family, socket.SOCK_STREAM)[0][4]
    stream = socket.create_connection(address[:2])
    stream.sendall(bytes(2_000_000))
    stream.shutdown(socket.SHUT_WR)
    got = b""
    while data := stream.recv(100):
        got += data
    found["tcp" + name] = [int(got), stream.getsockopt(socket.IPPROTO_TCP, TCP_MAXSEG)]
    end = socket.socket(family, socket.SOCK_DGRAM)
    end.connect(address[:2])
    level, option = (socket.IPPROTO_IP, IP_MTU) if name == "4" else (socket.IPPROTO_IPV6, IPV6_MTU)
    found["udp" + name] = end.getsockopt(level, option)
    end.close()
# Without "don't fragment" a datagram gets there in fragments, whole.
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, DONT)
end.settimeout(2)
end.sendto(bytes(range(200)) * 7, (socket.gethostbyname("receiver.0"), 7000))
found["datagram"] = end.recv(2000) == bytes(range(200)) * 7
print(json.dumps(found), flush=True)
time.sleep(100)
"""
RECEIVE = """\
#!/usr/bin/python3
import socket, threading
def echo():
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: fragments are allowed
    end.bind(("", 7000))
    while True:
        data, sender = end.recvfrom(2000)
        end.sendto(data, sender)
threading.Thread(target=echo, daemon=True).start()
listener = socket.create_server(("::", 7000), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    one, _ = listener.accept()
    count = 0
    while data := one.recv(65536):
        count += len(data)
    one.sendall(str(count).encode())
    one.close()
"""


def test_path_mtu_discovery_works(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT)
    executables(tmp_path, {"send.py": SEND, "receive.py": RECEIVE})
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    [*_, said] = (tmp_path / "run/logs/sender.0.log").read_text().splitlines()
    found = json.loads(said)
    (count4, segment4), (count6, segment6) = found["tcp4"], found["tcp6"]
    assert count4 == count6 == 2_000_000
    assert (segment4, segment6) == (1300 - 52, 1300 - 72)  # headers, with time stamps
    assert found["udp4"] == found["udp6"] == 1300
    assert found["datagram"]
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["engine"]["too_large"] > 0
    assert summary["verdict"]["state"] == "valid", summary["verdict"]
