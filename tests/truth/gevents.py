# SPDX-License-Identifier: Apache-2.0
"""gevent's greenlets: they sleep for no time, pass things through a queue, and wait for others.

gevents.py FOLDER: where gevent is.
"""

import sys

import start

WHEEL = "gevent"
THROUGH = ("gevent/", "greenlet/", "weakref", "_weakrefset.py", "contextvars", "heapq.py", "queue.py")
ROOTS = ("red", "blue", "give", "take", "short")
STACKS = [
    "run_all",
    "red red_middle red_inner red_work",
    "blue blue_inner blue_key",
    "give give_inner",
    "take take_inner",
    "short",
]


def red_work():
    for _ in range(10):
        pass


def red_inner():
    for _ in range(10):
        red_work()
        gevent.sleep(0)


def red_middle():
    red_inner()


def red():
    red_middle()


def blue_key(_):
    gevent.sleep(0)
    return 0


def blue_inner():
    sorted(range(10), key=blue_key)


def blue():
    blue_inner()


def give_inner(queue):
    for number in range(10):
        queue.put(number)


def give(queue):
    give_inner(queue)


def take_inner(queue):
    for _ in range(10):
        queue.get()


def take(queue):
    take_inner(queue)


def short():
    pass


def run_all():
    queue = gevent.queue.Queue(1)
    running = [gevent.spawn(red), gevent.spawn(blue), gevent.spawn(give, queue), gevent.spawn(take, queue)]
    for _ in range(3):
        running.append(gevent.spawn(short))
    gevent.joinall(running)


if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    import gevent
    import gevent.queue

    start.forever(run_all)
