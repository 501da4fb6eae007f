# SPDX-License-Identifier: Apache-2.0
"""
Unmaps every executable file of its own and sleeps, as a process between exec and its first mapping has none. x86-64.
"parent": a child, which keeps its files, spins meanwhile and ends with it.
"parent N": N children, which do it at SIGUSR1, and the parent does not.
"""

import ctypes
import json
import mmap
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h

# Calls munmap() for each of the addresses and sizes at rdi, of which there are rsi, and then pause() without end.
CODE = bytes.fromhex(
    "4989fc"  # mov r12, rdi
    "4989f5"  # mov r13, rsi
    "4d85ed"  # next: test r13, r13
    "7419"  # jz done
    "498b3c24"  # mov rdi, [r12]
    "498b742408"  # mov rsi, [r12 + 8]
    "b80b000000"  # mov eax, 11
    "0f05"  # syscall
    "4983c410"  # add r12, 16
    "49ffcd"  # dec r13
    "ebe2"  # jmp next
    "b822000000"  # done: mov eax, 34
    "0f05"  # syscall
    "ebf7"  # jmp done
)


def unmap():
    access = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=access)
    page.write(CODE)
    code = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps]
    spans = [[int(end, 16) for end in line[0].split("-")] for line in lines if "x" in line[1] and line[4] != "0"]
    numbers = [number for begin, end in spans for number in (begin, end - begin)]
    table = (ctypes.c_long * len(numbers))(*numbers)
    code(ctypes.addressof(table), len(spans))


def spin_in_child():
    while True:
        pass


def unmap_when_told():
    signal.sigwait([signal.SIGUSR1])
    unmap()


def fork(do):
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            do()
        os._exit(1)
    return child


if sys.argv[1:] == ["parent"]:
    fork(spin_in_child)
if sys.argv[2:]:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    children = [fork(unmap_when_told) for _ in range(int(sys.argv[2]))]
    print(json.dumps({"pid": os.getpid(), "children": children}), flush=True)
    signal.pause()
print(json.dumps({"pid": os.getpid()}), flush=True)
unmap()
