# SPDX-License-Identifier: Apache-2.0
"""
Holds the GIL alone, for CPU time in argv: in the C library, in the interpreter; then as long asleep in C code. Prints the
seconds of each, and the CPU time in all.
"""

import ctypes
import json
import resource
import sys
import threading
import time

SECONDS = float(sys.argv[1])
libc = ctypes.PyDLL(None)
text = ctypes.create_string_buffer(b"x" * 10000000)


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def in_other_code():
    begin = used()
    while used() < begin + SECONDS:
        libc.memrchr(text, 1, len(text) - 1)
    return used() - begin


def in_interpreter():
    begin = used()
    while used() < begin + SECONDS:
        sum(range(20000))
    return used() - begin


def asleep():
    begin = time.time()
    libc.usleep(int(SECONDS * 1e6))
    return time.time() - begin


# 2.7 and 3.6 have a GIL from the first thread on.
thread = threading.Thread(target=len, args=("",))
thread.start()
thread.join()
time.sleep(0.3)  # until the profiler knows what this is
says = {"other": in_other_code(), "interpreter": in_interpreter(), "asleep": asleep()}
says["all"] = used()
sys.stdout.write(json.dumps(says) + "\n")
