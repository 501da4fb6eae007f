# SPDX-License-Identifier: Apache-2.0
"""What all artefacts have in common: the facts of the build, and archives that are the same bytes each time."""
import gzip
import io
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SUMMARY = "sampling profiler for Python processes"
# No line longer than 79 characters: Debian's tools show it as it is.
DESCRIPTION = """pybpf shows where CPython processes spend their CPU time, or all of their time
with what they wait for: one process, all processes of a container, or every
process on the machine. A BPF program walks the interpreter's frames in the
kernel, so that processes are neither stopped nor changed. It needs Linux 5.10
or newer, and root or three capabilities."""
LICENCE = "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)"


@dataclass
class Build:
    version: str
    machine: str  # as uname -m has it
    maintainer: str
    stage: Path  # what make install made, below /usr
    libraries: list  # of linked.py
    out: Path
    epoch: int

    @property
    def binary(self):
        return self.stage / "usr/bin/pybpf"

    def other_files(self):
        """(path below usr, such as share/man/man1/pybpf.1, content) of all but the binary."""
        usr = self.stage / "usr"
        found = sorted(path for path in usr.rglob("*") if path.is_file() and path != self.binary)
        return [(path.relative_to(usr), path.read_bytes()) for path in found]


def git(*words):
    """What git says of the sources; None in a source archive, which has no git."""
    if not (TOP / ".git").exists():
        return None
    try:
        done = subprocess.run(["git", "-C", TOP, *words], capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit("dist: %s is of git, which is not installed: install it, or make dist of the source archive" % TOP) from None
    if done.returncode:
        raise SystemExit("dist: git %s failed: %s" % (words[0], done.stderr.strip()))
    return done.stdout


def epoch():
    """SOURCE_DATE_EPOCH, else the time of the commit, else, in a source archive, that of its files."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    committed = git("log", "-1", "--format=%ct")
    return int(committed or (TOP / "Makefile").stat().st_mtime)


def tar(entries, time):
    """entries: (name, content, mode). Folders are added. Returns the archive's bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        folders = set()
        for name, content, mode in sorted(entries):
            for folder in reversed(Path(name).parents):
                if str(folder) != "." and folder not in folders:
                    folders.add(folder)
                    add(archive, str(folder), None, 0o755, time)
            add(archive, name, content, mode, time)
    return buffer.getvalue()


def add(archive, name, content, mode, time):
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
    info.mode, info.mtime, info.size = mode, time, len(content or b"")
    archive.addfile(info, io.BytesIO(content or b""))


def compress(content):
    return gzip.compress(content, 9, mtime=0)
