# SPDX-License-Identifier: Apache-2.0
"""The check that a text is the source of a function takes the standard library's own, and no other: tests/kernel/fits.c."""
import json
import os
import subprocess

import harness
import pytest
import pythons
from inline import Source, running

FITS = os.path.join(os.path.dirname(harness.PYBPF), "fits")
FUNCTIONS = 3000
# A compiler that folds constants ("ab" * 2) writes strings that no source has. In 160,000 functions there were 9.
MISFITS = 2

PROGRAM = Source("""
import types, warnings
warnings.simplefilter("ignore")
limit, made, told, named = int(sys.argv[1]), [], [], []
def each(code, path):
    made.append(code)
    if code.co_name[0] != "<": named.append(code)
    told.append("%x %s" % (id(code), path))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType): each(constant, path)
for top, folders, files in sorted(os.walk(os.path.dirname(os.__file__))):
    if "packages" in top or "/test" in top or "lib2to3" in top or len(told) > limit: continue
    for name in sorted(files):
        path = os.path.join(top, name)
        if not name.endswith(".py"): continue
        try:
            with open(path, "rb") as file: each(compile(file.read(), path, "exec", 0, True), path)
        except (SyntaxError, ValueError, UnicodeError): pass
ready(codes=told, named=len(named))
time.sleep(1000)
""")


def misfits(target, root, change=None):
    """What fits not, and how many were compared. change: what is done to each text, kept in a file for all."""
    codes = [line.split(" ", 1) for line in target.says["codes"]]
    given = "".join("%s %s\n" % (code, (change or str)(root + path)) for code, path in codes)
    done = subprocess.run([FITS, str(target.pid)], input=given, capture_output=True, text=True, timeout=harness.PATIENCE,
                          check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return told["misfits"], told["read"], len(codes)


@pytest.mark.parametrize("interpreter", [pytest.param(item, id=item.name) for item in pythons.interpreters()])
def test_standard_library(interpreter, tmp_path):
    changed = {}

    def moved(path):
        """The same text, one line further down."""
        if not os.path.exists(path):
            return path
        if path not in changed:
            copy = tmp_path / str(len(changed))
            with open(path, "rb") as source:
                copy.write_bytes(b"# one more line\n" + source.read())
            changed[path] = str(copy)
        return changed[path]

    with running(interpreter, PROGRAM, FUNCTIONS) as target:
        root = interpreter.root or ""
        found, read, every = misfits(target, root)
        assert every > FUNCTIONS and read > 0.98 * every, "%d of %d were read" % (read, every)
        assert len(found) <= MISFITS, found
        found, _, _ = misfits(target, root, moved)
        # Modules and what has no name begin anywhere.
        found = [name for _, name, _ in found if not name.rpartition(".")[2].startswith("<")]
        assert len(found) > 0.98 * target.says["named"], "%d of %d" % (len(found), target.says["named"])
