# SPDX-License-Identifier: Apache-2.0
"""numpy, pandas, greenlet, gevent and cffi for the Pythons that are profiled, from PyPI's wheels, in the cache folder of
tests/e2e/pythons.py.

One folder for each ABI; a Python that lives in another root file system has its own inside of that.
"""

import fcntl
import functools
import os
import shutil
import subprocess
from pathlib import Path

import pythons

PIP = ("/usr/bin/python3", "-m", "pip", "--disable-pip-version-check", "--retries", "1")
PLATFORMS = tuple("manylinux%s_x86_64" % libc for libc in ("_2_28", "_2_27", "_2_17", "2014", "2010", "1"))
WIDE = "import sys; sys.exit(sys.maxunicode < 0x10000)"
# Without a GIL a module that needs it brings it back, and warns.
USE = "import sys, warnings; sys.path.append(sys.argv[1]); warnings.simplefilter('error', RuntimeWarning); "
# What each folder has, and what shows that it can be used.
WHEELS = {
    "numpy": (("numpy",), "import numpy; numpy.ones(9).sort()"),
    "pandas": (("pandas", "numpy", "python-dateutil", "pytz", "tzdata", "six"), "import pandas; pandas.Series([1])"),
    "greenlet": (("greenlet",), "import greenlet; greenlet.greenlet(id).switch(1)"),
    "gevent": (("gevent", "greenlet", "zope.event", "zope.interface"), "import gevent; gevent.sleep(0)"),
    "cffi": (("cffi",), "import _cffi_backend"),
}


class Missing(Exception):
    """Why a Python does not have a wheel."""


def last_line(text):
    return (text.strip().split("\n") or [""])[-1][:200]


def abi(interpreter):
    name = "cp%d%d" % interpreter.version
    if interpreter.kind == "free-threaded":
        return name + "t"
    if interpreter.version == (2, 7):
        wide = subprocess.run([*interpreter.argv, "-c", WIDE]).returncode == 0
        return name + ("mu" if wide else "m")
    return name + ("m" if interpreter.version < (3, 8) else "")


def install(folder, interpreter, packages):
    """The folder gets its name when it is whole."""
    making = folder.with_name(".making-" + folder.name)
    shutil.rmtree(making, ignore_errors=True)
    argv = [*PIP, "install", "--quiet", "--target", str(making), "--no-deps", "--only-binary", ":all:"]
    argv += ["--implementation", "cp", "--abi", abi(interpreter), "--python-version", "%d.%d" % interpreter.version]
    argv += ["--ignore-requires-python"]  # pip means the Python that it runs on itself
    argv += [word for platform in PLATFORMS for word in ("--platform", platform)]
    done = subprocess.run([*argv, *packages], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Missing("pip: " + last_line(done.stderr))
    os.rename(making, folder)


@functools.lru_cache(maxsize=None)
def find(interpreter, name):
    """(The wheel's folder as the interpreter sees it, "") or ("", why there is none)."""
    packages, use = WHEELS[name]
    base = Path(interpreter.root or pythons.cache())
    folder = base / name / abi(interpreter)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(folder.parent / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                install(folder, interpreter, packages)
    except Missing as missing:
        return "", str(missing)
    seen = "/" + str(folder.relative_to(base)) if interpreter.root else str(folder)
    use = USE + use
    done = subprocess.run([*interpreter.argv, "-c", use, seen], capture_output=True, text=True)
    return ("", last_line(done.stderr)) if done.returncode else (seen, "")
