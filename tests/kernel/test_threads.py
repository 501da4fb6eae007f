# SPDX-License-Identifier: Apache-2.0
"""Threads, many and foreign ones; a target that forks, executes another program, or has several interpreters."""
import glob
import json
import os
import shutil
import subprocess

import harness
import pythons
import pytest
from inline import (
    Source,
    check_sums,
    cpu_time,
    go,
    names,
    native,
    newest,
    recording,
    running,
    two,
)

# Each thread has a function of its own, and says which.
CROWD = Source("""
def make(n):
    scope = {"time": time, "go": go}
    exec('''
def worker_%d(release):
    while True:
        sum(range(3000))
        if release: time.sleep(0.02)
''' % n, scope)
    return scope["worker_%d" % n]
count = int(sys.argv[1])
threads = [threading.Thread(target=make(n), args=(count > 2,)) for n in range(count)]
for thread in threads:
    thread.daemon = True
    thread.start()
while not all(thread.native_id for thread in threads): time.sleep(0.01)
ready(threads={thread.native_id: n for n, thread in enumerate(threads)})
while True: time.sleep(100)
""")

# Threads that Python never hears of.
HELPER = r"""
#include <pthread.h>
volatile unsigned long turns;
static void *spin(void *arg) { for (;;) turns++; return arg; }
int spin_natively(int n)
{
	pthread_t thread;
	while (n-- > 0)
		if (pthread_create(&thread, 0, spin, 0)) return -1;
	return 0;
}
"""

NATIVE = Source("""
import ctypes
def busy():
    while True: sum(range(3000))
def main():
    assert ctypes.CDLL(sys.argv[1]).spin_natively(2) == 0
    ready()
    busy()
main()
""")

# io_uring's poller: a thread that the kernel runs in the process. It wakes up once, and spins from then on.
POLLER = Source("""
import ctypes
IO_URING_SETUP, IO_URING_ENTER = 425, 426
SETUP_SQPOLL, ENTER_SQ_WAKEUP = 2, 2
def poller():
    parameters = (ctypes.c_uint * 30)()  # struct io_uring_params
    parameters[2], parameters[4] = SETUP_SQPOLL, 1000000000  # flags, sq_thread_idle in ms
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(IO_URING_SETUP, 8, parameters)
    if ring < 0: return os.strerror(ctypes.get_errno())
    for _ in range(5):
        time.sleep(0.02)
        libc.syscall(IO_URING_ENTER, ring, 0, 0, ENTER_SQ_WAKEUP, None, 0)
def leaf_of_one():
    for _ in range(6): pass
def leaf_of_two():
    for _ in range(6): pass
def one():
    leaf_of_one(); leaf_of_one()
def two():
    leaf_of_two(); leaf_of_two()
def spin():
    while True: one(); two()
failed = poller()
ready(failed=failed)
if not failed: spin()
""")

FORK = Source("""
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def before():
    spin(0.2)
def parent():
    spin(0.8)
def child():
    spin(0.4)
def main():
    go()
    before()
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
    parent()
    status = os.waitpid(pid, 0)[1]
    ready(status=status)
    time.sleep(100)
ready()
main()
""")

EXEC = Source("""
def first_program():
    end = time.process_time() + 0.3
    while time.process_time() < end: pass
    os.execvp(sys.argv[1], sys.argv[1:])
ready()
go()
first_program()
""")

SECOND = Source("""
def deeper():
    end = time.process_time() + 0.7
    while time.process_time() < end: pass
def second_program():
    deeper()  #: deeper
second_program()
ready()
time.sleep(100)
""")

