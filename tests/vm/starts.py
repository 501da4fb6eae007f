# SPDX-License-Identifier: Apache-2.0
"""A program that starts while everything is sampled, forks, and works; parent and child say their PID and CPU time.

starts.py SECONDS of CPU time, for each
"""
import os
import sys
import time


def burn(until):
    while time.process_time() < until:
        pass


def parent(seconds):
    burn(seconds)


def child(seconds):
    burn(seconds)


def main():
    seconds = float(sys.argv[1])
    pid = os.fork()
    (parent if pid else child)(seconds)
    sys.stdout.write("%s %d %.3f\n" % ("parent" if pid else "child", os.getpid(), time.process_time()))
    sys.stdout.flush()
    if pid:
        os.waitpid(pid, 0)


main()
