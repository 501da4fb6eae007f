# SPDX-License-Identifier: Apache-2.0
"""crowds.py maps|forks COUNT [RATE]: maps a library as executable COUNT times, or forks COUNT children that end at once;
at most RATE times a second, as fast as it can otherwise.
"""

import mmap
import os
import sys
import time

import churn


def map_once(library):
    mmap.mmap(library, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()


def fork_once(_):
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)


def main(what, count, rate):
    begin = time.time()
    with open(os.path.realpath("/proc/self/exe"), "rb") as library:
        for i in range(count):
            if rate and i % 100 == 0:
                time.sleep(max(0, begin + float(i) / rate - time.time()))
            (map_once if what == "maps" else fork_once)(library.fileno())


if __name__ == "__main__":
    churn.begin()
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 0)
    churn.finish(churn.Children())
