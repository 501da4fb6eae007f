# SPDX-License-Identifier: Apache-2.0
"""own_gil.py SECONDS: in a subinterpreter with a GIL of its own, its runner and a thread of its own compute in turns.

The runner is a thread of the main interpreter; the main thread waits for it. Prints for how long the runner waits for the
other one's end.
"""

import sys
import threading

try:
    import _interpreters as module

    execute = module.run_string
except ImportError:
    import _xxsubinterpreters as module

    execute = module.run_string

RUN = """
import threading, time
end = time.time() + %s
def burns():
    while time.time() < end:
        sum(range(100))
thread = threading.Thread(target=burns)
thread.start()
burns()
begin = time.monotonic()
thread.join()
print(time.monotonic() - begin, flush=True)
""" % sys.argv[1]
interpreter = module.create()
runner = threading.Thread(target=lambda: execute(interpreter, RUN))
runner.start()
runner.join()
