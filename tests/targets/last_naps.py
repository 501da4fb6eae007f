# SPDX-License-Identifier: Apache-2.0
"""last_naps.py ROUNDS THREADS SECONDS: threads whose last wait is their longest. Prints the CPU time of the process."""

import resource
import sys
import threading
import time

rounds, count, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])


def nap():
    time.sleep(seconds)


threading.stack_size(256 * 1024)
for _ in range(rounds):
    threads = [threading.Thread(target=nap) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime)
