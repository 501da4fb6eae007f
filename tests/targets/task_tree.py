# SPDX-License-Identifier: Apache-2.0
"""asyncio tasks that stand, for pybpf dump --async: `task_tree.py KIND`. Says what asyncio itself tells of them."""

import asyncio
import gc
import json
import os
import sys
import threading
import time


def spawn(coro, name):
    task = asyncio.get_running_loop().create_task(coro)
    if hasattr(task, "set_name"):  # 3.8
        task.set_name(name)
    return task


async def leaf():
    await asyncio.get_running_loop().create_future()


async def middle():
    await leaf()


async def joins(task):
    await task


async def agen():
    yield await asyncio.sleep(1000)


async def iterates():
    async for _ in agen():
        pass


async def snapshot():
    """Tasks that await each other in all ways that asyncio has."""

    async def gathers(*names):
        await asyncio.gather(*(spawn(middle(), name) for name in names))

    async def grouped():
        async with asyncio.TaskGroup() as group:
            group.create_task(middle(), name="in-group")
            group.create_task(gathers("deep-1", "deep-2"), name="group-gathers")

    async def timeout():
        async with asyncio.timeout(1000):
            await middle()

    async def waits(*tasks):
        await asyncio.wait(tasks)

    shared = spawn(middle(), "shared")
    alone = [
        spawn(joins(shared), "joins-1"),
        spawn(joins(shared), "joins-2"),
        spawn(joins(asyncio.shield(shared)), "shields"),
        spawn(gathers("g-1", "g-2", "g-3"), "gathers"),
        spawn(waits(shared), "waits"),
        spawn(iterates(), "iterates"),
        spawn(middle(), "\u20acuro;\x1b[31m"),
    ]
    if sys.version_info >= (3, 11):
        alone += [spawn(grouped(), "grouped"), spawn(timeout(), "timeout")]
    await asyncio.sleep(0.2)
    say(alone)
    await asyncio.sleep(1000)


async def cycle():
    """Three tasks that await each other in a circle, one that awaits it from outside, and one that it awaits."""
    tasks = {}
    begun = asyncio.Event()

    async def awaits(*names):
        await begun.wait()
        await asyncio.gather(*(tasks[name] for name in names))

    for name, others in (("a", "b"), ("b", "c"), ("c", "ad"), ("outside", "a"), ("x", "y"), ("y", "x")):
        tasks[name] = spawn(awaits(*others), name)
    tasks["d"] = spawn(middle(), "d")
    begun.set()
    await asyncio.sleep(0.2)
    say([])
    await asyncio.sleep(1000)


async def blocks():
    """A task that runs: it blocks its loop."""

    def stuck():
        say([])
        time.sleep(1000)

    async def inner():
        stuck()

    async def outer():
        await inner()

    await asyncio.gather(spawn(outer(), "stuck"), spawn(middle(), "hangs"))


async def eager():
    """An eager task that runs within the step of another one."""

    async def outer():
        say([])
        time.sleep(1000)

    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    await spawn(outer(), "eager")


async def many():
    """Thousands of tasks in two places."""

    async def one():
        await leaf()

    async def other():
        await leaf()

    tasks = [spawn((one if i % 4 else other)(), "t%d" % i) for i in range(5000)]
    await asyncio.sleep(0.2)
    say([])
    await asyncio.gather(*tasks)


async def same():
    """Thousands of tasks that differ in nothing but where they are in memory."""
    tasks = [spawn(leaf(), "same") for _ in range(3000)]
    await asyncio.sleep(0.2)
    say([])
    await asyncio.gather(*tasks)


async def churn():
    """
    Tasks that come and go as fast as they can. The name of each says who awaits it, and its functions have its name: pN
    awaits pN.c, which runs child_N.
    """
    made = {}

    def functions(number):
        if number not in made:
            scope = {"asyncio": asyncio, "spawn": spawn, "pauses": pauses}
            source = (
                "async def child_{0}():\n    await pauses()\n"
                "async def parent_{0}():\n    await spawn(child_{0}(), 'p{0}.c')\n"
            ).format(number)
            exec(compile(source, "<made>", "exec"), scope)
            made[number] = scope["parent_%d" % number]
        return made[number]

    async def pauses():
        await asyncio.sleep(0)
        await asyncio.sleep(0 if number % 5 else 0.0001)

    number = 0
    asyncio.current_task().set_name("root")
    stands = [spawn(leaf(), "stands-1")]
    stands.append(spawn(joins(stands[0]), "stands-2"))
    say([])
    while True:
        number = (number + 1) % 50
        await asyncio.gather(*(spawn(functions(number + i)(), "p%d" % (number + i)) for i in range(3)))


