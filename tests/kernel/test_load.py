# SPDX-License-Identifier: Apache-2.0
"""Whatever this kernel has, pybpf does without it as well: the same true stacks on every path."""
import os

import harness
import pytest
from inline import NOTE, SOURCE, Source, check_sums, cpu_time, go, lines, names, recording, running, two

ALL = "bpf_loop,checked_reads,direct_reads,task_regs,task_storage"
WITHOUT = ["", "bpf_loop", "task_storage", "direct_reads", "checked_reads", ALL]

STEADY = Source("""
def leaf():
    while True:
        if time.time() > leaf.until: return
def left():
    leaf()  #: left
def right():
    leaf()  #: right
def both():
    while True:
        leaf.until = time.time() + 0.01
        left()  #: both left
        leaf.until = time.time() + 0.01
        right()  #: both right
ready()
both()  #: module
""")

# A new function for every step, and none is kept: addresses are reused, stacks never stop being new.
STEPS = Source("""
def spin():
    while time.time() < spin.until: pass
def even():
    spin()
def odd():
    spin()
def steps():
    n = 0
    while True:
        scope = {"even": even, "odd": odd}
        exec("def step_%d():\\n    %s()\\n" % (n, "odd" if n % 2 else "even"), scope)
        spin.until = time.time() + 0.004
        scope["step_%d" % n]()
        n += 1
ready()
steps()
""")

# Three call sites take turns, so that no frame can be missing unnoticed.
DEEP = Source("""
def bottom():
    ready()
    while True: pass
def dive(n):
    if n == 0:
        bottom()  #: bottom
    elif n % 3 == 0:
        dive(n - 1)  #: 0
    elif n % 3 == 1:
        dive(n - 1)  #: 1
    else:
        dive(n - 1)  #: 2
sys.setrecursionlimit(1000000)
threading.stack_size(1 << 30)
worker = threading.Thread(target=dive, args=(int(sys.argv[1]),))
worker.daemon = True
worker.start()
while True: time.sleep(100)
""")


def without(features):
    return ["--without-kernel-feature", features] if features else []


def interpreters():
    return [pytest.param(item, id=item.name) for item in two()]


@pytest.mark.parametrize("interpreter", interpreters())
@pytest.mark.parametrize("features", WITHOUT)
def test_true_stacks(interpreter, features):
    with running(interpreter, STEADY) as target:
        run = harness.record_busy(target.pid, *without(features))
    stacks = check_sums(run)
    seen = set()
    for stack, count in stacks:
        assert {frame.file for frame in stack} == {SOURCE}
        assert stack[0].name == "<module>" and stack[0].line == STEADY.line("module"), harness.show(stack)
        if len(stack) < 4:
            continue
        side = stack[2].name
        assert names(stack) == ["<module>", "both", side, "leaf"], harness.show(stack)
        assert side in ("left", "right")
        assert stack[1].line == STEADY.line("both " + side), harness.show(stack)
        assert stack[2].line == STEADY.line(side), harness.show(stack)
        seen.add(side)
    assert seen == {"left", "right"}
    assert run.stats["samples"]["lost"] == 0, run.stats
    assert not any(run.stats["incomplete"].values()), run.stats


@pytest.mark.parametrize("interpreter", interpreters())
@pytest.mark.parametrize("features", WITHOUT)
def test_new_stacks_keep_coming(interpreter, features):
    with running(interpreter, STEPS) as target:
        run = harness.record_busy(target.pid, *without(features), fewest=400, rate=1999)
    steps = set()
    for stack, _ in check_sums(run):
        own = names(stack)
        assert own[:2] == ["<module>", "steps"], harness.show(stack)
        if len(own) < 4 or not own[2].startswith("step_"):
            continue
        step = int(own[2][5:])
        assert own[3] == ("odd" if step % 2 else "even"), harness.show(stack)
        assert own[4:] in ([], ["spin"]), harness.show(stack)
        steps.add(step)
    assert len(steps) >= 20, "only %d steps were seen" % len(steps)
    assert run.stats["samples"]["lost"] == 0, run.stats


def check_dive(dive, first):
    """Frames of dive from the root on, the first of which has n == first."""
    wanted = [DEEP.line(str(n % 3)) for n in range(first, first - len(dive), -1)]
    if first - len(dive) == -1:
        wanted[-1] = DEEP.line("bottom")
    assert set(names(dive)) == {"dive"}
    assert lines(dive) == wanted


