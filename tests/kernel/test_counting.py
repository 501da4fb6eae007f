# SPDX-License-Identifier: Apache-2.0
"""Counts are exact, whatever runs out: the table of stacks, the ring buffer, the time between two samples."""
import signal

import harness
import pytest
from inline import Source, check_account, check_sums, go, names, newest, recording, rows, running

# Some thousands of stacks: ten calls, each of them to one of two functions.
TREE = Source("""
def a(n, depth):
    step(n >> 1, depth - 1)
def b(n, depth):
    step(n >> 1, depth - 1)
def step(n, depth):
    if depth:
        (a, b)[n & 1](n, depth)
    else:
        sum(range(500))
def main():
    n = 0
    while True:
        step(n, 11)
        n = (n * 5 + 3) % 2048
ready()
main()
""")

# Depths by the line that the test sends; at each the time is spent at the bottom.
DEPTHS = Source("""
def spin(until):
    while time.thread_time() < until:
        sum(range(20000))
def dive(n, seconds):
    if n: dive(n - 1, seconds)
    else: spin(time.thread_time() + seconds)
def rounds():
    while True:
        go()
        for depth in range(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])):
            dive(depth, float(sys.argv[4]))
        ready()
sys.setrecursionlimit(1000000)
threading.stack_size(1 << 30)
worker = threading.Thread(target=rounds)
worker.daemon = True
ready()
worker.start()
while True: time.sleep(100)
""")

# Up and down between the root and some depth: nearly every sample has a stack of its own.
YOYO = Source("""
def dive(n):
    x = n * n
    if n: dive(n - 1)
    return x
def main():
    while True: dive(int(sys.argv[1]))
sys.setrecursionlimit(1000000)
threading.stack_size(1 << 30)
worker = threading.Thread(target=main)
worker.daemon = True
ready()
worker.start()
while True: time.sleep(100)
""")

# Functions that run when the ring buffer is full of deep stacks, run again, and are gone before anyone could read them.
LATE = Source("""
def spin(seconds):
    until = time.thread_time() + seconds  # of its CPU time: so long it is sampled, whatever else runs
    while time.thread_time() < until: sum(range(20000))
def dive(n):
    if n: dive(n - 1)
    else: spin(0.02)
def make(name):
    space = {"spin": spin}
    exec("def %s(): spin(0.02)" % name, space)
    return space.pop(name)
def fill():  # also with what fits where a larger stack does not
    for depth in list(range(7950, 8000)) + list(range(980, 1000)) + list(range(80, 100)) + list(range(20, -1, -1)): dive(depth)
def rounds():
    go()
    late = [make("late_%d" % i) for i in range(20)]
    fill()
    for function in late: function()
    ready()
    go()
    for function in late: function()
    del late, function
    others = [make("other_%d" % i) for i in range(200)]  # where those were
    ready()
    go()
sys.setrecursionlimit(1000000)
threading.stack_size(1 << 30)
worker = threading.Thread(target=rounds)
worker.daemon = True
ready()
worker.start()
while True: time.sleep(100)
""")

# Touches memory at each depth, so that each touch has a stack of its own.
TOUCHES = Source("""
kept = []
def dive(n):
    if n: dive(n - 1)
    else: kept.append(b"x" * 400000)
def rounds():
    go()
    for depth in range(7900, 8000): dive(depth)
    ready()
    go()
sys.setrecursionlimit(1000000)
threading.stack_size(1 << 30)
worker = threading.Thread(target=rounds)
worker.daemon = True
ready()
worker.start()
while True: time.sleep(100)
""")

# 4 MiB hold so many stacks of 8,000 frames, 16 bytes each.
RING_HOLDS = (4 << 20) // (8000 * 16)


@pytest.mark.parametrize("room", [1, 64, 500])
def test_full_table(room):
    """Stacks that find no room are counted under that name; those that found room are counted on."""
    with running(newest(), TREE) as target:
        run = harness.record_busy(target.pid, "--max-stacks", room, fewest=10, rate=4999, seconds=1.5)
    stacks = check_sums(run)
    lost = run.stats["lost"]
    assert lost["stack_table_full"] > 0, run.stats
    assert 0 < len(stacks) <= room
    assert run.stats["stacks"] <= room
    for cause, count in lost.items():
        assert cause == "stack_table_full" or count <= 0.01 * run.stats["samples"]["asked"], run.stats
    assert str(lost["stack_table_full"]) in run.err and "--max-stacks" in run.err


def test_room_for_all():
    with running(newest(), TREE) as target:
        run = harness.record_busy(target.pid, fewest=4000, rate=9999)
    stacks = check_sums(run)
    assert len(stacks) > 500, run.stats
    assert run.stats["samples"]["lost"] == 0, run.stats
    for stack, _ in stacks:
        assert names(stack)[:2] == ["<module>", "main"], harness.show(stack)
        # step, then a or b, step, and so on: at most eleven of the latter.
        own = names(stack)[2:]
        assert all(name == "step" for name in own[::2]), harness.show(stack)
        assert all(name in ("a", "b") for name in own[1::2]), harness.show(stack)
        assert len(own) <= 2 * 11 + 1, harness.show(stack)


