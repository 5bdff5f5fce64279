"""`python -m runtime.driver FD`: the driver of a run on this machine, inside its namespaces.

Started by `tstorm-ns sandbox`; talks to `runtime.launch.launch` over the socket FD
(runtime.driver.driver_messages): first in is the configuration, `{"driver": …, "local": …}`, then
`{"stop": true}`; out go progress records, `{"started": …}` and at last `{"final": …}`. Its death
ends the run's PID 1 and with it everything in the run.
"""

from __future__ import annotations

import signal
import socket
import sys
from functools import partial

from runtime.backend.local.local_backend import LocalBackend, LocalSettings
from runtime.driver.driver import carry_out
from runtime.driver.driver_messages import DriverEnd, config_of
from runtime.json_schema import decoded
from runtime.options import REAL
from runtime.system.loop_signals import on_signals
from runtime.system.realtime import rt_lock, rt_throttle

PATIENCE_NS = 2_000_000


async def main_async(connection: socket.socket) -> int:
    channel = DriverEnd(connection)
    record = channel.configuration()
    if record is None:
        return 1  # given up before it started
    channel.watch()
    on_signals((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), channel.stop.set)
    make = partial(LocalBackend, decoded(LocalSettings, record["local"], "local"))
    config = config_of(record["driver"])
    if config.options.time == REAL:
        share = 0 < config.options.hosts <= rt_lock.MOST
        rt_throttle.RESTS.begin(rt_lock.make() if share else -1, PATIENCE_NS)
    end = await carry_out(config, make, channel, sys.stderr.buffer)
    channel.send_final(end.with_facts(driver=rt_throttle.RESTS.counters()))
    return 0


def main() -> int:
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        return rt_throttle.run(main_async(connection))


if __name__ == "__main__":
    sys.exit(main())
