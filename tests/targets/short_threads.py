# SPDX-License-Identifier: Apache-2.0
"""Threads one after the other, which may get the same pthread_self(); prints it for each, and ends with the last."""

import threading
import time

SECONDS = 1.2


def burn(name):
    print("%s %d" % (name, threading.current_thread().ident))
    # On a machine with much to do it takes longer, and so does the reading of its name.
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        sum(range(2000))


def first():
    burn("one")


def second():
    burn("two")


for function, name in ((first, "one"), (second, "two")):
    thread = threading.Thread(target=function, name=name)
    thread.start()
    thread.join()
    time.sleep(0.1)  # the kernel lets go of its stack a little later
