# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Says where its main thread is, and stays there: what tools/save-memories saves the memory of.

It prints the thread's pthread_self() in hexadecimal, then its frames, leaf first, as NAME TAB FILE TAB LINE, then an
empty line. That is the interpreter's own word: nothing here knows of pybpf.
"""
import os
import sys
import threading
import time

try:
    from threading import get_ident
except ImportError:  # 2.7
    from thread import get_ident

PY2 = sys.version_info[0] == 2
LIFETIME = 60  # seconds


def say(frame):
    lines = ["%x" % get_ident()]
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        lines.append("%s\t%s\t%d" % (name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    text = "\n".join(lines) + "\n\n"
    os.write(1, text if PY2 else text.encode("utf-8"))


def leaf():
    say(sys._getframe()), time.sleep(LIFETIME)  # both on the line that say() sees


class Order(object):
    def __init__(self, then):
        self.done = then()

    @classmethod
    def make(
        cls,
        then,
    ):
        return [
            cls(
                then,
            )
            for _ in (1,)
        ]


def generate(then):
    try:
        raise KeyError
    except KeyError:
        yield (lambda: Order.make(then))()


def nested(then):
    def inner(depth):
        if depth:
            return inner(depth - 1)
        for value in generate(then):
            return value

    return inner(3)


# A large step between lines; names of one, two and four bytes per character; a coroutine.
FAR = "def far(then):\n%s    return then()\n" % ("\n" * 700)
WIDE = u"""
def größe(then):
    return then()

def имя(then): return größe(then)

def \U00010380(then):

    return имя(then)

async def task(then):
    return \U00010380(then)

async def awaiting(then):
    await task(then)

def far_and_wide(then):
    try:
        awaiting(lambda: far(then)).send(None)
    except StopIteration:
        pass
"""


def run(source, path):
    scope = {}
    exec(compile(source, path, "exec"), scope)
    return scope


def main():
    for _ in range(2):
        waiting = threading.Thread(target=threading.Event().wait)
        waiting.daemon = True
        waiting.start()
    far = run(FAR, "package/far.py")["far"]
    if PY2:
        middle = far
    else:
        scope = run(WIDE, u"gr\u00f6\u00dfe.py")
        scope["far"] = far
        middle = scope["far_and_wide"]
    # sorted() calls back from C.
    sorted([1], key=lambda _: middle(lambda: nested(leaf)))


main()
