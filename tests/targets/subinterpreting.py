# SPDX-License-Identifier: Apache-2.0
"""Threads that stand in subinterpreters; says for each what it is called, and the functions of its stack.

A thread named outer-* of the main interpreter runs code in an interpreter of its own: outer-bare where nothing has
imported threading, outer-named where it was imported by that thread, which gets a name there that is not its own, and
outer-nested in an interpreter that an interpreter has made. inner-* are threads that a subinterpreter has started.
"""

import json
import os
import sys
import threading

FIND = r"""
def find():
    try:
        import _interpreters as module
        return module, module.exec
    except ImportError: pass
    try:
        import _xxsubinterpreters as module
        return module, module.run_string
    except ImportError: pass
    import _testcapi
    return None, _testcapi.run_in_subinterp
module, execute = find()
def make():
    # Isolated ones may have no threads of their own before 3.12.
    import sys
    return module.create(isolated=False) if (3, 9) <= sys.version_info[:2] <= (3, 11) else module.create()
def run(code):
    if not module: return execute(code)
    execute(make(), code)
"""
STANDS, STOOD = os.pipe()
BARE = """
import os, time
def sub_bare():
    os.write(%d, b".")
    time.sleep(1000)
sub_bare()
""" % STOOD
NAMED = """
import threading
threading.current_thread()
def inner():
    inner_lock.acquire()
inner_lock = threading.Lock()
inner_lock.acquire()
for i in range(2):
    thread = threading.Thread(target=inner, name="inner-" + str(i))
    thread.start()
import os, time
def sub_named():
    os.write(%d, b".")
    time.sleep(1000)
sub_named()
""" % STOOD
NESTED = FIND + "BARE = '''" + BARE + "'''" + """
def sub_middle():
    run(BARE)
sub_middle()
"""
FOUND = {}
exec(FIND, FOUND)
run = FOUND["run"]
CODES = {"outer-bare": BARE, "outer-named": NAMED, "outer-nested": NESTED}
# Which functions of this file and of the codes above each has, the outermost first; None: another interpreter begins.
STACKS = {
    "outer-bare": ["run", None, "<module>", "sub_bare"],
    "outer-named": ["run", None, "<module>", "sub_named"],
    "outer-nested": ["run", None, "<module>", "sub_middle", "run", None, "<module>", "sub_bare"],
    "inner-0": ["inner"],
    "inner-1": ["inner"],
    "MainThread": ["<module>", "main", "run", None, "<module>", "sub_bare"],
}


def main():
    for name, code in sorted(CODES.items()):
        thread = threading.Thread(target=run, args=(code,), name=name)
        thread.daemon = True
        thread.start()
        os.read(STANDS, 1)
    print(json.dumps({"pid": os.getpid(), "stacks": STACKS}))
    sys.stdout.flush()
    run(BARE)


if __name__ == "__main__":
    main()
