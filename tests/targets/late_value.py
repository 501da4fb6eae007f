# SPDX-License-Identifier: Apache-2.0
"""A thread with a variable that is in a mapped file, between threads that have none such.

late_value.py FILE: runs with it. Nothing here reads the variable's item, which takes as long as the file's server does.
"""

import ctypes
import mmap
import os
import sys
import threading
import time

OB_ITEM = 24  # of PyListObject, behind ob_refcnt, ob_type and ob_size
began = threading.Barrier(4)

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
file = os.open(sys.argv[1], os.O_RDONLY)
page = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_PRIVATE, file, 0)
assert page != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())
os.close(file)  # which asks the server, too: not when it does not answer any more


def stand_plain():
    began.wait()
    time.sleep(1000)


def stand_late():
    late = [None]
    items = ctypes.c_uint64.from_address(id(late) + OB_ITEM)
    ctypes.c_uint64.from_address(items.value).value = page
    began.wait()
    time.sleep(1000)


for number, work in enumerate([stand_plain, stand_late, stand_plain]):
    threading.Thread(target=work, name="t-%d" % number, daemon=True).start()
began.wait()
print("ready", flush=True)
time.sleep(1000)
