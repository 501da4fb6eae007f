# SPDX-License-Identifier: Apache-2.0
"""A program that starts while everything is sampled, forks, and works; both say their PID and the CPU time of the work.

starts.py SECONDS of CPU time, for each
"""
import os
import sys
import time


def burn(seconds):
    begin = time.process_time()
    while time.process_time() < begin + seconds:
        pass
    return time.process_time() - begin


def parent(seconds):
    return burn(seconds)


def child(seconds):
    return burn(seconds)


def main():
    seconds = float(sys.argv[1])
    pid = os.fork()
    cpu_s = (parent if pid else child)(seconds)
    sys.stdout.write("%s %d %.3f\n" % ("parent" if pid else "child", os.getpid(), cpu_s))
    sys.stdout.flush()
    if pid:
        os.waitpid(pid, 0)


main()
