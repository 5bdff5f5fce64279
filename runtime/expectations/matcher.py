"""Looks for a regular expression in lines, as a program of its own: an expression that takes for
ever takes nothing but this process.

Standard input: one line of JSON, {"pattern": TEXT}. Then, any number of times, a line with a number
of bytes and so many bytes of JSON, a list of texts. Each list is answered by a line of JSON, the
positions of the texts that have the pattern in them. Uses nothing of the project: it is run by
path.
"""

import json
import re
import resource
import sys
import warnings

MOST_MEMORY = 1 << 30


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    warnings.simplefilter("ignore")  # what will mean something else in another Python
    source, target = sys.stdin.buffer, sys.stdout.buffer
    pattern = re.compile(json.loads(source.readline())["pattern"])
    while head := source.readline():
        lines = json.loads(source.read(int(head)))
        found = [number for number, line in enumerate(lines) if pattern.search(line)]
        target.write(json.dumps(found).encode() + b"\n")
        target.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
