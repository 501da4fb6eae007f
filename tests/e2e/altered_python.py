# SPDX-License-Identifier: Apache-2.0
"""Copies of an interpreter's file in which some bytes are others: a Python says what is not true of it."""

import contextlib
import dataclasses
import os
import re
import struct
import tempfile
from pathlib import Path

import pytest

import pythons

NEWEST = pythons.NEWEST
NEWER = (NEWEST[0], NEWEST[1] + 1)


@contextlib.contextmanager
def altered(change):
    """The newest Python that pybpf knows, of whose file change(bytes) returns what is in the copy."""
    interpreter = pythons.one(version=NEWEST, kind="static") or pytest.skip("there is no static Python %d.%d" % NEWEST)
    own = Path(pythons.file_of(interpreter.argv))
    root = interpreter.root or ""
    with tempfile.TemporaryDirectory(dir=root + "/tmp") as folder:
        os.chmod(folder, 0o755)
        copy = Path(folder) / own.name
        copy.write_bytes(change(own.read_bytes()))
        copy.chmod(0o755)
        argv = (*interpreter.argv[:-1], str(copy)[len(root) :])
        yield dataclasses.replace(interpreter, argv=argv)


def debug_offsets(data):
    """Where the file has its _Py_DebugOffsets, and the PY_VERSION_HEX there."""
    for found in re.finditer(b"xdebugpy", data):
        version = struct.unpack_from("<Q", data, found.end())[0]
        if version >> 16 == NEWEST[0] << 8 | NEWEST[1]:
            return found.start(), version
    raise ValueError("no debug offsets of Python %d.%d" % NEWEST)


def raise_version(data):
    """The file with another PY_VERSION_HEX in its debug offsets and in Py_Version, each an unsigned long.

    In PyABIInfo, which says what a built-in module was compiled for, it stands twice: it stays there.
    """
    version = debug_offsets(data)[1]
    old, new = struct.pack("<Q", version), struct.pack("<Q", version + (1 << 16))
    return re.sub(b"(?<!%s)%s" % (re.escape(old[:4]), re.escape(old)), lambda found: new, data)


def move_field(at, by):
    """A change of the field of the debug offsets that is at this offset in them."""

    def change(data):
        place = debug_offsets(data)[0] + at
        value = struct.unpack_from("<Q", data, place)[0] + by
        return data[:place] + struct.pack("<Q", value) + data[place + 8 :]

    return change