@pytest.mark.parametrize("interpreter", interpreters())
@pytest.mark.parametrize("features", ["", "bpf_loop", "direct_reads", ALL])
@pytest.mark.parametrize("depth", [1, 3000, 7000])
def test_recursion(interpreter, features, depth):
    with running(interpreter, DEEP, depth) as target:
        run = harness.record_busy(target.pid, *without(features), fewest=50, rate=399)
    stacks = [stack for stack, _ in check_sums(run) if "dive" in names(stack)]
    assert stacks
    for stack in stacks:
        at = names(stack).index("dive")
        assert names(stack)[-1] == "bottom"
        assert len(stack) == at + depth + 2, "%d frames" % len(stack)
        check_dive(stack[at:-1], depth)
    assert not any(run.stats["incomplete"].values()), run.stats


@pytest.mark.parametrize("interpreter", interpreters())
def test_deeper_than_is_kept(interpreter):
    """Leaf and root stay, the cut between them is marked with its length, and the account tells of it."""
    depth = 20000
    with running(interpreter, DEEP, depth) as target:
        run = harness.record_busy(target.pid, fewest=50, rate=399)
    stacks = [item for item in check_sums(run) if "dive" in names(item[0])]
    assert stacks
    for stack, _ in stacks:
        at = names(stack).index("dive")
        cut = [i for i, frame in enumerate(stack) if NOTE.fullmatch(frame.name)]
        assert len(cut) == 1
        missing = int(NOTE.fullmatch(stack[cut[0]].name).group(1))
        assert len(stack) - 1 == 8192
        assert len(stack) - 1 + missing == at + depth + 2
        assert stack[-1].name == "bottom"
        check_dive(stack[at : cut[0]], depth)
        rest = stack[cut[0] + 1 : -1]
        check_dive(rest, len(rest) - 1)
    assert run.stats["incomplete"]["cut"] == harness.total(stacks), run.stats


@pytest.mark.parametrize("interpreter", interpreters())
def test_deeper_than_tail_calls_reach(interpreter):
    """Without bpf_loop the root of such a stack is out of reach: its leaf is right, and it says so."""
    # From 3.11 on a step takes several frames: then it is the limit of any walk, 65,536, that is met.
    depth = 60000 if interpreter.version < (3, 11) else 70000
    with running(interpreter, DEEP, depth) as target:
        run = harness.record_busy(target.pid, *without("bpf_loop"), fewest=50, rate=399)
    stacks = [item for item in check_sums(run) if "dive" in names(item[0])]
    assert stacks
    for stack, _ in stacks:
        assert stack[0].name.startswith("["), harness.show(stack[:3])
        assert stack[-1].name == "bottom"
        cut = next(i for i, frame in enumerate(stack) if NOTE.fullmatch(frame.name))
        walked = len(stack) - 2 + int(NOTE.fullmatch(stack[cut].name).group(1))
        check_dive(stack[1:cut], walked - 2)
        check_dive(stack[cut + 1 : -1], len(stack) - cut - 3)
    assert run.stats["incomplete"]["no_root"] == harness.total(stacks), run.stats


def test_unknown_feature():
    run = harness.pybpf("-p", os.getpid(), "-d", 1, "--without-kernel-feature", "magic")
    assert run.code != 0
    assert "magic" in run.err


@pytest.mark.parametrize("features", WITHOUT)
def test_a_thread_that_begins_later(features):
    """Nothing is remembered of a thread before its first sample."""
    later = Source("""
def late():
    while True: pass
def wait():
    go()
    worker = threading.Thread(target=late)
    worker.daemon = True
    worker.start()
    time.sleep(100)
ready()
wait()
""")
    with running(two()[-1], later) as target, recording(target.pid, *without(features)) as recorder:
        go(target)
        harness.wait_for(lambda: cpu_time(target.pid) > 0.6)
        run = recorder.finish()
    stacks = check_sums(run)
    late = sum(count for stack, count in stacks if names(stack)[-1] == "late")
    assert late >= 50, run.stats
    assert late >= 0.9 * run.stats["samples"]["taken"], run.stats


@pytest.mark.parametrize("features", WITHOUT)
def test_threads_that_are_met_before_they_are_known(features):
    """A sample between a thread's first instruction and its first as Python's costs that sample, not those that follow."""
    count = 60
    starting = Source("""
def late():
    end = time.thread_time() + 0.02
    while time.thread_time() < end: pass
ready()
go()
for i in range(int(sys.argv[1])):
    worker = threading.Thread(target=late)
    worker.start()
    worker.join()
""")
    with running(two()[-1], starting, count) as target:
        with recording(target.pid, *without(features), "-F", 9999) as recorder:
            go(target)
            assert target.process.wait(harness.PATIENCE) == 0
            run = recorder.finish()
    check_sums(run)
    assert run.stats["samples"]["python"] > count * 100
    # It is looked for again after 64 samples in any case, which each thread had to wait for. Its end costs some, too:
    # its thread state is deleted before it ends, and more on a machine whose system calls are dear.
    assert run.stats["without_python"]["no_thread_state"] < 16 * count, run.stats
