# SPDX-License-Identifier: Apache-2.0
"""contradicts.py SECONDS: burns CPU, for so long with an address in _PyRuntime where no interpreter can lie."""

import ctypes
import json
import os
import sys
import time

SEARCHED, WORD = 2048, ctypes.sizeof(ctypes.c_void_p)
NO_ADDRESS = 0x1234567


def places():
    """Where _PyRuntime has the first interpreter's address."""
    head = ctypes.pythonapi.PyInterpreterState_Head
    head.restype = ctypes.c_void_p
    runtime = (ctypes.c_void_p * (SEARCHED // WORD)).in_dll(ctypes.pythonapi, "_PyRuntime")
    first = head()
    return runtime, first, [at for at in range(SEARCHED // WORD) if runtime[at] == first]


def burn():
    sum(range(5000))


def main(seconds):
    runtime, first, found = places()
    for at in found:
        runtime[at] = NO_ADDRESS
    sys.stdout.write(json.dumps({"pid": os.getpid(), "places": len(found)}) + "\n")
    sys.stdout.flush()
    end = time.time() + seconds
    while time.time() < end:
        burn()
    for at in found:
        runtime[at] = first
    end = time.time() + 60
    while time.time() < end:
        burn()


if __name__ == "__main__":
    main(float(sys.argv[1]))
