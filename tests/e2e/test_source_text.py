# SPDX-License-Identifier: Apache-2.0
"""Source text is shown where it is that of the code which runs, however a file was replaced meanwhile; else it is not."""

import contextlib
import gzip
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import fuse
import harness
import pythons

pytestmark = pytest.mark.usefixtures("profiler")

SOME = [item for item in map(pythons.one, ((2, 7), (3, 8), (3, 12), (3, 13))) if item and item.runs_here()]
some_pythons = pytest.mark.parametrize("python", SOME, ids=lambda item: item.name)

OLD = """import time
def query_orders(seconds):
    time.sleep(seconds)  # the old text
def serve():
    while True: query_orders(0.01)
"""
# Each line is another function's.
NEW = OLD.replace("query_orders", "delete_orders").replace("old", "new")
# A line more, in a function whose name is the same.
LONGER = OLD.replace("(seconds):\n", "(seconds):\n    # a new text\n")
MAIN = """import os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import shop
def say(): os.write(1, b"%d\\n" % os.getpid())
say()
if len(sys.argv) > 2:
    os.read(0, 1)
    if os.fork(): os.wait()
    say()
shop.serve()
"""


@contextlib.contextmanager
def serving(python, folder, *more):
    """A program whose module lies in current/, and what it says: PIDs, a line each."""
    (folder / "main.py").write_text(MAIN.replace('b"%d\\n" % os.getpid()', '("%d\\n" % os.getpid()).encode()'))
    argv = [*python.command(str(folder / "main.py")), str(folder / "current"), *more]
    time.sleep(0.1)  # files are older than the program by more than the grain of the clocks
    argv = ["unshare", "--mount", *argv]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True)
    try:
        yield process, lambda: int(process.stdout.readline())
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        harness.stop(process)


def release(folder, name, text):
    (folder / name).mkdir()
    (folder / name / "shop.py").write_text(text)
    os.utime(folder / name / "shop.py", (1500000000, 1500000000))
    return folder / name / "shop.py"


def written(folder, text, _):
    (folder / "current" / "shop.py").write_text(text)


def renamed(folder, text, _):
    """As dpkg, tar and rsync do: with the times that it had elsewhere."""
    release(folder, "unpacked", text).rename(folder / "current" / "shop.py")


def linked(folder, text, _):
    release(folder, "next", text)
    (folder / "link").symlink_to("next")
    (folder / "link").rename(folder / "current")


def swapped(folder, _, __):
    """The next release has been there for long."""
    (folder / "current").rename(folder / "last")
    (folder / "prepared").rename(folder / "current")


def mounted(folder, _, pid):
    """No time tells of it."""
    argv = ["mount", "--bind", str(folder / "prepared" / "shop.py"), str(folder / "current" / "shop.py")]
    subprocess.run(["nsenter", "--mount", "--target", str(pid), *argv], check=True)


def shown(pid, folder, env=None):
    """The text that dump shows, and that of a recording."""

    def dumped():
        dump = harness.pybpf("dump", "-p", pid, env=env)
        assert dump.code == 0, dump.err
        return dump.out if "query_orders" in dump.out else None

    dump = harness.wait_for(dumped)
    path = folder / "out.pybpf"
    run = harness.pybpf("-p", pid, "-d", 0.5, "--mode=wall", "-o", path, env=env)
    assert run.code == 0, run.err
    return dump + gzip.decompress(path.read_bytes().partition(b"\n")[2]).decode(errors="replace")


@some_pythons
def test_why_there_is_none(python, tmp_path):
    """A path that is not absolute may be below any folder in which the program was; a file may have been changed."""
    release(tmp_path, "current", OLD)
    (tmp_path / "here.py").write_text("def run(): shop.serve()\n" + MAIN.replace("shop.serve()", "run()"))
    code = "exec(compile(open('here.py').read(), 'here.py', 'exec'))"
    argv = [*python.argv, "-c", code, "current"]
    time.sleep(0.1)
    with harness.started(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=tmp_path) as process:
        pid = int(process.stdout.readline())
        written(tmp_path, NEW, pid)
        run = harness.wait_for(lambda: dumped_in("query_orders", pid))
    reasons = dict(re.findall(r"^pybpf: (.+): its source is left out: (.+)$", run.err, re.M))
    assert reasons["here.py"].startswith("its path is relative, ") and "run()" not in run.out, run
    changed = [why for path, why in reasons.items() if path.endswith("shop.py")]
    if python.version >= (3, 4):  # which makes paths of "." in sys.path absolute
        # Right after the start the clocks of files and of processes do not tell: then the text does.
        why = "was changed after the program began|does not define the functions that ran"
        assert changed and all(re.search(why, told) for told in changed), reasons


def dumped_in(function, pid):
    run = harness.pybpf("dump", "-v", "-p", pid)
    assert run.code == 0, run
    return run if "in %s\n" % function in run.out else None


@some_pythons
@pytest.mark.parametrize("text", [NEW, LONGER], ids=["other", "longer"])
@pytest.mark.parametrize("replaces", [written, renamed, linked, swapped, mounted])
def test_replaced(python, tmp_path, replaces, text):
    tmp_path.chmod(0o755)
    release(tmp_path, "first", OLD)
    release(tmp_path, "prepared", text)
    if replaces is swapped:
        (tmp_path / "first").rename(tmp_path / "current")
    else:
        (tmp_path / "current").symlink_to("first")
    with serving(python, tmp_path) as (_, say):
        pid = say()
        assert shown(pid, tmp_path).count("# the old text") == 2
        replaces(tmp_path, text, pid)
        told = shown(pid, tmp_path)
        assert "new text" not in told and "delete_orders" not in told
        assert "the old text" not in told


