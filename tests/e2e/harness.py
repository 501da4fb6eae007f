# SPDX-License-Identifier: Apache-2.0
"""Starts targets, runs pybpf on them, reads what it wrote, holds it against the target's words."""

import contextlib
import datetime
import functools
import glob
import json
import math
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import dump_schema
import pythons

TOP = Path(__file__).resolve().parent.parent.parent
PYBPF = os.environ.get("PYBPF") or str(TOP / "build" / "pybpf")
STATIC = Path(PYBPF).resolve().parent / "pybpf-static"
LINE = re.compile(r"(.*) (\d+)", re.S)
FRAME = re.compile(r"(?P<name>.*) \((?P<file>.*?)(?::(?P<line>\d+))?\)", re.S)
ESCAPE = re.compile(r"\\(\\|x[0-9a-f]{2})")
TRACEFS = "/sys/kernel/tracing"
# Seconds for all that a run does beside sampling. Generous: machines are shared.
PATIENCE = 180
PERF_EVENT = "7"  # BPF_PROG_TYPE_PERF_EVENT


@dataclass(frozen=True)
class Frame:
    name: str
    file: str = ""
    line: Optional[int] = None
    # All of it: where a name or path holds " (" itself, only the whole can be compared.
    text: str = field(default="", compare=False)

    def key(self, own_files):
        """The name that an expectation has for this frame."""
        base = os.path.basename(self.file)
        return self.name if base == own_files[0] else base + "|" + self.name


@dataclass
class Target:
    process: subprocess.Popen
    says: dict

    @property
    def pid(self):
        return self.says["pid"]


@dataclass
class Run:
    code: int
    out: str
    err: str
    stats: dict = field(default_factory=dict)
    stalled_s: float = 0
    stolen_s: float = 0

    def stacks(self):
        return parse(self.out)

    def rows(self):
        """The stacks without Python functions: those that stacks() leaves out."""
        return [(stack, count) for stack, count in parse_all(self.out) if is_row(stack)]


def unescape(text):
    def one(match):
        found = match.group(1)
        return "\\" if found == "\\" else chr(int(found[1:], 16))

    return ESCAPE.sub(one, text)


@functools.lru_cache(maxsize=1 << 16)
def parse_frame(text):
    match = FRAME.fullmatch(text)
    if not match:
        return Frame(unescape(text), text=unescape(text))
    name, file, line = match.group("name", "file", "line")
    return Frame(unescape(name), unescape(file), line and int(line), unescape(text))


# What stands in place of Python functions, below process and thread.
ROWS = ("[threads without Python]", "[outside of Python functions]", "[no interpreter]")


def is_row(stack):
    """Is it of CPU time without Python functions?"""
    return any(frame.text in ROWS for frame in stack[:4])


def parse(folded):
    """As parse_all(), of the stacks with Python functions."""
    return [(stack, count) for stack, count in parse_all(folded) if not is_row(stack)]


def parse_all(folded):
    """Folded text -> list of ([Frame, root first], count)."""
    stacks = []
    for row in folded.split("\n")[:-1]:
        match = LINE.fullmatch(row)
        assert match, "not a folded stack: %r" % row[:400]
        stacks.append(
            ([parse_frame(part) for part in match.group(1).split(";")], int(match.group(2)))
        )
    assert folded == "" or folded.endswith("\n"), "the output does not end with a newline"
    return stacks


def show(stack):
    return ";".join("%s (%s:%s)" % (f.name[:80], f.file[-80:], f.line) for f in stack)


def total(stacks):
    return sum(count for _, count in stacks)


class NotReady(Exception):
    """A target did not say that it is ready. Its threads: what each waits for, and its system call."""

    def __init__(self, process):
        def told(tid, name):
            with contextlib.suppress(OSError), open("/proc/%d/task/%s/%s" % (process.pid, tid, name)) as file:
                return file.read().strip()

        threads = []
        with contextlib.suppress(OSError):
            threads = [(tid, told(tid, "wchan"), told(tid, "syscall")) for tid in os.listdir("/proc/%d/task" % process.pid)]
        super().__init__("%s did not say that it is ready: %s" % (process.args, threads))


