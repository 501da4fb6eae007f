# SPDX-License-Identifier: Apache-2.0
"""crowds.py FD SHAPE COUNT: COUNT threads that take turns (turns), or of which one works and the others wait (waiting).

One thread works at any time: nothing is measured of how the GIL is fought for."""

import sys
import threading
import time

import counted

FRAMES = 20
ROUNDS = range(20000)
done = 0


def turns(mine, following, memory):
    global done
    while True:
        mine.acquire()
        for _ in ROUNDS:
            pass
        done += 1
        counted.NUMBER.pack_into(memory, 0, done)
        following.release()


def waiting(mine, following, memory):
    mine.acquire()
    counted.spin_forever(memory)


def dive(left, shape, *arguments):
    if left:
        dive(left - 1, shape, *arguments)
    else:
        shape(*arguments)


def main():
    memory = counted.counter()
    shape = {"turns": turns, "waiting": waiting}[sys.argv[2]]
    count = int(sys.argv[3])
    threading.stack_size(256 * 1024)
    locks = [threading.Lock() for _ in range(count)]
    for number, lock in enumerate(locks):
        lock.acquire()
        arguments = (FRAMES, shape, lock, locks[(number + 1) % count], memory)
        worker = threading.Thread(target=dive, args=arguments)
        worker.daemon = True
        worker.start()
    locks[count // 2].release()
    while True:
        time.sleep(1000)


if __name__ == "__main__":
    main()
