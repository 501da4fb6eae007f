# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Two threads that spend a known CPU time on each line, in functions whose names are hard to carry.

readers.py FOLDER: keeps its two modules of one name there, and what it has spent in FOLDER/truth.json.
"""
import json
import os
import sys
import threading
import time

# Both lines of a function loop until the thread has used that much CPU time.
SOURCE = """import time


def {name}(first, second):
    while time.thread_time() < first: pass
    middle = time.thread_time()
    while time.thread_time() < second: pass
    return middle
"""
FIRST_LINE, SECOND_LINE = 5, 7
NAMES = [
    "plain",
    "semi;colon",
    "two  words (x.py:7) 12",
    "quo\"te's\\",
    "<b>&amp;</b>",
    "na\xefve_\u540d\u524d_\U0001f40d",
    "n" * 4000,
]
SAME = ["one/same.py", "two; <words>/same.py"]
WORK = {
    "heavy worker": [(name, "names.py", 0.12, 0.06) for name in NAMES],
    "light;<worker>": [("same", SAME[0], 0.12, 0.06), ("same", SAME[1], 0.3, 0.06)],
}


def function(folder, file, name):
    """One that the compiler made of a file that is there, under its name."""
    path = os.path.join(folder, file)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = SOURCE.format(name="same")
    with open(path, "w", encoding="utf-8") as source:
        source.write(text)
    scope = {}
    exec(compile(text, path, "exec"), scope)
    made = scope["same"]
    made.__code__ = made.__code__.replace(co_name=name, co_qualname=name)
    return made, path


def spend(functions, wanted, spent):
    for (called, path), (name, _, first, second) in zip(functions, wanted):
        begin = time.thread_time()
        middle = called(begin + first, begin + first + second)
        spent.append([name, path, [[FIRST_LINE, middle - begin], [SECOND_LINE, time.thread_time() - middle]]])


def work(folder, name, told):
    with open("/proc/thread-self/comm", "w") as comm:
        comm.write(name)
    functions = [function(folder, file, each) for each, file, _, _ in WORK[name]]
    spent = []
    began = time.thread_time()
    spend(functions, WORK[name], spent)
    told.append({"tid": threading.get_native_id(), "name": name, "cpu_s": time.thread_time() - began, "spent": spent})


def main():
    folder, told = sys.argv[1], []
    threads = [threading.Thread(target=work, args=(folder, name, told)) for name in WORK]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as truth:
        json.dump(told, truth)


main()
