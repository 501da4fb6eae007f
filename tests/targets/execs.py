# SPDX-License-Identifier: Apache-2.0
"""execs.py LINKS MILLISECONDS [PYTHON...]: one process that is a Python, a shell, a Python again, and so on.

Each Python takes so much CPU time and has sh execute the next link's, PYTHON in turn where some are given. The last
link says the CPU time that each took in its burn.
"""

import os
import sys

import churn


def main(links, milliseconds, pythons, burnt):
    began = churn.cpu_s()
    churn.burn(milliseconds / 1000.0)
    burnt.append("%.6f" % (churn.cpu_s() - began))
    if links == 1:
        churn.say(burnt_s=[float(one) for one in burnt])
        return
    os.environ["BURNT"] = " ".join(burnt)
    following = pythons[:1] or [sys.executable]
    argv = [os.path.abspath(__file__), str(links - 1), "%g" % milliseconds]
    argv += pythons[1:] + pythons[:1]
    # The loop takes the shell some CPU time of its own.
    script = 'i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; exec "$@"'
    os.execv("/bin/sh", ["sh", "-c", script, "sh"] + following + argv)


if __name__ == "__main__":
    so_far = os.environ.get("BURNT", "").split()
    if not so_far:
        churn.begin()
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:], so_far)
