# SPDX-License-Identifier: Apache-2.0
"""family.py: this process, a child by fork that ends at once, its child that works, and a shell whose child works.

Prints the PIDs, as JSON, when all are there, and works until it is killed; then the others end.
"""

import json
import os
import subprocess
import sys


def work():
    while True:
        sum(range(2000))


def orphan(told):
    """A child whose parent ends when that is asked for."""
    parent = os.fork()
    if parent:
        return parent
    child = os.fork()
    if not child:
        work()
    os.write(told, ("%d\n" % child).encode())
    sys.stdin.readline()
    os._exit(0)


def main():
    here, told = os.pipe()
    leaving = orphan(told)
    left = int(os.read(here, 32))
    # The shell does not replace itself by its last command.
    shell = subprocess.Popen(["sh", "-c", '"$0" "$@"; true', sys.executable, "-c", "while True: sum(range(2000))"])
    print(json.dumps({"first": os.getpid(), "leaving": leaving, "left": left, "shell": shell.pid}))
    sys.stdout.flush()
    os.waitpid(leaving, 0)
    print(json.dumps({"ended": leaving}))
    sys.stdout.flush()
    work()


if __name__ == "__main__":
    main()
