# SPDX-License-Identifier: Apache-2.0
"""Threads that compute in C with the GIL released, while another one holds it."""

import hashlib
import threading
import time

import expect

try:
    import zlib
except ImportError:
    zlib = None
try:
    import sqlite3
except ImportError:
    sqlite3 = None

BLOCK = b"0123456789abcdefghijklmnopqrstuvwxyz" * 60000
QUERY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
    "SELECT sum(i * i) FROM n"
)
started = []


def squeeze():
    started.append(1)
    while True:
        zlib.compress(BLOCK, 9)  # squeeze: hot


def digest():
    started.append(1)
    while True:
        hashlib.sha256(BLOCK).digest()  # digest: hot


def query():
    database = sqlite3.connect(":memory:")
    started.append(1)
    while True:
        database.execute(QUERY).fetchone()  # query: hot


def derive():
    started.append(1)
    while True:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 50000)  # derive: hot


def holder():
    started.append(1)
    while True:
        sum(range(2000))  # holder: hot


def in_c(function):
    """Is it there, and not one of the library's substitutes in Python?"""
    return type(function) is type(len)


def main():
    functions = [digest, holder]
    if zlib:
        functions.append(squeeze)
    if sqlite3:
        functions.append(query)
    if in_c(getattr(hashlib, "pbkdf2_hmac", None)):
        functions.append(derive)
    wanted = expect.describe(__file__, share=0.9)
    wanted.roots = set(function.__name__ for function in functions)
    wanted.through = ["threading.py"]
    wanted.more["threads"] = sorted(wanted.roots)
    for function in functions:
        worker = threading.Thread(target=function)
        worker.daemon = True
        worker.start()
    while len(started) < len(functions):
        time.sleep(0.01)
    expect.ready(wanted)
    expect.park()


if __name__ == "__main__":
    main()
