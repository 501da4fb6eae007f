# SPDX-License-Identifier: Apache-2.0
"""Interpreters that are run from a Python function: the callers are in another thread state of the same thread."""

import harness
import pythons
import pytest
from inline import Source, check_sums, names, running

MARK = "[another interpreter]"
CUT = "[incomplete]"
# To 3.9 nothing proves how the thread states of one thread belong together.
PROVED = (3, 10)
# The share of samples in what an interpreter runs, at least: it may take long to make one.
ENOUGH = 0.1

# run(code) makes an interpreter, runs code in it and ends it; with make and launch between where Python shows them.
RUN = '''
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
    # Only this kind may have threads before 3.12.
    import sys
    return module.create(isolated=False) if sys.version_info[:2] in ((3, 10), (3, 11)) else module.create()
def launch(interpreter, code):
    execute(interpreter, code)  #: launch
def run(code):
    if not module: return execute(code)
    interpreter = make()
    launch(interpreter, code)
    module.destroy(interpreter)
'''

LEAF = '''
def sub_leaf():
    for _ in range(400000): pass
def sub_root():
    for _ in range(5): sub_leaf()
sub_root()
'''

CALLED = Source(RUN + "CODE = '''" + LEAF + "'''\n" + '''
def main():
    while True: run(CODE)
ready()
main()
''')

# An interpreter in an interpreter: both call.
NESTED = Source("RUN = r\'\'\'" + RUN.replace("'''", '"""') + "\'\'\'\n" + "LEAF = '''" + LEAF + "'''\n" + '''
exec(RUN)
MIDDLE = RUN + """
def middle_root():
    run(LEAF)
def middle_spin():
    for _ in range(400000): pass
middle_spin()
middle_root()
"""
def main():
    while True: run("LEAF = %r\\n" % LEAF + MIDDLE)
ready()
main()
''')

# Threads of a subinterpreter, which itself is run from a function of the main thread.
THREADED = Source(RUN + """
CODE = '''
import threading
def worker():
    for _ in range(3000000): pass
def sub_wait():
    threads = [threading.Thread(target=worker) for _ in range(2)]
    for thread in threads: thread.start()
    for _ in range(1000000): pass
    for thread in threads: thread.join()
sub_wait()
'''
def main():
    while True: run(CODE)
ready()
main()
""")


# Most of the time without the GIL, in turns with a function of the main interpreter.
RELEASED = Source(RUN + """
CODE = '''
import os
import zlib
DATA = os.urandom(1 << 20)
def sub_pack():
    zlib.compress(DATA, 9)
'''
def main_spin():
    for _ in range(100000): pass
def main():
    interpreter = make()
    execute(interpreter, CODE)
    while True:
        main_spin()
        launch(interpreter, "sub_pack()")
ready()
main()
""")


def can(interpreter):
    return pythons.can_run(interpreter, RUN + "run('import threading')")


def with_subinterpreters(least=(2, 7)):
    found = [item for item in pythons.interpreters() if item.version >= least and can(item)]
    return [pytest.param(item, id=item.name) for item in found]


def measure(interpreter, source, seconds=0.8):
    with running(interpreter, source) as target:
        run = harness.record_busy(target.pid, rate=1999, seconds=seconds)
    samples = run.stats["samples"]
    assert samples["taken"] >= 100, run.stats
    assert samples["lost"] <= 0.02 * samples["taken"], run.stats
    return run


CALLERS = ["<module>", "main", "run"]


def assert_cut(run, cut, share=0.01):
    """While 3.10's and 3.11's C code enters a run of the evaluation loop, its cframe proves nothing."""
    assert cut == run.stats["incomplete"]["no_callers"], run.stats
    assert cut <= share * run.stats["samples"]["taken"], run.stats


