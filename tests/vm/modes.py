#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every mode and option of pybpf that loads another program into the kernel, each with a known answer.

    tests/vm/modes.py table [NAME...]     the rows for tests/vm/run-modes, of these modes or of all that install nothing
    tests/vm/modes.py judge FOLDER        what came of them: a line for each mode, and FOLDER/modes.json
    tests/vm/modes.py compare FOLDER...   the table, mode by kernel, of several such folders

A mode is ok if the program's own words agree with the profile; refused if pybpf says that this kernel cannot, if that
is known of the kernel, and if the sentence is true of it. Everything else has FAILED. Runs in the Python that the
machine ran, since bytecode differs between versions.
"""

import dis
import json
import os
import platform
import re
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Callable, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [HERE, os.path.join(HERE, "..", "e2e")]

import harness  # noqa: E402
import outcomes  # noqa: E402

RATE = 99
FEWEST = 5  # samples: on a busy machine the emulated timers come late, and many as one
OLDEST_LOOP = (5, 17)  # Linux with bpf_loop
NEEDS_LOOP = r"needs? Linux 5\.17 or newer"
SID = "chroot /sid /usr/bin/python3.14"
NEWEST = "chroot /sid /usr/bin/python3.15"
BULLSEYE = "chroot /bullseye /usr/bin/python3.9"
BOOKWORM = "chroot /bookworm /usr/bin/python3.11"
INSTALLERS = "chroot /installers /usr/bin/python3.11"
TRACEPOINT = "-e tracepoint:syscalls:sys_enter_openat"


def names(stack):
    return [frame.name for frame in stack]


def value(stacks, *wanted):
    """The sum of the stacks that have all these frames; a name may be the start of one: "[GIL"."""
    return sum(
        count
        for stack, count in stacks
        if all(any(name == want or want[0] == "[" and name.startswith(want) for name in names(stack)) for want in wanted)
    )


def near(what, found, wanted, low, high):
    assert low * wanted <= found <= high * wanted, "%s: %g, and the program says %g" % (what, found, wanted)


def check_samples(what, found, cpu_s):
    """Checks the samples of a part that took that much CPU time."""
    assert FEWEST <= found <= 1.3 * cpu_s * RATE, "%s: %d, and the program says %.2f s" % (what, found, cpu_s)


def check_share(what, outcome, found, cpu_s):
    """The same; and of however many there are, the part has its share of the process's CPU time."""
    check_samples(what, found, cpu_s)
    expected = outcome.stats["samples"]["asked"] * cpu_s / outcome.said["process_cpu_s"]
    assert found >= 0.4 * expected, "%s: %d, and by its CPU time the program should have %d" % (what, found, expected)


def check_spins(outcome):
    check_share("samples in spins()", outcome, value(outcome.stacks, "part_spins", "spins"), outcome.said["cpu_s"])


def programs_of(outcome):
    return {name for name, _, _ in outcome.programs()}


def check_cpu(outcome):
    """Whose verifier refuses the program with bpf_loop samples by tail calls, and says so with -v only."""
    check_spins(outcome)
    loaded = programs_of(outcome)
    expected = "sample_loop" if outcome.kernel >= OLDEST_LOOP else "sample_chain"
    other = {"sample_loop", "sample_chain"} - {expected}
    assert expected in loaded and not other & loaded, "not %s, but %s" % (expected, sorted(loaded))


def check_replaces(outcome):
    check_share("samples in spins()", outcome, value(outcome.stacks, "part_replaces", "spins"), outcome.said["cpu_s"])


def check_moves(outcome):
    for name in ("comes_back", "comes_back_at_once"):
        check_share("samples in %s()" % name, outcome, value(outcome.stacks, name, "spins"), outcome.said[name])
    assert any("CPUs came online" in line for line in outcome.words), outcome.words


def check_few(outcome):
    """Debian's kernels ask for one more capability by default: that is said, and by doctor, and what to do about it."""
    check_stands(outcome)
    level, status = map(int, outcome.read("level").split())
    first, doctor = outcome.read("first"), outcome.read("doctor")
    asked = "kernel.perf_event_paranoid is %d: `sysctl kernel.perf_event_paranoid=2`" % level
    if level > 2:
        assert status == 1 and asked in first, first
        assert re.search(r"^FAIL +perf limits +kernel.perf_event_paranoid = %d$" % level, doctor, re.M), doctor
    else:
        assert status == 0, first
        assert re.search(r"^ok +perf limits ", doctor, re.M), doctor
    return "kernel.perf_event_paranoid was %d" % level


