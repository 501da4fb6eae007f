# SPDX-License-Identifier: Apache-2.0
"""turns.py COMMANDS [FILE]: starts the commands of a JSON list of argument lists in turn, once FILE is there."""

import json
import os
import sys
import time

import churn
import scripts


def main(commands):
    children = churn.Children()
    quiet = os.open(os.devnull, os.O_WRONLY)
    for argv in commands:
        children.add(scripts.start(argv, quiet))
        children.wait()
    return children


if __name__ == "__main__":
    if len(sys.argv) > 2:  # in a container, of whose session it is the leader
        churn.say(pid=os.getpid())
        while not os.path.exists(sys.argv[2]):
            time.sleep(0.02)
    else:
        churn.begin()
    churn.finish(main(json.loads(sys.argv[1])))
