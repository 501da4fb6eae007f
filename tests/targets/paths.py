# SPDX-License-Identifier: Apache-2.0
"""Stacks without end: each goes another way through two functions, so that hardly two are the same.

paths.py [DEPTH]
"""
import json
import os
import random
import sys


def left(way):
    return way and step(way)


def right(way):
    return way and step(way)


def step(way):
    return left(way >> 1) if way & 1 else right(way >> 1)


def main():
    depth = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    sys.setrecursionlimit(depth * 3)
    sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    while True:
        step(random.getrandbits(depth) | 1 << depth)


main()
