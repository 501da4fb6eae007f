# SPDX-License-Identifier: Apache-2.0
"""pools.py METHOD WORKERS MILLISECONDS: a multiprocessing pool with WORKERS tasks that take so much CPU time each.

Each has a process of its own. METHOD is fork, forkserver or spawn; before 3.4 there is fork alone. The last line has the CPU time that each task took
in its burn, and the PID in which it did.
"""

import multiprocessing
import os
import sys

import churn


def main(milliseconds):
    began = churn.cpu_s()
    churn.burn(milliseconds / 1000.0)
    return [os.getpid(), round(churn.cpu_s() - began, 6)]


def run(method, workers, milliseconds):
    context = multiprocessing
    if hasattr(multiprocessing, "get_context"):
        context = multiprocessing.get_context(method)
    # One task for each process: they come and go.
    pool = context.Pool(2, maxtasksperchild=1)
    tasks = [pool.apply_async(main, (milliseconds,)) for _ in range(workers)]
    done = [task.get() for task in tasks]
    pool.close()
    pool.join()
    return done


if __name__ == "__main__":
    churn.begin()
    churn.say(tasks=run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
