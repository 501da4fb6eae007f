# SPDX-License-Identifier: Apache-2.0
"""An agent in fast motion over the real kernel side: after thousands of epochs it has no more than after some, and each
sample has arrived once.

Processes, threads, functions, libraries and containers come and go all the while, and so does a receiver, whose requests wait
in the spool. What is compared are readings in the second quarter of the epochs and in the last one: medians of the memory and
descriptors of each process of the agent, and the fewest entries of each map, as a long epoch on a busy machine has more. A leak
at each epoch adds up to half the number of epochs between them.
"""
import contextlib
import gzip
import json
import os
import re
import signal
import statistics
import subprocess
import urllib.request
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import cgroups
import harness
from inline import Source, newest, running
from protobuf import numbers, of
from receiver import Answer, receiving
from test_agent_serve import metrics

FAST_AGENT = os.path.join(os.path.dirname(harness.PYBPF), "fast_agent")
EPOCH_MS = 40
KEEP_S = 2  # of the files
READINGS = 24
OUTAGES = 6  # one before each so many readings
TAKEN, OTHER_PROGRAMS = ('pybpf_samples_%s_total{mode="cpu"}' % name for name in ("taken", "other_programs"))
# A process may have so much more, as its allocator does not give all back. With 10,000 epochs it is a leak of 210 bytes in each.
MEMORY_KIB = 1024
# A process may have so many more, while it writes a file, or talks to a helper that has just begun.
DESCRIPTORS = 2
# A map, and the folder, may have so many more for each epoch between the readings, and those of different epochs.
ENTRIES_PER_EPOCH, ENTRIES = 0.1, 50
# Those that forget what was used least (lru_hash) have all of their memory from the start.
COUNTED = ("hash", "percpu_hash")
NAME = re.compile(r".*-(\d{8})\.pybpf")

NATIVE = os.path.join(os.path.dirname(harness.PYBPF), "native.so")

# Each turn has new functions in two threads, a process that is forked, with a library and in a container that no other has,
# and, at times, one that is executed. A signal ends the last turn, and then nothing runs.
CHURN = Source("""
import ctypes, subprocess
signal.alarm(3600)
ended = []
signal.signal(signal.SIGUSR1, lambda *_: ended.append(True))
def work(n):
    names = {}
    exec("def made_%d():\\n    return sum(range(20000))" % n, names)
    names["made_%d" % n]()
def start_thread(n):
    thread = threading.Thread(target=work, args=(n,))
    thread.start()
    return thread
def burn(path):
    with open(sys.argv[1], "rb") as library:
        text = bytearray(library.read())
    build_id = text.index(b"\\x14\\0\\0\\0\\3\\0\\0\\0GNU\\0") + 12
    text[build_id : build_id + 20] = os.urandom(20)
    with open(path, "wb") as copy:
        copy.write(text)
    library = ctypes.CDLL(path)
    library.native_start(b"burns", 5, 0)
    while library.native_at_work():
        time.sleep(0.001)
def container(n):
    return os.path.join(sys.argv[3], "docker-%064x.scope" % n)
def start_process(n):
    os.mkdir(container(n))
    pid = os.fork()
    if not pid:
        with open(os.path.join(container(n), "cgroup.procs"), "w") as procs:
            procs.write("0")
        inner = os.fork()
        if not inner:
            burn(os.path.join(sys.argv[2], "library_%d.so" % n))
            work(n)
            os._exit(0)
        os.waitpid(inner, 0)
        os._exit(0)
    return pid
def main():
    n = 0
    while not ended:
        n += 3
        forked = start_process(n)
        threads = [start_thread(n + 1), start_thread(n + 2)]
        if n % 10 == 0:
            subprocess.call([sys.executable, "-S", "-c", "sum(range(100000))"])
        for thread in threads:
            thread.join()
        os.waitpid(forked, 0)
        os.unlink(os.path.join(sys.argv[2], "library_%d.so" % n))
        os.rmdir(container(n))
        time.sleep(0.02)
ready()
main()
ready()
signal.pause()
""")


def bpftool(*words):
    done = subprocess.run(["bpftool", "-j", *map(str, words)], stdout=subprocess.PIPE, check=True, timeout=harness.PATIENCE)
    return json.loads(done.stdout)


