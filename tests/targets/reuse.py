# SPDX-License-Identifier: Apache-2.0
"""reuse.py COUNT MILLISECONDS PYTHON...: COUNT scripts one after the other with the same PID, of each PYTHON in turn.

clone3() gives a process the PID that is wanted (Linux 5.5, as root): what a full turn of all PIDs gives by chance.
"""

import ctypes
import errno
import os
import signal
import sys

import churn

CLONE3 = 435
HERE = os.path.dirname(os.path.abspath(__file__))


class CloneArgs(ctypes.Structure):
    names = "flags pidfd child_tid parent_tid exit_signal stack stack_size tls set_tid set_tid_size cgroup"
    _fields_ = [(name, ctypes.c_uint64) for name in names.split()]


def fork_as(wanted):
    tid = ctypes.c_int32(wanted)
    args = CloneArgs(exit_signal=signal.SIGCHLD, set_tid=ctypes.addressof(tid), set_tid_size=1)
    libc = ctypes.CDLL(None, use_errno=True)
    pid = libc.syscall(ctypes.c_long(CLONE3), ctypes.byref(args), ctypes.c_size_t(ctypes.sizeof(args)))
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return pid


def free_pid():
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def script(wanted, argv, quiet):
    """The PID that it has: the wanted one, or where another program took that, a new one."""
    while True:
        try:
            pid = fork_as(wanted)
        except OSError as error:
            if error.errno != errno.EEXIST:
                raise
            wanted = free_pid()
            continue
        if pid:
            return pid
        os.dup2(quiet, 1)
        os.execv(argv[0], argv)


def main(count, milliseconds, pythons):
    children = churn.Children()
    quiet = os.open(os.devnull, os.O_WRONLY)
    pid = free_pid()
    for number in range(count):
        argv = [pythons[number % len(pythons)], os.path.join(HERE, "short.py"), milliseconds]
        pid = script(pid, argv, quiet)
        children.add(pid)
        children.wait()
    return children


if __name__ == "__main__":
    churn.begin()
    churn.finish(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