def check_chain(outcome):
    check_spins(outcome)
    loaded = programs_of(outcome)
    assert {"sample_chain", "chain_walk", "chain_finish"} <= loaded, "there is no chain in %s" % sorted(loaded)


def check_holders(outcome):
    """Two threads that compute: each sample of a holder is in one of them, together as many as one CPU's."""
    for name in ("first", "second"):
        check_samples("samples of holders in %s()" % name, value(outcome.stacks, name, "spins"), 0.6)


def check_exception(outcome):
    check_samples("samples in handles()", value(outcome.stacks, "handles"), outcome.said["handled_s"])
    for stack, count in harness.parse(outcome.read("folded")):
        if "part_raises" in names(stack):
            assert "handles" in names(stack), "%d samples without an exception: %s" % (count, harness.show(stack))


def check_gc(outcome):
    check_share("samples in [gc]", outcome, value(outcome.stacks, "collects", "[gc]"), outcome.said["collected_s"])
    assert not value(outcome.stacks, "spins", "[gc]"), "spins() has %d samples of [gc]" % value(
        outcome.stacks, "spins", "[gc]"
    )


def check_opcodes(outcome):
    """The loops of spins() are made of few instructions, which 3.11 specializes; an emulated clock takes long to read."""
    known = set(dis.opmap) | set(getattr(dis, "_all_opmap", {})) | set(getattr(dis, "_specialized_instructions", ()))
    found = Counter()
    for stack, count in outcome.stacks:
        if names(stack)[-2:-1] == ["spins"]:
            found[names(stack)[-1]] += count
    check_share("samples with an opcode", outcome, sum(found.values()), outcome.said["cpu_s"])
    assert set(found) <= known, "%s are no instructions" % sorted(set(found) - known)
    loop = sum(count for name, count in found.items() if name.startswith(("FOR_ITER", "BINARY_OP", "STORE", "JUMP", "LOAD", "CALL")))
    assert loop >= 0.8 * sum(found.values()), "too few samples are in the loop's instructions: %s" % found


def check_kernel(outcome):
    in_kernel = Counter()
    for stack, count in outcome.stacks:
        if "opens" in names(stack) and names(stack)[-1].endswith("_[k]"):
            in_kernel.update({name: count for name in set(names(stack)) if name.endswith("_[k]")})
    calls = sum(count for name, count in in_kernel.items() if re.search("open|close", name))
    assert calls, "no sample of opens() is in the kernel's open or close: %s" % in_kernel.most_common(9)


def check_native(outcome):
    """From the C library's first function on, with as many runs of the evaluation loop as Python's frames say."""
    check_native_waits(outcome)
    native = outcome.stats["native"]
    assert native["joined"] > native["joined_plus_one"], native


def check_native_waits(outcome):
    """Tables are made slowly here: few of the waits come later."""
    native = outcome.stats["native"]
    assert native["whole"] and native["not_joined"] == 0, native


def check_short(outcome):
    """
    The group is over its limit from the sixteenth call on, and what throttles it is the kernel; also while pybpf still
    looks for Python's functions, which takes an emulated CPU long.
    """
    stalled = value(outcome.stacks, "[other: memory stall]")
    near("us of memory stalls", stalled, sum(count for _, count in outcome.stacks), 0.5, 1)
    assert value(outcome.stacks, "reads_zeros", "[other: memory stall]"), outcome.stacks
    # Waits for locks of the process's memory, which pybpf's reading may hold for some ms, are not told from the call's.
    near("us of waits for /dev/zero", value(outcome.stacks, "[pipe"), stalled, 0, 0.05)


def check_most(outcome, found):
    """Nearly all samples are in these stacks, whatever share of a CPU the program had."""
    assert found >= FEWEST, "only %d samples are where the program is" % found
    near("samples where the program is", found, outcome.stats["samples"]["python"], 0.8, 1)


