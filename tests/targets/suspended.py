# SPDX-License-Identifier: Apache-2.0
"""asyncio tasks that are suspended for known times: `suspended.py KIND SECONDS`. Python 3.14+.

The JSON on stdout has the time by what the task says of itself, and for kind "snapshot" what asyncio.capture_call_graph
says of each task.
"""

import asyncio
import collections
import json
import os
import socket
import sys
import threading
import time

import rest

suspended = collections.Counter()


class timed:
    """Adds the time of the block to what `key` was suspended for."""

    def __init__(self, key):
        self.key = key

    def __enter__(self):
        self.begin = time.monotonic()

    def __exit__(self, *_):
        suspended[self.key] += time.monotonic() - self.begin


def spawn(coro, name):
    return asyncio.create_task(coro, name=name)


async def naps(name, seconds, parts):
    for _ in range(parts):
        with timed(name):
            await asyncio.sleep(seconds / parts)


async def sleeps(seconds):
    """Sleeps of known lengths, one after the other in two functions of a task."""

    async def first():
        await naps("a:first", seconds / 4, 3)

    async def second():
        await naps("a:second", seconds * 3 / 4, 5)

    async def both():
        await first()
        await second()

    await asyncio.gather(spawn(both(), "a"), spawn(naps("b", seconds / 2, 7), "b"))


async def shared(seconds):
    """A lock that another one holds, a queue that fills late, a condition, a semaphore."""
    lock, queue, event = asyncio.Lock(), asyncio.Queue(), asyncio.Event()

    async def holds():
        async with lock:
            await naps("holder", seconds * 0.6, 1)
        await queue.put(1)
        await naps("holder", seconds * 0.4, 1)
        event.set()

    async def locks():
        with timed("locker"):
            async with lock:
                pass

    async def takes():
        with timed("taker"):
            await queue.get()

    async def waits():
        with timed("waiter"):
            await event.wait()

    async def begin(make):
        for function, name in ((holds, "holder"), (locks, "locker"), (takes, "taker"), (waits, "waiter")):
            yield make(function(), name=name)
            await asyncio.sleep(0)

    if sys.version_info < (3, 11):
        await asyncio.gather(*[task async for task in begin(asyncio.create_task)])
        return
    async with asyncio.TaskGroup() as group:
        async for _ in begin(group.create_task):
            pass


