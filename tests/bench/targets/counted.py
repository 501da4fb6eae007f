# SPDX-License-Identifier: Apache-2.0
"""What every target of this folder begins with: its counter of work done, in memory that the bench can read."""

import mmap
import signal
import struct
import sys

LIFETIME = 900  # seconds after which a target ends by itself
NUMBER = struct.Struct("Q")  # native: stored at once, where "<Q" goes byte by byte


def counter():
    """Maps the file whose descriptor is the first argument."""
    signal.alarm(LIFETIME)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends without a word when the bench is interrupted
    return mmap.mmap(int(sys.argv[1]), mmap.PAGESIZE)


def spin_forever(memory, turns=1000):
    """The work of most targets, in the frame of their leaf: call it last."""
    rounds = range(turns)
    done = 0
    while True:
        for _ in rounds:
            pass
        done += 1
        NUMBER.pack_into(memory, 0, done)
