#!/usr/bin/env python3
"""gossip.py PLACES MEMBERS [--first]: a rumour, told over UDP until everybody knows it.

Who knows it tells it ROUNDS times to three others, drawn at random, and ends with 0. Who has not
heard it after PATIENCE seconds ends with 1. Who can hear it listens on TCP, too, for whoever asks
if it is ready.
"""

import os
import random
import socket
import sys
import time

PORT, ROUNDS, PAUSE, PATIENCE = 7000, 12, 0.25, 60

places, members = map(int, sys.argv[1:3])
me = os.environ["TSTORM_INSTANCE"]
others = [f"g{i}.{k}" for i in range(places) for k in range(members) if f"g{i}.{k}" != me]
random.seed(f"{os.environ['TSTORM_SEED']} {me}")

talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
talk.bind(("0.0.0.0", PORT))
talk.settimeout(PATIENCE)
ready = socket.create_server(("0.0.0.0", PORT))
if "--first" not in sys.argv:
    try:
        told, _ = talk.recvfrom(100)
    except TimeoutError:
        sys.exit("nobody told it")
    print(f"{time.time():.3f} heard it from {told.decode()}", flush=True)

for _ in range(ROUNDS):
    for name in random.sample(others, 3):
        try:
            talk.sendto(me.encode(), (socket.gethostbyname(name), PORT))
        except OSError:  # it is not there any more
            continue
    time.sleep(PAUSE)
