# SPDX-License-Identifier: Apache-2.0
"""
stands.py FD COUNT: COUNT threads that stand 20 functions deep with some variables in each, while the first one looks at
the clock all the time: its largest gap says for how long the process stood still.

The memory has, one number each: the work done; what the bench asks for (a new number: forget the gap); what was asked
for last; the largest gap since, in ns.
"""

import sys
import threading
import time

import counted

FRAMES = 20
ASKED, SEEN, GAP = 8, 16, 24


def stand(left, lock, text, numbers, mapping):
    half = numbers[: len(numbers) // 2]
    if left:
        return stand(left - 1, lock, text + "-", half or numbers, mapping)
    return lock.acquire()


def look(memory):
    seen = gap = done = 0
    last = time.perf_counter_ns()
    while True:
        now = time.perf_counter_ns()
        (asked,) = counted.NUMBER.unpack_from(memory, ASKED)
        if asked != seen:
            seen, gap = asked, 0
        elif now - last > gap:
            gap = now - last
        last = now
        done += 1
        counted.NUMBER.pack_into(memory, GAP, gap)
        counted.NUMBER.pack_into(memory, SEEN, seen)
        counted.NUMBER.pack_into(memory, 0, done)


def main():
    memory = counted.counter()
    threading.stack_size(256 * 1024)
    lock = threading.Lock()
    lock.acquire()
    for number in range(int(sys.argv[2])):
        arguments = (FRAMES, lock, "thread %d" % number, list(range(100)), {"number": number, "name": "stand"})
        threading.Thread(target=stand, args=arguments, daemon=True).start()
    time.sleep(0.2)  # all of them stand
    look(memory)


if __name__ == "__main__":
    main()
