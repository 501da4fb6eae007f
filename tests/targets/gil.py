# SPDX-License-Identifier: Apache-2.0
"""Two threads compute, and a third one waits for a lock that nobody gives back."""

import json
import os
import sys
import threading

never = threading.Lock()
never.acquire()


def computes():
    while True:
        sum(range(1000))


def locked():
    never.acquire()


for work in (computes, computes, locked):
    thread = threading.Thread(target=work)
    thread.daemon = True
    thread.start()
sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n")
sys.stdout.flush()
computes_until_killed = threading.Lock()
computes_until_killed.acquire()
computes_until_killed.acquire()