SUBINTERPRETER = Source("""
def main_spin():
    end = time.thread_time() + float(sys.argv[1])
    while time.thread_time() < end: pass
code = '''
import time
def sub_leaf():
    end = time.thread_time() + %s
    while time.thread_time() < end: pass
def sub_root():
    sub_leaf()
sub_root()
''' % sys.argv[1]
try:
    import _interpreters as interpreters
    run = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    run = interpreters.run_string
aside = []  # CPU seconds without those of sub_leaf
def thread_root():
    begin = time.thread_time()
    run(interpreters.create(), code)
    aside.append(time.thread_time() - begin - float(sys.argv[1]))
threads = [threading.Thread(target=thread_root) for _ in range(2)]
ready()
go()
for thread in threads: thread.start()
main_spin()
for thread in threads: thread.join()
ready(aside_s=sum(aside))
time.sleep(100)
""")


def with_native_ids():
    found = [item for item in native() if item.version >= (3, 8)]
    return found[-1] if found else None


def thread_times(pid):
    """CPU seconds of each thread of a process."""
    return {int(task): cpu_s_of("/proc/%d/task/%s" % (pid, task)) for task in os.listdir("/proc/%d/task" % pid)}


def cpu_s_of(task):
    with open(task + "/schedstat", encoding="ascii") as stat:
        return int(stat.read().split()[0]) / 1e9


def busy_since(before, pid):
    """The threads of which ten samples are to be expected."""
    return {tid for tid, cpu_s in thread_times(pid).items() if tid != pid and cpu_s - before.get(tid, cpu_s) > 0.005}


@pytest.mark.parametrize("count", [1, 100, 500])
def test_many_threads(count):
    interpreter = with_native_ids()
    if not interpreter:
        pytest.skip("no Python of 3.8 or later here")
    with running(interpreter, CROWD, count) as target, recording(target.pid, "--threads", rate=1999) as recorder:
        before = thread_times(target.pid)
        harness.wait_for(lambda: len(busy_since(before, target.pid)) > 0.9 * count, step=0.2)
        busy = busy_since(before, target.pid)
        run = recorder.finish()
    stacks = check_sums(run)
    samples = run.stats["samples"]
    owners = {int(tid): n for tid, n in target.says["threads"].items()}
    seen = set()
    for stack, _ in stacks:
        # "name (TID)" parses as a function's name and file.
        assert stack[0].file.isdigit(), "no thread stands at the root of %s" % harness.show(stack)
        tid = int(stack[0].file)
        workers = [name for name in names(stack) if name.startswith("worker_")]
        if tid == target.pid:
            assert not workers, harness.show(stack)
        elif workers:
            assert workers == ["worker_%d" % owners[tid]], harness.show(stack)
            seen.add(tid)
    assert samples["lost"] == 0, run.stats
    assert samples["python"] >= 0.98 * samples["taken"], run.stats
    assert len(seen & busy) >= 0.9 * len(busy), "%d of %d threads were seen" % (len(seen & busy), len(busy))


def test_threads_are_merged_unless_asked_for():
    with running(newest(), CROWD, 2) as target:
        run = harness.record_busy(target.pid)
    for stack, _ in check_sums(run):
        assert not stack[0].file.isdigit(), harness.show(stack)


