# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio that wait for others over TCP, and some that do not."""

import asyncio
import json
import os
import sys


class Owner:
    """Has a connection, and awaits a future that does not belong to it."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._transport = writer.transport
        self._writer = writer
        self._mine = None

    async def own_future(self):
        self._mine = asyncio.get_event_loop().create_future()
        await self._mine


async def serve(reader, writer):
    """Never answers."""
    while await reader.readline():
        pass


async def silent(reader, writer):
    """Does not even read."""
    writer.transport.pause_reading()
    await asyncio.sleep(1000)


async def wait_for_line(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.readline()
    writer.close()


async def wait_for_bytes(port):
    reader, writer = await asyncio.open_connection("::1", port)
    await reader.readexactly(10)
    writer.close()


async def wait_for_room(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not reader.at_eof():
        writer.write(b"x" * (1 << 20))
        await writer.drain()


async def wait_for_own(port):
    await Owner(*await asyncio.open_connection("127.0.0.1", port)).own_future()


async def wait_for_event():
    await asyncio.Event().wait()


async def wait_for_time():
    await asyncio.sleep(1000)


async def main():
    loop = asyncio.get_event_loop()
    servers = [
        await asyncio.start_server(serve, "127.0.0.1", 0),
        await asyncio.start_server(serve, "::1", 0),
        await asyncio.start_server(silent, "127.0.0.1", 0),
    ]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    waits = {
        "wait_for_line": wait_for_line(ports[0]),
        "wait_for_bytes": wait_for_bytes(ports[1]),
        "wait_for_room": wait_for_room(ports[2]),
        "wait_for_own": wait_for_own(ports[0]),
        "wait_for_event": wait_for_event(),
        "wait_for_time": wait_for_time(),
    }
    tasks = [loop.create_task(wait) for wait in waits.values()]
    await asyncio.sleep(0.5)
    print(json.dumps({"pid": os.getpid(), "ports": ports}))
    sys.stdout.flush()
    await asyncio.gather(*tasks)


asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
