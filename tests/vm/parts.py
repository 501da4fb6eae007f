# SPDX-License-Identifier: Apache-2.0
"""What each mode of pybpf is shown by in a virtual machine: a part for each, which says at its end what it did.

    parts.py PART      prints lines "NAME NUMBER"; tests/vm/modes.py holds pybpf's results against them

It must start with "python -S", and quickly: an emulated CPU is some twenty times slower than this machine's. So each
part imports for itself what only it needs.
"""

import os
import sys
import threading
import time

PAGE = 4096
KEPT = 2 << 20  # bytes that keeps() keeps, and returns() gives back
CALLS = 300  # of what is counted
NAPS = 12
NAP_S = 0.1
ROUNDS = 10
FOUND_S = 4  # within which pybpf has found asyncio in a process
GARBAGE = 60000  # objects that a collection goes through
BLOCK_S = 0.1  # for which a callback blocks its loop


def say(numbers):
    sys.stdout.write("".join("%s %s\n" % item for item in numbers.items()))
    sys.stdout.flush()


def spins(seconds):
    """The one thing that uses a CPU and does nothing else. Returns the CPU time of this thread."""
    begin = time.thread_time()
    while time.thread_time() < begin + seconds:
        total = 0
        for number in range(500):
            total += number
    return time.thread_time() - begin


def part_spins():
    return {"cpu_s": spins(1.0)}


def switch_cpu(number, on):
    with open("/sys/devices/system/cpu/cpu%d/online" % number, "wb") as file:
        file.write(b"1" if on else b"0")


def comes_back(seconds):
    return spins(seconds)


def comes_back_at_once(seconds):
    return spins(seconds)


def part_moves():
    """
    A CPU is offline for some seconds, and then for less time than passes between two looks at the list of CPUs: events of
    both times are gone. Either time it is long until the thread goes on there.
    """
    said = {}
    for name, away_s, wait_s in (("comes_back", 3, 4), ("comes_back_at_once", 0, 13)):
        switch_cpu(1, False)
        time.sleep(away_s)
        switch_cpu(1, True)
        time.sleep(wait_s)
        os.sched_setaffinity(0, {1})
        said[name] = globals()[name](1.0)
        os.sched_setaffinity(0, {0, 1})
    return said


def naps():
    for _ in range(NAPS):
        time.sleep(NAP_S)


def part_sleeps():
    begin = time.monotonic()
    naps()
    return {"slept_us": (time.monotonic() - begin) * 1e6, "asked_us": NAPS * NAP_S * 1e6, "naps": NAPS}


def read_queued_s():
    """For how long this thread has waited for a CPU, by the kernel's own count."""
    with open("/proc/thread-self/schedstat", "rb") as file:
        return int(file.read().split()[1]) / 1e9


def contend(name, waited):
    """Computes. For how long this thread was neither on a CPU nor waiting for one lies between two numbers, of us."""
    began = time.monotonic()
    queued_s = read_queued_s()
    begin = time.monotonic()
    cpu_s = spins(0.6)
    end = time.monotonic()
    queued_s = read_queued_s() - queued_s
    waited[name + "_least_us"] = (end - begin - queued_s - cpu_s) * 1e6
    waited[name + "_most_us"] = (time.monotonic() - began - cpu_s) * 1e6


def first(waited):
    contend("first", waited)


def second(waited):
    contend("second", waited)


