# SPDX-License-Identifier: Apache-2.0
"""Threads that hash, compress, ask sqlite and calculate, with the GIL released: they keep their Python frames.

released.py FOLDER: where numpy is, if there is one for this Python.
"""

import hashlib
import os
import sys
import threading

import start

try:
    import zlib
except ImportError:  # a build without it
    zlib = None
try:
    import sqlite3
except ImportError:
    sqlite3 = None

THROUGH = ("hashlib.py",)  # without OpenSSL, and in versions that have it in Python
STACKS = ["hashing hash_it", "packing zip_it", "asking query_it", "calculating sort_it", "calculating multiply_it"]
THREADED = True
WHEEL = "numpy"
WITHOUT = True
LEAST = 0.99  # of the samples have Python frames
TEXT = b"".join(b"%d" % (number * number) if str is not bytes else str(number * number) for number in range(20000))
COUNT = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select sum(i) from n"


def hash_it():
    if hasattr(hashlib, "pbkdf2_hmac"):
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 5000)
    else:
        hashlib.sha256(TEXT).digest()


def hashing():
    hash_it()


def zip_it():
    zlib.compress(TEXT, 9)


def packing():
    zip_it()


def query_it(cursor):
    cursor.execute(COUNT).fetchall()


def asking():
    if not hasattr(LOCAL, "cursor"):
        LOCAL.cursor = sqlite3.connect(":memory:").cursor()
    query_it(LOCAL.cursor)


def sort_it():
    ARRAY.copy().sort()


def multiply_it():
    MATRIX.dot(MATRIX)


def calculating():
    sort_it()
    multiply_it()


LOCAL = threading.local()

if __name__ == "__main__":
    if sys.argv[1:] != [""]:
        sys.path.append(sys.argv[1])
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # its threads would not run Python
        import numpy

        ARRAY = numpy.arange(300000) * 7919 % 300007
        MATRIX = numpy.ones((300, 300))
    start.forever(
        hashing, *[packing] * bool(zlib) + [asking] * bool(sqlite3) + [calculating] * ("numpy" in sys.modules)
    )
