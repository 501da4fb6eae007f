# SPDX-License-Identifier: Apache-2.0
"""tids.py MILLISECONDS: threads one after the other with one TID, of two processes and twice of one of them.

The first process's threads are called red-1 and red-2 and run red_1() and red_2(), the second's is called blue and runs
blue(); it comes between them. Needs a PID namespace of its own, as root: nobody else takes a TID there.
"""

import json
import os
import sys
import threading
import time

import churn

LAST = "/proc/sys/kernel/ns_last_pid"
TID = 3000


def burn_as(name, seconds):
    with open("/proc/thread-self/comm", "w") as comm:
        comm.write(name)
    # CPU time of this process, whose main thread waits.
    churn.burn(seconds)


def red_1(seconds):
    burn_as("red-1", seconds)


def red_2(seconds):
    burn_as("red-2", seconds)


def blue(seconds):
    burn_as("blue", seconds)


def try_thread(function, seconds):
    """Runs the function in a thread, if that gets the TID. Returns the TID that it had."""
    tids = []

    def run():
        tids.append(int(os.readlink("/proc/thread-self").rpartition("/")[2]))
        if tids[0] == TID:
            function(seconds)

    thread = threading.Thread(target=run)
    with open(LAST, "w") as last:
        last.write(str(TID - 1))
    thread.start()
    thread.join()
    # Python's thread has ended a moment before the kernel's.
    while os.path.exists("/proc/self/task/%d" % tids[0]):
        time.sleep(0.001)
    return tids[0]


def run_thread(function, seconds):
    """Returns the TID that it had. The profiler is in this namespace, too, and now and then starts a process."""
    for _ in range(100):
        tid = try_thread(function, seconds)
        if tid == TID:
            break
    return tid


def main(seconds):
    say, hear = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        os.read(say[0], 1)
        os.write(hear[1], json.dumps(run_thread(blue, seconds)).encode())
        os._exit(0)
    tids = [run_thread(red_1, seconds)]
    os.write(say[1], b"g")
    os.waitpid(pid, 0)
    tids.append(json.loads(os.read(hear[0], 100).decode()))
    tids.append(run_thread(red_2, seconds))
    churn.say(tids=tids)


if __name__ == "__main__":
    main(float(sys.argv[1]) / 1000)
