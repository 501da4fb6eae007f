# SPDX-License-Identifier: Apache-2.0
"""hostile.py TRICK: a process that lies about its frames to whoever reads its memory; needs 3.8.

It overwrites what its own frame consists of and then works on in that frame. The interpreter looks at
what was overwritten only when the frame returns, which it never does.
"""

import ctypes
import sys

import expect

POINTER = ctypes.sizeof(ctypes.c_void_p)
WILD = 0x7EADBEEF0000
KERNEL = 0xFFFFFFFF81000000
UNALIGNED = 0x10001


def word(address):
    return ctypes.c_size_t.from_address(address)


def previous_of(frame):
    """The address of the field that links a frame to its caller's."""
    if sys.version_info < (3, 11):
        return id(frame) + 3 * POINTER  # PyFrameObject.f_back
    inner = word(id(frame) + 3 * POINTER).value  # PyFrameObject.f_frame
    return inner + (6 if sys.version_info < (3, 12) else 1) * POINTER


def start_of(frame):
    """What a link to this frame holds."""
    if sys.version_info < (3, 11):
        return id(frame)
    return word(id(frame) + 3 * POINTER).value


def break_link(value):
    def apply(frame):
        word(previous_of(frame)).value = value

    return apply


def cycle(frame):
    word(previous_of(frame)).value = start_of(frame)


def long_cycle(frame):
    """The caller's link leads back to this frame."""
    word(previous_of(frame.f_back)).value = start_of(frame)


def code(frame):
    """The caller's frame, copied, with a code pointer that leads nowhere."""
    first = start_of(frame.f_back)
    size = 512
    fake = ctypes.create_string_buffer(ctypes.string_at(first, size), size)
    keep.append(fake)
    target = ctypes.addressof(fake)
    for offset in range(0, 160, POINTER):
        if word(target + offset).value & ~7 == id(frame.f_back.f_code):
            word(target + offset).value = WILD
    word(previous_of(frame)).value = target


def huge_length(string):
    """The length field of a str or bytes object: after reference count and type."""
    word(id(string) + 2 * POINTER).value = 1 << 60


def name(frame):
    code = frame.f_code
    huge_length(getattr(code, "co_qualname", code.co_name))
    if code.co_name is not getattr(code, "co_qualname", None):
        huge_length(code.co_name)


def table(frame):
    code = frame.f_code
    huge_length(getattr(code, "co_linetable", None) or code.co_lnotab)


keep = []
TRICKS = {
    "cycle": cycle,
    "long-cycle": long_cycle,
    "wild": break_link(WILD),
    "kernel": break_link(KERNEL),
    "unaligned": break_link(UNALIGNED),
    "code": code,
    "name": name,
    "table": table,
}


def liar(trick):
    expect.ready(wanted)
    trick(sys._getframe())
    while True:
        sum(range(20000))


def main():
    liar(TRICKS[sys.argv[1]])


if __name__ == "__main__":
    wanted = expect.describe(__file__)
    main()
