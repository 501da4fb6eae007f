# SPDX-License-Identifier: Apache-2.0
"""Real containers, made by crun or runc, of the root file system that tools/setup-pythons makes.

Each has an overlay of its own above that file system, which stays as it is, and namespaces and a control group of its
own. The overlay is mounted where only the runtime sees it, and goes with the last process.
"""

import contextlib
import functools
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import cgroups
import harness
import pythons

RUNTIMES = ("crun", "runc")
FIRST_ID, IDS = 100000, 65536  # that the users of a user namespace have outside
# What docker gives to a container that is not privileged.
USUAL = (
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID "
    "SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE"
)
# In a mount namespace of its own. $1: where cgroup2 is to be mounted, or ""; $2: the bundle; $3: the image; the command.
MOUNT = """
cgroup=$1 bundle=$2 image=$3
shift 3
[ -z "$cgroup" ] || mount -t cgroup2 cgroup2 "$cgroup"
mount -t tmpfs tmpfs "$bundle/layers"
mkdir "$bundle/layers/upper" "$bundle/layers/work"
mount -t overlay overlay -o "lowerdir=$image,upperdir=$bundle/layers/upper,workdir=$bundle/layers/work" "$bundle/rootfs"
exec "$@"
"""


class Missing(Exception):
    """Why no container can be started."""


@functools.lru_cache(maxsize=None)
def why_not(runtime="crun"):
    """Why that runtime cannot start a container here; empty where it can."""
    if os.geteuid() != 0:
        return "containers take root"
    if not shutil.which(runtime):
        return "%s is not installed; tools/install-deps --test installs it" % runtime
    try:
        with container("trial", ["/bin/true"], runtime, ready=False) as trial:
            status = trial.process.wait(harness.PATIENCE)
            return "" if status == 0 else "%s: %s" % (runtime, trial.complaint())
    except (Missing, cgroups.Missing, OSError, subprocess.SubprocessError) as error:
        return str(error)


def image():
    folder = pythons.cache() / "sid"
    if not folder.is_dir():
        raise Missing("tools/setup-pythons has not made the root file system sid")
    return folder


def python(version=(3, 13)):
    """An interpreter of the image."""
    for item in pythons.interpreters():
        if item.root and item.version == version and item.kind == "static":
            return item
    raise Missing("the root file system sid has no Python %d.%d" % version)


def command(name, *args, version=(3, 13)):
    """What runs a file of tests/targets inside of a container."""
    interpreter = python(version)
    program = interpreter.argv[2]  # after chroot and the root
    return [program, *interpreter.command(name, *map(str, args))[len(interpreter.argv) :]]


def namespaces(kinds):
    return [{"type": kind} for kind in kinds]


def mounts(binds, privileged):
    rows = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]},
    ]
    if privileged:
        # docker mounts sysfs anew and has the rest from the host by -v; the host's whole tree is the same.
        rows.append({"destination": "/sys", "type": "bind", "source": "/sys", "options": ["rbind", "rw"]})
    for source, place in binds.items():
        rows.append({"destination": place, "type": "bind", "source": str(source), "options": ["rbind", "ro"]})
    return rows


def capabilities(privileged):
    names = ["CAP_" + name for name in USUAL.split()]
    if privileged:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
            ours = next(row.split()[1] for row in status if row.startswith("CapEff:"))
        # The runtimes know them by name alone.
        text = subprocess.run(["capsh", "--decode=" + ours], capture_output=True, text=True, check=True).stdout
        names = text.strip().partition("=")[2].upper().split(",")
    return {kind: names for kind in ("bounding", "effective", "permitted")}


def specification(argv, cgroup, user_namespace, host_pids, privileged, binds):
    kinds = ["mount", "uts", "ipc"] + (["user"] if user_namespace else []) + ([] if host_pids else ["pid"])
    # A privileged one sees the host's control groups (--cgroupns=host).
    kinds += [] if privileged else ["cgroup"]
    linux = {"cgroupsPath": cgroup, "namespaces": namespaces(kinds)}
    if user_namespace:
        for kind in ("uidMappings", "gidMappings"):
            linux[kind] = [{"containerID": 0, "hostID": FIRST_ID, "size": IDS}]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(argv),
            "env": ["PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8"],
            "cwd": "/",
            "capabilities": capabilities(privileged),
        },
        "root": {"path": "rootfs", "readonly": False},
        "hostname": "container",
        "mounts": mounts(binds, privileged),
        "linux": linux,
    }


