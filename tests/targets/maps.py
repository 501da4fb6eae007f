# SPDX-License-Identifier: Apache-2.0
"""
Maps a file executable, from argv[1], N times in processes of its own, which end with their parent, and works, or sleeps if
told so: a library that nobody asked for.
"""
import ctypes
import os
import signal
import sys
import time

PROT_READ, PROT_EXEC, MAP_PRIVATE = 1, 4, 2
PR_SET_PDEATHSIG = 1


def mapped(path):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    fd = os.open(path, os.O_RDONLY)
    if libc.mmap(None, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) in (None, ctypes.c_void_p(-1).value):
        sys.exit("cannot map %s: %s" % (path, os.strerror(ctypes.get_errno())))
    os.close(fd)


def work():
    end = time.time() + 120
    while time.time() < end:
        pass


children = int(sys.argv[2])
mapped(sys.argv[1])
for _ in range(children - 1):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        break
else:
    print("ready", flush=True)
if len(sys.argv) > 3:
    time.sleep(120)
else:
    work()
