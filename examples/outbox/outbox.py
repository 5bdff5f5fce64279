"""An outbox. `outbox.py send PEER` sends numbers until each is confirmed, and prints how many wait.
`outbox.py take` confirms them, and asserts in the format that SDKs of the field write."""

import json
import os
import socket
import sys
import time

NUMBERS, PORT, PAUSE = 60, 7000, 0.1
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "send":
    here.setblocking(False)
    waiting: set[int] = set()
    for number in range(sys.maxsize):
        waiting |= {number} if number < NUMBERS else set()
        for one in waiting:
            here.sendto(b"%d" % one, (sys.argv[2], PORT))
        time.sleep(PAUSE)
        while waiting:
            try:
                waiting.discard(int(here.recv(20)))
            except OSError:  # no answer yet
                break
        print(f"open {len(waiting)}", flush=True)
here.bind(("", PORT))
seen: set[bytes] = set()
said = {"assert_type": "sometimes", "must_hit": True, "hit": True, "message": "it came again"}
with open(os.environ["ANTITHESIS_SDK_LOCAL_OUTPUT"], "a", buffering=1) as file:  # noqa: PTH123
    while True:
        data, client = here.recvfrom(20)
        print(f"got {int(data)}{' again' if data in seen else ''}", flush=True)
        print(json.dumps({"antithesis_assert": {**said, "condition": data in seen}}), file=file)
        seen.add(data)
        here.sendto(data, client)
