# SPDX-License-Identifier: Apache-2.0
"""Threads that stand still, each in a wait that its function is named after, three calls deep; says where each stands."""

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

import expect

held = threading.Lock()
held.acquire()
reading, writing = os.pipe()
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(5)
client = socket.create_connection(server.getsockname())
accepted, _ = server.accept()
path = os.path.join(tempfile.mkdtemp(), "s")
unix = socket.socket(socket.AF_UNIX)
unix.bind(path)
unix.listen(5)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
epoll = select.epoll()
epoll.register(reading, select.EPOLLIN)
locked = open(path + ".lock", "w")
again = open(path + ".lock", "w")
fcntl.flock(locked, fcntl.LOCK_EX)
# It ends with this process, whose end of the pipe is the only one.
sleeper = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=open(os.devnull, "w"))


def stand_sleep():
    time.sleep(1000)


def stand_lock():
    held.acquire()


def stand_pipe():
    os.read(reading, 1)


def stand_tcp():
    client.recv(1)


def stand_accept():
    server.accept()


def stand_unix():
    unix.accept()


def stand_udp():
    udp.recv(1)


def stand_epoll():
    epoll.poll(1000)


def stand_select():
    select.select([reading, client], [], [], 1000)


def stand_flock():
    fcntl.flock(again, fcntl.LOCK_EX)


def stand_child():
    sleeper.wait()


def middle(work):
    work()


def outer(work):
    middle(work)


def main():
    works = [work for name, work in sorted(globals().items()) if name.startswith("stand_") and name != "stand_sleep"]
    threads = [threading.Thread(target=outer, args=(work,), name="t-" + work.__name__[6:]) for work in works]
    for thread in threads:
        thread.daemon = True
        thread.start()
    time.sleep(0.3)  # all of them stand
    frames = sys._current_frames()
    stacks = dict((thread.name, expect.chain(frames[thread.ident])) for thread in threads)
    print(json.dumps({"pid": os.getpid(), "stacks": stacks, "port": server.getsockname()[1], "udp": udp.getsockname()[1], "child": sleeper.pid, "unix": path}))
    sys.stdout.flush()
    outer(stand_sleep)


if __name__ == "__main__":
    main()