def answer_late(seconds):
    """A peer that answers each byte after that time."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        peer, _ = server.accept()
        while peer.recv(1):
            time.sleep(seconds)
            peer.send(b"x")

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


async def peer(seconds):
    """Requests whose answers take known times, with an asynchronous generator between."""
    reader, writer = await asyncio.open_connection("127.0.0.1", answer_late(seconds / 6))

    async def answers():
        for _ in range(5):
            writer.write(b"q")
            with timed("client"):
                yield await reader.readexactly(1)

    async def client():
        async for _ in answers():
            await asyncio.sleep(0)

    await spawn(client(), "client")
    writer.close()


async def many(seconds):
    """Thousands of tasks that sleep, in two functions."""

    async def one():
        await asyncio.sleep(seconds)

    async def other():
        await asyncio.sleep(seconds)

    with timed("all"):
        await asyncio.gather(*[(one if i % 4 else other)() for i in range(int(os.environ.get("TASKS", "5000")))])


async def churn(seconds):
    """Tasks that come and go as fast as they can; each is suspended in functions of its own name."""
    end, number = time.monotonic() + seconds, 0

    async def pauses():
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)

    while time.monotonic() < end:
        tasks = []
        for _ in range(20):
            name = "n%d" % (number % 400)
            number += 1
            tasks.append(spawn(named(name, pauses)(), name))
        await asyncio.gather(*tasks)
    suspended["tasks"] = number


made = {}


def named(name, pauses):
    """outer_NAME, which awaits inner_NAME: anew now and then, so that code objects come and go as well."""
    if name not in made or len(made) > 200:
        made.pop(name, None)
        scope = {"pauses": pauses}
        exec(
            "async def inner_%s():\n await pauses()\n\nasync def outer_%s():\n await inner_%s()\n" % (name, name, name),
            scope,
        )
        made[name] = scope["outer_" + name]
        if len(made) > 200:
            made.clear()
            made[name] = scope["outer_" + name]
    return made[name]


async def busy(seconds):
    """One task runs all the time, in steps of some microseconds, while another is suspended."""

    async def runs():
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(0)

    async def still():
        with timed("still"):
            await asyncio.sleep(seconds)

    await asyncio.gather(spawn(runs(), "runs"), spawn(still(), "still"))


def loops(seconds):
    """Loops of two threads, and tasks of a third one whose thread has ended."""
    left = []

    async def leaves():
        loop = asyncio.get_running_loop()
        left.extend((loop, spawn(asyncio.sleep(1000), "left")))
        await asyncio.sleep(0)

    def ends():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leaves())

    async def main(name):
        await spawn(naps(name, seconds, 1), name)

    thread = threading.Thread(target=ends)
    thread.start()
    thread.join()
    other = threading.Thread(target=lambda: asyncio.run(main("thread")))
    other.start()
    asyncio.run(main("main"))
    other.join()
    os.write(1, json.dumps(suspended).encode())
    os._exit(0)  # the task that is left has no loop to end it


class Awaitable:
    def __await__(self):
        return (yield from asyncio.sleep(1000).__await__())


async def snapshot(seconds):
    """Tasks that stand still, as asyncio's own tool sees them."""

    async def agen():
        yield await asyncio.sleep(1000)

    async def leaf():
        await asyncio.get_running_loop().create_future()

    async def middle():
        await leaf()

    async def custom():
        await Awaitable()

    async def iterates():
        async for _ in agen():
            pass

    async def default():
        await anext(agen(), None)

    async def joins(task):
        await task

    async def grouped():
        async with asyncio.TaskGroup() as group:
            group.create_task(middle(), name="in-group")

    async def timeout():
        async with asyncio.timeout(1000):
            await middle()

    async def deep(depth):
        await (deep(depth - 1) if depth else leaf())

    class Mine(asyncio.Task):
        pass

    asyncio.current_task().set_name("main")
    joined = spawn(middle(), "joined")
    tasks = [
        joined,
        spawn(custom(), "custom"),
        spawn(iterates(), "iterates"),
        spawn(default(), "default"),
        spawn(joins(joined), "joins"),
        spawn(joins(asyncio.shield(joined)), "shields"),
        spawn(grouped(), "grouped"),
        spawn(timeout(), "timeout"),
        spawn(deep(30), "deep"),
        spawn(deep(400), "deeper"),
        Mine(middle(), name="\u20acuro;"),
        spawn(asyncio.wait_for(middle(), 1000), "wait_for"),
        spawn(asyncio.to_thread(time.sleep, seconds + 2), "thread"),
    ]
    await asyncio.sleep(0.2)

    def stack_of(task):
        graph = asyncio.capture_call_graph(task)
        return [[entry.frame.f_code.co_qualname, os.path.basename(entry.frame.f_code.co_filename), entry.frame.f_lineno]
                for entry in reversed(graph.call_stack)]

    def awaiters_of(task):
        return sorted(waiter.future.get_name() for waiter in asyncio.capture_call_graph(task).awaited_by
                      if isinstance(waiter.future, asyncio.Task))

    group = [task for task in asyncio.all_tasks() if task.get_name() == "in-group"]
    found = {task.get_name(): [stack_of(task), awaiters_of(task)] for task in tasks + group}
    await asyncio.sleep(seconds)
    os.write(1, json.dumps(found).encode())
    os._exit(0)


if __name__ == "__main__":
    kind, length = sys.argv[1], float(sys.argv[2])
    rest.wait_for_rest()  # the profiler sees that asyncio was loaded
    if kind == "loops":
        loops(length)
    elif "uvloop" in sys.argv:
        import uvloop

        uvloop.run(globals()[kind](length))
    else:
        asyncio.run(globals()[kind](length))
    print(json.dumps(suspended))
