#!/usr/bin/env python3
"""streams.py serve | streams.py ask HOST: lines there and back; all sources of chance are in use:
the order of a set, random, os.urandom, uuid, addresses, the process number, threads.
"""

import asyncio
import os
import random
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

PORT = 9000


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    peer = writer.get_extra_info("peername")
    while line := await reader.readline():
        await asyncio.sleep(random.random() / 50)
        writer.write(line.upper())
        await writer.drain()
        print(f"{time.time():.6f}", peer, line.decode().strip(), flush=True)
    writer.close()


async def serve() -> None:
    server = await asyncio.start_server(answer, "0.0.0.0", PORT)
    async with server:
        await server.serve_forever()


async def converse(host: str, number: int) -> None:
    reader, writer = await asyncio.open_connection(host, PORT)
    words = {f"word{n}" for n in range(20)}
    for word in words:
        began = time.perf_counter_ns()
        writer.write(f"{number} {word} {uuid.uuid4()} {os.urandom(4).hex()}\n".encode())
        line = await reader.readline()
        print(number, time.perf_counter_ns() - began, line.decode().strip(), flush=True)
        await asyncio.sleep(random.random() / 10)
    writer.close()


async def ask(host: str) -> None:
    print(os.getpid(), os.cpu_count(), hash("tstorm"), id(object()), list(Path("/usr").iterdir()))
    print(tempfile.mkdtemp(), sorted(os.environ))
    thread = threading.Thread(target=time.sleep, args=(random.random(),))
    thread.start()
    await asyncio.gather(*(converse(host, number) for number in range(5)))
    thread.join()
    print("end", time.time_ns(), time.thread_time_ns(), flush=True)


asyncio.run(serve() if sys.argv[1] == "serve" else ask(sys.argv[2]))
