# SPDX-License-Identifier: Apache-2.0
"""An agent in fast motion over the real kernel side: after thousands of epochs it has no more than after some.

Processes, threads, functions and libraries come and go all the while. What is compared are medians of what is read in the second
quarter of the epochs and in the last one: of each process of the agent its memory and descriptors, and the entries of
each map. A leak at each epoch adds up to half the number of epochs between them.
"""
import gzip
import json
import os
import re
import signal
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

import harness
from inline import Source, newest, running
from receiver import Receiver

FAST_AGENT = os.path.join(os.path.dirname(harness.PYBPF), "fast_agent")
EPOCH_MS = 40
KEEP_S = 2  # of the files
READINGS = 24
# A process may have so much more, as its allocator does not give all back. With 4,000 epochs it is a leak of 262 bytes in each.
MEMORY_KIB = 512
# A process may have so many more, while it writes a file, or talks to a helper that has just begun.
DESCRIPTORS = 2
# A map, and the folder, may have so many more for each epoch between the readings, and those that a busy machine adds to an epoch.
ENTRIES_PER_EPOCH, ENTRIES = 0.1, 50
# Those that forget what was used least (lru_hash) have all of their memory from the start.
COUNTED = ("hash", "percpu_hash")
NAME = re.compile(r".*-(\d{8})\.pybpf")

NATIVE = os.path.join(os.path.dirname(harness.PYBPF), "native.so")

# Each turn has new functions in two threads, a process that is forked, with a library that no other has, and, at times, one
# that is executed.
CHURN = Source("""
import ctypes, subprocess
signal.alarm(3600)
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
def start_process(n):
    pid = os.fork()
    if not pid:
        burn(os.path.join(sys.argv[2], "library_%d.so" % n))
        work(n)
        os._exit(0)
    return pid
def main():
    n = 0
    while True:
        n += 3
        forked = start_process(n)
        threads = [start_thread(n + 1), start_thread(n + 2)]
        if n % 10 == 0:
            subprocess.call([sys.executable, "-S", "-c", "sum(range(100000))"])
        for thread in threads:
            thread.join()
        os.waitpid(forked, 0)
        os.unlink(os.path.join(sys.argv[2], "library_%d.so" % n))
        time.sleep(0.02)
ready()
main()
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
    for number, name in maps.items():
        found["entries of %s, %d" % (name, number)] = len(bpftool("map", "dump", "id", number))
    return found


def read_all(process, folder, epochs):
    """READINGS of the agent while it does so many epochs."""
    readings, last, maps = [], 0, {}
    for k in range(1, READINGS + 1):
        while last < epochs * k // READINGS:
            assert process.poll() is None, "the agent ended with %d" % process.returncode
            harness.wait_for(lambda before=last: process.poll() is not None or newest_epoch(folder) > before)
            last = newest_epoch(folder)
        maps = maps or maps_of(process.pid)
        readings.append(read(process.pid, maps, folder))
    return readings


def allowed(what, epochs):
    """By how much more there may be of it in the last quarter than in the second one."""
    if what.startswith("memory"):
        return MEMORY_KIB
    if what.startswith(("descriptors", "processes")):
        return DESCRIPTORS
    return ENTRIES + ENTRIES_PER_EPOCH * epochs / 2


def medians(readings):
    """What is in fewer than half of the readings is left out: a helper that has gone."""
    names = {name for one in readings for name in one}
    found = {name: [one[name] for one in readings if name in one] for name in names}
    return {name: statistics.median(some) for name, some in found.items() if len(some) * 2 >= len(readings)}


def compare(readings, epochs):
    second, last = medians(readings[READINGS // 4 : READINGS // 2]), medians(readings[-READINGS // 4 :])
    for name in sorted(last):
        print("%-44s %8.0f -> %8.0f" % (name, second.get(name, 0), last[name]))
    # A process that was started again has no memory of before; there is no more of it, and this is in the number of them.
    return {name: (second[name], last[name]) for name in second.keys() & last.keys() if last[name] > second[name] + allowed(name, epochs)}


@pytest.mark.parametrize("epochs", [200, 4000])
def test_an_agent_stays_as_it_is(tmp_path, epochs):
    folder, libraries, receiver = tmp_path / "epochs", tmp_path / "libraries", Receiver()
    arguments = ["--mode=cpu", "--mode=wall", "--dir", folder, "--listen", ":0", "--otlp", receiver.url,
                 "--children", "--fixed-epochs", "--threads", "--native", "-F", 199, "--max-cpu", "100%"]
    libraries.mkdir()
    with running(newest(), CHURN, NATIVE, libraries) as target, open(tmp_path / "stderr", "w", encoding="utf-8") as err:
        words = [FAST_AGENT, EPOCH_MS, KEEP_S, "agent", "-p", target.pid, *arguments]
        with harness.started([str(word) for word in words], stdin=subprocess.DEVNULL, stderr=err) as process:
            readings = read_all(process, folder / "cpu", epochs)
            process.send_signal(signal.SIGTERM)
            assert process.wait(harness.PATIENCE) == 0
    grown = compare(readings, epochs)
    assert not grown, grown
    # What this shows takes functions and libraries that are new to the end, and a receiver.
    sent = b"".join(gzip.decompress(request.body) for request in receiver.requests)
    assert re.search(rb"made_\d+", sent) and re.search(rb"library_\d+\.so", sent), len(sent)
    assert len(receiver.requests) > epochs / 10, len(receiver.requests)