def read_ready_line(process, timeout=PATIENCE):
    """The JSON line that a target prints when it is about to start its work."""
    data = b""
    end = time.monotonic() + timeout
    while not data.endswith(b"\n"):
        left = end - time.monotonic()
        if left <= 0:
            raise NotReady(process)
        if select.select([process.stdout], [], [], left)[0]:
            part = os.read(process.stdout.fileno(), 1 << 20)
            assert part, "the target ended before it was ready, with status %s" % process.wait()
            data += part
    return json.loads(data.decode())


@contextlib.contextmanager
def niceness(nice):
    """What the calling thread starts meanwhile has it. (subprocess is twice as fast without anything to run in the child.)"""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, nice)
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def niceness_of(argv):
    """For programs that are profiled: a test (tests/conftest.py) is not kept from its work by those of the tests beside it.

    A free-threaded Python among the words has to be nicer to itself. Its threads yield the CPU while they wait for one of
    its short locks, and the scheduler then puts whatever else is to be run before them, for seconds where the machine has
    much to do.
    """
    free_threaded = {item.argv[-1] for item in pythons.interpreters() if item.kind == "free-threaded"}
    return -10 if free_threaded & set(map(str, argv)) else 0


def priority_of(argv):
    return niceness(niceness_of(argv))


def renice(pid, nice):
    """All threads of a process, and of those below it."""
    with contextlib.suppress(OSError):
        for tid in os.listdir("/proc/%d/task" % pid):
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, int(tid), nice)
                for child in Path("/proc/%d/task/%s/children" % (pid, tid)).read_text(encoding="ascii").split():
                    renice(int(child), nice)


def stop(process):
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


@contextlib.contextmanager
def for_everybody(*paths):
    """Copies of files where every user can read them: the tree may be in a folder of its user's own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield [shutil.copy(path, folder) for path in paths]


@contextlib.contextmanager
def target(interpreter, name, *args):
    """A target program that has said that it is ready; killed at the end."""
    argv = interpreter.command(name, *args)
    if interpreter.version[0] == 2:
        # On two CPUs 2.7's threads fight for the GIL until some of them starve; on one they take turns.
        argv = ["taskset", "-c", "0", *argv]

    def start():
        # Until it is ready it is a part of the test.
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)

    process = start()
    try:
        try:
            ready = read_ready_line(process)
        except NotReady as hung:
            # Free-threaded 3.13 was seen to hang at its start, once in some thousand: before pybpf runs, and told here.
            warnings.warn(str(hung), stacklevel=2)
            stop(process)
            process = start()
            ready = read_ready_line(process)
        renice(process.pid, niceness_of(argv))
        yield Target(process, ready)
    finally:
        stop(process)


@contextlib.contextmanager
def started(argv, python=None, **options):
    """Any process; killed at the end if it still runs. python: what it runs, if its words do not tell it."""
    with priority_of(python or argv):
        process = subprocess.Popen(argv, **options)
    try:
        yield process
    finally:
        stop(process)


def process_names(pid):
    """The names of a process and of those below it."""
    found = {}
    with contextlib.suppress(OSError):
        found[pid] = Path("/proc/%d/comm" % pid).read_text(encoding="ascii").strip()
        for child in Path("/proc/%d/task/%d/children" % (pid, pid)).read_text(encoding="ascii").split():
            found.update(process_names(int(child)))
    return found


def tied(argv, signal_name="KILL"):
    """The same program, which gets that signal when the thread that starts it is gone."""
    return ["/usr/bin/setpriv", "--pdeathsig", signal_name, *argv]


def pybpf(*args, timeout=PATIENCE, **options):
    """Runs pybpf to its end, or to ours: it hands TERM on to its command."""
    options.setdefault("stdin", subprocess.DEVNULL)
    with priority_of(args):
        done = subprocess.run(
            tied([PYBPF, *map(str, args)], "TERM"),
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            timeout=timeout,
            **options,
        )
    out = (done.stdout or b"").decode("utf-8", "surrogateescape")
    if "dump" in args[:1] and "--json" in args:
        dump_schema.check(out)
    return Run(done.returncode, out, done.stderr.decode("utf-8", "replace"))


def record(pid, *args, seconds=0.25, rate=2999, **options):
    """Profiles a process that must be profilable, and returns the run with its statistics."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stats.json")
        run = pybpf("-p", pid, "-d", seconds, "-F", rate, "--json-stats", path, *args, **options)
        assert run.code == 0, "pybpf ended with %d: %s" % (run.code, run.err)
        with open(path, encoding="utf-8") as stats:
            run.stats = json.load(stats)
    return run


