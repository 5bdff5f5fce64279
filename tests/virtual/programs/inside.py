"""Two processes count in memory that they share, with no call between reading and writing."""

import mmap
import os
import struct
import time

TIMES = 200

shared = mmap.mmap(-1, 8)
child = os.fork()
for number in range(TIMES):
    if number % 20 == 0:
        time.sleep(0.001)
    (value,) = struct.unpack("q", shared[:8])
    shared[:8] = struct.pack("q", value + 1)
if not child:
    os._exit(0)
os.waitpid(child, 0)
print(struct.unpack("q", shared[:8])[0], "of", 2 * TIMES)