def loops():
    """Loops of two threads, and a task of a third one whose thread has ended."""
    left = []

    async def leaves():
        left.extend((asyncio.get_running_loop(), spawn(leaf(), "left")))
        await asyncio.sleep(0)

    async def main(name, last):
        spawned = spawn(middle(), name)
        await asyncio.sleep(0.2)
        if last:
            say([])
        await spawned

    thread = threading.Thread(target=lambda: asyncio.new_event_loop().run_until_complete(leaves()))
    thread.start()
    thread.join()
    threading.Thread(target=lambda: asyncio.run(main("in-thread", False)), daemon=True).start()
    asyncio.run(main("in-main", True))


def made_elsewhere():
    """Tasks of two loops that other threads have made: one that has ended, one that lives on, the first thread."""
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()

    async def waits():
        await asyncio.sleep(1000)

    async def stuck():
        await asyncio.sleep(0)
        time.sleep(1000)

    def make(loop, coroutine, name):
        task = loop.create_task(coroutine, name=name)
        kept.append(task)

    kept, lives = [], threading.Event()
    for name, goes_on in ("by-ended", False), ("by-living", True):
        thread = threading.Thread(target=lambda: (make(first, waits(), name), lives.set(), goes_on and time.sleep(1000)))
        thread.daemon = True
        thread.start()
        lives.wait() if goes_on else thread.join()
        lives.clear()
    make(second, waits(), "by-first")
    make(second, stuck(), "stuck")
    threading.Thread(target=second.run_forever, name="second", daemon=True).start()
    first.call_later(0.3, say, [])
    first.run_forever()


def frames_of(graph):
    return [
        [entry.frame.f_code.co_qualname, entry.frame.f_code.co_filename, entry.frame.f_lineno]
        for entry in reversed(graph.call_stack)
    ]


def awaiters_of(graph):
    """The tasks that await it, whatever futures are between."""
    found = []
    for awaiter in graph.awaited_by:
        found += [id(awaiter.future)] if isinstance(awaiter.future, asyncio.Task) else awaiters_of(awaiter)
    return sorted(set(found))


def frames_of_old(task):
    """The functions of a task's coroutines before 3.14, and those of asynchronous generators."""
    frames, awaited = [], task._coro
    while awaited is not None:
        for kind in ("cr", "gi", "ag"):
            frame = getattr(awaited, kind + "_frame", None)
            if frame:
                code = frame.f_code
                frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
                awaited = getattr(awaited, kind + ("_yieldfrom" if kind == "gi" else "_await"))
                break
        else:
            # asend() and its like, whose generator is not to be had.
            found = [] if isinstance(awaited, asyncio.Future) else gc.get_referents(awaited)
            awaited = ([one for one in found if hasattr(one, "ag_frame")] + [None])[0]
    return frames


def say(tell):
    """Says what asyncio knows of all tasks; tell: not only the names."""
    says = {"pid": os.getpid(), "tasks": {}}
    for task in asyncio.all_tasks() if tell else []:
        if task is asyncio.current_task():
            continue
        if sys.version_info < (3, 14):
            name = task.get_name() if hasattr(task, "get_name") else task._coro.__qualname__
            says["tasks"][id(task)] = {"name": name, "frames": frames_of_old(task)}
            continue
        graph = asyncio.capture_call_graph(task)
        says["tasks"][id(task)] = {"name": task.get_name(), "frames": frames_of(graph), "awaited_by": awaiters_of(graph)}
    os.write(1, json.dumps(says).encode() + b"\n")


if __name__ == "__main__":
    if sys.argv[1] in ("loops", "made_elsewhere"):
        globals()[sys.argv[1]]()
    else:
        asyncio.run(globals()[sys.argv[1]]())