def record_busy(pid, *args, fewest=100, seconds=0.25, **options):
    """As record(), of a program that always has something to do, for as long as it takes to meet it that often.

    Beside a load it may have the CPU for a hundredth of the time: free-threaded builds yield it whenever they wait.
    """
    for factor in (1, 4, 16, 64):
        run = record(pid, *args, seconds=factor * seconds, **options)
        if run.stats["samples"]["taken"] >= fewest:
            break
    return run


def shares(stacks):
    """(name, line) of the leaf -> share of the samples."""
    leaves = Counter()
    for stack, count in stacks:
        leaves[stack[-1].name, stack[-1].line] += count
    everything = total(stacks)
    return {leaf: count / everything for leaf, count in leaves.items()}


def at_work(stacks):
    """Without the stacks in which the target still tells what to expect."""
    return [
        (stack, count)
        for stack, count in stacks
        if not any(frame.file == "expect.py" for frame in stack)
    ]


LINELESS_SHARE = 0.02  # at most, of the leaves


class Expectation:
    """What a target said, and the ways to hold stacks against it."""

    def __init__(self, says):
        self.files = sorted(says["files"], key=lambda name: name != says["main"])
        self.roots = set(says["roots"])
        self.calls: Dict[Tuple[str, str], List[int]] = {
            (caller, callee): lines for caller, callee, lines in says["calls"]
        }
        self.rare = {(caller, callee) for caller, callee in says["rare"]}
        self.lines = {name: set(lines) for name, lines in says["lines"].items()}
        self.hot = {(name, line) for name, lines in says["hot"] for line in lines}
        self.share = says["share"]
        self.through = says["through"]

    def own(self, stack):
        """The frames of the target's own files; any other must be one that the target named."""
        own = []
        for frame in stack:
            if os.path.basename(frame.file) in self.files:
                own.append(frame)
            else:
                known = any(part in frame.file for part in self.through)
                assert known, "%s does not belong into %s" % (show([frame]), show(stack))
        return own

    def check_stack(self, stack):
        """Every caller really calls what stands right of it, at the line where it stands."""
        own = self.own(stack)
        if not own:
            return
        keys = [frame.key(self.files) for frame in own]
        assert keys[0] in self.roots, "%s is no root: %s" % (keys[0], show(stack))
        for frame, caller, callee in zip(own, keys, keys[1:]):
            lines = self.calls.get((caller, callee))
            assert lines is not None, "%s never calls %s: %s" % (caller, callee, show(stack))
            assert frame.line in lines, "%s calls %s at %s, not at %s: %s" % (
                caller,
                callee,
                lines,
                frame.line,
                show(stack),
            )
        if own[-1].line is None:
            return  # check() counts them
        assert own[-1].line in self.lines.get(keys[-1], ()), "%s has no line %s: %s" % (
            keys[-1],
            own[-1].line,
            show(stack),
        )

    def calls_seen(self, stacks):
        seen = set()
        for stack, _ in stacks:
            keys = [frame.key(self.files) for frame in self.own(stack)]
            seen.update(zip(keys, keys[1:]))
        return seen

    def working(self, stacks, least):
        """Without the target's last preparations, which a slow machine may let the profiler see."""
        work = at_work(stacks)
        assert total(work) >= least * total(stacks), "the target was not at work: %s" % shares(
            stacks
        )
        return work

    def check(self, stacks, every_call=True, hot=True):
        stacks = self.working(stacks, 0.95 if hot else 0)
        for stack, _ in stacks:
            self.check_stack(stack)
        # From 3.10 on some instructions have none: those that end a handler.
        lineless = sum(count for stack, count in stacks if stack[-1].line is None)
        assert lineless <= LINELESS_SHARE * total(stacks), "%d of %d samples have no line" % (lineless, total(stacks))
        if every_call:
            unseen = set(self.calls) - self.rare - self.calls_seen(stacks)
            assert not unseen, "%d samples, none of which shows %s" % (
                total(stacks),
                sorted(unseen),
            )
        if hot and self.hot:
            spent = 0
            for stack, count in stacks:
                if (stack[-1].key(self.files), stack[-1].line) in self.hot:
                    spent += count
            share = spent / max(1, total(stacks))
            chance = 3 * math.sqrt(self.share * (1 - self.share) / max(1, total(stacks)))
            assert (
                share >= self.share - chance
            ), "the hot lines have %.1f %% of %d samples, not %.0f %%: %s" % (
                100 * share,
                total(stacks),
                100 * self.share,
                sorted(shares(stacks).items(), key=lambda item: -item[1])[:8],
            )


