# SPDX-License-Identifier: Apache-2.0
"""What make test and make test-all are made of, beside pytest."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile

from runner import programs
from runner.commands import TOP, captured, environment, headline, make, run, say
from runner.count import RESULT

CHECKS_LIMIT_S = 1800  # after all else
KERNELS_LIMIT_S = 2700  # beside other tests


def build_all(count):
    headline("build, warnings are errors")
    variables = []
    if not make("static-libraries"):
        say("without the static binary, whose tests are skipped: its libraries, of Debian's sources, cannot be made here")
        os.environ["PYBPF_WITHOUT_STATIC"] = "1"
        variables.append("WITHOUT_STATIC=1")
    if not make("all", "test-programs", *variables):
        count.fail("the build")
    return not count.failed


def lint(count, quick=False):
    headline("lint")
    if make("lint", *(["QUICK=1"] if quick else [])):
        count.passed += 1
    else:
        count.fail("lint")


def checks(build, count):
    """What needs no root and no Python."""
    lint(count, quick=True)
    programs.unit(build, count)
    programs.fuzz(build, count)


def set_session_nice(pid, nice):
    """The kernel may share CPUs out by session, whatever the policies of their processes (sched(7), autogroup)."""
    with contextlib.suppress(OSError), open("/proc/%d/autogroup" % pid, "w", encoding="ascii") as group:
        group.write(str(nice))


@contextlib.contextmanager
def checks_beside(build, count):
    """Runs the checks while the block runs, in the CPU time that it leaves; shows and counts them at its end."""
    command = ["chrt", "--idle", "0", sys.executable, os.path.join(TOP, "tests/run-tests"), "--build", build, "checks"]
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        # close_fds: see make().
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   start_new_session=True, close_fds=False)
        set_session_nice(process.pid, 19)
        status = None
        try:
            yield
            os.sched_setscheduler(process.pid, os.SCHED_OTHER, os.sched_param(0))
            set_session_nice(process.pid, 0)
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(CHECKS_LIMIT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        out.seek(0)
        lines = out.read().splitlines()
    say("\n".join(line for line in lines[:-1] if not line.startswith(("FAILED ", RESULT))))
    count.add(lines, status, "the checks")


def pythons(count, *names):
    """names: as tools/setup-pythons takes them; all without."""
    headline("Pythons to profile")
    if run([os.path.join(TOP, "tools/setup-pythons"), *names]) != 0:
        count.fail("tools/setup-pythons")


def kernels(build, *arguments):
    """Profiles on emulated kernels (tests/vm/run-kernels). Returns its status and lines."""
    return captured([os.path.join(TOP, "tests/vm/run-kernels"), "--build", os.path.join(TOP, build), *arguments],
                    KERNELS_LIMIT_S)


def build_arm64(build, count):
    """What arm64_kernels runs. Returns whether it was built."""
    headline("build for arm64, warnings are errors")
    folder = os.path.join(build, "arm64")
    # What optimization finds is found in the build for this machine.
    built = make("ARCH=arm64", "BUILD=" + folder, "CFLAGS=-O0", "all", "vm-programs")
    if not built:
        count.fail("the build for arm64")
    elif run([os.path.join(TOP, "tools/check-stack"), os.path.join(folder, "pybpf.bpf.o")]) != 0:
        count.fail("the stack of the BPF programs for arm64")
    return built


def arm64_kernels(build, *arguments):
    return kernels(os.path.join(build, "arm64"), "--arch", "arm64", *arguments)


def tell_kernels(told, count):
    headline("emulated kernels (make kernels: more)")
    status, lines = told
    say("\n".join(re.sub("^FAILED", "failed", line) for line in lines))
    count.add(lines, status, "tests/vm/run-kernels")


@contextlib.contextmanager
def busy_loops(number=2):
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"], env=environment()) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def may_be_root(count):
    if os.geteuid() == 0:
        return True
    say("kernel and end-to-end tests need root: sudo make test")
    count.fail("kernel and end-to-end tests need root")
    return False