def maps_of(pid):
    """ID -> name of each map whose entries come and go. A run of each mode has its own."""
    ids = {int(words["map_id"]) for words in harness.fdinfo(pid) if "map_id" in words}
    shown = [bpftool("map", "show", "id", number) for number in sorted(ids)]
    return {one["id"]: one["name"] for one in shown if one["type"] in COUNTED}


def memory_kib(pid):
    return int(re.search(r"^RssAnon:\s+(\d+)", Path("/proc/%d/status" % pid).read_text(encoding="utf-8"), re.M).group(1))


def newest_epoch(folder):
    """Its number."""
    return max((int(NAME.fullmatch(path.name).group(1)) for path in folder.glob("*.pybpf")), default=0)


def read(pid, maps, folder):
    """What there is now, by its name: a number that does not grow without end."""
    found = defaultdict(int)
    found["files"] = len(list(folder.iterdir()))
    for one, name in harness.process_names(pid).items():
        found["processes"] += 1
        try:
            found["memory of %s, %d" % (name, one)] = memory_kib(one)
            found["descriptors of %s, %d" % (name, one)] = len(os.listdir("/proc/%d/fd" % one))
        except (OSError, AttributeError):  # a helper that has ended
            continue
    # Epochs have one of two maps by turns, in each mode.
    for number, name in maps.items():
        found["entries of %s" % name.removesuffix("_2")] += len(bpftool("map", "dump", "id", number))
    return found


def told(port):
    """The agent's metrics."""

    def ask(path):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=harness.PATIENCE) as answer:
            return answer.status, answer.read()

    return metrics(ask)


def interrupt(receiver, port):
    """An outage until requests wait in the spool."""
    receiver.outage = Answer(503, headers={"Retry-After": "1"})
    harness.wait_for(lambda: told(port)['pybpf_requests_spooled_bytes{receiver="otlp"}'] > 0)
    receiver.outage = None


def read_all(process, folder, epochs, before_each):
    """READINGS of the agent while it does so many epochs."""
    readings, last, maps = [], 0, {}
    for k in range(1, READINGS + 1):
        before_each(k)
        while last < epochs * k // READINGS:
            assert process.poll() is None, "the agent ended with %d" % process.returncode
            harness.wait_for(lambda before=last: process.poll() is not None or newest_epoch(folder) > before)
            last = newest_epoch(folder)
        maps = maps or maps_of(process.pid)
        readings.append(read(process.pid, maps, folder))
    return readings


def wait_until_sent(port):
    """Until the samples of a target at rest are with the receivers. Returns the metrics of then."""
    begin = told(port)["pybpf_epochs_total"]
    harness.wait_for(lambda: told(port)["pybpf_epochs_total"] >= begin + 2)
    made = told(port)

    def are_sent():
        now = told(port)
        names = [name.partition("{")[2] for name in made if name.startswith("pybpf_requests_submitted_total")]
        assert len(names) == 2
        sent = all(now["pybpf_requests_sent_total{" + one] >= made["pybpf_requests_submitted_total{" + one] for one in names)
        return now if sent else None

    return harness.wait_for(are_sent)


def otlp_profiles(body):
    """(what its values are, their sum, its ID) of each profile."""
    data = gzip.decompress(body)
    texts = list(of(data, 2, 5))
    for profile in of(data, 1, 2, 2):
        yield texts[next(of(profile, 1, 1))], sum(next(numbers(packed)) for packed in of(profile, 2, 4)), next(of(profile, 7))


def pprof_samples(body):
    """The number of samples of CPU time; 0 of a profile of waits."""
    data = gzip.decompress(body)
    texts = list(of(data, 6))
    kinds = [texts[kind] for kind in of(data, 1, 1)]
    return sum(next(numbers(packed)) for packed in of(data, 2, 2)) if kinds == [b"samples", b"cpu"] else 0


