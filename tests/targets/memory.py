# Touches a known number of bytes in each of several functions after a line on stdin, and gives some back.
import ctypes
import mmap
import sys

MIB = 1 << 20
SIZES = {"array": 40 * MIB, "mapping": 30 * MIB, "huge": 32 * MIB, "buffer": 50 * MIB, "freed": 20 * MIB}
MADV_HUGEPAGE, MADV_NOHUGEPAGE = 14, 15
libc = ctypes.CDLL(None)


def pages_of(size, advice):
    pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    where = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc.madvise(ctypes.c_void_p(where), ctypes.c_size_t(size), advice)
    return pages


def touch(pages):
    for at in range(0, len(pages), mmap.PAGESIZE):
        pages[at : at + 1] = b"x"
    return pages


def array():
    return bytearray(b"x") * SIZES["array"]


def mapping():
    return touch(pages_of(SIZES["mapping"], MADV_NOHUGEPAGE))


def huge():
    return touch(pages_of(SIZES["huge"], MADV_HUGEPAGE))


def buffer():
    pages = ctypes.create_string_buffer(SIZES["buffer"])
    ctypes.memset(pages, 1, SIZES["buffer"])
    return pages


def freed():
    pages = bytearray(b"x") * SIZES["freed"]
    del pages


def main():
    sys.stdin.readline()
    kept = [array(), mapping(), huge(), buffer()]
    freed()
    say("done")
    sys.stdin.readline()
    return kept


def say(what):
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


say("ready")
main()
