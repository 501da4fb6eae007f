# SPDX-License-Identifier: Apache-2.0
"""programs.py KIND: a process that becomes another program, or another user's; says its CPU time by function."""

import json
import os
import subprocess
import sys
import threading
import time


def burn(seconds):
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass


def burn_before():
    burn(0.6)


def burn_after():
    burn(0.3)


def execute(kind):
    os.execv(sys.executable, [sys.executable, "-S", __file__, kind])


def children():
    """None of them runs Python."""
    for _ in range(20):
        subprocess.call(["sleep", "0.15"])
    return sum(os.times()[:4])


def executes():
    burn_before()
    execute("executed")


def executes_in_thread():
    """Another one than the leader, whose place it takes."""
    threading.Thread(target=executes).start()
    time.sleep(1000)


def executed():
    time.sleep(0.1)
    burn_after()
    return sum(os.times()[:4])


def changes_user():
    print(json.dumps({"pid": os.getpid()}), flush=True)
    time.sleep(0.5)
    os.setuid(65534)
    for _ in range(30):
        time.sleep(0.1)


def spawns():
    """The child opens its file between vfork and exec."""
    os.mkfifo(sys.argv[2])
    subprocess.Popen(["sh", "-c", "sleep 1; exec 9>%s" % sys.argv[2]])
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[2], 0, 0)]), 0)


print(json.dumps(globals()[sys.argv[1]]()))