def check_threads(outcome):
    thread = "miller (%d)" % outcome.said["tid"]
    check_most(outcome, sum(count for stack, count in outcome.stacks if stack[0].text == thread and "spins" in names(stack)))


def check_times(outcome):
    """Each sample has its moment, but those before the process was known: in order, and within the run."""
    profile = json.loads(outcome.read("folded"))
    moments = [moment for moment, _, _ in profile["events"]]
    timed = outcome.stats["samples"]["taken"] - outcome.stats["incomplete"]["untimed"]
    without = sum(outcome.stats["without_python"].values())
    near("samples with a moment", len(moments), timed, 0.9 - without / timed, 1)
    assert moments == sorted(moments) and moments[-1] < 60e9, moments[-3:]
    span_s = (moments[-1] - moments[0]) / 1e9
    assert span_s >= 0.8 * outcome.said["cpu_s"], "the samples lie within %.2f s" % span_s


def check_faults(outcome):
    for name in ("keeps", "returns"):
        near("page faults in %s()" % name, value(outcome.stacks, name, "map_pages"), outcome.said["pages"], 1, 1.05)


def check_no_faults(outcome):
    """All files are in memory, and there is no swap."""
    assert not harness.total(outcome.stacks), "there are major faults: %s" % outcome.stacks


def check_switches(outcome):
    near("switches in naps()", value(outcome.stacks, "naps"), outcome.said["naps"], 1, 3)


def check_calls(name, period=1):
    def check(outcome):
        near("calls in %s()" % name, value(outcome.stacks, name), outcome.said["calls"], 1 - 0.05 * (period > 1), 1 + 0.05 * (period > 1))

    return check


def check_native_calls(outcome):
    check_calls("opens")(outcome)
    check_native_waits(outcome)


def check_held(outcome):
    told = "".join(line for line in outcome.words if "stacks have all bytes that they touched" in line)
    if told:
        assert outcome.kernel < (6, 2), told
        check_touched(outcome)
        return "as --touched"
    near("bytes of keeps()", value(outcome.stacks, "keeps"), outcome.said["bytes"], 0.9, 1.1)
    near("bytes of returns()", value(outcome.stacks, "returns"), outcome.said["bytes"], 0, 0.1)
    return None


def check_touched(outcome):
    """Before 6.2 the kernel gathers changes, and tells them when they cross a boundary of 512 KiB."""
    off = 0.1 if outcome.kernel >= (6, 2) else (512 << 10) / outcome.said["bytes"]
    for name in ("keeps", "returns"):
        near("bytes of %s()" % name, value(outcome.stacks, name), outcome.said["bytes"], 1 - off, 1 + off)


def check_async(outcome):
    """In CPU mode a callback is known from its samples; it may have too few to be known for long."""
    in_task = value(outcome.stacks, "[task: mill]", "spins")
    check_share("samples in the task", outcome, in_task, outcome.said["cpu_s"])
    near("samples of them with their task", in_task, value(outcome.stacks, "spins"), 0.95, 1)
    check_blocks(outcome, 1 / outcome.said["blocks"])


def check_blocks(outcome, least):
    """Callbacks that blocked their loop: none but those, for no longer than the program says."""
    found = [place for place in outcome.stats["loop_blocks"]["longest"] if place["task"] == "[task: mill]"]
    near("callbacks that blocked their loop", sum(place["count"] for place in found), outcome.said["blocks"], least, 1)
    total_s = sum(place["total_s"] for place in found)
    near("s for which they did", total_s, outcome.said["wall_s"], 0.7 * least, 1e6)
    near("s of them at most", total_s, outcome.said["at_most_s"], 0, 1.01)


def check_sleep(outcome):
    """A nap is never shorter than asked for; how much later the thread gets a CPU depends on others."""
    asleep = value(outcome.stacks, "naps", "[sleep]")
    near("us of sleep in naps()", asleep, outcome.said["asked_us"], 0.98, outcome.said["slept_us"] / outcome.said["asked_us"])
    ready = value(outcome.stacks, "naps", "[waiting for a CPU]")
    near("us of naps() without a CPU", asleep + ready, outcome.said["slept_us"], 0.9, 1.01)


def check_wall(outcome):
    check_sleep(outcome)
    spent = harness.total(outcome.stacks)
    assert spent >= outcome.said["slept_us"], "all time is %d us" % spent