@pytest.mark.parametrize("threads", [False, True])
def test_high_rate(threads):
    with running(newest(), TREE) as target:
        run = harness.record_busy(target.pid, *["--threads"] * threads, fewest=2000, rate=9999)
    stacks = check_sums(run)
    assert run.stats["freq_hz"] == 9999
    assert run.stats["samples"]["lost"] == 0, run.stats
    # The machine may be busy; a tenth of what was asked for is there all the same.
    assert harness.total(stacks) >= 2000, run.stats
    assert run.stats["samples"]["python"] >= 0.99 * run.stats["samples"]["taken"], run.stats


@pytest.mark.parametrize("depth", [2000, 8000])
@pytest.mark.parametrize("features", ["", "bpf_loop"])
def test_new_deep_stacks_at_every_sample(depth, features):
    """More than the ring buffer holds, all the time: what was counted is printed or said to be missing."""
    options = ["--without-kernel-feature", features] if features else []
    with running(newest(), YOYO, depth) as target:
        run = harness.record_busy(target.pid, *options, rate=1999)
    check_account(run)
    deepest = printed = 0
    for stack, _ in rows(run):
        own = [frame.partition(" (")[0] for frame in stack.split(";")]
        printed += 1
        if "dive" not in own:
            continue
        at = own.index("dive")
        assert own[at - 1] == "main", own[:9]
        assert set(own[at:]) == {"dive"}, set(own)
        deepest = max(deepest, len(own) - at)
    assert depth / 2 < deepest <= depth + 1
    assert printed > 30, run.stats
    assert not any(run.stats["incomplete"].values()), run.stats
    # On a busy machine the process may not be ready at once.
    others = {key: count for key, count in run.stats["lost"].items() if key not in ("ring_buffer_full", "not_ready")}
    assert not any(others.values()), run.stats


def depths_seen(stacks):
    return {names(stack).count("dive") for stack, _ in stacks if names(stack)[-1] == "spin"}


def round_of(target, recorder):
    """Lets the target go through all its depths while nobody empties the ring buffer."""
    recorder.send(signal.SIGSTOP)
    go(target)
    harness.read_ready_line(target.process)
    recorder.send(signal.SIGCONT)


def test_full_ring_is_counted():
    """What was never sampled again stays unsent, and its samples are counted as that."""
    wanted = 2 * RING_HOLDS
    with running(newest(), DEPTHS, 8000 - wanted, 8000, 1, 0.02) as target:
        with recording(target.pid) as recorder:
            round_of(target, recorder)
            run = recorder.finish()
    stacks = check_sums(run)
    assert run.stats["lost"]["ring_buffer_full"] > 0, run.stats
    assert "ring buffer" in run.err
    seen = depths_seen(stacks)
    assert 0 < len(seen) <= RING_HOLDS + 1
    # The time at each depth was the same: about as much is missing as did not fit.
    samples = run.stats["samples"]
    assert samples["python"] < 0.9 * samples["asked"], run.stats


def test_unsent_stacks_come_later():
    """A stack that found the ring buffer full is sent at its next sample, and then nothing of it is missing."""
    wanted = range(8000 - 3 * RING_HOLDS // 2, 8000)
    with running(newest(), DEPTHS, wanted.start, wanted.stop, 1, 0.02) as target:
        with recording(target.pid) as recorder:
            round_of(target, recorder)
            for _ in range(2):
                go(target)
                harness.read_ready_line(target.process)
            run = recorder.finish()
    stacks = check_sums(run)
    # dive(n) has n + 1 frames.
    missing = {depth + 1 for depth in wanted} - depths_seen(stacks)
    assert len(missing) <= len(wanted) / 20, sorted(missing)
    # Some positions in the loop are met once and never again.
    assert run.stats["samples"]["lost"] <= 0.05 * run.stats["samples"]["asked"], run.stats


def test_unsent_functions_come_later():
    """A function that found the ring buffer full is sent at its next sample."""
    with running(newest(), LATE) as target:
        with recording(target.pid) as recorder:
            round_of(target, recorder)
            # Let it empty the buffer. Then they are gone before anybody reads their names in the process's memory.
            harness.wait_for(lambda: harness.state(recorder.process.pid) == "S")
            round_of(target, recorder)
            run = recorder.finish()
    seen = {name for stack, _ in check_sums(run) for name in names(stack)}
    missing = {"late_%d" % i for i in range(20)} - seen
    assert len(missing) <= 1, sorted(missing)
    assert run.stats["code_objects"]["unnamed"] <= 1, run.stats


def test_changes_of_memory_that_were_not_sent_are_counted():
    with running(newest(), TOUCHES) as target:
        with recording(target.pid, "--mode=memory", rate=None) as recorder:
            round_of(target, recorder)
            run = recorder.finish()
    assert run.stats["memory"]["lost_records"] > 0, run.stats
    assert "buffer of the kernel was full" in run.err
