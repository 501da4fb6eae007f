# SPDX-License-Identifier: Apache-2.0
"""made_code.py LIBRARY SECONDS [named] [dumped] [registered] [changing] [replaced]: calls code that it makes, as a JIT does. LIBRARY is build/native_calls.so.

The first and the last of its functions keep no frame pointer. named: /tmp/perf-PID.map has their names. dumped:
/tmp/jit-PID.dump has them. registered: they are registered with debuggers, as LLVM does it. changing: at the same addresses the last one has another frame every
now and then. replaced: "made first" and "made second" are in the place of the latter by turns, each registered while it is
there, and called by a function of that name.
"""

import ctypes
import json
import mmap
import os
import struct
import sys
import time

MS = 5
OUTER, FRAMED, FRAMELESS, SPIN = 0, 0x40, 0x80, 0xC0
SIZE = 0x40
CHANGES_S = 0.7  # so long each frame stays
REPLACED_S = 3  # likewise each function in the place of another one

library = ctypes.CDLL(sys.argv[1])
memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                   prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
base = ctypes.addressof(ctypes.c_char.from_buffer(memory))


def call(at, target):
    return b"\xe8" + (target - at - 5).to_bytes(4, "little", signed=True)


def put(at, code):
    memory[at : at + SIZE] = code.ljust(SIZE, b"\xcc")


def put_frameless(size):
    """push %rbx; sub $size, %rsp; call *%rsi; add $size, %rsp; pop %rbx; ret"""
    code = b"\x53\x48\x83\xec" + bytes([size]) + b"\xff\xd6\x48\x83\xc4" + bytes([size]) + b"\x5b\xc3"
    put(FRAMELESS, code)


# sub $8, %rsp; call FRAMED; add $8, %rsp; ret
put(OUTER, b"\x48\x83\xec\x08" + call(OUTER + 4, FRAMED) + b"\x48\x83\xc4\x08\xc3")
# push %rbp; mov %rsp, %rbp; sub $48, %rsp; call FRAMELESS; leave; ret
put(FRAMED, b"\x55\x48\x89\xe5\x48\x83\xec\x30" + call(FRAMED + 8, FRAMELESS) + b"\xc9\xc3")
put_frameless(0x20)
# mov $10000000, %ecx; dec %ecx in a loop; ret
put(SPIN, b"\xb9\x80\x96\x98\x00\x83\xe9\x01\x75\xfb\xc3")

through = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)(base + OUTER)
loop = ctypes.CFUNCTYPE(None)(base + SPIN)
nc_outer = ctypes.cast(library.nc_outer, ctypes.c_void_p).value


def work():
    for _ in range(4):
        through(MS, nc_outer)


def spin():
    loop()


class Entry(ctypes.Structure):
    _fields_ = [("next", ctypes.c_void_p), ("previous", ctypes.c_void_p), ("image", ctypes.c_void_p), ("size", ctypes.c_uint64)]


class List(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("action", ctypes.c_uint32), ("relevant", ctypes.c_void_p), ("first", ctypes.c_void_p)]


def make_image(functions):
    """An object file whose section of code has the address of the memory, from which its symbols count."""
    names, symbols = b"\0", bytes(24)
    for at, name in functions:
        symbols += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1, at, SIZE)
        names += name.encode() + b"\0"
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 1, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, 4, 0)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 0, 8, 6, base, 0, mmap.PAGESIZE, 0, 0, 16, 0)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 320, len(symbols), 3, 0, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 320 + len(symbols), len(names), 0, 0, 1, 0)
    return header + sections + symbols + names


def register(functions):
    """Makes it the only entry of the list. Returns what has to be kept meanwhile."""
    image = make_image(functions)
    kept = ctypes.create_string_buffer(image, len(image))
    entry = Entry(None, None, ctypes.addressof(kept), len(image))
    List.in_dll(library, "__jit_debug_descriptor").first = ctypes.addressof(entry)
    return entry, kept


def first(end):
    while time.time() < end:
        loop()


def second(end):
    while time.time() < end:
        loop()


def replace(seconds):
    end = time.time() + seconds
    kept = None
    while time.time() < end:
        for function in first, second:
            kept = register([(SPIN, "made " + function.__name__)]), kept[:1] if kept else None
            function(time.time() + REPLACED_S)


def write_map():
    with open("/tmp/perf-%d.map" % os.getpid(), "w", encoding="utf-8") as out:
        for at, name in ((OUTER, "made outer"), (FRAMED, "made_framed"), (FRAMELESS, "old"), (FRAMELESS, "made_frameless"), (SPIN, "made_spin")):
            out.write("%x %x %s\n" % (base + at, SIZE, name))


def write_dump():
    """As tools/perf/Documentation/jitdump-specification.txt of Linux says. Returns what has to be kept meanwhile."""
    with open("/tmp/jit-%d.dump" % os.getpid(), "wb+") as out:
        out.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, os.getpid(), time.monotonic_ns(), 0))
        for index, (at, name) in enumerate(((OUTER, "made outer"), (FRAMED, "made_framed"), (FRAMELESS, "old"), (FRAMELESS, "made_frameless"), (SPIN, "made_spin"))):
            code = struct.pack("<IIQQQQ", os.getpid(), os.getpid(), base + at, base + at, SIZE, index) + name.encode() + b"\0" + memory[at : at + SIZE]
            out.write(struct.pack("<IIQ", 0, 16 + len(code), time.monotonic_ns()) + code)
        out.flush()
        return mmap.mmap(out.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC)


def main(seconds, changing):
    begin = time.time()
    while time.time() < begin + seconds:
        if changing:
            put_frameless(0x20 + 0x20 * (int((time.time() - begin) / CHANGES_S) % 2))
        work()
        spin()


if __name__ == "__main__":
    if "named" in sys.argv[3:]:
        write_map()
    if "dumped" in sys.argv[3:]:
        dump = write_dump()
    if "registered" in sys.argv[3:]:
        registered = register([(OUTER, "made outer"), (FRAMED, "made_framed"), (FRAMELESS, "made_frameless"), (SPIN, "made_spin")])
    print(json.dumps({"pid": os.getpid()}))
    sys.stdout.flush()
    if "replaced" in sys.argv[3:]:
        replace(float(sys.argv[2]))
    main(float(sys.argv[2]), "changing" in sys.argv[3:])
