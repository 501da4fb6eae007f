# SPDX-License-Identifier: Apache-2.0
"""causes.py KIND [FILE]: waits of KIND in a function of that name, again and again. FILE: on a slow file system."""

import ctypes
import fcntl
import json
import mmap
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

FOREVER = 100000
kind = sys.argv[1]
says = {"pid": os.getpid()}
begin = [signal.SIGUSR1]


def wait_to_begin():
    if "later" in sys.argv:
        signal.sigwait(begin)


def sendfile_to_socket():
    left, right = socket.socketpair()
    reader = threading.Thread(target=lambda: [None for _ in iter(lambda: right.recv(1 << 20), b"")])
    reader.daemon = True
    reader.start()

    def wait_sendfile():
        while True:
            with open(sys.argv[2], "rb") as file:
                os.sendfile(left.fileno(), file.fileno(), 0, 65536)

    return wait_sendfile


def send_of_mapped_file():
    left, right = socket.socketpair()
    reader = threading.Thread(target=lambda: [None for _ in iter(lambda: right.recv(1 << 20), b"")])
    reader.daemon = True
    reader.start()

    def wait_send():
        while True:
            with open(sys.argv[2], "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
                left.sendall(mapped)
                mapped.close()

    return wait_send


def copy_to_fast_disk():
    fast = os.path.join(tempfile.mkdtemp(), "fast")

    def wait_copy():
        while True:
            shutil.copyfile(sys.argv[2], fast)

    return wait_copy


def descriptor_of(pid):
    """pidfd_open(), which Python has since 3.9."""
    fd = ctypes.CDLL(None, use_errno=True).syscall(434, pid, 0)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    return fd


def wait_for_descriptor(fd):
    def wait_pidfd():
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll()

    return wait_pidfd


def child_by_descriptor():
    child = subprocess.Popen(["sleep", "1000"])
    says["child"] = child.pid
    return wait_for_descriptor(descriptor_of(child.pid))


def other_by_descriptor():
    says["other"] = os.getppid()
    return wait_for_descriptor(descriptor_of(os.getppid()))


def child_by_number():
    child = subprocess.Popen(["sleep", "1000"])
    says["child"] = child.pid

    def wait_child():
        os.waitpid(child.pid, 0)

    return wait_child


CLONE_VFORK, SIGCHLD = 0x4000, 17  # include/uapi/linux/sched.h; x86-64 and arm64
CLONE3 = 435
PR_SET_PDEATHSIG, SIGKILL = 1, 9


def vfork_by(number, *arguments):
    """Without CLONE_VM the child has its memory for itself, and can run Python."""
    libc = ctypes.CDLL(None)

    def wait_vfork():
        wait_to_begin()
        if not libc.syscall(number, *arguments):
            libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
            time.sleep(FOREVER)

    return wait_vfork


def vfork_by_clone():
    return vfork_by(220 if os.uname().machine == "aarch64" else 56, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)


def vfork_by_clone3():
    """struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls."""
    arguments = ctypes.create_string_buffer(struct.pack("8Q", CLONE_VFORK, 0, 0, 0, SIGCHLD, 0, 0, 0))
    return vfork_by(CLONE3, arguments, 64)


def fork_that_waits():
    """It tells a reader of a userfaultfd, which does not read (include/uapi/linux/userfaultfd.h)."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(282 if os.uname().machine == "aarch64" else 323, os.O_CLOEXEC)
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(fd, 0xC018AA3F, bytearray(struct.pack("3Q", 0xAA, 1 << 1, 0)))  # UFFDIO_API, UFFD_FEATURE_EVENT_FORK
    fcntl.ioctl(fd, 0xC020AA00, bytearray(struct.pack("4Q", address, mmap.PAGESIZE, 1, 0)))  # UFFDIO_REGISTER, missing

    def wait_fork():
        wait_to_begin()
        return os.fork(), memory

    return wait_fork


def lock_with_limit():
    lock = threading.Lock()
    lock.acquire()

    def wait_lock():
        lock.acquire(True, FOREVER)

    return wait_lock


def poll_with_limit():
    read, _ = os.pipe()

    def wait_poll():
        poll = select.poll()
        poll.register(read, select.POLLIN)
        poll.poll(FOREVER * 1000)

    return wait_poll


def polls_with_limit():
    read, _ = os.pipe()
    other, _ = os.pipe()

    def wait_polls():
        poll = select.poll()
        poll.register(read, select.POLLIN)
        poll.register(other, select.POLLIN)
        poll.poll(FOREVER * 1000)

    return wait_polls


def connection(limit=None):
    """The ends of a connection, whose port is told."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1)
    client = socket.create_connection(listening.getsockname(), limit)
    says["port"] = listening.getsockname()[1]
    return client, listening.accept()[0]


def receive_with_limit():
    """In a thread with a name."""
    client, server = connection(FOREVER)

    def wait_receive():
        client.recv(1)
        server.close()

    def wait_thread():
        thread = threading.Thread(target=wait_receive, name="asks-for-it")
        thread.start()
        thread.join()

    return wait_thread


def clients():
    """One thread for each of many connections of a server whose port is not one that clients get."""
    listening = socket.socket()
    for port in range(20000, 30000):
        try:
            listening.bind(("127.0.0.1", port))
            break
        except OSError:
            pass
    listening.listen(100)
    says["port"] = port
    ends = []
    for _ in range(20):
        ends.append(socket.create_connection(listening.getsockname()))
        ends.append(listening.accept()[0])

    def wait_client(end):
        while True:
            end.recv(1)

    def wait_threads():
        for end in ends[1::2]:
            threading.Thread(target=wait_client, args=(end,)).start()
        while True:
            time.sleep(0.05)
            for end in ends[0::2]:
                end.send(b"x")

    return wait_threads


def ready():
    """An epoll set, of which now a connection, now a pipe, and now nothing is ready."""
    client, server = connection()
    reads, writes = os.pipe()
    chosen = select.epoll()
    chosen.register(client.fileno(), select.EPOLLIN)
    chosen.register(reads, select.EPOLLIN)
    turns = threading.Semaphore(0)

    def answer():
        while True:
            for send in (lambda: server.send(b"x"), lambda: os.write(writes, b"x")):
                turns.acquire()
                time.sleep(0.02)
                send()

    def wait_set():
        thread = threading.Thread(target=answer)
        thread.daemon = True
        thread.start()
        while True:
            for take in (lambda: client.recv(1), lambda: os.read(reads, 1)):
                turns.release()
                while not chosen.poll(5):
                    pass
                take()
            chosen.poll(0.01)

    return wait_set


def polled_set():
    """An epoll set that is polled as any other descriptor."""
    reads, _ = os.pipe()
    chosen = select.epoll()
    chosen.register(reads, select.EPOLLIN)

    def wait_set():
        poll = select.poll()
        poll.register(chosen.fileno(), select.POLLIN)
        poll.poll()

    return wait_set


def polled_set_in_turns():
    """The same, ended again and again by a pipe."""
    reads, writes = os.pipe()
    chosen = select.epoll()
    chosen.register(reads, select.EPOLLIN)

    def answer():
        while True:
            time.sleep(0.02)
            os.write(writes, b"x")

    def wait_set():
        thread = threading.Thread(target=answer)
        thread.daemon = True
        thread.start()
        poll = select.poll()
        poll.register(chosen.fileno(), select.POLLIN)
        while True:
            poll.poll()
            os.read(reads, 1)

    return wait_set


def netlink():
    """Receives from no groups: nothing arrives."""
    local = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    local.bind((0, 0))

    def wait_netlink():
        local.recv(1)

    return wait_netlink


def packet():
    """Receives no protocol: nothing arrives."""
    local = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)

    def wait_packet():
        local.recv(1)

    return wait_packet


