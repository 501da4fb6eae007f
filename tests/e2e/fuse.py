# SPDX-License-Identifier: Apache-2.0
"""A file system in user space with one file, whose server can be told not to answer any more, or late.

    with fuse.mounted(folder, content) as server:
        (folder / "file")
        server.silence()
        server.delay(0.3)

The part of the kernel's protocol (include/uapi/linux/fuse.h, version 7.31) that opening, mapping and reading takes.
"""

import collections
import contextlib
import ctypes
import mmap
import os
import pathlib
import select
import signal
import struct
import subprocess
import sys
import time

HEAD = struct.Struct("<IIQQIIII")  # len, opcode, unique, nodeid, uid, gid, pid, padding
ANSWER = struct.Struct("<IiQ")  # len, error, unique
ATTR = struct.Struct("<QQQQQQIIIIIIIIII")  # ino, size, blocks, 3 times, 3 nanoseconds, mode, nlink, uid, gid, ...
LOOKUP, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR, INTERRUPT, FORGET = 1, 3, 14, 15, 18, 25, 26, 27, 36, 2
ROOT, FILE = 1, 2
NAME = b"file"
ENOENT, ENOSYS = 2, 38
MS_NOSUID, MS_NODEV, MNT_DETACH = 2, 4, 2

libc = ctypes.CDLL(None, use_errno=True)


class Missing(Exception):
    """Why there can be no such file system here."""


def attributes(node, size):
    mode, links = (0o40755, 2) if node == ROOT else (0o100755, 1)
    return ATTR.pack(node, size, (size + 511) // 512, 1, 1, 1, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)


def answer(opcode, node, body, content):
    """The bytes for a question, or an error number."""
    if opcode == INIT:
        _, _, readahead, flags = struct.unpack_from("<IIII", body)
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, readahead, flags & 1, 12, 9, 65536, 1, 1, 0, 0, *([0] * 7))
    if opcode == LOOKUP:
        if node != ROOT or body.rstrip(b"\0") != NAME:
            return ENOENT
        return struct.pack("<QQQQII", FILE, 0, 0, 0, 0, 0) + attributes(FILE, len(content))
    if opcode == GETATTR:
        return struct.pack("<QII", 0, 0, 0) + attributes(node, len(content))
    if opcode in (OPEN, OPENDIR):
        return struct.pack("<QII", 0, 0, 0)
    if opcode == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return content[offset : offset + size]
    return b"" if opcode in (RELEASE, FLUSH) else ENOSYS


class Counts:
    """What both server and test see: which questions were answered, who gave up one, and who closed the file."""

    FIELDS = ("answered", "interrupted", "released", "signals")

    def __init__(self, fd):
        self.numbers = memoryview(mmap.mmap(fd, 4 * len(self.FIELDS))).cast("I")

    def raise_(self, name):
        self.numbers[self.FIELDS.index(name)] += 1

    def __getattr__(self, name):
        return self.numbers[self.FIELDS.index(name)]


class Questions:
    """Those that were not answered yet, in their order."""

    def __init__(self, fd, counts):
        self.fd, self.counts, self.waiting = fd, counts, collections.deque()
        self.woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)

    def take(self, timeout=None):
        """Waits for a question or a signal."""
        ready, _, _ = select.select([self.fd, self.woken], [], [], timeout)
        if self.woken in ready:
            os.read(self.woken, 64)
        if self.fd in ready:
            question = os.read(self.fd, 1 << 20)
            opcode = HEAD.unpack_from(question)[1]
            if opcode == INTERRUPT:
                self.counts.raise_("interrupted")
            elif opcode != FORGET:
                self.waiting.append(question)


def serve(fd, content, counts):
    state = {"silent": False, "late": 0.0}
    questions = Questions(fd, counts)

    def when(number, **change):
        signal.signal(number, lambda *_: (state.update(change), counts.raise_("signals")))

    when(signal.SIGUSR1, silent=True)
    when(signal.SIGUSR2, late=float(os.environ["LATE_S"]))
    when(signal.SIGHUP, late=0)
    while True:
        while not questions.waiting or state["silent"]:
            questions.take()
        question, begin = questions.waiting.popleft(), time.monotonic()
        while (left := begin + state["late"] - time.monotonic()) > 0:
            questions.take(left)
        _, opcode, unique, node, *_ = HEAD.unpack_from(question)
        said = answer(opcode, node, question[HEAD.size :], content)
        error, data = (-said, b"") if isinstance(said, int) else (0, said)
        with contextlib.suppress(OSError):
            os.write(fd, ANSWER.pack(ANSWER.size + len(data), error, unique) + data)
        counts.raise_("answered")
        if opcode == RELEASE:
            counts.raise_("released")


class Server:
    def __init__(self, process, counts):
        self.process, self.counts = process, counts

    def tell(self, number):
        before = self.counts.signals
        self.process.send_signal(number)
        until = time.monotonic() + 60
        while self.counts.signals == before and time.monotonic() < until:
            time.sleep(0.005)

    def silence(self):
        self.tell(signal.SIGUSR1)

    def delay(self):
        self.tell(signal.SIGUSR2)

    def hurry(self):
        """Answers at once again, and what waits, too."""
        self.tell(signal.SIGHUP)


@contextlib.contextmanager
def mounted(folder, content, late_s=0.3):
    """Mounts it at the folder, which it makes. Raises Missing."""
    try:
        fd = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        raise Missing(f"/dev/fuse: {error.strerror}") from error
    folder.mkdir()
    folder.chmod(0o755)
    options = f"fd={fd},rootmode=40755,user_id=0,group_id=0,allow_other,default_permissions"
    if libc.mount(b"pybpf-test", os.fsencode(folder), b"fuse", MS_NOSUID | MS_NODEV, options.encode()):
        error = os.strerror(ctypes.get_errno())
        os.close(fd)
        raise Missing(f"mount -t fuse: {error}")
    source = folder.parent / "content"
    source.write_bytes(content)
    counts = os.memfd_create("counts")
    os.ftruncate(counts, mmap.PAGESIZE)
    process = subprocess.Popen(
        [sys.executable, __file__, str(fd), str(source), str(counts)],
        pass_fds=[fd, counts],
        env={**os.environ, "LATE_S": str(late_s)},
    )
    os.close(fd)
    try:
        os.stat(folder / os.fsdecode(NAME))  # the server answers, and so takes signals
        yield Server(process, Counts(counts))
    finally:
        # The kernel ends what waits for an answer when the last descriptor is closed.
        process.kill()
        process.wait()
        os.close(counts)
        libc.umount2(os.fsencode(folder), MNT_DETACH)


if __name__ == "__main__":
    serve(int(sys.argv[1]), pathlib.Path(sys.argv[2]).read_bytes(), Counts(int(sys.argv[3])))
