# SPDX-License-Identifier: Apache-2.0
"""No instruction of the interpreter is one at which a false stack is told: stepper.c says how that is known."""
import json
import os
import subprocess

import harness
import pytest
import pythons
from inline import Source, running

STEPPER = os.path.join(os.path.dirname(harness.PYBPF), "stepper")
STEPS = 120000  # at most: more than a round, which may end earlier
DEBUG_BUILDS_TAKE = 5  # times as many

# One round has each way into a function and out of it; its functions are warm before the first is stepped through.
WAYS = Source("""
try: from thread import get_ident
except ImportError: from threading import get_ident
def burn(*_, **__): return 1
def generator():
    for _ in (1, 2):
        burn()
        yield 1
def chain():
    for value in generator(): yield value
def user():
    for _ in chain(): burn()
def genexpr(): return sum(burn() for _ in (1, 2))
def listed(): return [burn() for _ in (1, 2)]
def keyed(): return sorted([2, 1], key=lambda value: burn())
def fails(depth):
    if depth: fails(depth - 1)
    raise ValueError
def caught():
    try: fails(2)
    except ValueError: burn()
class Made(object):
    def __init__(self): burn()
    def __getattr__(self, name): return burn()
    def __add__(self, other): return burn()
    @property
    def held(self): return burn()
    def __enter__(self): return burn()
    def __exit__(self, *_): burn()
def makes():
    made = Made()
    made.held, made.missing, made + 1
    with made: burn()
def local():
    def inner(): return burn()
    return inner()
def starred(*args, **kwargs): return burn(*args, **kwargs)
def closes():
    one = generator()
    next(one)
    one.close()
def recursive(depth): return recursive(depth - 1) if depth else burn()
compiled = compile("burn()", "evaluated", "eval")
def evaluated(): return eval(compiled)
ways = [user, genexpr, listed, keyed, caught, makes, local, closes, evaluated]
MORE
def once():
    for way in ways: way()
    starred(1, two=2)
    recursive(9)
for _ in range(300): once()
ready(thread=get_ident() & 0xffffffffffffffff)
while True: once()
""".replace("MORE", '''
if sys.version_info >= (3, 5): exec("""
def delegates(): yield from generator()
def delegated():
    for _ in delegates(): burn()
async def inner(): burn()
async def outer():
    await inner()
    burn()
def sent():
    coroutine = outer()
    try: coroutine.send(None)
    except StopIteration: pass
ways += [delegated, sent]
""")'''))


# The data stack of 3.11+ is a list of chunks: some sixteen frames with a hundred variables fit in one.
DEEP = Source("""
from threading import get_ident
def leaf(): return 1
def generator():
    leaf()
    yield 1
def dive(depth):
    if depth < 0: %s = depth
    if depth: dive(depth - 1)
    else:
        for _ in generator(): leaf()
    return leaf()
def once():
    for depth in range(20, 24): dive(depth)
for _ in range(30): once()
ready(thread=get_ident() & 0xffffffffffffffff)
while True: once()
""" % " = ".join("value_%d" % number for number in range(100)))

# The end of an asynchronous generator is an exception, which leaves frame objects to the coroutines that it came through.
COROUTINES = Source("""
from threading import get_ident
from types import coroutine
def leaf(): return 1
@coroutine
def pause(): yield
async def generator():
    for value in (1, 2):
        leaf()
        yield value
async def task():
    async for _ in generator(): leaf()
    await pause()
    leaf()
def once():
    waiting = [task(), task()]
    while waiting:
        one = waiting.pop(0)
        try: one.send(None)
        except StopIteration: continue
        waiting.append(one)
for _ in range(300): once()
ready(thread=get_ident() & 0xffffffffffffffff)
while True: once()
""")


def functions(interpreter):
    more = ["delegates", "delegated", "inner", "outer", "sent"] if interpreter.version >= (3, 5) else []
    return {"burn", "generator", "chain", "user", "<genexpr>", "keyed", "<lambda>", "fails", "caught", "__init__", "__getattr__",
            "__add__", "held", "__enter__", "__exit__", "starred", "closes", "recursive", "evaluated", *more}


def each(since=(2, 7), slow=True):
    return [pytest.param(item, id=item.name) for item in pythons.interpreters()
            if item.version >= since and (slow or not is_debug(item))]


def is_debug(interpreter):
    return interpreter.name.endswith("-dbg")


def step_through(interpreter, program):
    """Returns the functions that ran, once it is seen that no stack was wrong."""
    steps = STEPS * (DEBUG_BUILDS_TAKE if is_debug(interpreter) else 1)
    with running(interpreter, program) as target:
        done = subprocess.run([STEPPER, str(target.pid), str(target.says["thread"]), str(steps)], capture_output=True,
                              timeout=harness.PATIENCE, check=False)
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout.decode())
    assert told["is_whole"] or told["steps"] == steps
    assert not told["wrong"], done.stderr.decode()
    assert not told["none"]
    return {name.rpartition(".")[2] for name in told["functions"]}


@pytest.mark.parametrize("interpreter", each())
def test_ways_into_a_function(interpreter):
    assert functions(interpreter) <= step_through(interpreter, WAYS)


@pytest.mark.parametrize("interpreter", each((3, 11), slow=False))
def test_deep_calls(interpreter):
    assert {"leaf", "generator", "dive", "once"} <= step_through(interpreter, DEEP)


@pytest.mark.parametrize("interpreter", each((3, 11), slow=False))
def test_coroutines(interpreter):
    assert {"leaf", "pause", "generator", "task", "once"} <= step_through(interpreter, COROUTINES)
