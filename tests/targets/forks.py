# SPDX-License-Identifier: Apache-2.0
"""forks.py COUNT RATE MILLISECONDS: forks COUNT children, RATE per second, which take so much CPU time each and end."""

import os
import sys
import time

import churn


def main(milliseconds):
    churn.burn(milliseconds / 1000.0)
    os._exit(0)


def storm(count, rate, milliseconds):
    children = churn.Children()
    began = time.time()
    for number in range(count):
        while children.wait(os.WNOHANG):
            pass
        time.sleep(max(0, began + number / rate - time.time()))
        pid = os.fork()
        if not pid:
            main(milliseconds)
        children.add(pid)
    children.wait_all()
    return children, time.time() - began


if __name__ == "__main__":
    churn.begin()
    ended, took = storm(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
    churn.finish(ended, took_s=round(took, 3))