def check_offcpu(outcome):
    """One thread naps for all the run, the other one computes."""
    run_us = outcome.stats["duration_s"] * 1e6
    near("us of sleep in naps()", value(outcome.stacks, "naps", "[sleep]"), run_us, 0.5, 1.01)
    assert not value(outcome.stacks, "spins", "[sleep]"), "spins() sleeps"


def check_gil(outcome):
    for name, other in (("first", "second"), ("second", "first")):
        waited = value(outcome.stacks, name, "[GIL")
        least, most = outcome.said[name + "_least_us"], outcome.said[name + "_most_us"]
        near("us of waits for the GIL in %s()" % name, waited, least, 0.7, 1.05 * most / least)
        held = value(outcome.stacks, name, "[GIL: held in spins]") + value(outcome.stacks, name, "[GIL: held in %s]" % other)
        assert held >= 0.3 * waited, "the holder is known of %d of %d us" % (held, waited)


def asker(outcome):
    """The thread of asks(): from 3.14 on Python gives threads their names in the kernel, too."""
    return "[woken by: %s (%d)]" % ("asker" if sys.version_info >= (3, 14) else "python", outcome.said["tid"])


def check_wakers(outcome):
    stacks = outcome.stacks
    near("us of reads in answers()", value(stacks, "answers", "[pipe: read]"), outcome.said["waited_us"], 0.8, 1.01)
    woken = value(stacks, "answers", "[pipe: read]", asker(outcome), "[waker: asks")
    near("us of reads that asks() ended", woken, outcome.said["waited_us"], 0.7, 1.01)


def check_wall_kernel(outcome):
    check_sleep(outcome)
    asleep = sum(
        count
        for stack, count in outcome.stacks
        # A sample on the way there stands for time on a CPU elsewhere, too.
        if re.search(r" naps .*nanosleep\S*_\[k\].* \[(sleep|waiting for a CPU)\]", " ".join(names(stack)))
    )
    near("us in the kernel's nanosleep", asleep, outcome.said["slept_us"], 0.8, 1.01)


def check_wall_async(outcome):
    """The time on a CPU is shared by samples: that of the start, too, if no sample met it."""
    start_us = (outcome.said["process_cpu_s"] - outcome.said["cpu_s"]) * 1e6
    wall_us = outcome.said["wall_s"] * 1e6
    near("us in the task", value(outcome.stacks, "[task: mill]", "spins"), wall_us, 0.4, 1.05 + start_us / wall_us)
    check_blocks(outcome, 0.2)


def check_everything(outcome):
    """All that can be asked for at once: the most that one program has to do."""
    tid = "(%d)" % outcome.said["tid"]
    read = value(outcome.stacks, "answers", "[pipe: read]", asker(outcome), "[waker: asks")
    near("us of reads that asks() ended", read, outcome.said["waited_us"], 0.7, 1.01)
    asleep = sum(
        count
        for stack, count in outcome.stacks
        if stack[0].text.endswith(tid) and {"asks", "[sleep]"} <= set(names(stack))
    )
    near("us of sleep in asks()", asleep, outcome.said["waited_us"], 0.7, 1.1)


def check_suspended(outcome):
    """How often tasks are looked at depends on what that costs: time between two looks, within the run."""
    suspended = value(outcome.stacks, "[suspended tasks]", "[task: rests]", "part_suspends.<locals>.dozes", "sleep", "[awaits: Future]")
    near("us of suspension of the task", suspended, outcome.stats["duration_s"] * 1e6, 0.01, 1.01)
    assert suspended == value(outcome.stacks, "[suspended tasks]", "[task: rests]"), "the task was elsewhere, too"


def check_stands(outcome):
    check_most(outcome, value(outcome.stacks, "part_stands", "spins"))


def check_nearly_all(outcome):
    samples = outcome.stats["samples"]
    assert samples["asked"] >= 200, samples  # of some 2,000, on a machine that does nothing else
    assert samples["python"] >= 0.999 * samples["asked"], outcome.stats
    check_stands(outcome)


