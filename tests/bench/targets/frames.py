# SPDX-License-Identifier: Apache-2.0
"""frames.py FD SHAPE N: spins in a leaf, below <module> and N frames of one function (recursion) or N (functions)."""

import sys

import counted


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


if __name__ == "__main__":
    first, argument = {"recursion": recursion, "functions": functions}[sys.argv[2]](
        int(sys.argv[3]), counted.counter()
    )
    sys.setrecursionlimit(int(sys.argv[3]) + 1000)
    first(argument)
