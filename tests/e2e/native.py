# SPDX-License-Identifier: Apache-2.0
"""The libraries of tests/targets/native*.c, as each Python sees them."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import harness
import pythons

BUILD = harness.TOP / "build"


def library(interpreter, name="native"):
    """Its path, for a Python that may live in another root file system."""
    made = BUILD / (name + ".so")
    assert made.exists(), "there is no %s: run make test-programs" % made
    if not interpreter.root:
        return str(made)
    place = "/%s/%s-%s.so" % (pythons.ROOT_TARGETS, name, hashlib.sha256(made.read_bytes()).hexdigest()[:16])
    path = Path(interpreter.root + place)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as copy:
            shutil.copyfile(made, copy.name)
        os.chmod(copy.name, 0o755)
        os.rename(copy.name, path)
    return place


def why_not(interpreter):
    """Why this Python cannot load it; empty if it can."""
    use = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    done = subprocess.run([*interpreter.argv, "-c", use, library(interpreter)], capture_output=True, text=True)
    return (done.stderr.strip().split("\n") or [""])[-1] if done.returncode else ""