@pytest.fixture(scope="module")
def helper(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler: threads outside of Python cannot be made")
    folder = tmp_path_factory.mktemp("native")
    source, library = folder / "spin.c", folder / "spin.so"
    source.write_text(HELPER)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-lpthread"], check=True)
    return library


def python_and_others(before, pid):
    """CPU seconds of the first thread since then, and of the others."""
    took = {tid: cpu_s - before[tid] for tid, cpu_s in thread_times(pid).items()}
    return took[pid], sum(took.values()) - took[pid]


@pytest.mark.parametrize("interpreter", [pytest.param(item, id=item.name) for item in two()])
def test_threads_without_python(interpreter, helper):
    with running(interpreter, NATIVE, helper) as target, recording(target.pid, rate=1999) as recorder:
        before = thread_times(target.pid)
        harness.wait_for(lambda: min(python_and_others(before, target.pid)) > 0.1)
        own, others = python_and_others(before, target.pid)
        run = recorder.finish()
    stacks = check_sums(run)
    foreign = run.stats["without_python"]["no_thread_state"]
    samples = run.stats["samples"]
    # As many for their CPU time, or half of that: a busy machine leaves some of the timer out.
    assert foreign >= 0.5 * 1999 * others, (others, run.stats)
    assert samples["python"] >= 0.5 * 1999 * own, (own, run.stats)
    assert samples["python"] + foreign >= 0.99 * samples["taken"], run.stats
    assert samples["lost"] == 0, run.stats
    for stack, _ in stacks:
        assert names(stack)[:2] == ["<module>", "main"], harness.show(stack)
    assert "threads that Python does not know" in run.err


def poller_of(pid):
    """The TID of the kernel's thread."""
    for task in glob.glob("/proc/%d/task/*" % pid):
        with open(task + "/comm", encoding="utf-8") as comm:
            if comm.read().startswith("iou-sqp"):
                return int(os.path.basename(task))
    raise AssertionError("the kernel has no thread there")


@pytest.mark.parametrize("interpreter", [pytest.param(item, id=item.name) for item in two()])
@pytest.mark.parametrize("feature", ["all", "task_storage"])
def test_thread_of_the_kernel(interpreter, feature):
    """It has the thread pointer of the Python thread that made it, and none of its frames, which move meanwhile."""
    without = ["--without-kernel-feature", feature] if feature != "all" else []
    with running(interpreter, POLLER) as target:
        if target.says["failed"]:
            pytest.skip("no io_uring with a poller here: " + target.says["failed"])
        poller = poller_of(target.pid)
        with recording(target.pid, *without, rate=4000) as recorder:
            before = thread_times(target.pid)

            def took():
                now = thread_times(target.pid)
                return now[poller] - before[poller], now[target.pid] - before[target.pid]

            harness.wait_for(lambda: min(took()) > 0.2)
            polled, spun = took()
            run = recorder.finish()
    for stack, _ in check_sums(run):
        assert "poller" not in names(stack), harness.show(stack)
        own = names(stack)[names(stack).index("spin") + 1 :]
        assert own in ([], ["one"], ["two"], ["one", "leaf_of_one"], ["two", "leaf_of_two"]), harness.show(stack)
    # As many for its CPU time, or half of that: a busy machine leaves some of the timer out.
    assert run.stats["without_python"]["no_thread_state"] >= 0.5 * 4000 * polled, (polled, spun, run.stats)
    assert run.stats["samples"]["python"] >= 0.5 * 4000 * spun, (polled, spun, run.stats)


@pytest.mark.parametrize("interpreter", [pytest.param(item, id=item.name) for item in two()])
def test_fork(interpreter):
    """The child is another process, and does not disturb the parent's."""
    with running(interpreter, FORK) as target, recording(target.pid) as recorder:
        go(target)
        says = harness.read_ready_line(target.process)
        run = recorder.finish()
    assert says["status"] == 0
    leaves = {}
    for stack, count in check_sums(run):
        assert "child" not in names(stack), harness.show(stack)
        own = names(stack)
        if own[-1] == "spin":
            assert own[:-2] == ["<module>", "main"], harness.show(stack)
            leaves[own[-2]] = leaves.get(own[-2], 0) + count
    assert set(leaves) == {"before", "parent"}
    assert leaves["parent"] > leaves["before"]
    assert run.stats["samples"]["lost"] <= 3, run.stats


def exec_pairs():
    found = two()
    return [(found[0], found[-1]), (found[-1], found[0])] if len(found) > 1 else [(found[0], found[0])]


@pytest.mark.parametrize(
    "first,second", [pytest.param(*pair, id="%s-%s" % (pair[0].name, pair[1].name)) for pair in exec_pairs()]
)
def test_exec_of_another_python(first, second):
    """The PID stays, all else is new: layout, addresses, names."""
    with running(first, EXEC, *second.argv, "-c", SECOND.text) as target:
        with recording(target.pid) as recorder:
            go(target)
            harness.read_ready_line(target.process)
            run = recorder.finish()
    seen = {"first_program": 0, "second_program": 0}
    for stack, count in check_sums(run):
        own = names(stack)
        for name in seen:
            seen[name] += count if name in own else 0
        assert not ("first_program" in own and "second_program" in own), harness.show(stack)
        if "second_program" in own:
            at = own.index("second_program")
            assert own[at - 1] == "<module>", harness.show(stack)
            assert own[at + 1 :] in ([], ["deeper"]), harness.show(stack)
            assert own[at + 1 :] == [] or stack[at].line == SECOND.line("deeper"), harness.show(stack)
    # The second program has been at work for a while when it is found.
    assert seen["first_program"] >= 100 and seen["second_program"], (seen, run.stats)


def test_exec_of_something_else():
    """What is no Python any more is not printed, and its samples have a name in the account."""
    if not shutil.which("sh"):
        pytest.skip("no sh here")
    with running(newest(), EXEC, "sh", "-c", "while :; do :; done") as target:
        with recording(target.pid) as recorder:
            go(target)
            harness.wait_for(lambda: b"while" in command_line(target.pid) and cpu_time(target.pid) > 0.6)
            run = recorder.finish()
    stacks = check_sums(run)
    assert any("first_program" in names(stack) for stack, _ in stacks)
    for stack, _ in stacks:
        assert names(stack)[0] == "<module>", harness.show(stack)
    samples = run.stats["samples"]
    assert samples["asked"] - samples["python"] >= 50, run.stats


def command_line(pid):
    with open("/proc/%d/cmdline" % pid, "rb") as line:
        return line.read()[:40]


def with_subinterpreters():
    chosen = {}
    for item in native():
        if item.version >= (3, 12) and item.kind != "free-threaded":
            chosen.setdefault(item.version, item)
    return [pytest.param(item, id=item.name) for item in chosen.values()]


def has_subinterpreters(interpreter):
    probe = (
        "try: import _interpreters\n"
        "except ImportError: import _xxsubinterpreters as _interpreters\n"
        "i = _interpreters.create(); (getattr(_interpreters, 'exec', 0) or _interpreters.run_string)(i, 'pass')"
    )
    return pythons.can_run(interpreter, probe)


@pytest.mark.parametrize("interpreter", with_subinterpreters())
def test_subinterpreters(interpreter):
    """Their own GIL, their own lists of threads: each thread shows the frames that it runs."""
    if not has_subinterpreters(interpreter):
        pytest.skip("%s has no module for subinterpreters" % interpreter.name)
    with running(interpreter, SUBINTERPRETER, 0.5) as target, recording(target.pid) as recorder:
        go(target)
        aside_s = harness.read_ready_line(target.process)["aside_s"]
        run = recorder.finish()
    seen = {"main_spin": 0, "sub_leaf": 0, "thread_root": 0}
    for stack, count in check_sums(run):
        own = names(stack)
        for name in seen:
            seen[name] += count if name == own[-1] else 0
        if "sub_leaf" in own:
            at = own.index("sub_leaf")
            assert own[at - 2 :] == ["<module>", "sub_root", "sub_leaf"], harness.show(stack)
            assert "main_spin" not in own, harness.show(stack)
        if "main_spin" in own:
            assert own == ["<module>", "main_spin"], harness.show(stack)
    assert seen["main_spin"] >= 50 and seen["sub_leaf"] >= 50, (seen, json.dumps(run.stats))
    # While a subinterpreter spins, the thread's state in the main interpreter is not what it runs.
    assert seen["thread_root"] <= 1.1 * 999 * aside_s + 20, (seen, aside_s, json.dumps(run.stats))
    assert run.stats["samples"]["lost"] == 0, run.stats
