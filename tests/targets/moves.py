# SPDX-License-Identifier: Apache-2.0
"""moves.py HOW FOLDER: works, changes its root or its mount namespace, and works on with code made after that.

HOW is chroot, or setns, to a namespace that a child made and in which FOLDER is empty. Needs root.
"""

import ctypes
import os
import sys

import churn

CLONE_NEWNS = 0x20000
AFTER = """
def after():
    churn.burn(0.3)
"""


def before():
    churn.burn(0.3)


def chroot(folder):
    os.chroot(folder)
    os.chdir("/")


def setns(folder):
    libc = ctypes.CDLL(None, use_errno=True)
    ready, ours = os.pipe()
    over, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(theirs)
        assert libc.unshare(CLONE_NEWNS) == 0
        assert libc.mount(None, b"/", None, 0x4000 | 0x40000, None) == 0  # MS_REC | MS_PRIVATE
        assert libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, None) == 0
        os.write(ours, b"x")
        os.read(over, 1)
        os._exit(0)
    assert os.read(ready, 1) == b"x"
    namespace = os.open("/proc/%d/ns/mnt" % pid, os.O_RDONLY)
    assert libc.setns(namespace, CLONE_NEWNS) == 0
    os.close(theirs)
    os.waitpid(pid, 0)


def main(how, folder):
    before()
    {"chroot": chroot, "setns": setns}[how](folder)
    scope = {"churn": churn}
    exec(compile(AFTER, os.path.join(folder, "made_after.py"), "exec"), scope)
    scope["after"]()


if __name__ == "__main__":
    churn.begin()
    main(*sys.argv[1:])
    churn.finish(churn.Children())