def part_contends():
    """Each of two threads has the GIL while the other one wants it."""
    waited = {}
    threads = [threading.Thread(target=function, args=(waited,)) for function in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return waited


def handles():
    try:
        raise ValueError
    except ValueError:
        return spins(0.04)


def part_raises():
    handled_s = 0.0
    for _ in range(ROUNDS):
        handled_s += handles()
        spins(0.04)
    return {"handled_s": handled_s}


def map_pages():
    """Touches each page of a mapping. Small pages, so that each is one fault."""
    import mmap

    memory = mmap.mmap(-1, KEPT, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    except OSError:  # a kernel without large pages, such as one with PREEMPT_RT
        pass
    for page in range(0, KEPT, PAGE):
        memory[page] = 1
    return memory


def keeps():
    return map_pages()


def returns():
    map_pages().close()


def part_maps():
    returns()
    memory = keeps()
    pages = len(memory) // PAGE
    spins(0.1)
    return {"pages": pages, "bytes": len(memory)}


def reads_zeros(zeros, kept):
    kept.append(os.read(zeros, 1 << 20))


def part_reads_zeros():
    """Until it is killed: calls that never sleep, of a program that takes more and more memory, and gives it back."""
    zeros = os.open("/dev/zero", os.O_RDONLY)
    say({"ready": 1})
    while True:
        kept = []
        for _ in range(64):
            reads_zeros(zeros, kept)


def opens():
    for _ in range(CALLS):
        os.close(os.open("/dev/null", os.O_RDONLY))


def part_opens():
    opens()
    return {"calls": CALLS}


def part_opens_long():
    """For samples of the timer within the system call."""
    begin, calls = time.thread_time(), 0
    while time.thread_time() < begin + 1.5:
        opens()
        calls += CALLS
    return {"cpu_s": time.thread_time() - begin, "calls": calls}


def asks_parent():
    for _ in range(CALLS):
        os.getppid()


def part_asks_parent():
    asks_parent()
    return {"calls": CALLS}


def collects():
    import gc

    gc.disable()
    objects = [[] for _ in range(GARBAGE)]
    begin = time.thread_time()
    while time.thread_time() < begin + 0.8:
        gc.collect()
    return time.thread_time() - begin, objects


def part_collects():
    collected_s, _ = collects()
    spins(0.4)
    return {"collected_s": collected_s}


def answers(end):
    """Waits for each byte that asks() writes. Returns the time of that."""
    begin = time.monotonic()
    for _ in range(ROUNDS):
        os.read(end, 1)
    return (time.monotonic() - begin) * 1e6


def asks(end):
    for _ in range(ROUNDS):
        time.sleep(NAP_S)
        os.write(end, b"1")


def part_pipes():
    read_end, write_end = os.pipe()
    asker = threading.Thread(target=asks, args=(write_end,), name="asker")
    asker.start()
    waited_us = answers(read_end)
    asker.join()
    return {"waited_us": waited_us, "tid": asker.native_id}


def part_blocks():
    """A task by the name of mill, whose steps block its loop."""
    import asyncio

    cpu_s, wall_s = [], []
    began = time.monotonic()

    async def grinds():
        await asyncio.sleep(FOUND_S)
        for _ in range(ROUNDS):
            begin = time.monotonic()
            cpu_s.append(spins(BLOCK_S))
            wall_s.append(time.monotonic() - begin)
            await asyncio.sleep(0.01)

    async def main():
        await asyncio.create_task(grinds(), name="mill")

    asyncio.run(main())
    # A callback begins before its clock is read, and ends after: the loop slept for no less than it was asked to.
    at_most_s = time.monotonic() - began - FOUND_S - ROUNDS * 0.01
    return {"blocks": ROUNDS, "cpu_s": sum(cpu_s), "wall_s": sum(wall_s), "at_most_s": at_most_s}


def part_suspends():
    """Until it is killed: a task by the name of rests that is suspended while another one runs now and then."""
    import asyncio

    async def dozes():
        await asyncio.sleep(3600)

    async def main():
        rests = asyncio.create_task(dozes(), name="rests")
        await asyncio.sleep(0)
        say({"ready": 1})
        while not rests.done():
            spins(0.01)
            await asyncio.sleep(0.1)

    asyncio.run(main())


def part_mills():
    """Until it is killed: one thread that computes, which is not the main one."""
    miller = threading.Thread(target=lambda: [spins(0.1) for _ in iter(int, 1)], name="miller", daemon=True)
    miller.start()
    say({"tid": miller.native_id, "ready": 1})
    miller.join()


def sleeps_on():
    time.sleep(1e6)


def part_stands():
    """Until it is killed, for whoever looks from outside: a thread that naps, one that sleeps, and one that computes."""
    threading.Thread(target=lambda: [naps() for _ in iter(int, 1)], name="napper", daemon=True).start()
    threading.Thread(target=sleeps_on, name="sleeper", daemon=True).start()
    say({"ready": 1})
    while True:
        spins(0.1)


def part_replaces():
    """
    The same program again in the same process, twice, where the kernel puts things at the same addresses: its main thread
    has the thread pointer then that it had before.
    """
    round_number = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if round_number < 2:
        with open("/proc/sys/kernel/randomize_va_space", "w") as switch:
            switch.write("0")
        os.execv(sys.executable, [sys.executable, "-S", sys.argv[0], "replaces", str(round_number + 1)])
    threading.Thread(target=sleeps_on, daemon=True).start()
    cpu_s = spins(3)
    with open("/proc/sys/kernel/randomize_va_space", "w") as switch:
        switch.write("2")
    return {"cpu_s": cpu_s}


def main():
    said = globals()["part_" + sys.argv[1]]()
    say({**said, "process_cpu_s": time.process_time()})


main()
