# SPDX-License-Identifier: Apache-2.0
"""What it takes to make the tables of native frames of a process with large libraries, and of many such."""

import contextlib
import json
import os
import subprocess
import tempfile

import harness
import peers
from figures import Figure, Section, Target, each

PACKAGES = ("pandas==3.1.1", "pyarrow==26.0.1")
# Without libraries, it takes what loading the programs takes.
BARE = """
import os, sys, time
"""
PROGRAM = BARE + """
import io
import numpy, pandas, pyarrow.parquet
table = pandas.DataFrame({"k": range(200), "v": range(200)})
table.groupby("k").v.mean()
pandas.read_csv(io.StringIO(table.to_csv()))
"""
WAITS = """
for _ in range(int(sys.argv[1]) - 1):
    if not os.fork(): break
os.write(1, b"%d\\n" % os.getpid())
end = time.time() + 600
while time.time() < end: time.sleep(0.1)
"""
SECONDS = 3
SECONDS_EACH = 0.02  # for each process, whose mappings are read
RATE = 19
MS = Target(100, "<= 100 ms")
MIB = Target(20, "<= 20 MiB")


@contextlib.contextmanager
def started(program, count):
    """The PIDs of so many processes of the same files."""
    python = str(peers.virtual_environment("tables", PACKAGES) / "python")
    argv = [python, "-c", program + WAITS, str(count)]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0, start_new_session=True) as process:
        try:
            yield [int(process.stdout.readline()) for _ in range(count)]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)


def record(pids):
    with tempfile.TemporaryDirectory() as folder:
        stats, out = os.path.join(folder, "stats"), os.path.join(folder, "out.folded")
        words = [word for pid in pids for word in ("-p", str(pid))]
        run = harness.pybpf("record", *words, "--native", "-d", SECONDS + SECONDS_EACH * len(pids), "-r", RATE, "--json-stats", stats, "-o", out)
        assert run.code == 0, run.err
        with open(stats, encoding="utf-8") as file:
            return json.load(file)


def one(count):
    """(ms of CPU more than of as many bare Pythons, MiB, files, thousands of rows)"""
    with started(BARE, count) as pids:
        bare = record(pids)
    with started(PROGRAM, count) as pids:
        run = record(pids)
    tables = run["native"]
    assert tables["files"] > 50, "only %d tables were made" % tables["files"]
    more = 1000 * (run["user_cpu_s"] - bare["user_cpu_s"])
    return more, tables["bytes"] / 2**20, tables["files"], tables["rows"] / 1000


def measure(bench):
    try:
        peers.virtual_environment("tables", PACKAGES)
    except peers.Missing as why:
        bench.lack("tables of pandas' process", str(why))
        return []
    results = {count: [] for count in bench.plan.alike}
    for _ in bench.rounds("tables of native frames"):
        for count, found in results.items():
            found.append(bench.attempt("tables of %d processes" % count, one, count))
    section = Section(
        "tables for --native of processes of pandas and Arrow, which map the same files",
        ["processes", "ms of CPU more than of bare Pythons", "MiB", "files", "1,000 rows"],
        notes=["what more processes take are the lists of what they map"],
    )
    for count, found in results.items():
        section.add(
            count,
            Figure(each(found, lambda one: one[0]), 0, MS if count == 1 else None),
            Figure(each(found, lambda one: one[1]), 1, MIB),
            Figure(each(found, lambda one: one[2]), 0),
            Figure(each(found, lambda one: one[3]), 0),
        )
    return [section]
