# SPDX-License-Identifier: Apache-2.0
"""
The first thread makes a subinterpreter, another one runs it. To 3.12.0 the code of it runs in a thread state that says
it is the first one's. With "collects" the first thread stands in a finalizer of a garbage collection, with "runs" it
hashes without the GIL.
"""

import gc
import hashlib
import json
import os
import sys
import threading
import time

try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters

RUN = getattr(interpreters, "exec", None) or interpreters.run_string
made = interpreters.create()


def lends():
    RUN(made, "import time\ndef inside():\n    time.sleep(1000)\ninside()")


class Finalized:
    def __del__(self):
        stands()


def stands():
    print(json.dumps({"pid": os.getpid()}), flush=True)
    time.sleep(1000)


def runs():
    print(json.dumps({"pid": os.getpid()}), flush=True)
    data = b"x" * (64 << 20)
    while True:
        hashlib.sha256(data).digest()


if __name__ == "__main__":
    threading.Thread(target=lends, name="lends", daemon=True).start()
    time.sleep(0.3)
    if sys.argv[1:] == ["collects"]:
        one = Finalized()
        one.me = one
        del one
        gc.collect()
    runs() if sys.argv[1:] == ["runs"] else stands()
