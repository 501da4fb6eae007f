# SPDX-License-Identifier: Apache-2.0
"""Programs that are no python3 but have a Python inside: uWSGI with its plugin, gdb."""

import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.request

import pytest

import harness
import pythons
from harness import record, total

pytestmark = pytest.mark.usefixtures("profiler")

APPLICATION = """
def burn():
    sum(range(20000))


def busy(seconds):
    import time
    end = time.time() + seconds
    while time.time() < end:
        burn()


def application(environ, start_response):
    busy(5)
    start_response("200 OK", [])
    return [b"done"]
"""
LOOP = """
def burn():
    sum(range(20000))


def busy():
    while True:
        burn()


print("ready", flush=True)
busy()
"""


def check_chain(stacks, chain, file):
    """Nearly all samples are in this chain of calls of this file."""
    share = 0
    for stack, count in stacks:
        own = [frame.name for frame in stack if os.path.basename(frame.file) == file]
        assert own == chain[: len(own)], harness.show(stack)
        share += count if own == chain else 0
    assert share >= 0.9 * total(stacks) > 0, (share, total(stacks))


def test_uwsgi(tmp_path):
    uwsgi = shutil.which("uwsgi-core") or shutil.which("uwsgi")
    if not uwsgi:
        pytest.skip("uwsgi-core is missing")
    plugins = subprocess.run(
        ["find", "/usr/lib/uwsgi", "-name", "python3*_plugin.so"], capture_output=True
    )
    if not plugins.stdout:
        pytest.skip("uwsgi-plugin-python3 is missing")
    (tmp_path / "app.py").write_text(APPLICATION)
    port = harness.free_port()
    options = [
        "--plugin",
        "python3",
        "--http-socket",
        "127.0.0.1:%d" % port,
        "--wsgi-file",
        "app.py",
    ]
    argv = [uwsgi, *options, "--die-on-term", "--need-app"]
    with harness.started(
        argv, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        harness.wait_for(lambda: server.poll() is not None or harness.answers(port))
        assert server.poll() is None, "uwsgi does not start"
        url = "http://127.0.0.1:%d/" % port
        request = threading.Thread(target=lambda: urllib.request.urlopen(url, timeout=30).read())
        request.start()
        time.sleep(0.5)
        run = record(server.pid, seconds=2)
        request.join()
    harness.check_account(run)
    check_chain(run.stacks(), ["application", "busy", "burn"], "app.py")


def test_gdb(tmp_path):
    if not shutil.which("gdb"):
        pytest.skip("gdb is missing")
    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    argv = ["gdb", "-q", "-nx", "-batch", "-x", str(script)]
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with harness.started(argv, **options) as process:
        line = process.stdout.readline()
        if b"ready" not in line:
            pytest.skip("this gdb is built without Python")
        run = record(process.pid, seconds=2)
    harness.check_account(run)
    check_chain(run.stacks(), ["<module>", "busy", "burn"], "loop.py")


EMBED = r"""
#include <Python.h>
int main(void)
{
	Py_Initialize();
	for (;;) /* a fresh piece of code each time, with C in between */
		if (PyRun_SimpleString("def burn():\n    sum(range(200000))\nfor _ in range(100):\n    burn()\n"))
			return 1;
}
"""


def build_embedding(python, source, program):
    """Links a C program with the Python's library. Returns its environment."""
    config = python.argv[0] + "3-config"
    if not shutil.which("gcc") or not os.path.exists(config):
        pytest.skip("gcc or %s is missing" % config)
    flags = [
        subprocess.run([config, *ask], capture_output=True, text=True, check=True).stdout.split()
        for ask in (["--includes"], ["--ldflags", "--embed"])
    ]
    prefix = os.path.dirname(os.path.dirname(python.argv[0]))
    link = [*flags[1], "-Wl,-rpath," + prefix + "/lib"]
    subprocess.run(["gcc", *flags[0], "-o", program, source, *link], check=True)
    return dict(os.environ, PYTHONHOME=prefix)


def test_own_program(tmp_path):
    """The few lines of the embedding manual, linked with a shared libpython."""
    python = next(
        (
            item
            for item in pythons.interpreters()
            if item.kind == "shared" and item.version >= (3, 8)
        ),
        None,
    )
    if not python:
        pytest.skip("a Python with a shared library is missing")
    source, program = tmp_path / "embed.c", tmp_path / "embed"
    source.write_text(EMBED)
    environment = build_embedding(python, source, program)
    with harness.started([str(program)], env=environment) as process:
        harness.wait_for(lambda: "burn" in harness.pybpf("dump", "-p", process.pid).out)
        run = harness.record_busy(process.pid)
    harness.check_account(run)
    leaves = sum(n for stack, n in run.stacks() if [f.name for f in stack] == ["<module>", "burn"])
    assert leaves >= 0.9 * total(run.stacks())


# Round N compiles outer_N and burn_N, of one length in all rounds, from the file <round-N>. Prints "N BEGIN END" for
# each, in CLOCK_REALTIME ns: its functions ran between these times.
ROUNDS = r"""
#include <Python.h>
#include <time.h>

static const char source[] = "%.*sdef burn_%06d():\n for _ in range(200000): pass\n"
			     "def outer_%06d():\n burn_%06d()\n"
			     "outer_%06d()\n";

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int run_round(int number)
{
	PyObject *code, *scope, *result = NULL;
	char text[256], path[32];
	long long begin;

	Py_Initialize();
	snprintf(path, sizeof(path), "<round-%06d>", number);
	snprintf(text, sizeof(text), source, number % 5, "\n\n\n\n", number, number, number, number);
	code = Py_CompileString(text, path, Py_file_input);
	scope = PyDict_New();
	begin = now_ns();
	if (code && scope)
		result = PyEval_EvalCode(code, scope, scope);
	printf("%d %lld %lld\n", number, begin, now_ns());
	fflush(stdout);
	Py_XDECREF(result);
	Py_XDECREF(scope);
	Py_XDECREF(code);
	return Py_FinalizeEx() || !result;
}

int main(void)
{
	for (int number = 0; !run_round(number); number++)
		;
	return 1;
}
"""
CLOCKS_S = 0.001  # how far the times of samples and of the program may be apart
FEWEST = 500  # samples in functions of rounds
RUNS = 40  # at most, of a second each


def read_rounds(said):
    """The times of the rounds in seconds, by number; and the end of the last one."""
    lines = said.read_text().rpartition("\n")[0].split("\n")
    rounds = {}
    for number, begin, end in map(str.split, filter(None, lines)):
        rounds[int(number)] = int(begin) / 1e9, int(end) / 1e9
    return rounds, max([end for _, end in rounds.values()], default=0)


def check_rounds(profile, rounds):
    """Each sample in a function of a round was taken in that round. Returns how many there are."""
    begun_ns, checked = int(profile["facts"]["start_ns"]), 0
    stacks, frames = profile["stacks"], profile["frames"]
    for time_ns, sample, count in profile.get("events", []):
        stack, numbers = profile["samples"][sample]["stack"], set()
        while stack is not None:
            frame = frames[stacks[stack]["frame"]]
            numbers.update(map(int, re.findall(r"^<round-(\d+)>$", frame["file"] or "")))
            numbers.update(map(int, re.findall(r"^(?:burn|outer)_(\d+)$", frame["name"])))
            stack = stacks[stack]["parent"]
        if not numbers:
            continue
        assert len(numbers) == 1, (sample, numbers)
        begin, end = rounds[numbers.pop()]
        assert begin - CLOCKS_S <= (begun_ns + time_ns) / 1e9 <= end + CLOCKS_S, (sample, begin, end)
        checked += count
    return checked


@pytest.mark.parametrize("version", [(3, 12), (3, 13)], ids="%d.%d".__mod__)
def test_interpreter_that_starts_again(version, tmp_path):
    """Each round counts its code objects anew, and makes them where those of the last one were."""
    python = pythons.one(version=version, kind="shared")
    if not python:
        pytest.skip("no Python %d.%d with a shared library" % version)
    source, program = tmp_path / "rounds.c", tmp_path / "rounds"
    said, path = tmp_path / "said", tmp_path / "run.json"
    source.write_text(ROUNDS)
    environment = build_embedding(python, source, program)
    checked, number = 0, 0
    with open(said, "wb") as out, harness.started([str(program)], env=environment, stdout=out) as process:
        while checked < FEWEST and number < RUNS:
            record(process.pid, "--timestamps", "-o", path, rate=4999)
            ended = time.time()
            harness.wait_for(lambda: read_rounds(said)[1] > ended)
            checked += check_rounds(json.loads(path.read_text(encoding="utf-8")), read_rounds(said)[0])
            number += 1
    assert checked >= FEWEST
