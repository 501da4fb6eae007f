# SPDX-License-Identifier: Apache-2.0
"""Runs programs, with a limit in time, and says what goes on."""
import os
import shlex
import signal
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAKE = shlex.split(os.environ.get("MAKE", "make"))
BEGUN = time.monotonic()


def say(text):
    print(text, flush=True)


def headline(text):
    seconds = time.monotonic() - BEGUN
    say("== " + text + (", after %d min %d s" % divmod(seconds, 60) if seconds >= 1 else ""))


def environment(**more):
    """Without what the outer make says to inner ones."""
    clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return dict(clean, **more)


def run(command, limit_s=None, **options):
    """The exit status, negative for a signal, None when time was up. Ends the whole group of processes."""
    options.setdefault("env", environment())
    process = subprocess.Popen(command, cwd=TOP, stdin=subprocess.DEVNULL, process_group=0, **options)
    try:
        process.wait(limit_s)
        return process.returncode
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def captured(command, limit_s, **options):
    """The exit status as run() gives it, and the lines of the output."""
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        status = run(command, limit_s, stdout=out, stderr=subprocess.STDOUT, **options)
        out.seek(0)
        lines = out.read().splitlines()
    if status is None:
        lines.append("took more than %d s" % limit_s)
    return status, lines


def make(*arguments):
    """With warnings as errors. Did it work?"""
    jobs = [] if "jobserver" in os.environ.get("MAKEFLAGS", "") else ["-j%d" % (os.cpu_count() or 1)]
    # The jobserver's file descriptors are inherited.
    command = [*MAKE, "--no-print-directory", *jobs, "-s", "WERROR=1", *arguments]
    return subprocess.call(command, cwd=TOP, stdin=subprocess.DEVNULL, close_fds=False) == 0
