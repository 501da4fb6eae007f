# SPDX-License-Identifier: Apache-2.0
"""vanish.py HOW: copies its own Python, runs spin.py with the copy, and spoils the copy's place.

deleted: nothing is there any more. fifo: who opens it waits for a writer. symlink: it leads to a program of the host.
"""

import os
import shutil
import subprocess
import sys

SPOIL = {
    "deleted": lambda path: None,
    "fifo": os.mkfifo,
    "symlink": lambda path: os.symlink("/../../../../../../../../usr/bin/python3", path),
}


def main(how):
    copy = "/opt/python-" + how
    shutil.copy(sys.executable, copy)
    argv = [copy, os.path.join(os.path.dirname(os.path.abspath(__file__)), "spin.py")]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE)
    said = child.stdout.readline()  # it has begun, and needs the file no more
    os.unlink(copy)
    SPOIL[how](copy)
    sys.stdout.write(said.decode())
    sys.stdout.flush()
    child.wait()


if __name__ == "__main__":
    main(sys.argv[1])
