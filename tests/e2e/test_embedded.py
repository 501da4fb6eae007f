# SPDX-License-Identifier: Apache-2.0
"""Programs that are no python3 but have a Python inside: uWSGI with its plugin, gdb."""

import os
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
    if not python or not shutil.which("gcc"):
        pytest.skip("gcc or a Python with a shared library is missing")
    config = python.argv[0] + "3-config"
    if not os.path.exists(config):
        pytest.skip("%s is missing" % config)
    source, program = tmp_path / "embed.c", tmp_path / "embed"
    source.write_text(EMBED)
    flags = [
        subprocess.run([config, *ask], capture_output=True, text=True, check=True).stdout.split()
        for ask in (["--includes"], ["--ldflags", "--embed"])
    ]
    prefix = os.path.dirname(os.path.dirname(python.argv[0]))
    link = [*flags[1], "-Wl,-rpath," + prefix + "/lib"]
    subprocess.run(["gcc", *flags[0], "-o", program, source, *link], check=True)
    with harness.started([str(program)], env=dict(os.environ, PYTHONHOME=prefix)) as process:
        time.sleep(0.5)
        run = record(process.pid)
    harness.check_account(run)
    leaves = sum(n for stack, n in run.stacks() if [f.name for f in stack] == ["<module>", "burn"])
    assert leaves >= 0.9 * total(run.stacks())
