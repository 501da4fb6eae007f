# SPDX-License-Identifier: Apache-2.0
"""asyncio tasks with known names, whose CPU time each of them measures: `tasks.py KIND SECONDS`. Python 3.7+.

In 3.7 tasks have no names; TaskGroup is there from 3.11 on, eager tasks from 3.12 on. Each task burns CPU in burn(name),
whose time is in the JSON on stdout by the task's name.
"""

import asyncio
import collections
import json
import os
import signal
import sys
import threading
import time

import rest

cpu = collections.Counter()
NAMED = sys.version_info >= (3, 8)


def create(coroutine, name):
    loop = asyncio.get_running_loop()
    return loop.create_task(coroutine, name=name) if NAMED else loop.create_task(coroutine)


def set_name(name):
    if NAMED:
        asyncio.current_task().set_name(name)


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
    set_name("main")
    tasks = [create(work("w%d" % i, seconds * i / 6), "w%d" % i) for i in (1, 2, 3)]
    await asyncio.gather(*tasks)
    burn("main", seconds / 6)


async def nested(seconds):
    """main > inner > another one in a TaskGroup, if there is one, and a subclass of Task. Python 3.8+."""

    class Mine(asyncio.Task):
        pass

    async def inner():
        if sys.version_info >= (3, 11):
            async with asyncio.TaskGroup() as group:
                group.create_task(work("\u20acuro", seconds / 2), name="\u20acuro")
        else:
            await create(work("\u20acuro", seconds / 2), "\u20acuro")
        burn("inner", seconds / 4)

    set_name("main")
    task = Mine(inner(), name="inner")
    await task
    await create(work("x" * 80, seconds / 4), "x" * 80)


async def several(seconds):
    """One task that two others await."""
    set_name("main")
    shared = create(work("shared", seconds), "shared")

    async def wait():
        await shared

    await asyncio.gather(wait(), wait())


async def beside(seconds):
    """A task that nobody awaits, with a callback that knows what main awaits."""
    set_name("main")
    gathered = asyncio.gather(create(work("inside", seconds / 2), "inside"))
    watch = create(work("watch", seconds / 2), "watch")
    watch.add_done_callback(lambda _: gathered.done())
    await gathered
    await asyncio.sleep(0.05)


async def automatic(seconds):
    """Names that asyncio gave, and that nobody reads before."""
    tasks = [asyncio.create_task(work("auto", seconds / 3)) for _ in range(3)]
    await asyncio.gather(*tasks)
    cpu.update({task.get_name(): cpu["auto"] / 3 for task in tasks})
    del cpu["auto"]


async def eager(seconds):
    """Tasks that begin inside the task that makes them, which goes on after each."""
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    set_name("main")
    for i in range(2):
        task = asyncio.create_task(work("e%d" % i, seconds / 4, 1), name="e%d" % i)
        burn("main", seconds / 4)
        await task


async def many(seconds, prefix="n"):
    """Thousands of tasks that come and go, so that addresses are used over and over."""
    set_name("main")
    end, latest, number = time.monotonic() + seconds, time.monotonic() + 20 * seconds, 0

    async def short(name):
        named("name_" + name, 0.0004)

    # Longer where this program seldom has a CPU.
    while time.monotonic() < (end if number > 400 else latest):
        names = ["%s%d" % (prefix, number + i) for i in range(8)]
        number += len(names)
        await asyncio.gather(*[create(short(name), name) for name in names])
    cpu["tasks"] += number


def run_loops(seconds):
    """The same in three threads, each with a loop of its own; a fourth thread burns without one."""
    ends = [threading.Thread(target=lambda name=name: asyncio.run(many(seconds, name))) for name in "abc"]
    ends.append(threading.Thread(target=named, args=("plain", seconds / 4)))
    for thread in ends:
        thread.start()
    for thread in ends:
        thread.join()


def run_mangled(seconds):
    """The same, while another thread fills asyncio's dict of running tasks with other tasks and with nonsense."""
    import _asyncio

    running, stop = _asyncio._current_tasks, threading.Event()

    def mangle(others):
        number = 0
        while not stop.is_set():
            number += 1
            for i in range(number % 40):
                running["key", i] = others[i % len(others)]
            for i in range(number % 40):
                del running["key", i]
            time.sleep(0.0002)

    async def main():
        sleeping = [create(asyncio.sleep(60), "sleeping%d" % i) for i in range(5)]
        await asyncio.sleep(0)
        others = sleeping + [None, 0, "text", object(), [asyncio.current_task()] * 40, asyncio.current_task()]
        thread = threading.Thread(target=mangle, args=(others,))
        thread.start()
        await many(seconds)
        stop.set()
        thread.join()

    asyncio.run(main())


async def plain(seconds):
    """Tasks that nobody gives a name: in 3.7 they have none."""

    async def first():
        await work("first", seconds / 3)

    async def second():
        await work("second", seconds / 3)

    await asyncio.gather(first(), second())
    burn("main", seconds / 3)


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
            await create(link(depth - 1), "d%d" % depth)
        else:
            await below(20)

    async def below(depth):
        if depth:
            await below(depth - 1)
        else:
            burn("d1", seconds)

    set_name("main")
    await link(12)


async def threads(seconds):
    """A thread of the pool is in no task, nor is it in the one that the loop's thread runs meanwhile."""
    set_name("main")

    async def wait():
        await asyncio.get_running_loop().run_in_executor(None, burn, "pool", seconds / 2)

    waiting = create(wait(), "waiting")
    await asyncio.sleep(0)
    burn("main", seconds / 2)
    await waiting


async def blocks(seconds):
    """Tasks that block their loop's thread, and main, which awaits them."""
    set_name("main")

    async def block(name, seconds):
        begin = time.monotonic()
        time.sleep(seconds)
        cpu[name] = time.monotonic() - begin

    await asyncio.gather(*[create(block("b%d" % i, seconds * i / 3), "b%d" % i) for i in (1, 2)])


async def forked(seconds):
    """A process and its child, made by fork, each in a task of its own."""
    set_name("parent")
    burn("parent", seconds)


async def child(seconds):
    set_name("child")
    burn("child", seconds)


def run_forked(seconds):
    import ctypes  # not every build has it

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the test
    if os.fork():
        print(json.dumps({"pid": os.getpid()}), flush=True)
        asyncio.run(forked(seconds))
    else:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        asyncio.run(child(seconds))


if __name__ == "__main__":
    kind, seconds = sys.argv[1], float(sys.argv[2])
    rest.wait_for_rest()  # the profiler sees that asyncio was loaded
    if kind == "python_task":
        run_python_task(seconds)
    elif kind in ("forked", "loops", "mangled"):
        globals()["run_" + kind](seconds)
    else:
        asyncio.run(globals()[kind](seconds))
    print(json.dumps(cpu))
