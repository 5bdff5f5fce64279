"""Ways in which an instance, or the way to it, may fail, and what a TCP client sees of each."""

from __future__ import annotations

import json
from pathlib import Path

from tests.runs.layout import executables

# Way: what the timeline does to the instance, or its link, at 2 s.
WAYS = {
    "kill": "srv.0 kill",
    "leave": "srv.1 leave",
    "reject": "srv.2--s set reject=100%",
    "crash": "srv.3 crash",
    "disconnect": "srv.4 disconnect",
    "link": "srv.5--s leave",
    "pause": "srv.6 pause",
    "nothing": "srv.7--s set latency=5ms",
}
# What becomes of a connection that was there, and of one that is tried later.
SEEN = {
    "kill": ("end of file, then broken pipe", "refused"),
    "leave": ("end of file", "silence"),
    "reject": ("reset, then broken pipe", "refused"),
    "crash": ("silence", "silence"),
    "disconnect": ("silence", "silence"),
    "link": ("silence", "silence"),
    "pause": ("silence", "connected"),
    "nothing": ("answers", "connected"),
}
ROUND_TRIP_MS = 20  # of a whole path; a link that rejects answers after half of it
_EXPERIMENT = """\
service srv exec="./server.py" replicas=8
service cli exec="./client.py" replicas=8
bridge s
link srv--s latency=5ms
link cli--s latency=5ms
{events}
at 12s quit
"""
_SERVER = """\
#!/usr/bin/python3
import socket, threading
end = socket.create_server(("", 7000), backlog=50)
def serve(one):
    while data := one.recv(100):
        one.sendall(data)
while True:
    threading.Thread(target=serve, args=(end.accept()[0],), daemon=True).start()
"""
_CLIENT = """\
#!/usr/bin/python3
import errno, json, os, socket, time
begun, number = time.monotonic(), os.environ["TSTORM_INDEX"]
to = (socket.gethostbyname(f"srv.{number}"), 7000)

def attempt():
    at = time.monotonic()
    one = socket.socket()
    one.settimeout(1.0)
    try:
        one.connect(to)
        return one, "connected", at
    except ConnectionRefusedError:
        return None, "refused", at
    except TimeoutError:
        return None, "silence", at

def ask(one):
    try:
        one.sendall(b"x")
        data = one.recv(1)
        return "answers" if data else "end of file"
    except TimeoutError:
        return "silence"
    except ConnectionResetError:
        return "reset"
    except BrokenPipeError:
        return "broken pipe"

one = None
while one is None:
    one, said, at = attempt()
    time.sleep(0.1)
old = []
while time.monotonic() < begun + 6:
    said = ask(one)
    if not old or old[-1] != said:
        old.append(said)
    time.sleep(0.2)
_, new, at = attempt()
print(json.dumps({"old": old, "new": new, "ms": 1000 * (time.monotonic() - at)}), flush=True)
time.sleep(100)
"""


def lay_out(place: Path) -> None:
    """The experiment, as exp.tdl, and its programs."""
    events = "\n".join(f"at 2s {event}" for event in WAYS.values())
    (place / "exp.tdl").write_text(_EXPERIMENT.format(events=events))
    executables(place, {"server.py": _SERVER, "client.py": _CLIENT})


def check(run: Path, *, exact: bool) -> None:
    """`exact`: in virtual time, where a refusal takes its round trip and no more."""
    for number, way in enumerate(WAYS):
        said = json.loads((run / f"logs/cli.{number}.log").read_text())
        assert said["old"].pop(0) == "answers", way
        if way == "leave" and not exact:  # its host may be there a moment longer, and refuse
            said["old"] = [seen for seen in said["old"] if seen not in ("broken pipe", "reset")]
        old = ", then ".join(said["old"]) or "answers"
        assert (way, old, said["new"]) == (way, *SEEN[way])
        if exact and said["new"] != "silence":
            round_trip_ms = ROUND_TRIP_MS / 2 if way == "reject" else ROUND_TRIP_MS
            assert round_trip_ms <= said["ms"] < round_trip_ms + 1, way