def check_top(outcome):
    intervals = [json.loads(line) for line in outcome.read("folded").splitlines()]
    last = intervals[-1]
    totals = {function["name"]: function["all_total"] for function in last["functions"]}
    assert totals.get("spins", 0) >= FEWEST, totals
    near("samples in spins()", totals["spins"], last["all"]["samples"], 0.8, 1)
    return last["all"]


def check_top_states(outcome):
    states = check_top(outcome)["states"]
    if not states.get("causes"):
        assert outcome.kernel < OLDEST_LOOP, "top does not tell what the threads wait for: %s" % states
        return "without causes of waits"
    near("s of sleep", states["causes"]["sleep"], states["asleep_s"], 0.6, 1.01)
    return None


def check_agent_wall(outcome):
    """
    Its three threads live as long as the agent: each has a third. The first epoch may end before stacks are read. Time on
    a CPU is the scheduler's, whose clock in an emulated machine differs by up to 1 % from that of waits.
    """
    total = sum(count for _, count in outcome.stacks)
    near("us of the thread that sleeps throughout", value(outcome.stacks, "sleeps_on", "[sleep]"), total / 3, 0.5, 1.01)
    near("us of the main thread", value(outcome.stacks, "part_stands"), total / 3, 0.5, 1.01)


def check_agent_gil(outcome):
    """The main thread computes, so the one that naps waits for it."""
    waits = value(outcome.stacks, "naps", "[GIL")
    assert waits and waits >= 0.5 * sum(count for _, count in outcome.stacks), outcome.stacks


def check_top_without_states(outcome):
    states = check_top(outcome)["states"]
    assert not states.get("causes"), states


def dumped_threads(outcome):
    process = json.loads(outcome.read("folded"))
    threads = {thread["name"]: thread for thread in process["threads"]}
    assert set(threads) == {"MainThread", "napper", "sleeper"}, sorted(threads)
    functions = {name: [frame["function"] for frame in thread["frames"]] for name, thread in threads.items()}
    assert "part_stands" in functions["MainThread"], functions
    assert "naps" in functions["napper"] and "sleeps_on" in functions["sleeper"], functions
    return threads


def check_dump(outcome):
    dumped_threads(outcome)


def check_frozen(outcome):
    """Who naps may also wait for the GIL, or run."""
    sleeper = dumped_threads(outcome)["sleeper"]
    assert sleeper["state"] == "sleep", sleeper


def check_dump_native(outcome):
    """On arm64 a thread that sleeps is stopped, too: its last function has its return address in a register."""
    process, sleeper = json.loads(outcome.read("folded")), dumped_threads(outcome)["sleeper"]
    assert sleeper["native_whole"] and len(sleeper["native_frames"]) > 5, sleeper
    assert (process["threads_stopped"] < 3) == (platform.machine() == "x86_64"), process["threads_stopped"]


def check_ps(outcome, version=sys.version_info[:3]):
    process = json.loads(outcome.read("folded"))[0]
    assert process["version"].split(".")[: len(version)] == list(map(str, version)) and not process["not_supported"], process


def check_ps_3_11(outcome):
    check_ps(outcome, (3, 11))


# What the kernel has, by the first release that does.
FEATURES = {"bpf_loop": (5, 17), "task registers": (5, 15), "task storage": (6, 4)}
LANDLOCK = (5, 13)


def check_doctor(outcome):
    """Its trial loads the sampler and takes samples of pybpf itself; the rest as docs/install.md has it."""
    said = outcome.read("folded")

    def row(name):
        found = re.search(r"^(\w+) +%s +(.*)" % re.escape(name), said, re.M)
        assert found, said
        return found.group(1), found.group(2)

    assert row("trial")[0] == "ok" and row("trial")[1].startswith("works"), said
    # The emulated Cortex-A72 has no hardware access flag, as the real one.
    marks = "at a page fault" if platform.machine() == "aarch64" else "by the CPU"
    assert row("pages")[1].startswith("marked as used " + marks), said
    for name, since in FEATURES.items():
        assert row(name)[1].startswith("there and used" if outcome.kernel >= since else "not there"), said
    assert ("by Landlock" in row("putting files")[1]) == (outcome.kernel >= LANDLOCK), said
    assert "the main job can run" in said, said


