# SPDX-License-Identifier: Apache-2.0
"""The memory that a run takes: of all its processes and of the kernel, as the machine has less of it available."""
import threading

PERIOD_S = 1
KIB_PER_GIB = 1 << 20


def available_kib():
    with open("/proc/meminfo", encoding="ascii") as rows:
        return next(int(row.split()[1]) for row in rows if row.startswith("MemAvailable:"))


class Watch:
    """Looks from its start until the end of the program; what others of the machine do meanwhile is in it."""

    def __init__(self, available=available_kib, period_s=PERIOD_S):
        self.available, self.period_s = available, period_s
        self.begin = self.least = available()
        threading.Thread(target=self.look_on, daemon=True).start()

    def look(self):
        self.least = min(self.least, self.available())

    def look_on(self):
        pause = threading.Event()
        while not pause.wait(self.period_s):
            self.look()

    def most_gib(self):
        self.look()
        return (self.begin - self.least) / KIB_PER_GIB
