# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Lines that each take the same time: every one gets its share, and no other line any."""
import expect

N = 4000


def straight():
    sum(range(N))  # straight: hot
    a = sum(range(N))  # straight: hot

    b = [sum(range(N)), a][0]  # straight: hot
    if sum(range(N)) == b:  # straight: hot
        b = a + sum(range(N))  # straight: hot
    return b - sum(range(N))  # straight: hot


def closure():
    cell = 0

    def rung():
        for _ in (1,):
            sum(range(N))  # closure.<locals>.rung: hot
            try:
                if sum(range(N)) < cell:  # closure.<locals>.rung: hot
                    return None
            finally:
                sum(range(N))  # closure.<locals>.rung: hot
        # Far away, so that the line table needs a large step.  fmt: off






































































































































        return sum(range(N))  # closure.<locals>.rung: hot

    return rung


def main():
    rung = closure()
    while True:
        straight()  # main > straight
        rung()  # main > closure.<locals>.rung


if __name__ == "__main__":
    expect.ready(expect.describe(__file__, share=0.9))
    main()  # <module> > main
