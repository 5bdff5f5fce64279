#!/usr/bin/python3
"""A radio of a satellite: asks for a link to the nearest satellite that has one free, keeps it as
long as it is there, and asks again. Its number is that of the instance."""

import json
import os
import socket

number = int(os.environ["TSTORM_INDEX"])
links = socket.socket(socket.AF_UNIX)
links.connect("\0" + os.environ["TSTORM_LINKS"].removeprefix("@"))
lines = links.makefile("rw")
linked = False


def heard(said: dict[str, object]) -> bool:
    """What was said unasked: whether there may be something new to ask for."""
    global linked  # noqa: PLW0603
    if said["say"] != "visible" and said["radio"] == number:
        linked = said["say"] == "up"
    return said["say"] in ("visible", "down")


def listen() -> bool:
    line = lines.readline()
    if not line:  # the run is over
        raise SystemExit
    return heard(json.loads(line))


def ask(**words: object) -> dict[str, object]:
    print(json.dumps(words), file=lines, flush=True)
    while True:
        answer = json.loads(lines.readline())
        if "say" not in answer:
            return answer
        heard(answer)


while True:
    for seen in [] if linked else ask(do="visible")["ok"]:
        answer = ask(do="request", to=seen["node"], radio=number)
        if "ok" in answer:
            linked = True
        if linked or answer.get("refused") == "busy":
            break
    while not listen():
        pass
