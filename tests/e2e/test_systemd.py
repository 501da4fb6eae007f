# SPDX-License-Identifier: Apache-2.0
"""docs/pybpf-agent.service under a systemd of its own: the first process of a container that has this machine's files."""

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest

import cgroups
import harness
from test_install import make

SYSTEMD = "/lib/systemd/systemd"
AGENT = "pybpf-agent"
WATCHDOG_S = 2
# $1: a folder that gets all mounts; $2: files that are put over this machine's. Nobody else sees a mount or a file of it.
BOOT = """
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cp -R "$2/." "$1/root"
cd "$1/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
# In a folder with the sticky bit nobody could write to devices of another user.
mount -t tmpfs -o mode=0755 tmpfs dev
for name in null zero full random urandom tty; do
    touch "dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for folder in run tmp var/lib; do
    mount -t tmpfs tmpfs "$folder"
done
mkdir before
pivot_root . before
umount -l before
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin "$3" --system --unit=trial.target --log-target=null --show-status=0
"""
NAMESPACES = ["--cgroup", "--mount", "--pid", "--ipc", "--uts"]
# Time in Python, and in the kernel.
BUSY = 'f = open("/dev/zero", "rb"); any(f.read(1 << 16) is None for _ in iter(int, 1))'
FILES = {
    # The least that systemd can reach.
    "etc/systemd/system/trial.target": "[Unit]\nDefaultDependencies=no\n",
    "etc/systemd/system/busy.service": "[Service]\nExecStart=%s -c '%s'\n" % (harness.default_python().argv[0], BUSY),
    "etc/systemd/system/pybpf-agent.service.d/trial.conf": "[Service]\nWatchdogSec=%d\nRestartSec=0\nStandardError=append:/run/said\n" % WATCHDOG_S,
    "etc/default/pybpf-agent": "PYBPF_AGENT_OPTIONS=--config /etc/pybpf/agent.yaml --max-cpu 100%\n",
    "etc/pybpf/agent.yaml": "epoch: 1s\nkernel: true\n",
}

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="it takes root"),
    pytest.mark.skipif(not os.path.exists(SYSTEMD), reason="%s is not installed" % SYSTEMD),
]


def write_files(folder):
    make("install", folder, "PREFIX=/usr", "DESTDIR=%s" % folder)
    write_settings(folder)


def write_settings(folder):
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


class Manager:
    """The systemd, and what is run beside it."""

    def __init__(self, pid):
        self.enter = ["nsenter", "--target", str(pid), "--root", "--wd", *NAMESPACES]

    def run(self, *words):
        done = subprocess.run([*self.enter, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def control(self, *words):
        code, told = self.run("systemctl", *words)
        assert code == 0, (words, told, self.run("cat", "/run/said"))

    def show(self, name):
        return self.run("systemctl", "show", AGENT, "--value", "--property", name)[1].strip()

    def epochs(self):
        return self.run("ls", "/var/lib/pybpf")[1].split()


@contextlib.contextmanager
def booted(folder, write=write_files):
    for name in "mounts", "files":
        (folder / name).mkdir()
    write(folder / "files")
    try:
        cgroups.unified()
    except cgroups.Missing as missing:
        pytest.skip(str(missing))
    argv = ["unshare", *NAMESPACES, "--fork", "--kill-child", "sh", "-ec", BOOT, "boot", str(folder / "mounts"), str(folder / "files"), SYSTEMD]
    with open(folder / "boot", "w", encoding="utf-8") as said:
        with cgroups.inside("pybpf-systemd-%d" % os.getpid(), argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as (_, process):

            def first():
                assert process.poll() is None, (folder / "boot").read_text()
                children = Path("/proc/%d/task/%d/children" % (process.pid, process.pid)).read_text(encoding="ascii").split()
                manager = Manager(int(children[0])) if children else None
                return manager if manager and manager.run("systemctl", "is-system-running")[1] == "running\n" else None

            yield harness.wait_for(first)


def test_the_unit_under_systemd(tmp_path):
    """Its sandbox lets it sample and write; READY, the watchdog's answers, a reload and the end are those that systemd waits for.

    One that hangs is killed and restarted.
    """
    with booted(tmp_path) as systemd:
        systemd.control("start", "busy")
        assert systemd.show("UnitFileState") == "disabled"
        systemd.control("start", AGENT)  # ends when the agent says that it is ready
        assert systemd.show("SubState") == "running"
        mounts = systemd.run("cat", "/proc/%s/mountinfo" % systemd.show("MainPID"))[1]
        assert all(" %s ro," % folder in mounts for folder in ("/proc/sys", "/proc/irq", "/sys")), mounts
        begin = systemd.show("WatchdogTimestampMonotonic")
        harness.wait_for(lambda: systemd.show("WatchdogTimestampMonotonic") != begin and len(systemd.epochs()) >= WATCHDOG_S + 2)
        systemd.run("sh", "-c", "sed -i s/1s/2s/ /etc/pybpf/agent.yaml")
        systemd.control("reload", AGENT)
        harness.wait_for(lambda: "was read again: epochs of 2 s" in systemd.run("cat", "/run/said")[1])
        systemd.run("kill", systemd.show("MainPID"))  # ends it with status 0
        harness.wait_for(lambda: [systemd.show(name) for name in ("NRestarts", "SubState")] == ["1", "running"])
        hung = systemd.show("MainPID")
        systemd.run("kill", "-STOP", hung)  # the watchdog gets no answer
        harness.wait_for(lambda: [systemd.show(name) for name in ("NRestarts", "SubState")] == ["2", "running"])
        assert systemd.show("MainPID") != hung and systemd.run("cat", "/proc/%s/comm" % hung)[0] != 0, "it goes on"
        before = len(systemd.epochs())
        harness.wait_for(lambda: len(systemd.epochs()) > before)
        before = len(systemd.epochs())
        systemd.control("stop", AGENT)
        ended = [systemd.show(name) for name in ("SubState", "Result", "ExecMainStatus")]
        assert ended == ["dead", "success", "0"], systemd.run("cat", "/run/said")
        assert len(systemd.epochs()) > before, "the last epoch is not written"
        code, told = systemd.run("/usr/bin/pybpf", "report", "-q", "-f", "json", "/var/lib/pybpf")
    assert code == 0, told
    profile = json.loads(told)
    assert sum(sample["value"] for sample in profile["samples"]) > 0
    of_kernel = {frame["name"] for frame in profile["frames"] if frame["name"].endswith("_[k]")}
    assert of_kernel - {"[unknown]_[k]"}, told
    assert {process["service"] for process in profile["processes"]} == {"busy"}
