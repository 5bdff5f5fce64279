"""How much a file may hold, and how large its values may be. docs/tdl.md, "Limits of the language".

What the plan's format and both datapaths take is in compiler/plan/rules/property_limits.py; a test
holds the two tables together, and another asks the datapaths themselves.
"""

from __future__ import annotations

# Of values.
MAX_TIME_NS = 2**63 - 1
MAX_LATENCY_NS = 86_400 * 10**9  # of one link
MAX_RATE_BPS = 10**13
MAX_DISTANCE_MM = 10**15  # between nodes that move: a thousand million km
MAX_QUEUE_BYTES = 2**30
MAX_QUEUE_PACKETS = 715_827  # of 1,500 bytes, within that
MAX_FLOWS = 10_000  # that a table, or a background, tells apart
MAX_ROWS = 32  # of a table of flows
MAX_BURST_MILLI = 10**9  # thousandths of a packet
MAX_DRIFT_PPB = 10**8  # of a clock
MAX_SIZE_BYTES = 2**40  # memory of an instance
MAX_SEED = 2**63 - 1
MAX_COUNT = 10**9

# Of a file. Reading ends where one of them is exceeded.
MAX_FILE_BYTES = 64 << 20
MAX_WORDS = 262_144  # of one statement
MAX_SERVICES = 65_000
MAX_BRIDGES = 65_535
MAX_LINKS = 524_287
MAX_EVENTS = 1_000_000
MAX_EXPECTATIONS = 10_000
MAX_FIGURES = 1_000
MAX_REACTIONS = 100  # `when`
MAX_FIRINGS = 10_000  # of one of them
MAX_PARAMS = 100
MAX_PARAM = 1000  # characters of a value
MAX_PAIRS = 200_000  # of all expectations
MAX_ROUNDS = MAX_SERVICES + MAX_BRIDGES + MAX_LINKS + MAX_EVENTS  # of all loops: a line in each
MAX_DEPTH = 16  # of files that include one another, and of loops in loops
MAX_INCLUDES = 10_000  # files, each as often as it is included
MAX_VALUE = 65_536  # characters of a word with its values in it
MAX_VALUES = 128 << 20  # of all values that are put into words
MAX_ERRORS = 10_000  # with more, the rest of the file is not read
MAX_FINDINGS = 200_000  # errors and warnings
