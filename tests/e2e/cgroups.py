# SPDX-License-Identifier: Apache-2.0
"""Control groups: where they are mounted, directories of our own, and what their processes took."""

import contextlib
import errno
import functools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import FrozenSet, Optional

import harness


class Missing(Exception):
    """Why there is no such hierarchy."""


@dataclass(frozen=True)
class Hierarchy:
    mount: Path
    v2: bool
    controllers: FrozenSet[str]


@functools.lru_cache(maxsize=None)
def hierarchies():
    """Those that are mounted here from their root on."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
        for row in mounts:
            before, _, after = row.partition(" - ")
            root, place = before.split()[3:5]
            kind, _, options = after.split()[:3]
            if kind in ("cgroup", "cgroup2") and root == "/":
                found.append(Hierarchy(Path(place), kind == "cgroup2", frozenset(options.split(","))))
    return found


def unified():
    for one in hierarchies():
        if one.v2:
            return one.mount
    raise Missing("no cgroup2 is mounted here")


def with_controller(name="cpuacct"):
    """The v1 hierarchy that accounts CPU time."""
    for one in hierarchies():
        if not one.v2 and name in one.controllers:
            return one.mount
    raise Missing("no cgroup v1 hierarchy with %s is mounted here" % name)


@dataclass
class Directory:
    path: Path

    def add(self, pid):
        (self.path / "cgroup.procs").write_text("%d\n" % pid)

    def pids(self):
        """The processes in it and in the tree below it."""
        found = []
        for procs in [self.path / "cgroup.procs", *self.path.glob("**/cgroup.procs")]:
            with contextlib.suppress(OSError):  # it ends meanwhile
                found += map(int, procs.read_text().split())
        return sorted(set(found))

    def cpu_s(self):
        """That its processes took so far, those that have ended included."""
        stat = self.path / "cpu.stat"
        if stat.exists() and "usage_usec" in stat.read_text():
            return int(stat.read_text().split()[1]) / 1e6
        return int((self.path / "cpuacct.usage").read_text()) / 1e9

    def remove(self):
        """With its tree, once the processes are gone: a moment after their end."""
        harness.wait_for(lambda: not self.pids())
        below = [Path(folder) for folder, _, _ in os.walk(self.path, topdown=False)]
        for folder in below:
            harness.wait_for(lambda folder=folder: removed(folder))


def removed(folder):
    try:
        folder.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise
    return True


def missing_parts(path, mount):
    """The folders on the way to a path that would have to be made, the topmost first."""
    parts = [path, *path.parents]
    return [part for part in reversed(parts[: parts.index(mount)]) if not part.exists()]


@contextlib.contextmanager
def directory(name, mount: Optional[Path] = None):
    """A directory of that name (with slashes: several); what was made for it is removed at the end."""
    mount = mount or unified()
    path = mount / name.strip("/")
    made = missing_parts(path, mount)
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield Directory(path)
    finally:
        for part in reversed(made):
            Directory(part).remove()


@contextlib.contextmanager
def inside(name, argv, mount=None, **options):
    """A process that is in that directory from before its first instruction; (Directory, Popen)."""
    with directory(name, mount) as place:
        enter = ["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', str(place.path / "cgroup.procs")]
        with harness.started([*enter, *argv], **options) as process:
            yield place, process


def spent(places, seconds):
    """CPU time that the processes of each of these directories take in so long."""
    before = [place.cpu_s() for place in places]
    time.sleep(seconds)
    return [place.cpu_s() - start for place, start in zip(places, before)]