def check_sums(now, otlp, pprof):
    """Each sample that was taken in Python programs has arrived once at each receiver, unless it is counted as lost."""
    dropped = {name: value for name, value in now.items() if name.startswith(("pybpf_requests_dropped", "pybpf_profiles_rejected")) and value}
    assert not dropped, dropped
    profiles = [one for body in otlp for one in otlp_profiles(body)]
    doubled = {one: count for one, count in Counter(profile[2] for profile in profiles).items() if count > 1}
    assert not doubled, doubled
    sums = {
        "otlp": sum(value for kind, value, _ in profiles if kind == b"samples"),
        "pprof": sum(map(pprof_samples, pprof)),
    }
    unsent = {name: now['pybpf_samples_unsent_total{receiver="%s",mode="cpu"}' % name] for name in sums}
    wanted = now[TAKEN] - now[OTHER_PROGRAMS]
    print("%d samples were taken in Python programs, %s have arrived, %s are counted as unsent" % (wanted, sums, unsent))
    assert {name: value + unsent[name] for name, value in sums.items()} == dict.fromkeys(sums, wanted) and wanted > 0


def allowed(what, epochs):
    """By how much more there may be of it in the last quarter than in the second one."""
    if what.startswith("memory"):
        return MEMORY_KIB
    if what.startswith(("descriptors", "processes")):
        return DESCRIPTORS
    return ENTRIES + ENTRIES_PER_EPOCH * epochs / 2


def typical(readings):
    """What is in fewer than half of the readings is left out: a helper that has gone."""
    names = {name for one in readings for name in one}
    found = {name: [one[name] for one in readings if name in one] for name in names}
    choose = {name: min if name.startswith("entries") else statistics.median for name in names}
    return {name: choose[name](some) for name, some in found.items() if len(some) * 2 >= len(readings)}


def compare(readings, epochs):
    second, last = typical(readings[READINGS // 4 : READINGS // 2]), typical(readings[-READINGS // 4 :])
    for name in sorted(last):
        print("%-44s %8.0f -> %8.0f" % (name, second.get(name, 0), last[name]))
    # A process that was started again has no memory of before; there is no more of it, and this is in the number of them.
    return {name: (second[name], last[name]) for name in second.keys() & last.keys() if last[name] > second[name] + allowed(name, epochs)}


def taken(receiver):
    return [request.body for request in receiver.requests if request.status == 200]


@pytest.fixture
def containers():
    """A place for control groups."""
    try:
        with cgroups.directory("pybpf-fast-agent-%d" % os.getpid()) as place:
            yield place.path
    except cgroups.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("epochs", [200, 10000])
def test_an_agent_stays_as_it_is(tmp_path, containers, epochs):
    folder, libraries, port = tmp_path / "epochs", tmp_path / "libraries", harness.free_port()
    libraries.mkdir()
    with contextlib.ExitStack() as stack:
        otlp, pprof = (stack.enter_context(receiving()) for _ in range(2))
        target = stack.enter_context(running(newest(), CHURN, NATIVE, libraries, containers))
        err = stack.enter_context(open(tmp_path / "stderr", "w", encoding="utf-8"))
        arguments = ["-p", target.pid, "--mode=cpu", "--mode=wall", "--dir", folder, "--listen", "127.0.0.1:%d" % port, "--children"]
        arguments += ["--fixed-epochs", "--threads", "--native", "-F", 199]
        arguments += ["--otlp", otlp.url, "--pprof", pprof.url, "--spool", tmp_path / "spool"]
        words = [FAST_AGENT, EPOCH_MS, KEEP_S, "agent", *arguments]
        process = stack.enter_context(harness.started([str(word) for word in words], stdin=subprocess.DEVNULL, stderr=err))
        readings = read_all(process, folder / "cpu", epochs, lambda k: k % OUTAGES == 2 and interrupt(otlp, port))
        os.kill(target.pid, signal.SIGUSR1)
        harness.read_ready_line(target.process)
        now = wait_until_sent(port)
        process.send_signal(signal.SIGTERM)
        assert process.wait(harness.PATIENCE) == 0
    check_sums(now, taken(otlp), taken(pprof))
    assert now["pybpf_epochs_total"] >= epochs and len(taken(otlp)) < len(otlp.requests)
    # What this shows takes functions, libraries and containers that are new to the end, and receivers.
    sent = b"".join(map(gzip.decompress, taken(otlp)))
    assert re.search(rb"made_\d+", sent) and re.search(rb"library_\d+\.so", sent) and re.search(rb"\b0{48}[0-9a-f]{16}\b", sent), len(sent)
    assert all(len(taken(it)) > epochs / 10 for it in (otlp, pprof)), (len(taken(otlp)), len(taken(pprof)))
    grown = compare(readings, epochs)
    assert not grown, grown