def check_account(run, fewest=50):
    """Nearly every sample of a busy program has Python frames, and none went missing unnamed."""
    samples = run.stats["samples"]
    assert samples["taken"] >= fewest, "too few samples to tell anything: %s" % run.stats
    assert samples["python"] >= 0.99 * samples["taken"], run.stats
    printed = total(run.stacks())
    assert printed == samples["python"], "%d samples printed: %s" % (printed, run.stats)
    check_rows(run)


def in_rows(stats):
    """Samples without Python functions that the account has and that are in the profile."""
    return sum(stats["without_python"].values()) - stats["without_python"]["other_program"]


def check_rows(run):
    """Samples without Python functions are printed as the account has them."""
    assert total(run.rows()) == in_rows(run.stats), (run.rows(), run.stats)


def one_sentence(text):
    """The message of a failed run: one line, from pybpf, a sentence with an end."""
    lines = [line for line in text.split("\n") if line]
    assert len(lines) == 1, "not one sentence on stderr: %r" % text
    assert lines[0].startswith("pybpf: "), text
    return lines[0]


def wait_for(condition, timeout=PATIENCE, step=0.02):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(step)
    raise AssertionError("waited %d s in vain" % timeout)


def mount_tracefs():
    """It stays: tests beside this one use it, and most systems have it mounted from their start."""
    if not os.path.isdir(os.path.join(TRACEFS, "events")):
        subprocess.run(["mount", "-t", "tracefs", "nodev", TRACEFS], check=True)


def fdinfo(pid):
    """What the kernel says about each open file of a process."""
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            text = Path(path).read_text(encoding="ascii")
        except OSError:
            continue  # closed in the meantime
        yield dict(re.findall(r"^(\w+):\s+(\S+)$", text, re.M))


def is_attached(pid):
    """Has pybpf begun to sample?"""
    return any(words.get("link_type") == "perf" for words in fdinfo(pid))


def program_runs(pid):
    """(nanoseconds, number) of the runs of a process's perf event program; the number is 0 before there is one."""
    programs = [words for words in fdinfo(pid) if words.get("prog_type") == PERF_EVENT]
    return max(((int(words["run_time_ns"]), int(words["run_cnt"])) for words in programs), default=(0, 0))


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def cpu_s(pid):
    """CPU time of a process, by its own clock."""
    return time.clock_gettime(~pid << 3 | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED), as clock_getcpuclockid(3)


def samples_now(pid):
    """Has a pybpf attached all? It gives up its rights then."""
    return "\nSeccomp:\t2\n" in Path("/proc/%d/status" % pid).read_text(encoding="utf-8")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def take_interrupts():
    """SIGINT and SIGHUP do what they do by default, here and in what is started here: jobs of a shell and nohup ignore them."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def interrupt(process):
    process.send_signal(signal.SIGINT)


def utc_ms(text):
    """Milliseconds since 1970 of a time as JSON has it, such as 2026-11-27T05:02:00.123Z."""
    moment = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z")
    return round(moment.timestamp() * 1000)


def default_python():
    """The interpreter for tests that are not about interpreters."""
    found = pythons.one(name="system-python3.11") or pythons.interpreters()[0]
    return found
