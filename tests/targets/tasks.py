# SPDX-License-Identifier: Apache-2.0
"""asyncio tasks with known names, whose CPU time each of them measures: `tasks.py KIND SECONDS`. Python 3.14+.

Each task burns CPU in burn(name), whose time is in the JSON on stdout by the task's name.
"""

import asyncio
import collections
import ctypes
import json
import os
import signal
import sys
import time

cpu = collections.Counter()


def burn(name, seconds):
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass
    cpu[name] += time.thread_time() - begin


async def work(name, seconds, parts=10):
    for _ in range(parts):
        burn(name, seconds / parts)
        await asyncio.sleep(0)


async def gather(seconds):
    """Three named tasks, 1:2:3, that main awaits by way of gather's future; main burns as well."""
    asyncio.current_task().set_name("main")
    tasks = [asyncio.create_task(work("w%d" % i, seconds * i / 6), name="w%d" % i) for i in (1, 2, 3)]
    await asyncio.gather(*tasks)
    burn("main", seconds / 6)


async def nested(seconds):
    """main > group > inner, each in a TaskGroup, and a subclass of Task."""

    class Mine(asyncio.Task):
        pass

    async def inner():
        async with asyncio.TaskGroup() as group:
            group.create_task(work("\u20acuro", seconds / 2), name="\u20acuro")
        burn("inner", seconds / 4)

    asyncio.current_task().set_name("main")
    task = Mine(inner(), name="inner")
    await task
    await asyncio.create_task(work("x" * 80, seconds / 4), name="x" * 80)


async def several(seconds):
    """One task that two others await."""
    asyncio.current_task().set_name("main")
    shared = asyncio.create_task(work("shared", seconds), name="shared")

    async def wait():
        await shared

    await asyncio.gather(wait(), wait())


async def automatic(seconds):
    """Names that asyncio gave, and that nobody reads before."""
    tasks = [asyncio.create_task(work("auto", seconds / 3)) for _ in range(3)]
    await asyncio.gather(*tasks)
    cpu.update({task.get_name(): cpu["auto"] / 3 for task in tasks})
    del cpu["auto"]


async def eager(seconds):
    """Tasks that begin inside the task that makes them, which goes on after each."""
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    asyncio.current_task().set_name("main")
    for i in range(2):
        task = asyncio.create_task(work("e%d" % i, seconds / 4, 1), name="e%d" % i)
        burn("main", seconds / 4)
        await task


async def many(seconds):
    """Thousands of tasks that come and go, so that addresses are used over and over."""
    asyncio.current_task().set_name("main")
    end, number = time.monotonic() + seconds, 0

    async def short(name):
        named("name_" + name, 0.0004)

    while time.monotonic() < end:
        names = ["n%d" % (number + i) for i in range(8)]
        number += len(names)
        await asyncio.gather(*[asyncio.create_task(short(name), name=name) for name in names])
    cpu["tasks"] = number


def named(function, seconds):
    """Burns in a function of that name: its code object tells the truth about the task's name."""
    scope = {}
    exec("def %s(burn, seconds):\n burn('all', seconds)\n" % function, scope)
    scope[function](burn, seconds)


async def python_task(seconds):
    """A task that is written in Python: _asyncio cannot tell its name."""
    burn("foreign", seconds)


def run_python_task(seconds):
    loop = asyncio.new_event_loop()
    loop.set_task_factory(lambda loop, coro, **options: asyncio.tasks._PyTask(coro, loop=loop, **options))
    loop.run_until_complete(python_task(seconds))
    loop.close()


async def deep(seconds):
    """A chain of more tasks than are kept, and a coroutine with many awaits below its task."""

    async def link(depth):
        if depth:
            await asyncio.create_task(link(depth - 1), name="d%d" % depth)
        else:
            await below(20)

    async def below(depth):
        if depth:
            await below(depth - 1)
        else:
            burn("d1", seconds)

    asyncio.current_task().set_name("main")
    await link(12)


async def threads(seconds):
    """A thread of the pool is in no task, nor is it in the one that the loop's thread runs meanwhile."""
    asyncio.current_task().set_name("main")
    pool = asyncio.to_thread(burn, "pool", seconds / 2)
    waiting = asyncio.create_task(pool, name="waiting")
    await asyncio.sleep(0)
    burn("main", seconds / 2)
    await waiting


async def blocks(seconds):
    """Tasks that block their loop's thread, and main, which awaits them."""
    asyncio.current_task().set_name("main")

    async def block(name, seconds):
        begin = time.monotonic()
        time.sleep(seconds)
        cpu[name] = time.monotonic() - begin

    await asyncio.gather(*[asyncio.create_task(block("b%d" % i, seconds * i / 3), name="b%d" % i) for i in (1, 2)])


async def forked(seconds):
    """A process and its child, made by fork, each in a task of its own."""
    asyncio.current_task().set_name("parent")
    burn("parent", seconds)


async def child(seconds):
    asyncio.current_task().set_name("child")
    burn("child", seconds)


def run_forked(seconds):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the test
    if os.fork():
        print(json.dumps({"pid": os.getpid()}), flush=True)
        asyncio.run(forked(seconds))
    else:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        asyncio.run(child(seconds))


if __name__ == "__main__":
    kind, seconds = sys.argv[1], float(sys.argv[2])
    time.sleep(0.3)  # the profiler sees that asyncio was loaded
    if kind == "python_task":
        run_python_task(seconds)
    elif kind == "forked":
        run_forked(seconds)
    else:
        asyncio.run(globals()[kind](seconds))
    print(json.dumps(cpu))