@dataclass
class Mode:
    name: str
    part: str
    options: str
    check: Callable
    # The first kernel that can, and what is said on an older one.
    least: Tuple[int, int] = (5, 10)
    refusal: str = ""
    how: str = "command"
    python: str = "python"
    account: bool = True  # leaves the account of samples

    @property
    def key(self):
        """A name for files."""
        return re.sub(r"\W+", "-", self.name).strip("-")


def loop(*row, **more):
    """A mode that takes bpf_loop."""
    return Mode(*row, least=OLDEST_LOOP, refusal=NEEDS_LOOP, **more)


NEVER = (1 << 16, 0)


def native(*row):
    """A mode that takes bpf_loop, on x86-64."""
    least = OLDEST_LOOP if platform.machine() == "x86_64" else NEVER
    return Mode(*row, least=least, refusal="--native needs Linux 5.17|on x86-64 only|" + NEEDS_LOOP)


MODES = [
    Mode("cpu", "spins", "", check_cpu),
    Mode("cpu, by tail calls", "spins", "--without-kernel-feature bpf_loop", check_chain),
    Mode("cpu, exec at the same addresses", "replaces", "", check_replaces),
    Mode("cpu, CPUs come and go", "moves", "", check_moves),
    Mode("cpu, with three capabilities", "stands", "-p {pid} -d 2", check_few, how="few"),
    Mode("-e cpu-clock", "spins", "-e cpu-clock", check_spins),
    # The emulated CPU counts no cycles.
    Mode("-e cycles", "spins", "-e cycles", check_spins, NEVER, r"-e cycles: .*use -e cpu-clock|cannot open a perf event"),
    Mode("--cgroup", "stands", "--cgroup {cgroup} -d 2", check_stands, how="cgroup"),
    Mode("--threads", "mills", "-p {pid} -d 2 --threads", check_threads, how="attach"),
    Mode("--timestamps", "spins", "--timestamps -f json", check_times),
    Mode("--gil", "contends", "--gil", check_holders),
    Mode("--gc", "collects", "--gc", check_gc),
    Mode("--opcodes", "spins", "--opcodes", check_opcodes),
    Mode("--kernel", "opens_long", "--kernel", check_kernel),
    native("--native", "spins", "--native", check_native),
    native("--mode=wall --native", "sleeps", "--mode=wall --native", check_native_waits),
    native("-e tracepoint --native", "opens_long", TRACEPOINT + " --native", check_native_calls),
    Mode("--async, --async-block", "blocks", "--async --async-block 80ms", check_async),
    Mode("--mode=exception", "raises", "--mode=exception", check_exception),
    Mode("-e page-faults", "maps", "-e page-faults", check_faults),
    Mode("-e minor-faults", "maps", "-e minor-faults", check_faults),
    Mode("-e major-faults", "maps", "-e major-faults", check_no_faults),
    Mode("-e context-switches", "sleeps", "-e context-switches", check_switches),
    loop("-e tracepoint", "opens", TRACEPOINT, check_calls("opens")),
    loop("-e tracepoint, --period", "opens", TRACEPOINT + " --period 10", check_calls("opens", 10)),
    loop("-e uprobe", "asks_parent", "-e uprobe:{libc}:getppid", check_calls("asks_parent")),
    loop("--mode=memory", "maps", "--mode=memory", check_held),
    loop("--mode=memory --touched", "maps", "--mode=memory --touched", check_touched),
    loop("--mode=wall", "sleeps", "--mode=wall", check_wall),
    loop("--mode=wall --kernel", "sleeps", "--mode=wall --kernel", check_wall_kernel),
    loop("--mode=wall --async, --async-block", "blocks", "--mode=wall --async --async-block 80ms", check_wall_async),
    loop("--mode=wall --async=all", "suspends", "-p {pid} -d 12 --mode=wall --async=all", check_suspended, how="attach", python=SID),
    loop("--mode=wall --wakers", "pipes", "--mode=wall --wakers", check_wakers),
    loop(
        "--mode=wall, all at once",
        "pipes",
        "--mode=wall --wakers --threads --kernel --async --timestamps --min-block 1us -f folded",
        check_everything,
    ),
    loop("--mode=wall, memory.high", "reads_zeros", "--cgroup {cgroup} -d 4 --mode=wall", check_short, how="short"),
    loop("--mode=offcpu", "stands", "-p {pid} -d 2 --mode=offcpu", check_offcpu, how="attach"),
    loop("--mode=gil", "contends", "--mode=gil", check_gil),
    Mode("top", "stands", "top -p {pid} -d 2 --output jsonl", check_top_states, how="look", account=False),
    Mode(
        "top --no-wait-states",
        "stands",
        "top -p {pid} -d 2 --output jsonl --no-wait-states",
        check_top_without_states,
        how="look",
        account=False,
    ),
    loop("agent --mode=wall", "stands", "agent -p {pid} --epoch 1s --mode=wall", check_agent_wall, how="agent", account=False),
    loop("agent --mode=gil", "stands", "agent -p {pid} --epoch 1s --mode=gil", check_agent_gil, how="agent", account=False),
    Mode("dump", "stands", "dump -p {pid} --json", check_dump, how="look", account=False),
    Mode("dump --freeze", "stands", "dump -p {pid} --json --freeze", check_frozen, how="look", account=False),
    Mode("dump --native", "stands", "dump -p {pid} --json --native", check_dump_native, how="look", account=False),
    Mode("dump --core", "stands", "dump --core {core} --json", check_frozen, how="core", account=False),
    Mode("ps", "stands", "ps -p {pid} --json", check_ps, how="look", account=False),
    Mode("doctor", "stands", "doctor", check_doctor, how="look", account=False),
]


