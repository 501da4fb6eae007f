# SPDX-License-Identifier: Apache-2.0
"""What every program of this folder begins with. How they state their rule is in tests/judge/rules.py."""

import os
import signal
import sys
import threading

LIFETIME = 240  # seconds after which a program ends by itself


def spin(turns):
    for _ in range(turns):
        pass


def rounds(one):
    while True:
        one()


def forever(one, *others):
    """Does one() until it is killed, and the others in threads; says first that it is about to."""
    if "free-threading" in sys.version:
        assert not sys._is_gil_enabled()
    signal.alarm(LIFETIME)
    for other in others:
        thread = threading.Thread(target=rounds, args=(other,))
        thread.daemon = True
        thread.start()
    os.write(sys.stdout.fileno(), " ".join(each.__name__ for each in (one,) + others).encode() + b"\n")
    rounds(one)
