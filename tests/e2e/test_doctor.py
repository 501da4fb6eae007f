# SPDX-License-Identifier: Apache-2.0
"""pybpf doctor: what this host offers, and by its status whether the main job can run."""

import os
import platform
import shutil
import subprocess
import tempfile

import pytest

import harness
from harness import pybpf, total

pytestmark = pytest.mark.usefixtures("profiler")


def works(pid, *before):
    argv = [*map(str, before), harness.PYBPF, "-q", "-p", str(pid), "-d", "1"]
    done = subprocess.run(argv, capture_output=True, text=True)
    return done.returncode == 0 and total(harness.parse(done.stdout)) > 0


def doctor(*before):
    return subprocess.run(
        [*map(str, before), harness.PYBPF, "doctor"], capture_output=True, text=True
    )


def test_doctor_says_what_the_host_offers(spinning):
    run = pybpf("doctor")
    assert (run.code == 0) == works(spinning.pid), run.out
    kernel = platform.release().split("-")[0]
    assert kernel in run.out
    for word in ("BTF", "BPF", "perf", "CAP_", "perf_event_max_sample_rate"):
        assert word.lower() in run.out.lower(), "%s is not mentioned:\n%s" % (word, run.out)


def test_doctor_says_how_user_memory_is_read():
    """By the kernel's version, which setarch makes an old one for the process that it starts."""
    run = pybpf("doctor")
    line = [line for line in run.out.splitlines() if " user memory " in line]
    assert len(line) == 1, run.out
    if tuple(map(int, platform.release().split(".")[:2])) >= (6, 4):
        assert line[0].startswith("ok ") and "directly" in line[0]
    old = doctor("setarch", "--uname-2.6") if shutil.which("setarch") else None
    if not old or "  kernel             Linux 2.6" not in old.stdout:
        pytest.skip("setarch --uname-2.6 does not change the version here")
    line = [line for line in old.stdout.splitlines() if " user memory " in line]
    assert line[0].startswith("warn ") and "could hang" in line[0], line
    threads = [line for line in old.stdout.splitlines() if " task storage " in line]
    assert "hash" in threads[0], threads


def test_doctor_says_who_marks_pages_as_used():
    """All CPUs of x86-64 do; it is tried on the doctor's own pages, which a user may."""
    line = [line for line in pybpf("doctor").out.splitlines() if line.split()[1:2] == ["pages"]]
    assert len(line) == 1, line
    if platform.machine() == "x86_64":
        assert line[0].startswith("ok ") and line[0].endswith("by the CPU"), line


def test_doctor_without_privilege():
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is missing")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        binary = shutil.copy(harness.PYBPF, folder)
        done = subprocess.run([*nobody, binary, "doctor"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "CAP_" in done.stdout and "sudo" in done.stdout


def test_doctor_without_btf(spinning):
    if not shutil.which("unshare") or not os.path.exists("/sys/kernel/btf/vmlinux"):
        pytest.skip("unshare or a kernel with BTF is missing")
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]
    done = doctor(*hide)
    assert (done.returncode == 0) == works(spinning.pid, *hide)
    assert "BTF" in done.stdout


def test_doctor_without_tracefs(spinning):
    """The main job can run, and memory cannot be profiled."""
    empty = "mount -t tmpfs none /sys/kernel/debug && mount -t tmpfs none /sys/kernel/tracing; exec \"$@\""
    hide = ["unshare", "--mount", "sh", "-c", empty, "sh"]
    done = doctor(*hide)
    assert (done.returncode == 0) == works(spinning.pid, *hide)
    assert "\nwarn  tracefs " in done.stdout
    assert "tracefs" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("capability", ["bpf", "perfmon", "sys_ptrace"])
def test_doctor_agrees_with_the_main_job(spinning, capability):
    """Whatever is taken away: doctor says yes exactly when a run works, and names what lacks."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is missing")
    drop = "-sys_admin,-" + capability
    without = ["setpriv", "--bounding-set=" + drop, "--inh-caps=" + drop]
    done = doctor(*without)
    assert (done.returncode == 0) == works(spinning.pid, *without), done.stdout
    if done.returncode:
        assert "CAP_" + capability.upper() in done.stdout


def test_doctor_takes_no_target(spinning):
    run = pybpf("doctor", "-p", spinning.pid)
    assert run.code != 0
    harness.one_sentence(run.err)
