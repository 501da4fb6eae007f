# SPDX-License-Identifier: Apache-2.0
"""Callbacks that block their event loop, at known lines and for known times: `blocks.py KIND`. Python 3.7+.

The JSON on stdout has for each task the seconds of its callbacks that block, the most that each of them may have taken
with what it waited for a CPU before and after its clock was read, and the line where each does.
"""

import asyncio
import collections
import json
import sys
import threading
import time

import rest

NAMED = sys.version_info >= (3, 8)
took = collections.defaultdict(list)
most = collections.defaultdict(list)
ran = collections.defaultdict(list)  # on a CPU
lines = {}
spans = []  # from the end of one step to the start of the next but one: its callback cannot be longer


class Passes:
    """What a thread's loop called from one wait for what is ready to the next."""

    here = threading.local()

    def __init__(self, loop):
        self.select, loop._selector.select = loop._selector.select, self.wait
        self.begin, self.blocks = time.monotonic(), []

    def wait(self, timeout):
        whole = time.monotonic() - self.begin
        for name, seconds in self.blocks:
            most[name].append(whole - sum(other for _, other in self.blocks) + seconds)
        ready = self.select(timeout)
        self.begin, self.blocks = time.monotonic(), []
        return ready


def count(name, begin):
    took[name].append(time.monotonic() - begin)
    if hasattr(Passes.here, "loop"):
        Passes.here.loop.blocks.append((name, took[name][-1]))


def sleep(name, seconds):
    begin = time.monotonic()
    lines[name] = sys._getframe().f_lineno + 1
    time.sleep(seconds)
    count(name, begin)


def nap(name, seconds):
    """As sleep(), at a place of its own: beside a load it may be long, too."""
    begin = time.monotonic()
    time.sleep(seconds)
    count(name, begin)


def burn(name, seconds):
    begin, cpu = time.monotonic(), time.thread_time()
    lines[name] = sys._getframe().f_lineno + 1
    while time.thread_time() - cpu < seconds: pass
    count(name, begin)
    ran[name].append(time.thread_time() - cpu)


async def blocks(name, function, seconds, times):
    for _ in range(times):
        await asyncio.sleep(0.03)
        function(name, seconds)


def start(name, *arguments):
    if not hasattr(Passes.here, "loop"):
        Passes.here.loop = Passes(asyncio.get_event_loop())
    coroutine = blocks(name, *arguments)
    return asyncio.create_task(coroutine, name=name) if NAMED else asyncio.create_task(coroutine)


async def known():
    """Two tasks that block, and a callback without a task; others are short, or wait without blocking."""
    asyncio.get_running_loop().call_later(0.1, sleep, "", 0.15)
    await asyncio.gather(start("sleeps", sleep, 0.2, 2), start("burns", burn, 0.1, 2), start("short", nap, 0.01, 9))
    await asyncio.sleep(0.2)


async def steps():
    """One task that never lets its loop wait, and whose steps are short; and callbacks of a pass that add up."""
    begins, ends = [], [time.monotonic()]
    for _ in range(40):
        begins.append(time.monotonic())
        burn("steps", 0.01)
        ends.append(time.monotonic())
        await asyncio.sleep(0)
    begins.append(time.monotonic())
    spans.extend(begins[i + 1] - ends[i] for i in range(40))
    await asyncio.gather(*[start("t%d" % i, sleep, 0.02, 3) for i in range(5)])


async def turns():
    """Each callback that sleeps is followed by one that computes, without a switch between them."""

    async def times(name, function, seconds):
        for _ in range(500):
            await asyncio.sleep(0)
            function(name, seconds)

    await asyncio.gather(
        *[asyncio.create_task(times(*what), name=what[0]) for what in (("naps", sleep, 0.006), ("burns", burn, 0.004))]
    )


async def unfinished():
    if NAMED:
        asyncio.current_task().set_name("hangs")
    lines["hangs"] = sys._getframe().f_lineno + 1
    time.sleep(2)


def loops():
    """Two threads with a loop each, and a third one that blocks none."""

    async def main(name):
        await start(name, sleep, 0.2, 2)

    threads = [threading.Thread(target=asyncio.run, args=(main(name),)) for name in ("one", "two")]
    threads.append(threading.Thread(target=sleep, args=("none", 0.4)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def crowd():
    """More loops than a dict of their tasks has in its first places, blocked at the same time."""

    async def main():
        await start("all", sleep, 0.12, 3)

    took["all"] = []  # without the GIL two threads could each make one
    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(150)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    kind = globals()[sys.argv[1]]
    rest.wait_for_rest()  # the profiler sees that asyncio was loaded
    if kind in (loops, crowd):
        kind()
    else:
        asyncio.run(kind())
    print(json.dumps({"took": took, "most": most, "ran": ran, "spans": spans, "lines": lines}))
