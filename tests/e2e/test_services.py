# SPDX-License-Identifier: Apache-2.0
"""Servers of several processes under load, and a program that gets its Python late."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys

import pytest

import cgroups
import harness
import processes
import pythons
from harness import pybpf, total
from processes import by_process, sampling

sys.path.insert(0, str(harness.TOP / "tests"))

import peers  # noqa: E402

pytestmark = pytest.mark.usefixtures("profiler")

# For WSGI and ASGI. One request takes some milliseconds of Python.
APPLICATION = """
def burn():
    sum(range(20000))


def work():
    for _ in range(10):
        burn()


def application(environ, start_response):
    work()
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    for _ in range(5):
        work()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"done"})
"""
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}


@contextlib.contextmanager
def serving(argv, port, folder):
    """A server that answers, in a control group of its own: (directory, process)."""
    (folder / "app.py").write_text(APPLICATION)
    options = dict(QUIET, cwd=folder, start_new_session=True)
    try:
        place = cgroups.inside("pybpf-service-" + secrets.token_hex(4), argv, **options)
    except cgroups.Missing as missing:
        pytest.skip(str(missing))
    with place as (directory, process):
        try:
            harness.wait_for(lambda: process.poll() is not None or harness.answers(port))
            assert process.poll() is None, "%s does not start" % argv[0]
            yield directory, process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def load(port, seconds=2):
    """Requests, as many as are answered."""
    wrk = shutil.which("wrk")
    if not wrk:
        pytest.skip("wrk is missing")
    argv = [wrk, "-t1", "-c4", "-d%ds" % seconds, "http://127.0.0.1:%d/" % port]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    requests = int(done.stdout.split(" requests in ")[0].split()[-1])
    assert requests > 20, done.stdout
    return requests


def in_application(stacks):
    """Samples of the requests' own work, each below what the server calls."""
    number = 0
    for stack, count in stacks:
        own = [frame.name for frame in stack if os.path.basename(frame.file) == "app.py"]
        if own and own != ["<module>"]:  # a new worker imports it
            assert own in (["application", "work", "burn"][: len(own)], ["asgi", "work", "burn"][: len(own)]), own
            number += count
    return number


def program(name):
    try:
        return str(peers.services() / name)
    except peers.Missing as missing:
        pytest.skip(str(missing))


def check_service(run, cpu_s, workers, of_all=False):
    """Most of the CPU time is the application's, in at least so many processes; returns them."""
    found = by_process(run)
    at_work = {pid: in_application(stacks) for pid, (_, stacks) in found.items()}
    at_work = {pid: count for pid, count in at_work.items() if count > 10}
    assert len(at_work) >= workers, at_work
    processes.check_named(run, of_all=of_all)
    processes.agree(run, run.stats["samples"]["asked"], cpu_s, 2000 * cpu_s, what="samples of the service")
    assert sum(at_work.values()) >= 0.6 * total(run.stacks()), at_work
    return at_work


def test_gunicorn_whose_workers_are_replaced(tmp_path):
    port = harness.free_port()
    argv = [program("gunicorn"), "-w", "3", "-b", "127.0.0.1:%d" % port, "--max-requests", "60", "app:application"]
    with serving(argv, port, tmp_path) as (place, _):
        before = place.cpu_s()
        with sampling("--cgroup", place.path) as run:
            answered = 0
            while answered < 5 * 60:
                answered += load(port)
            cpu_s = place.cpu_s() - before
    check_service(run, cpu_s, 4)  # one of them after another has ended
    assert {root.name for root, _ in by_process(run).values()} == {"gunicorn"}


def test_uvicorn(tmp_path):
    """Its workers are there before pybpf is: with --children they count as well."""
    port = harness.free_port()
    options = ["--workers", "2", "--port", str(port), "--log-level", "critical"]
    with serving([program("uvicorn"), *options, "app:asgi"], port, tmp_path) as (place, server):
        before = place.cpu_s()
        with sampling("-p", server.pid, "--children") as run:
            load(port)
            cpu_s = place.cpu_s() - before
    check_service(run, cpu_s, 1)


def test_uwsgi_with_workers(tmp_path):
    uwsgi = shutil.which("uwsgi-core") or shutil.which("uwsgi")
    if not uwsgi:
        pytest.skip("uwsgi-core is missing")
    port = harness.free_port()
    # Other tests have an uwsgi as well.
    own = tmp_path / "uwsgi-pool"
    own.symlink_to(uwsgi)
    argv = [own, "--plugin", "python3", "--http-socket", "127.0.0.1:%d" % port, "--wsgi-file", "app.py"]
    argv += ["--master", "--processes", "3", "--need-app"]
    with serving(argv, port, tmp_path) as (place, _):
        before = place.cpu_s()
        with sampling("--all", "--comm", own.name) as run:
            load(port)
            cpu_s = place.cpu_s() - before
        with sampling("--cgroup", place.path, "--merge") as merged:
            load(port, 1)
    check_service(run, cpu_s, 1, of_all=True)
    roots = {stack[0].text for stack, _ in merged.stacks()}
    assert len(roots) == 1 and roots.pop().startswith("uwsgi")
    assert in_application([(stack[1:], count) for stack, count in merged.stacks()]) > 100