def nap():
    def wait_sleep():
        time.sleep(FOREVER)

    return wait_sleep


def close_that_lingers():
    """The other side takes nothing, and what is sent lingers."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1)
    client = socket.create_connection(listening.getsockname())
    server = listening.accept()[0]
    client.setblocking(False)
    try:
        while client.send(b"x" * 65536):
            pass
    except BlockingIOError:
        pass
    client.setblocking(True)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 1000))

    def wait_close():
        client.close()
        server.close()

    return wait_close


def splice():
    """From an empty pipe to an empty one."""
    libc, (reads, _), (_, writes) = ctypes.CDLL(None), os.pipe(), os.pipe()

    def wait_splice():
        libc.splice(reads, None, writes, None, 100, 0)

    return wait_splice


def datagram():
    local = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    local.bind(("127.0.0.1", 0))
    says["port"] = local.getsockname()[1]

    def wait_datagram():
        local.recv(1)

    return wait_datagram


def long_name():
    """Waits for the socket of a peer."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, sys.argv[2].rjust(80, "x"))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(1)
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    server = listening.accept()[0]
    says["path"] = path

    def wait_name():
        client.recv(1)
        server.close()

    return wait_name


def work():
    def compute():
        while True:
            sum(range(1000))

    return compute


if "later" in sys.argv:
    signal.pthread_sigmask(signal.SIG_BLOCK, begin)
wait = globals()[kind]()
sys.stdout.write(json.dumps(says) + "\n")
sys.stdout.flush()
wait()
