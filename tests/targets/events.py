# Does each of several things a known number of times, in a function of its own, after a line on stdin.
import ctypes
import mmap
import os
import sys
import time

PAGES, NAPS, CALLS = 8000, 300, 5000
libc = ctypes.CDLL(None)


def touch(pages, size):
    for at in range(0, len(pages), size):
        pages[at : at + 1] = b"x"


def nap():
    for _ in range(NAPS):
        time.sleep(0.0005)


def ask():
    for _ in range(CALLS):
        os.getppid()


def main():
    pages = mmap.mmap(-1, PAGES * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    where = ctypes.c_char.from_buffer(pages)
    libc.madvise(ctypes.c_void_p(ctypes.addressof(where)), ctypes.c_size_t(len(pages)), 15)  # MADV_NOHUGEPAGE
    touch(pages, mmap.PAGESIZE)
    nap()
    ask()


sys.stdout.write('{"pages": %d, "naps": %d, "calls": %d}\n' % (PAGES, NAPS, CALLS))
sys.stdout.flush()
main()
