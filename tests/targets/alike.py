# SPDX-License-Identifier: Apache-2.0
"""
Threads that stand in the same places, below what the standard library starts them with; says how many stand where.

    alike.py [N]     N threads wait for a lock that another one has; a pool, one with an event loop, a recursion
"""

import json
import os
import sys
import threading
import time

COUNT = int(sys.argv[1]) if sys.argv[1:] else 20
lock = threading.Lock()
held = threading.Event()
looping = threading.Event()
pools = []


def long_holder():
    with lock:
        held.set()
        time.sleep(1000)


def take():
    with lock:
        pass


def pause():
    time.sleep(1000)


def down(n):
    if n:
        down(n - 1)
    time.sleep(1000)


def start(name, function, *args):
    thread = threading.Thread(target=function, args=args, name=name)
    thread.daemon = True
    thread.start()


def pool(name, count, function):
    from concurrent import futures

    made = futures.ThreadPoolExecutor(count, name)
    started = threading.Barrier(count + 1)
    [made.submit(lambda: (started.wait(), function())) for _ in range(count)]
    started.wait()
    return made


def loop():
    import asyncio

    def called():
        looping.set()
        time.sleep(1000)

    made = asyncio.new_event_loop()
    made.call_soon(called)
    made.run_forever()


def main():
    start("holder", long_holder)
    held.wait()
    for i in range(COUNT):
        start("worker-%d" % i, take)
    start("deep", down, 50)
    if sys.version_info >= (3, 7):
        pools.extend([pool("pooled", 3, pause), pool("idle", 2, int)])
        start("loop", loop)
        looping.wait()
    time.sleep(0.5)  # all of them stand
    print(json.dumps({"pid": os.getpid(), "takers": COUNT}))
    sys.stdout.flush()
    time.sleep(1000)


if __name__ == "__main__":
    main()
