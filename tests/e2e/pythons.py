# SPDX-License-Identifier: Apache-2.0
"""The Pythons that are profiled: pyenv's, Debian's, and what tools/setup-pythons made."""

import functools
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Tuple

SUPPORTED = [(2, 7)] + [(3, minor) for minor in range(6, 16)]
NEWEST = SUPPORTED[-1]
TARGETS = Path(__file__).resolve().parent.parent / "targets"
ROOT_TARGETS = "pybpf-targets"  # where copies of the targets are inside a root file system
PROBE = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True)
class Interpreter:
    name: str
    version: Tuple[int, int]
    argv: Tuple[str, ...]
    kind: str  # shared, static, stripped, debug or free-threaded
    root: Optional[str] = None

    def command(self, target, *args, folder=TARGETS):
        """The command line that runs a file of tests/targets, or of another folder."""
        place = targets_in_root(folder) if self.root else str(folder)
        return [*self.argv, os.path.join(place, target), *args]

    def runs_here(self):
        """Can it run any file of this machine (not only copies of the targets)?"""
        return self.root is None


@functools.lru_cache(maxsize=None)
def targets_in_root(folder=TARGETS):
    """Where the copies are: by content, so that two work trees can be tested at the same time."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return "/%s/%s" % (ROOT_TARGETS, digest.hexdigest()[:16])


def copy_targets(folder=TARGETS):
    """Puts copies of the targets into every root file system that an interpreter lives in."""
    for root in {item.root for item in interpreters() if item.root}:
        place = root + targets_in_root(folder)
        if os.path.isdir(place):
            continue
        os.makedirs(os.path.dirname(place), exist_ok=True)
        making = tempfile.mkdtemp(dir=os.path.dirname(place))
        os.chmod(making, 0o755)
        for path in folder.glob("*.py"):
            shutil.copy(path, making)
        try:
            os.rename(making, place)
        except OSError:  # another session was faster
            shutil.rmtree(making)


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("PYBPF_TEST_CACHE") or Path(base) / "pybpf-tests")


def pyenv_root():
    if os.environ.get("PYENV_ROOT"):
        return Path(os.environ["PYENV_ROOT"])
    try:
        out = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=True).stdout
        return Path(out.strip())
    except (OSError, subprocess.CalledProcessError):
        return Path.home() / ".pyenv"


def file_of(argv):
    """The interpreter's own file, from here."""
    return os.path.realpath(argv[1] + argv[2] if argv[0] == "chroot" else argv[-1])


@functools.lru_cache(maxsize=None)
def answer(argv, code):
    """(exit status, stdout) of an interpreter that runs some code, whose answer depends on nothing else.

    It is kept in the cache folder for as long as the interpreter's file is the same: each process that collects tests asks
    some hundred such questions.
    """
    try:
        status = os.stat(file_of(argv))
    except OSError:
        return 127, ""
    key = hashlib.sha256(repr((argv, code, status.st_ino, status.st_size, status.st_mtime_ns)).encode()).hexdigest()
    path = cache() / "answers" / key
    if path.exists():
        number, _, out = path.read_text().partition("\n")
        return int(number), out
    try:
        done = subprocess.run([*argv, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 127, ""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as out:
        out.write("%d\n%s" % (done.returncode, done.stdout))
    os.rename(out.name, path)
    return done.returncode, done.stdout


def can_run(interpreter, code):
    return answer(interpreter.argv, code)[0] == 0


def probe(argv):
    """The version that an interpreter says it has, or None when it does not run."""
    try:
        return tuple(int(part) for part in answer(tuple(argv), PROBE)[1].split("."))
    except ValueError:
        return None


def has_module(interpreter, module):
    return can_run(interpreter, "import " + module)


def is_shared(path):
    """Does a program get its Python from a shared library?"""
    out = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return "libpython" in out


def make(name, argv, kind, root=None):
    version = probe(argv)
    return [Interpreter(name, version, tuple(argv), kind, root)] if version else []


def pyenv():
    found = []
    for home in sorted(glob.glob(str(pyenv_root() / "versions" / "*"))):
        path = os.path.join(home, "bin", "python")
        if os.access(path, os.X_OK):
            kind = "shared" if is_shared(path) else "static"
            found += make("pyenv-" + os.path.basename(home), [path], kind)
    return found


def debian():
    found = []
    for path in sorted(glob.glob("/usr/bin/python3.*")):
        if re.search(r"/python3\.\d+$", path):
            kind = "shared" if is_shared(path) else "static"
            found += make("system-" + os.path.basename(path), [path], kind)
        elif re.search(r"/python3\.\d+-dbg$", path):
            found += make("system-" + os.path.basename(path), [path], "debug")
    return found


def root_file_system():
    root = str(cache() / "sid")
    if os.geteuid() != 0 or not os.path.isdir(root):
        return []
    found = []
    for path in sorted(glob.glob(root + "/usr/bin/python3.*")):
        name = os.path.basename(path)
        match = re.fullmatch(r"python3\.\d+(-dbg)?", name)
        if match:
            argv = ["chroot", root, "/usr/bin/" + name]
            found += make("sid-" + name, argv, "debug" if match.group(1) else "static", root)
    return found


def built():
    found = []
    for path in sorted(glob.glob(str(cache() / "python3.*" / "bin" / "python"))):
        name = Path(path).parts[-3]
        kind = "free-threaded" if name.endswith("t") else "static"
        found += make("built-" + name, [path], kind)
    return found


def stripped():
    found = []
    for folder in sorted(glob.glob(str(cache() / "stripped" / "*"))):
        for path in glob.glob(folder + "/bin/python*"):
            argv = [path]
            if os.path.isdir(folder + "/lib"):
                argv = ["env", "LD_LIBRARY_PATH=" + folder + "/lib", "PYTHONHOME=" + folder, path]
            found += make("stripped-" + os.path.basename(folder), argv, "stripped")
    return found


@functools.lru_cache(maxsize=None)
def interpreters() -> List[Interpreter]:
    found = pyenv() + debian() + root_file_system() + built() + stripped()
    order = {"shared": 0, "static": 1, "debug": 2, "free-threaded": 3, "stripped": 4}
    return sorted(found, key=lambda item: (order[item.kind], item.version, item.name))


def missing() -> List[Tuple[str, str]]:
    """What the supported list names and this machine does not have."""
    found = interpreters()
    hint = "not in pyenv, not in /usr/bin, not made by tools/setup-pythons"
    versions = {item.version for item in found}
    lacks = [("Python %d.%d" % version, hint) for version in SUPPORTED if version not in versions]
    kinds = {item.kind for item in found}
    for kind in ("shared", "static", "stripped", "debug", "free-threaded"):
        if kind not in kinds:
            lacks.append(("a %s build" % kind, hint))
    names = {item.name for item in found}
    for name in ("python3.13t", "python3.14t", "python3.11-pie", "python3.13-musl"):
        if "built-" + name not in names:
            lacks.append((name, "not made by tools/setup-pythons"))
    return lacks


def one(version=None, kind=None, name=None):
    """The first interpreter that fits, or None."""
    for item in interpreters():
        if version not in (None, item.version) or kind not in (None, item.kind):
            continue
        if name in (None, item.name):
            return item
    return None


def of_each_version(items: List[Interpreter]) -> List[Interpreter]:
    """The first of them of each version, and the first free-threaded one."""
    chosen = {}
    for item in items:
        chosen.setdefault((item.version, item.kind == "free-threaded"), item)
    return list(chosen.values())