@pytest.fixture(scope="module")
def clock_set(tmp_path_factory):
    """The environment of a pybpf that finds a clock that was set by so many seconds after all that is there began."""
    if "san" in Path(harness.PYBPF).name:
        pytest.skip("the sanitizers' library has to be the first")
    made = tmp_path_factory.mktemp("clock") / "clock_set.so"
    source = Path(__file__).parents[1] / "targets" / "clock_set.c"
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", made, source]
    subprocess.run(command, check=True)
    return lambda seconds: {**os.environ, "LD_PRELOAD": str(made), "CLOCK_SET_S": str(seconds)}


@some_pythons
@pytest.mark.parametrize("seconds", [3600, -3600], ids=["forward", "back"])
@pytest.mark.parametrize("text", [NEW, LONGER], ids=["other", "longer"])
def test_replaced_before_the_clock_was_set(python, tmp_path, clock_set, text, seconds):
    """Set forward, the program seems to be younger than the file; set back, than all files."""
    tmp_path.chmod(0o755)
    release(tmp_path, "current", OLD)
    with serving(python, tmp_path) as (_, say):
        pid = say()
        assert shown(pid, tmp_path, clock_set(seconds)).count("# the old text") == (2 if seconds > 0 else 0)
        renamed(tmp_path, text, pid)
        told = shown(pid, tmp_path, clock_set(seconds))
        assert "new text" not in told and "delete_orders" not in told


@some_pythons
def test_forked_after_it_was_replaced(python, tmp_path):
    """The program that loaded it is older than its worker, and than the file."""
    release(tmp_path, "current", OLD)
    with serving(python, tmp_path, "fork") as (process, say):
        say()
        written(tmp_path, LONGER, None)
        time.sleep(0.1)
        process.stdin.write(b"g")
        worker = say()
        assert "a new text" not in shown(worker, tmp_path)


@some_pythons
def test_forked_without_a_change(python, tmp_path):
    release(tmp_path, "current", OLD)
    with serving(python, tmp_path, "fork") as (process, say):
        say()
        time.sleep(0.1)
        process.stdin.write(b"g")
        assert shown(say(), tmp_path).count("# the old text") == 2


GENERATED = """
import os, time
path = %r
exec(compile("import time\\ndef root():\\n  time.sleep(0.01)\\ndef query_orders():\\n  while True: root()\\n", path, "exec"))
os.write(1, ("%%d\\n" %% os.getpid()).encode())
query_orders()
"""


@some_pythons
def test_generated_from_a_template(python, tmp_path):
    """Its lines are those of the code that was made of it, and its file is the template."""
    template = tmp_path / "page.html"
    template.write_text("".join("<p>line %d of the template</p>\n" % number for number in range(1, 9)))
    time.sleep(0.1)
    process = subprocess.Popen([*python.argv, "-c", GENERATED % str(template)], stdout=subprocess.PIPE, bufsize=0)
    try:
        assert "of the template" not in shown(int(process.stdout.readline()), tmp_path)
    finally:
        harness.stop(process)


@some_pythons
def test_lone_carriage_returns(python, tmp_path):
    """They end a line for Python, and so in what is shown."""
    release(tmp_path, "current", OLD)
    (tmp_path / "current" / "shop.py").write_bytes(OLD.replace("import time\n", "import time\r\r").encode())
    with serving(python, tmp_path) as (_, say):
        pid = say()
        # It is between two sleeps now and then.
        harness.wait_for(lambda: "time.sleep(seconds)  # the old text" in harness.pybpf("dump", "-p", pid).out)


# One function: with each further one that is met the file is looked at anyway.
LATE = """
while True:
    sum(range(1000))  # the text of it
"""


@pytest.mark.parametrize("late", ("when it is met", "when its text is read"))
def test_a_file_system_that_answers_late_for_a_moment(late, tmp_path):
    """So it is on a machine with much to do, where a helper needs longer than is waited for it."""
    path = tmp_path / "out.pybpf"
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(fuse.mounted(tmp_path / "mnt", LATE.encode(), 60))
        except fuse.Missing as error:
            pytest.skip(f"no file system in user space here: {error}")
        argv = [harness.default_python().argv[0], str(tmp_path / "mnt" / "file")]
        process = stack.enter_context(harness.started(argv))
        harness.wait_for(lambda: "sum(range" in harness.pybpf("dump", "-p", process.pid).out)
        os.stat(argv[1])  # answered after all that came before
        closed, given_up = server.counts.released, server.counts.interrupted
        if late == "when it is met":
            server.delay()
        run = stack.enter_context(
            harness.started([harness.PYBPF, "-p", str(process.pid), "-o", str(path), "-F", "199"], stderr=subprocess.PIPE)
        )
        if late == "when it is met":
            # How its path is to be shown, and which file it is.
            harness.wait_for(lambda: server.counts.interrupted >= given_up + 2)
            server.hurry()
        harness.wait_for(lambda: server.counts.released > closed)
        if late == "when its text is read":
            server.delay()
        run.send_signal(signal.SIGTERM)
        if late == "when its text is read":
            harness.wait_for(lambda: server.counts.interrupted > given_up)
            server.hurry()
        _, err = run.communicate(timeout=harness.PATIENCE)
    assert run.returncode == 0, err
    assert b"# the text of it" in gzip.decompress(path.read_bytes().partition(b"\n")[2])