@dataclass
class Container:
    id: str
    runtime: str
    process: subprocess.Popen  # the runtime, which ends with the container
    cgroup: cgroups.Directory
    bundle: Path
    says: dict = field(default_factory=dict)
    spent_s: Optional[float] = None  # of CPU, when it was stopped

    def pids(self):
        """The host's PIDs, the first process's first."""
        return sorted(self.cgroup.pids(), key=lambda pid: (inner_pid(pid) != 1, pid))

    @property
    def pid(self):
        return self.pids()[0]

    def cpu_s(self):
        return self.spent_s if self.spent_s is not None else self.cgroup.cpu_s()

    def messages(self):
        return (self.bundle / "stderr").read_text(encoding="utf-8", errors="replace")

    def complaint(self):
        return self.messages().strip().split("\n")[-1]

    def state(self):
        """The folder that the runtime keeps of it."""
        return Path("/run", self.runtime, self.id)

    def stop(self):
        """Kills all of it; the runtime then clears away. May be called twice."""
        # It may end, and its control group with it, at any moment.
        with contextlib.suppress(FileNotFoundError):
            if self.process.poll() is None and self.cgroup.path.exists():
                self.spent_s = self.cgroup.cpu_s()
                kill_all(self.cgroup)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.state().exists():
            run = [self.runtime, "delete", "--force", self.id]
            subprocess.run(mounted(self.bundle, run), capture_output=True, timeout=harness.PATIENCE)


def kill_all(place):
    try:
        (place.path / "cgroup.kill").write_text("1")
    except OSError:  # before Linux 5.14, or it is gone
        for pid in place.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)


def inner_pid(pid):
    """A process's PID in its own namespace."""
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as status:
            return next(int(row.split()[-1]) for row in status if row.startswith("NSpid:"))
    except (OSError, StopIteration):
        return None


def mounted(bundle, argv, root=None):
    """A command line in a mount namespace of its own, with the bundle's file system there."""
    private = ["unshare", "--mount", "--propagation", "private"]
    here = "/sys/fs/cgroup"
    cgroup = "" if str(cgroups.unified()) == here else here
    return [*private, "/bin/sh", "-ec", MOUNT, "sh", cgroup, str(bundle), str(root or image()), *argv]


@contextlib.contextmanager
def container(
    name,
    argv,
    runtime="crun",
    user_namespace=True,
    cgroup=None,
    ready=True,
    host_pids=False,
    privileged=False,
    binds=None,
    root=None,
    ident=None,
):
    """A running container, of which nothing is left at the end.

    Its ID is the name and some digits, or ident. With ready its program has said that it is ready (Container.says). cgroup: the
    path in the hierarchy. root: another file system than the image. binds: what of the host is where inside.
    """
    ident = ident or "%s-%s" % (name, secrets.token_hex(4))
    path = cgroup or "/pybpf-%s-%s" % (runtime, ident)
    mount = cgroups.unified()
    place = mount / path.strip("/")
    made = cgroups.missing_parts(place, mount)
    bundle = Path(tempfile.mkdtemp(prefix="pybpf-container-"))
    try:
        for folder in ("layers", "rootfs"):
            (bundle / folder).mkdir()
        bundle.chmod(0o755)
        words = specification(argv, path, user_namespace, host_pids, privileged, binds or {})
        (bundle / "config.json").write_text(json.dumps(words), encoding="utf-8")
        run = mounted(bundle, [runtime, "run", "--bundle", str(bundle), ident], root)
        with open(bundle / "stderr", "wb") as err:
            # A session of its own: where the tests are killed, the runtime still clears away when the program ends.
            process = subprocess.Popen(
                run, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, bufsize=0, start_new_session=True
            )
        running = Container(ident, runtime, process, cgroups.Directory(place), bundle)
        try:
            if ready:
                try:
                    running.says = harness.read_ready_line(process)
                except AssertionError as error:
                    raise AssertionError("%s: %s" % (error, running.complaint())) from error
            yield running
        finally:
            running.stop()
            process.stdout.close()
    finally:
        for part in reversed(made):
            if part.exists():
                cgroups.Directory(part).remove()
        shutil.rmtree(bundle)

