# SPDX-License-Identifier: Apache-2.0
"""A file system in user space with one file, whose server can be told not to answer any more, or late.

    with fuse.mounted(folder, content) as server:
        (folder / "file")
        server.silence()
        server.delay(0.3)

The part of the kernel's protocol (include/uapi/linux/fuse.h, version 7.31) that opening, mapping and reading takes.
"""

import contextlib
import ctypes
import os
import pathlib
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


def serve(fd, content):
    state = {"silent": False, "late": 0.0}
    signal.signal(signal.SIGUSR1, lambda *_: state.update(silent=True))
    signal.signal(signal.SIGUSR2, lambda *_: state.update(late=float(os.environ["LATE_S"])))
    signal.signal(signal.SIGHUP, lambda *_: state.update(late=0))
    while True:
        try:
            question = os.read(fd, 1 << 20)
        except OSError:
            return
        _, opcode, unique, node, *_ = HEAD.unpack_from(question)
        if state["silent"] or opcode in (FORGET, INTERRUPT):
            continue
        time.sleep(state["late"])
        said = answer(opcode, node, question[HEAD.size :], content)
        error, data = (-said, b"") if isinstance(said, int) else (0, said)
        with contextlib.suppress(OSError):
            os.write(fd, ANSWER.pack(ANSWER.size + len(data), error, unique) + data)


class Server:
    def __init__(self, process):
        self.process = process

    def silence(self):
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)

    def delay(self):
        self.process.send_signal(signal.SIGUSR2)
        time.sleep(0.1)

    def hurry(self):
        self.process.send_signal(signal.SIGHUP)


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
    process = subprocess.Popen(
        [sys.executable, __file__, str(fd), str(source)], pass_fds=[fd], env={**os.environ, "LATE_S": str(late_s)}
    )
    os.close(fd)
    try:
        os.stat(folder / os.fsdecode(NAME))  # the server answers, and so takes signals
        yield Server(process)
    finally:
        # The kernel ends what waits for an answer when the last descriptor is closed.
        process.kill()
        process.wait()
        libc.umount2(os.fsencode(folder), MNT_DETACH)


if __name__ == "__main__":
    serve(int(sys.argv[1]), pathlib.Path(sys.argv[2]).read_bytes())
