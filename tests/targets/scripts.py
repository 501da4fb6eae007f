# SPDX-License-Identifier: Apache-2.0
"""scripts.py COUNT AT_ONCE COMMAND ARGUMENTS...: starts a command COUNT times, AT_ONCE at a time, each from exec on."""

import os
import sys

import churn


def start(argv, quiet):
    pid = os.fork()
    if not pid:
        os.dup2(quiet, 1)
        try:
            os.execvp(argv[0], argv)
        finally:
            os._exit(127)
    return pid


def main(count, at_once, argv):
    children = churn.Children()
    quiet = os.open(os.devnull, os.O_WRONLY)
    for _ in range(count):
        while len(children.started) >= at_once:
            children.wait()
        children.add(start(argv, quiet))
    return children


if __name__ == "__main__":
    churn.begin()
    churn.finish(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