# The worker imports it, and gets no further.
ENDLESS = """
def burn():
    sum(range(20000))


while True:
    burn()
"""
# What pip makes of gunicorn's entry point.
CALLS = """\
import sys
from gunicorn.app.wsgiapp import run
if __name__ == '__main__':
    sys.exit(run())
"""


def own_stacks(pid, path):
    """Those of the worker's own functions; of a new profile, if there is none at the path."""
    if not path.exists():
        assert pybpf("-q", "-p", pid, "--children", "-F", 499, "-d", 1, "-o", path).code == 0
    lines = pybpf("report", path, "--own", "-f", "folded").out.splitlines()
    found = [line for line in lines if "burn (endless.py:" in line]
    if not found:
        path.unlink()
    return found


@pytest.mark.parametrize("how", ["installed", "-m", "bin/serve", "with a function"])
def test_whose_code_a_program_in_a_bin_folder_is(how, tmp_path):
    """A package's if it was installed with it, the program's own if a person put it into a folder of that name."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    (tmp_path / "bin").mkdir()
    serve = tmp_path / "bin" / "serve"
    serve.write_text(CALLS)
    python = program("python")
    begin = {"installed": [program("gunicorn")], "-m": [python, "-m", "gunicorn"]}.get(how, [python, serve])
    if how == "with a function":
        (tmp_path / "pyvenv.cfg").touch()
        serve.write_text(CALLS.replace("run())", "begin())").replace("if ", "def begin():\n    return run()\nif "))
    bind = "127.0.0.1:%d" % harness.free_port()
    saved = tmp_path / "own.pybpf"
    argv = [*begin, "-b", bind, "-t", "0", "endless:application"]
    with harness.started(argv, cwd=tmp_path, start_new_session=True, **QUIET) as server:
        try:
            harness.wait_for(lambda: own_stacks(server.pid, saved))
        finally:
            os.killpg(server.pid, signal.SIGKILL)
    module = {
        "installed": "",
        "-m": "",
        "bin/serve": ";<module> (serve:4)",
        "with a function": ";<module> (serve:6);begin (serve:4)",
    }[how]
    # A stack may have been read in part, while the program went on: without its end, or without a function's file.
    stacks = [stack.split(";")[1:-1] for stack in own_stacks(server.pid, saved)]
    whole = {";".join(stack) for stack in stacks if all("(" in frame for frame in stack)}
    assert {";" + stack for stack in whole} == {module + ";<module> (endless.py:7)"}, stacks


LATE = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static double cpu(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	printf("{\"pid\": 0}\n");
	fflush(stdout);
	getchar();
	while (cpu() < 0.3)
		;

	void *python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	void (*initialize)(void) = python ? dlsym(python, "Py_Initialize") : 0;
	int (*run)(const char *) = python ? dlsym(python, "PyRun_SimpleString") : 0;
	if (argc != 2 || !initialize || !run)
		return 1;
	initialize();
	int failed = run("import time\ndef burn():\n    end = time.process_time() + 0.6\n"
			 "    while time.process_time() < end: sum(range(2000))\nburn()\n");
	printf("{\"failed\": %d}\n", failed);
	return failed;
}
"""


def late_libraries():
    """A shared libpython of each version that there is."""
    found = {}
    for item in pythons.interpreters():
        if item.kind == "shared" and item.runs_here():
            folder = os.path.dirname(os.path.dirname(item.argv[0])) + "/lib"
            names = [name for name in os.listdir(folder) if name.startswith("libpython%d.%d" % item.version)]
            names = [name for name in names if name.endswith(".so.1.0")]
            if names:
                found[item.version] = (item, os.path.join(folder, names[0]))
    return [found[version] for version in sorted(found)][-2:]


@pytest.mark.parametrize("interpreter, library", late_libraries(), ids=lambda one: getattr(one, "name", ""))
def test_python_that_is_loaded_later(interpreter, library, tmp_path):
    """A C program that works for a while, then opens libpython: what it runs from there on has its names."""
    if not shutil.which("gcc"):
        pytest.skip("gcc is missing")
    source, binary = tmp_path / "late.c", tmp_path / "late"
    source.write_text(LATE)
    subprocess.run(["gcc", "-o", binary, source, "-ldl"], check=True)
    home = os.path.dirname(os.path.dirname(library))
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    with harness.started([str(binary), library], env=dict(os.environ, PYTHONHOME=home), **options) as late:
        harness.read_ready_line(late)
        with sampling("--all") as run:
            late.stdin.write(b"\n")
            assert harness.read_ready_line(late) == {"failed": 0}
    root, stacks = by_process(run)[late.pid]
    assert root.name == "late"
    samples = sum(count for stack, count in stacks if "burn" in [frame.name for frame in stack])
    # Until pybpf has looked at the library, which on a busy machine takes it some time, it is no Python.
    processes.at_least(run, samples, 0.75 * 0.6, 60)
    processes.at_most(run, samples, 0.6, 60)
