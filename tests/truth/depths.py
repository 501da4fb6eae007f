# SPDX-License-Identifier: Apache-2.0
"""Call chains whose depth and function are tied: f3 is only ever at depth 3, below f2."""

import start

STACKS = ["chains f1 f2 f3 f4 f5 f6 f7 f8", "chains g1 g2 g3 g4"]


def f1():
    f2(1)


def f2(a):
    f3(a, 2)
    return a


def f3(a, b):
    c = d = e = a
    f4(c, d, e)
    return b


def f4(*args):
    f5(**{"key": args})


def f5(key=None):
    h = i = j = k = m = n = key
    f6()
    return h, i, j, k, m, n


def f6():
    f7()
    f7()


def f7():
    f8()


def f8():
    for _ in range(8):
        pass


def g1():
    g2()
    g2()


def g2():
    g3()


def g3():
    g4()


def g4():
    pass


def chains():
    f1()
    g1()


if __name__ == "__main__":
    start.forever(chains)
