# SPDX-License-Identifier: Apache-2.0
"""A chain of functions, the path of each of which is a str object in a page of its own of a mapped file.

slow_memory.py COUNT: writes such a file to stdout. slow_memory.py COUNT FILE: runs with it.
"""

import ctypes
import mmap
import os
import sys

PAGE = mmap.PAGESIZE
MADV_RANDOM = 1
count = int(sys.argv[1])


def content():
    for number in range(count):
        path = f"/nowhere/{number:04}/own.py"
        text = bytearray(ctypes.string_at(id(path), sys.getsizeof(path)))
        text[8:16] = bytes(8)  # ob_type, which is elsewhere in another process
        yield bytes(text).ljust(PAGE, b"\0")


if len(sys.argv) == 2:
    sys.stdout.buffer.writelines(content())
    sys.exit()

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
pages = libc.mmap(None, count * PAGE, mmap.PROT_READ, mmap.MAP_PRIVATE, os.open(sys.argv[2], os.O_RDONLY), 0)
assert pages != ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno())
libc.madvise(pages, count * PAGE, MADV_RANDOM)

source = "".join(f"def f{i}():\n  f{i + 1}()\n" for i in range(count)) + f"def f{count}():\n  while True: pass\n"
scope = {}
exec(compile(source, "own.py", "exec"), scope)
kept = []
for i in range(count):
    code = scope[f"f{i}"].__code__
    kept.append(code.co_filename)
    words = (ctypes.c_uint64 * (sys.getsizeof(code) // 8)).from_address(id(code))
    words[list(words).index(id(code.co_filename))] = pages + i * PAGE
print("ready", flush=True)
scope["f0"]()
