# SPDX-License-Identifier: Apache-2.0
"""Coroutines, driven by hand and by asyncio; needs 3.6."""

import asyncio

import expect


def burn():
    sum(range(8000))  # burn: hot


class Pause:
    def __await__(self):
        yield


async def innermost():
    burn()  # innermost > burn
    await Pause()  # innermost >? Pause.__await__
    burn()  # innermost > burn


async def middle():
    await innermost()  # middle > innermost


async def by_hand():
    await middle()  # by_hand > middle


def drive():
    coroutine = by_hand()  # drive > by_hand
    try:
        while True:
            coroutine.send(None)  # drive > by_hand
    except StopIteration:
        pass


def sub_generator():
    burn()  # sub_generator > burn
    yield 1
    burn()  # sub_generator > burn


def delegating():
    yield from sub_generator()  # delegating > sub_generator


def delegate_user():
    for _ in delegating():  # delegate_user > delegating
        pass


async def numbers():
    for number in range(2):
        burn()  # numbers > burn
        yield number


async def consumer():
    async for _ in numbers():  # consumer > numbers
        pass


class Manager:
    async def __aenter__(self):
        burn()  # Manager.__aenter__ > burn

    async def __aexit__(self, *_):
        pass


async def guarded():
    async with Manager():  # guarded > Manager.__aenter__; guarded >? Manager.__aexit__
        burn()  # guarded > burn; guarded >? Manager.__aexit__


async def task():
    await asyncio.sleep(0)
    await consumer()  # task > consumer
    await guarded()  # task > guarded


async def tasks():
    await asyncio.gather(task(), task())  # tasks >? task
    burn()  # tasks > burn


def main(loop):
    while True:
        drive()  # main > drive
        delegate_user()  # main > delegate_user
        loop.run_until_complete(tasks())  # main > tasks; main > task


if __name__ == "__main__":
    wanted = expect.describe(__file__, share=0.4)
    # What the library does around tasks is its own affair; the rest is checked all the same.
    wanted.through = ["asyncio/", "selectors.py", "weakref.py", "_weakrefset.py", "types.py"]
    wanted.through += ["threading.py", "inspect.py", "abc.py", "contextlib.py"]
    expect.ready(wanted)
    main(asyncio.new_event_loop())  # <module> > main
