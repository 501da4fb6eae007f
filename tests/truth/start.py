# SPDX-License-Identifier: Apache-2.0
"""What every program of this folder begins with. How they state their rule is in tools/run-truth."""

import os
import signal
import sys

LIFETIME = 240  # seconds after which a program ends by itself


def spin(turns):
    for _ in range(turns):
        pass


def rounds(one):
    while True:
        one()


def forever(one):
    """Does one() until it is killed; says first that it is about to."""
    signal.alarm(LIFETIME)
    os.write(sys.stdout.fileno(), b"ready\n")
    rounds(one)
