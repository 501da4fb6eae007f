# SPDX-License-Identifier: Apache-2.0
"""Four threads that hash all the time without the GIL, on one CPU; says the TID of the last."""

import hashlib
import json
import os
import threading
import time

DATA = b"x" * (64 << 20)
tids = []


def hash_always():
    tids.append(threading.get_native_id())
    while True:
        hashlib.sha256(DATA).digest()


if __name__ == "__main__":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for _ in range(4):
        threading.Thread(target=hash_always, daemon=True).start()
    while len(tids) < 4:
        time.sleep(0.01)
    print(json.dumps({"pid": os.getpid(), "last": tids[-1]}), flush=True)
    time.sleep(1000)
