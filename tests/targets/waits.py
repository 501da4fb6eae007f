# SPDX-License-Identifier: Apache-2.0
"""Threads that wait in known functions, and measure how long by their own clock.

waits.py SECONDS [KIND...]: each kind has a thread that calls wait_KIND again and again, and where need be another one
that ends the waits. At the end one line of JSON: seconds in each function, calls, ports.
"""

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

clock = getattr(time, "monotonic", time.time)
END = clock() + float(sys.argv[1])
PAUSE = 0.02
says = {"pid": os.getpid(), "seconds": {}, "calls": {}, "ports": {}}


def wait_sleep():
    time.sleep(PAUSE)


held = threading.Lock()


def wait_lock():
    held.acquire()
    held.release()


def end_lock():
    held.acquire()
    time.sleep(PAUSE)
    held.release()
    time.sleep(0.001)


pipe = os.pipe()


def wait_pipe():
    os.read(pipe[0], 1)


def end_pipe():
    time.sleep(PAUSE)
    os.write(pipe[1], b"x")


listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(1)
says["ports"]["tcp"] = listening.getsockname()[1]
client = socket.create_connection(listening.getsockname())
server = listening.accept()[0]


def wait_tcp():
    client.recv(1)


def end_tcp():
    time.sleep(PAUSE)
    server.sendall(b"x")


patient = socket.create_connection(listening.getsockname(), 60)
impatient = listening.accept()[0]


def wait_timeout():
    """A socket with a timeout waits in poll(), not in recv()."""
    patient.recv(1)


def end_timeout():
    time.sleep(PAUSE)
    impatient.sendall(b"x")


unix = socket.socketpair()


def wait_unix():
    unix[0].recv(1)


def end_unix():
    time.sleep(PAUSE)
    unix[1].sendall(b"x")


datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("127.0.0.1", 0))
says["ports"]["udp"] = datagrams.getsockname()[1]


def wait_udp():
    datagrams.recv(1)


def end_udp():
    time.sleep(PAUSE)
    datagrams.sendto(b"x", datagrams.getsockname())


two = os.pipe(), os.pipe()


def wait_poll():
    poll = select.poll()
    poll.register(two[0][0], select.POLLIN)
    poll.register(two[1][0], select.POLLIN)
    poll.poll()
    os.read(two[0][0], 1)


def end_poll():
    time.sleep(PAUSE)
    os.write(two[0][1], b"x")


watched = os.pipe()
epoll = select.epoll()
epoll.register(watched[0], select.EPOLLIN)


def wait_epoll():
    epoll.poll()
    os.read(watched[0], 1)


def end_epoll():
    time.sleep(PAUSE)
    os.write(watched[1], b"x")


selected = os.pipe()


def wait_select():
    select.select([selected[0]], [], [])
    os.read(selected[0], 1)


def end_select():
    time.sleep(PAUSE)
    os.write(selected[1], b"x")


def wait_child():
    children.pop().wait()


children = []


def before_child():
    children.append(subprocess.Popen(["sleep", "0.05"]))


name = tempfile.mkstemp()[1]
one, other = open(name, "wb"), open(name, "wb")
os.unlink(name)


def wait_flock():
    fcntl.flock(one, fcntl.LOCK_EX)
    fcntl.flock(one, fcntl.LOCK_UN)


def end_flock():
    fcntl.flock(other, fcntl.LOCK_EX)
    time.sleep(PAUSE)
    fcntl.flock(other, fcntl.LOCK_UN)
    time.sleep(0.001)


def wait_nothing():
    """Is on a CPU all the time."""
    until = clock() + PAUSE
    while clock() < until:
        pass


def waits(kind):
    wait, before = globals()["wait_" + kind], globals().get("before_" + kind)
    seconds = calls = 0
    while clock() < END:
        if before:
            before()
        begin = clock()
        wait()
        seconds += clock() - begin
        calls += 1
        time.sleep(0.002)  # a lock that is free now is to be taken by the other one
    says["seconds"][kind] = seconds
    says["calls"][kind] = calls


def ends(end):
    # A little longer than who waits for it.
    while clock() < END + 10 * PAUSE:
        end()


kinds = sys.argv[2:] or sorted(name[5:] for name in globals() if name.startswith("wait_") and name != "wait_nothing")
waiting = [threading.Thread(target=waits, args=(kind,)) for kind in kinds]
for thread in waiting:
    thread.start()
for name in kinds:
    if "end_" + name in globals():
        thread = threading.Thread(target=ends, args=(globals()["end_" + name],))
        thread.daemon = True
        thread.start()
for thread in waiting:
    thread.join()
print(json.dumps(says))
sys.stdout.flush()
os._exit(0)  # the others are in the middle of something
