# SPDX-License-Identifier: Apache-2.0
"""A thread in each state, which has the state's name; two of them, spin-1 and spin-2, take turns with the GIL."""

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time

lock = threading.Lock()
server = socket.socket()
reads, writes = os.pipe()
child = None


def spin():
    while True:
        sum(range(1000))


def take_lock():
    lock.acquire()


def accept():
    server.accept()


def read_pipe():
    os.read(reads, 1)


def poll():
    select.select([reads], [], [])


def wait_child():
    child.wait()


def sleep():
    time.sleep(1000)


if __name__ == "__main__":
    lock.acquire()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    for name, function in [
        ("lock", take_lock), ("network", accept), ("pipe", read_pipe), ("poll", poll), ("child", wait_child),
        ("sleep", sleep), ("spin-1", spin), ("spin-2", spin),
    ]:
        thread = threading.Thread(target=function, name=name)
        thread.daemon = True
        thread.start()
    print(json.dumps({"pid": os.getpid()}))
    sys.stdout.flush()
    time.sleep(1000)
