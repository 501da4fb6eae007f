# SPDX-License-Identifier: Apache-2.0
"""Coroutines that hop between tasks, by hand and by asyncio: red never awaits blue's."""

import start

NEEDS = (3, 6)
THROUGH = ("asyncio/", "selectors.py", "contextlib.py", "weakref", "_weakrefset.py", "contextvars.py")
STACKS = [
    "both by_hand red red_middle red_inner red_work",
    "both by_hand blue blue_middle blue_inner blue_inmost blue_work",
    "both by_hand __await__",
    "both by_hand red red_middle red_inner __await__",
    "both by_hand blue blue_middle blue_inner blue_inmost __await__",
    # A task is a root of its own: below it are frames of asyncio only.
    "both loop_runs red red_middle red_inner red_work",
    "both loop_runs red red_middle red_inner __await__",
    "both loop_runs blue blue_middle blue_inner blue_inmost blue_work",
    "both loop_runs blue blue_middle blue_inner blue_inmost __await__",
    # Made there, on a frame of its own (3.11 and later).
    "both loop_runs gather red",
    "both loop_runs gather blue",
]


class Pause:
    def __await__(self):
        yield


def red_work():
    for _ in range(10):
        pass


def blue_work():
    for _ in range(10):
        pass


async def red_inner():
    for _ in range(10):
        red_work()
        await Pause()


async def red_middle():
    await red_inner()


async def red():
    await red_middle()


async def blue_inmost():
    for _ in range(10):
        await Pause()
        blue_work()


async def blue_inner():
    await blue_inmost()


async def blue_middle():
    await blue_inner()


async def blue():
    await blue_middle()


async def gather():
    import asyncio

    await asyncio.gather(red(), blue(), red(), blue())


def by_hand():
    running = [red(), blue(), red(), blue()]
    while running:
        for coroutine in list(running):
            try:
                coroutine.send(None)
            except StopIteration:
                running.remove(coroutine)


def loop_runs(loop):
    loop.run_until_complete(gather())


def both():
    by_hand()
    loop_runs(LOOP)


if __name__ == "__main__":
    import asyncio

    LOOP = asyncio.new_event_loop()
    start.forever(both)
