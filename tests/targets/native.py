# SPDX-License-Identifier: Apache-2.0
"""native.py LIBRARY WHAT: CPU time without Python functions. LIBRARY is build/native.so.

It says that it is ready, and begins when stdin ends; then it says that it is through, and waits, but for "end".

threads  blas-0 and "omp; x" burn 600 and 300 ms, main() burns 500 ms of this thread's CPU time
state    so does has-state 500 ms, with a thread state and without a function
many     400 threads, each with a name of its own, burn some CPU time beside main()
short    main() starts Python's own threads, which end at once
end      main() burns 100 ms, and the process 400 ms after Python's end
"""

import ctypes
import json
import os
import sys
import threading
import time

MANY = 400


def say(**words):
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def cpu_s():
    """CPU time of this thread; 2.7 tells it of the process only, and then its native threads have begun before."""
    if hasattr(time, "thread_time"):
        return time.thread_time()
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) if hasattr(time, "clock_gettime") else time.clock()


def burn(seconds):
    end = cpu_s() + seconds
    while cpu_s() < end:
        sum(range(2000))


def deeper(depth):
    return deeper(depth - 1) if depth else sum(range(300))


def main(library, what):
    if what == "threads":
        library.native_start(b"blas-0", 600, 0)
        library.native_start(b"omp; x", 300, 0)
        burn(0.5)
    elif what == "state":
        library.native_start(b"has-state", 500, 1)
    elif what == "many":
        library.native_start_many(MANY, 200)
        for turn in range(200):
            for depth in range(40):
                deeper(depth)
            burn(0.002)
    elif what == "short":
        for turn in range(300):
            thread = threading.Thread(target=deeper, args=(3,))
            thread.start()
            thread.join()
    elif what == "end":
        library.native_burn_at_exit(400)
        burn(0.1)


if __name__ == "__main__":
    loaded = ctypes.CDLL(sys.argv[1])
    say(pid=os.getpid())
    sys.stdin.read()
    main(loaded, sys.argv[2])
    if sys.argv[2] != "end":
        while loaded.native_at_work():
            time.sleep(0.02)
        say(through=True)
        time.sleep(60)