@pytest.mark.parametrize("interpreter", with_subinterpreters())
def test_callers_of_a_subinterpreter(interpreter):
    """Each stack begins with the callers, or says that it cannot; while an interpreter is made, too."""
    proved = interpreter.version >= PROVED
    run = measure(interpreter, CALLED)
    inside = cut = 0
    for stack, count in check_sums(run):
        own = names(stack)
        if "sub_leaf" in own:
            inside += count
        if own[0] == CUT:
            cut += count
            assert MARK not in own, harness.show(stack)
            if proved:
                continue
        if proved:
            assert own[:2] == CALLERS[: len(own)][:2], harness.show(stack)
            assert own.count(MARK) <= 1, harness.show(stack)
        if proved and "sub_leaf" in own:
            at = own.index(MARK)
            assert own[:at] in (CALLERS, CALLERS + ["launch"]), harness.show(stack)
            assert own[at + 1 :] == ["<module>", "sub_root", "sub_leaf"], harness.show(stack)
            if own[at - 1] == "launch":
                assert stack[at - 1].line == CALLED.line("launch"), harness.show(stack)
        if not proved and "sub_leaf" in own:
            assert own == [CUT, "<module>", "sub_root", "sub_leaf"], harness.show(stack)
    samples = run.stats["samples"]
    assert inside >= ENOUGH * samples["taken"], run.stats
    assert_cut(run, cut, 0.01 if proved else 1)
    # An interpreter that is being made has no frames most of the time: its maker has.
    assert samples["python"] >= 0.99 * samples["taken"], run.stats


@pytest.mark.parametrize("interpreter", with_subinterpreters(PROVED))
def test_nested_subinterpreters(interpreter):
    run = measure(interpreter, NESTED)
    deep = cut = 0
    for stack, count in check_sums(run):
        own = names(stack)
        if own[0] == CUT:
            cut += count
            continue
        assert own[:2] == CALLERS[:2], harness.show(stack)
        if "sub_leaf" not in own and "middle_spin" not in own:
            continue
        first = own.index(MARK)
        assert own[:first] in (CALLERS, CALLERS + ["launch"]), harness.show(stack)
        if "middle_spin" in own:
            assert own[first + 1 :] == ["<module>", "middle_spin"], harness.show(stack)
            continue
        deep += count
        second = own.index(MARK, first + 1)
        between = ["<module>", "middle_root", "run"]
        assert own[first + 1 : second] in (between, between + ["launch"]), harness.show(stack)
        assert own[second + 1 :] == ["<module>", "sub_root", "sub_leaf"], harness.show(stack)
    assert deep >= ENOUGH * run.stats["samples"]["taken"], run.stats
    assert_cut(run, cut)
    assert sum(run.stats["incomplete"].values()) == cut, run.stats


@pytest.mark.parametrize("interpreter", with_subinterpreters(PROVED))
def test_threads_of_a_subinterpreter(interpreter):
    """They have no callers in another interpreter; the thread that runs the interpreter has."""
    seen = {"worker": 0, "sub_wait": 0}
    # Beside a load one of them may have no CPU for the time of a run.
    for _ in range(8):
        for stack, count in check_sums(measure(interpreter, THREADED)):
            own = names(stack)
            for name in seen:
                seen[name] += count if name in own else 0
            if "worker" in own:
                assert not {MARK, "<module>", "main"} & set(own), harness.show(stack)
            if "sub_wait" in own:
                assert own[:2] == CALLERS[:2] and own.count(MARK) == 1, harness.show(stack)
        if all(seen.values()):
            return
    raise AssertionError(seen)


@pytest.mark.parametrize("interpreter", with_subinterpreters())
def test_a_subinterpreter_without_the_gil(interpreter):
    """To 3.11 a thread that has released the GIL does not say which of its states it attached last."""
    if not pythons.can_run(interpreter, "import zlib\n" + RUN + "execute(make(), 'import zlib')"):
        pytest.skip("%s has no zlib, or keeps no interpreter" % interpreter.name)
    run = measure(interpreter, RELEASED)
    packs = sum(count for stack, count in check_sums(run) if "sub_pack" in names(stack))
    assert packs >= ENOUGH * run.stats["samples"]["taken"], run.stats
