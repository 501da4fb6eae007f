# SPDX-License-Identifier: Apache-2.0
"""native_calls.py LIBRARY SECONDS: Python and C call each other in known ways. LIBRARY is build/native_calls.so.

The JSON on stdout has the chain of each way, from the Python function on.
"""

import ctypes
import json
import os
import signal
import sys
import time

MS = 5
DEPTH = 40
CALLBACK = ctypes.CFUNCTYPE(None)
COMPARATOR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

library = ctypes.CDLL(sys.argv[1])
holding = ctypes.PyDLL(sys.argv[1])  # the GIL


def plain():
    library.nc_outer(MS)


def inside():
    library.nc_inner(MS)


def back():
    function = CALLBACK(inside)
    library.nc_call_back(function)


def twice():
    function = CALLBACK(back)
    library.nc_call_back(function)


def deep():
    library.nc_deep(DEPTH, MS)


def variable():
    library.nc_variable(300, MS)


def aligned():
    library.nc_aligned(300, MS)


def large():
    library.nc_large(MS)


def signalled():
    library.nc_raise(MS)


def sort():
    library.nc_sort()


def before(a, b):
    library.nc_inner(1)
    return -1


def sort_by():
    library.nc_sort_by(COMPARATOR(before))


def on_signal(number, frame):
    library.nc_inner(MS)


def killed():
    os.kill(os.getpid(), signal.SIGUSR1)


def checked():
    holding.nc_check(ctypes.pythonapi.PyErr_CheckSignals)


def vforks():
    library.nc_vfork(MS)


class Computed(object):
    def __getattr__(self, name):
        return library.nc_inner(MS)


def attribute():
    Computed().anything


def produce():
    for _ in range(2):
        yield library.nc_inner(MS)


def generator():
    list(produce())


def threads():
    library.nc_thread(MS)


CHAINS = {
    "plain": ["nc_outer", "nc_middle", "nc_inner", "nc_burn"],
    "back": ["nc_call_back", "inside", "nc_inner", "nc_burn"],
    "twice": ["nc_call_back", "back", "nc_call_back", "inside", "nc_inner", "nc_burn"],
    "deep": ["nc_deep"] * (DEPTH + 1) + ["nc_burn"],
    "variable": ["nc_variable", "nc_burn"],
    "aligned": ["nc_aligned", "nc_burn"],
    "large": ["nc_large", "nc_burn"],
    "signalled": ["nc_raise", "nc_handler", "nc_burn"],
    "sort": ["nc_sort", "nc_compare", "nc_burn"],
    "sort_by": ["nc_sort_by", "before", "nc_inner", "nc_burn"],
    "killed": ["on_signal", "nc_inner", "nc_burn"],
    "checked": ["nc_check", "on_signal", "nc_inner", "nc_burn"],
    "vforks": ["nc_vfork"],
    "attribute": ["__getattr__", "nc_inner", "nc_burn"],
    "generator": ["produce", "nc_inner", "nc_burn"],
}


def main(seconds):
    end = time.time() + seconds
    while time.time() < end:
        for name in sorted(CHAINS):
            globals()[name]()
        threads()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, on_signal)
    print(json.dumps({"pid": os.getpid(), "chains": CHAINS}))
    sys.stdout.flush()
    main(float(sys.argv[2]))
