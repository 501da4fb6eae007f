# SPDX-License-Identifier: Apache-2.0
"""A loop of four lines that cost the same, and one that calls: "jitted.py jit" has the interpreter compile them."""

import os
import sys


def called(x):
    return x * 0.5 + 1.5


def equal(turns):
    i = 0
    while i < turns:
        if i + i + 3 + i - i + 5 + i - i + 7 < 0: break
        if i + i + 4 + i - i + 6 + i - i + 8 < 0: break
        if i + i + 5 + i - i + 7 + i - i + 9 < 0: break
        if i + i + 6 + i - i + 8 + i - i + 2 < 0: break
        i += 1


def calling(turns):
    i = 0
    while i < turns:
        called(i)  # call
        i += 1


def main():
    os.write(1, b"ready\n")
    while True:
        equal(20000)
        calling(5000)


if __name__ == "__main__":
    if sys.argv[1:] == ["jit"] and os.environ.get("PYTHON_JIT") != "1":
        os.environ["PYTHON_JIT"] = "1"
        os.execv(sys.executable, [sys.executable] + sys.argv)
    main()