def share_of(version, python):
    """Nearly all samples of a Python that was found before have its functions."""
    return Mode("share of samples, Python " + version, "stands", "-p {pid} -F 199 -d 10", check_nearly_all, how="attach", python=python)


# Beside the machine's own Python.
ARM64 = [
    share_of("3.9", BULLSEYE),
    share_of("3.11", BOOKWORM),
    share_of("3.14", SID),
    share_of("3.15", NEWEST),
    Mode("cpu, Python 3.11", "spins", "", check_cpu, python=BOOKWORM),
    Mode("ps, Python 3.11", "stands", "ps -p {pid} --json", check_ps_3_11, how="look", python=BOOKWORM, account=False),
    Mode("dump, Python 3.11", "stands", "dump -p {pid} --json", check_dump, how="look", python=BOOKWORM, account=False),
]


def installed(name, *commands):
    """An artefact of make dist: the command that installs it, where pybpf is then, and the command that removes it."""
    return Mode(name, "spins", "; ".join(commands), check_cpu, how="install", python=INSTALLERS)


INSTALLED = [
    installed("archive", "tar -C /opt --strip-components 1 -xzf /dist/*-linux-*.tar.gz", "/opt/bin/pybpf", "rm -r /opt/bin"),
    installed("deb", "dpkg -i /dist/*.deb", "/usr/bin/pybpf", "dpkg -P pybpf"),
    installed("rpm", "rpm -i /dist/*.rpm", "/usr/bin/pybpf", "rpm -e pybpf"),
    installed(
        "wheel",
        "python3.11 -m pip install --break-system-packages --no-index /dist/*.whl",
        "/usr/local/bin/pybpf",
        "python3.11 -m pip uninstall --break-system-packages -y pybpf",
    ),
]
USUAL = MODES + (ARM64 if platform.machine() == "aarch64" else [])
ALL = USUAL + INSTALLED


def print_table(chosen):
    unknown = set(chosen) - {mode.name for mode in ALL} - {mode.key for mode in ALL}
    if unknown:
        sys.exit("modes.py: there is no mode %s; there are: %s" % (sorted(unknown), ", ".join(mode.key for mode in ALL)))
    for mode in ALL if chosen else USUAL:
        if not chosen or mode.name in chosen or mode.key in chosen:
            print("|".join([mode.key, mode.how, mode.python, mode.part, mode.options]))


def main():
    if sys.argv[1:2] == ["table"]:
        print_table(sys.argv[2:])
    elif sys.argv[1:2] == ["judge"] and len(sys.argv) == 3:
        sys.exit(1 if outcomes.judge(ALL, sys.argv[2]) else 0)
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) > 2:
        outcomes.compare(ALL, sys.argv[2:])
    else:
        sys.exit("usage: tests/vm/modes.py table [NAME...] | judge FOLDER | compare FOLDER...")


if __name__ == "__main__":
    main()
