# SPDX-License-Identifier: Apache-2.0
"""frames.py FD SHAPE N [LIBRARY]: spins in a leaf, below <module> and N frames of one function (recursion) or N (functions).

native: below 50 frames of one function and N of C, of build/native_calls.so, which is the LIBRARY.
"""

import ctypes
import sys

import counted

BELOW = 50


def recursion(number, memory):
    def dive(left):
        if left > 1:
            dive(left - 1)
        else:
            counted.spin_forever(memory)

    return dive, number


def functions(number, memory):
    names = {"f%d" % number: counted.spin_forever}
    source = ["def f%d(memory): f%d(memory)" % (n, n + 1) for n in range(number)]
    exec(compile("\n".join(source), "made.py", "exec"), names)
    return names["f0"], memory


def native(number, memory):
    library = ctypes.CDLL(sys.argv[4])

    def dive(left):
        if left > 1:
            dive(left - 1)
        library.nc_work(number, ctypes.byref(ctypes.c_ulong.from_buffer(memory)))

    return dive, BELOW


if __name__ == "__main__":
    shapes = {"recursion": recursion, "functions": functions, "native": native}
    first, argument = shapes[sys.argv[2]](int(sys.argv[3]), counted.counter())
    sys.setrecursionlimit(int(sys.argv[3]) + 1000)
    first(argument)
