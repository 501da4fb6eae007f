# After a line on stdin: touches memory in several ways, gives back known parts, and says which bytes each function keeps.
import ctypes
import json
import mmap
import os
import sys
import tempfile
import threading

MIB = 1 << 20
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
MAP_FIXED, MAP_POPULATE, MREMAP_MAYMOVE = 0x10, 0x8000, 1
MADV_DONTNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE = 4, 14, 15
SYS_BRK = 12  # x86-64
NOTHING = ctypes.c_void_p(-1).value

libc = ctypes.CDLL(None, use_errno=True)
pointer, size_t = ctypes.c_void_p, ctypes.c_size_t
libc.mmap.restype = libc.mremap.restype = pointer
libc.mmap.argtypes = [pointer, size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mremap.argtypes = [pointer, size_t, size_t, ctypes.c_int]
libc.munmap.argtypes = libc.mlock.argtypes = [pointer, size_t]
libc.madvise.argtypes = [pointer, size_t, ctypes.c_int]
libc.memset.argtypes = [pointer, ctypes.c_int, size_t]
libc.syscall.restype = ctypes.c_long
libc.syscall.argtypes = [ctypes.c_long, pointer]


def mapped(size, flags=0, advice=MADV_NOHUGEPAGE, where=None):
    at = libc.mmap(where, size, READ_WRITE, PRIVATE | flags, -1, 0)
    assert at != NOTHING
    assert flags or libc.madvise(at, size, advice) in (0, -1)  # -1: a kernel without huge pages
    return at


def kept():
    libc.memset(mapped(20 * MIB), 1, 20 * MIB)
    return 20 * MIB


def unmapped():
    for _ in range(100):
        at = mapped(MIB)
        libc.memset(at, 1, MIB)
        libc.munmap(at, MIB)
    return 0


def in_threads():
    threads = [threading.Thread(target=unmapped) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0


def half_unmapped():
    at = mapped(24 * MIB)
    libc.memset(at, 1, 24 * MIB)
    libc.munmap(at + 6 * MIB, 12 * MIB)
    return 12 * MIB


def not_needed():
    at = mapped(30 * MIB)
    libc.memset(at, 1, 30 * MIB)
    libc.madvise(at + 10 * MIB, 12 * MIB, MADV_DONTNEED)
    return 18 * MIB


def mapped_over():
    at = mapped(20 * MIB)
    libc.memset(at, 1, 20 * MIB)
    mapped(12 * MIB, MAP_FIXED, where=at)
    return 8 * MIB


def huge():
    at = mapped(34 * MIB, advice=MADV_HUGEPAGE)
    libc.memset(at, 1, 34 * MIB)
    libc.munmap(at, 14 * MIB)
    return 20 * MIB


def populated():
    at = mapped(16 * MIB, MAP_POPULATE)
    libc.munmap(at, 4 * MIB)
    return 12 * MIB


def locked():
    at = mapped(8 * MIB)
    assert libc.mlock(at, 8 * MIB) == 0
    return 8 * MIB


def moved():
    """Gives back a part after it has moved; extended() has touched the pages behind."""
    at = mapped(16 * MIB)
    libc.memset(at, 1, 16 * MIB)
    mapped(MIB, where=at + 16 * MIB)  # so that it cannot grow in its place
    new = libc.mremap(at, 16 * MIB, 40 * MIB, MREMAP_MAYMOVE)
    assert new not in (at, NOTHING)
    extended(new + 16 * MIB, 24 * MIB)
    libc.munmap(new, 4 * MIB)
    return 12 * MIB


def extended(at, size):
    libc.memset(at, 1, size)
    libc.munmap(at + 14 * MIB, 10 * MIB)


def shrunk():
    at = mapped(20 * MIB)
    libc.memset(at, 1, 20 * MIB)
    assert libc.mremap(at, 20 * MIB, 9 * MIB, 0) == at
    return 9 * MIB


def broken():
    """The end of the heap; nothing else may use malloc() for much in between."""
    at = libc.syscall(SYS_BRK, None)
    assert libc.syscall(SYS_BRK, at + 20 * MIB) == at + 20 * MIB
    libc.memset(at, 1, 20 * MIB)
    assert libc.syscall(SYS_BRK, at + 8 * MIB) == at + 8 * MIB
    return 8 * MIB


def read():
    at = mapped(14 * MIB)
    libc.memset(at, 1, MIB)
    with open("/dev/zero", "rb", 0) as zeros:
        assert zeros.readinto((ctypes.c_char * (14 * MIB)).from_address(at)) == 14 * MIB
    libc.munmap(at, 2 * MIB)
    return 12 * MIB


def shared():
    pages = mmap.mmap(-1, 10 * MIB)
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(pages)), 1, 10 * MIB)
    keep.append(pages)
    return 10 * MIB


def of_a_file():
    with tempfile.TemporaryFile() as file:
        for _ in range(1024):
            file.write(b"x" * (MIB // 64))
        file.flush()
        at = libc.mmap(None, 16 * MIB, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    for page in range(0, 16 * MIB, mmap.PAGESIZE):
        ctypes.c_char.from_address(at + page).value
    libc.munmap(at + 8 * MIB, 8 * MIB)
    return 8 * MIB


def objects():
    """Bytes of Python that grow: the C library moves them."""
    grown = bytearray()
    for _ in range(160):
        grown += b"x" * 100000
    keep.append(grown)
    return len(grown)


def forked():
    at = mapped(16 * MIB)
    libc.memset(at, 1, 16 * MIB)
    child = os.fork()
    if not child:
        libc.memset(at, 2, 8 * MIB)
        os._exit(0)
    os.waitpid(child, 0)
    libc.memset(at, 3, 16 * MIB)
    libc.munmap(at, 6 * MIB)
    return 10 * MIB


keep = []


def main():
    say("ready")
    sys.stdin.readline()
    held = {}
    for way in (kept, unmapped, in_threads, half_unmapped, not_needed, mapped_over, huge, populated, locked, moved):
        held[way.__name__] = way()
    held["extended"] = 14 * MIB
    for way in (shrunk, read, shared, of_a_file, objects, forked, unmapped):
        held[way.__name__] = way()
    if os.uname()[4] == "x86_64" and "musl" not in sys.argv:
        held["broken"] = broken()
    say(json.dumps(held))
    sys.stdin.readline()


def say(what):
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


main()
