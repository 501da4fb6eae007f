# SPDX-License-Identifier: Apache-2.0
"""pybpf ps: what it lists, what it says of the rest, and which processes its options choose."""

import contextlib
import fcntl
import json
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import termios
from pathlib import Path

import pytest

import harness
import pythons
from harness import one_sentence, pybpf
from test_badinput import as_nobody, free_pid, public_copy, running_32_bit

pytestmark = pytest.mark.usefixtures("profiler")

SLEEP = "import time; time.sleep(300)"


def rows(*args):
    """PID -> what is said of it."""
    run = pybpf("ps", "--json", *args)
    assert run.code == 0, run
    return {row["pid"]: row for row in json.loads(run.out)}


def one_per_version():
    found = {}
    for item in pythons.interpreters():
        found.setdefault(item.version, item)
    return list(found.values())


@contextlib.contextmanager
def sleeping(count=1, argv=None, **options):
    with contextlib.ExitStack() as stack:
        argv = argv or [harness.default_python().argv[0], "-c", SLEEP]
        yield [stack.enter_context(harness.started(argv, **options)) for _ in range(count)]


def listed(processes, *args):
    """The PIDs of these that are listed, in their order."""
    found = rows(*args)
    return [process.pid for process in processes if process.pid in found]


def test_every_version_at_once():
    with contextlib.ExitStack() as stack:
        running = []
        for interpreter in one_per_version():
            running.append((interpreter, stack.enter_context(harness.target(interpreter, "spin.py"))))
        found = rows("-p", ",".join(str(target.pid) for _, target in running))
    assert running
    for interpreter, target in running:
        row = found[target.pid]
        assert row["version"].startswith("%d.%d" % interpreter.version), row
        assert row["not_supported"] is None and row["container"] is None
        assert row["inside_pid"] == target.pid and row["threads"] == 1 and row["user"] == "root"
        assert "spin.py" in row["command"] and row["path"].startswith("/")


@pytest.mark.parametrize("kind, letter", [("free-threaded", "t"), ("debug", "d")])
def test_kinds_are_told_apart(kind, letter):
    interpreter = pythons.one(kind=kind)
    if not interpreter:
        pytest.skip("no %s build on this machine" % kind)
    with harness.target(interpreter, "spin.py") as running:
        assert rows("-p", running.pid)[running.pid]["version"].endswith(letter)


def test_table():
    command = [harness.default_python().argv[0], "-c", SLEEP, "a\x1b[31mb", "c\nd", "", " "]
    with sleeping(argv=command) as (process,), sleeping(2) as others:
        pids = [process.pid] + [other.pid for other in others]
        run = pybpf("ps", "-p", ",".join(map(str, pids)))
    assert run.code == 0 and run.err == ""
    lines = run.out.split("\n")
    assert lines.pop() == ""
    assert lines[0].split() == ["PID", "INSIDE", "VERSION", "CONTAINER", "THREADS", "USER", "COMMAND"]
    assert all(line == line.rstrip() for line in lines), "blanks at the end of a line"
    assert [int(line.split()[0]) for line in lines[1:]] == sorted(pids)
    # Columns stand below their titles.
    at = lines[0].index("COMMAND")
    assert all(line[at - 1] == " " and line[at] == "/" for line in lines[1:]), run.out
    (mine,) = [line for line in lines[1:] if int(line.split()[0]) == process.pid]
    assert r"a\x1b[31mb" in mine and r"c\x0ad" in mine


def test_a_user_without_a_name():
    """All of NSS is asked for it, with what is left of the rights."""
    with sleeping(argv=["/usr/bin/python3", "-c", SLEEP], user=54321) as (process,):
        run = pybpf("ps", "-p", process.pid)
    assert (run.code, run.err) == (0, "") and "54321" in run.out


def test_a_terminal_gets_what_fits():
    with sleeping(argv=[harness.default_python().argv[0], "-c", SLEEP, "x" * 500]) as (process,):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
        done = subprocess.run([harness.PYBPF, "ps", "-p", str(process.pid)], stdout=theirs, timeout=harness.PATIENCE)
        os.close(theirs)
        text = ""
        # Who has closed the other end has it end by an error.
        with contextlib.suppress(OSError):
            while True:
                text += os.read(ours, 1 << 16).decode()
        os.close(ours)
        whole = rows("-p", process.pid)[process.pid]["command"]
    assert done.returncode == 0
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    assert len(lines) == 2 and len(lines[1]) == 70, text
    assert "x" * 500 in whole


def test_selection():
    with sleeping(3) as processes:
        first, second, third = processes
        pids = [process.pid for process in processes]
        assert listed(processes, "--all") == pids
        assert listed(processes, "-p", "%d,%d" % (first.pid, third.pid)) == [first.pid, third.pid]
        assert listed(processes, "-p", first.pid, "-p", second.pid) == [first.pid, second.pid]
        assert listed(processes, "--exclude-pid", second.pid) == [first.pid, third.pid]
        assert listed(processes, "-p", first.pid, "--exclude-pid", first.pid) == []
        assert listed(processes, "--user", "root") == listed(processes, "--user", "0") == pids
        assert listed(processes, "--user", "nobody") == []
        assert listed(processes, "--exclude-user", "root") == []
        comm = Path("/proc/%d/comm" % first.pid).read_text(encoding="utf-8").strip()
        assert listed(processes, "--comm", comm[:3] + "*") == pids
        assert listed(processes, "--comm", "no-such*", "--comm", comm) == pids
        assert listed(processes, "--comm", "no-such*") == []
        assert listed(processes, "--exclude-comm", comm) == []


def test_another_user():
    python = harness.default_python().argv[0]
    with sleeping(argv=as_nobody(python, "-c", SLEEP)) as (process,):
        harness.wait_for(lambda: process.pid in rows())
        row = rows("--user", "nobody")[process.pid]
    assert row["uid"] == 65534 and row["user"] == "nobody"


def test_children():
    python = harness.default_python().argv[0]
    script = '"$0" -c "%s" & echo $!; sh -c \'"$0" -c "%s" & echo $!; wait\' "$0" & wait' % (SLEEP, SLEEP)
    argv = ["sh", "-c", script, python]
    with harness.started(argv, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True) as shell:
        try:
            children = {int(shell.stdout.readline()) for _ in range(2)}
            # They are Python from their exec on.
            harness.wait_for(lambda: children <= rows().keys())
            assert not children & rows("-p", shell.pid).keys()
            assert rows("-p", shell.pid, "--children").keys() == children
            assert rows("-p", shell.pid, "--subprocesses").keys() == children
        finally:
            os.killpg(shell.pid, 9)


def test_what_is_not_supported_is_listed_with_the_reason():
    pypy = shutil.which("pypy3")
    if not pypy:
        pytest.skip("pypy3 is missing")
    with sleeping(argv=[pypy, "-c", SLEEP]) as (process,), sleeping() as (other,):
        harness.wait_for(lambda: process.pid in rows())
        row = rows()[process.pid]
        run = pybpf("ps", "-p", process.pid, "-p", other.pid)
    assert row["version"] is None and "PyPy" in row["not_supported"]
    table, _, reasons = run.out.partition("\nNot supported:\n")
    assert str(process.pid) in table and "PyPy" in reasons and str(process.pid) in reasons
    assert str(other.pid) in table and str(other.pid) not in reasons


def test_32_bit(tmp_path):
    with running_32_bit(tmp_path) as process:
        row = rows()[process.pid]
    assert "32-bit" in row["not_supported"]


def test_nothing_found():
    with sleeping(argv=["sleep", "60"]) as (process,):
        run = pybpf("ps", "-p", process.pid)
        assert run.code == 0 and run.out == "" and "maps no Python" in one_sentence(run.err)
        assert pybpf("ps", "--json", "-p", process.pid).out == "[]\n"
    run = pybpf("ps", "--comm", "no-such-comm")
    assert run.code == 0 and run.out == "" and "no Python process" in one_sentence(run.err)


def test_no_such_process():
    pid = free_pid()
    run = pybpf("ps", "-p", pid)
    assert run.code == 1 and run.out == "" and str(pid) in one_sentence(run.err)
    with sleeping() as (process,):
        run = pybpf("ps", "-p", "%d,%d" % (pid, process.pid))
    assert run.code == 1 and str(process.pid) in run.out and str(pid) in one_sentence(run.err)


def with_proc(hidepid, argv):
    """The same program, with a /proc of its own that hides so much, whatever the machine's does."""
    mount = 'mount -t proc -o hidepid="$0" proc /proc && exec "$@"'
    return ["unshare", "--mount", "/bin/sh", "-c", mount, str(hidepid), *argv]


NO_USER = 64999  # who has no process of another test


def as_nobody_with_proc(hidepid):
    with public_copy() as binary, sleeping() as (process,):
        whole = with_proc(hidepid, as_nobody(binary, "ps", user=NO_USER))
        one = with_proc(hidepid, as_nobody(binary, "ps", "-p", str(process.pid), "--json", user=NO_USER))
        return process.pid, *[subprocess.run(argv, capture_output=True, text=True) for argv in (whole, one)]


needs_setpriv = pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is missing")


@needs_setpriv
def test_without_privilege():
    pid, done, mine = as_nobody_with_proc(0)
    # Only the names of others can be read: those that say Python are listed with what is missing.
    assert "CAP_SYS_PTRACE" in done.stderr and done.returncode in (0, 1)
    assert str(pid) in done.stdout
    assert "CAP_SYS_PTRACE" in json.loads(mine.stdout)[0]["not_supported"]


@needs_setpriv
@pytest.mark.parametrize("hidepid", [1, 2])
def test_without_privilege_where_proc_hides_processes(hidepid):
    """Hidden processes are not said not to exist."""
    pid, done, mine = as_nobody_with_proc(hidepid)
    assert done.returncode == 1 and done.stdout == ""
    assert "hidepid" in one_sentence(done.stderr) and "CAP_SYS_PTRACE" in done.stderr
    assert mine.returncode == 1 and mine.stdout == "[]\n"
    assert str(pid) in one_sentence(mine.stderr) and "hidepid" in mine.stderr


@pytest.mark.parametrize(
    "args, word",
    [
        (["--all", "-p", "1"], "contradict"),
        (["--all", "--container", "web"], "contradict"),
        (["--all", "--cgroup", "/"], "contradict"),
        (["--children"], "--children"),
        (["-p", ""], "-p"),
        (["-p", "1,"], "1,"),
        (["-p", ",1"], ",1"),
        (["-p", "0"], "0"),
        (["-p", "-1"], "-1"),
        (["-p", "1 2"], "1 2"),
        (["-p", "99999999999999999999"], "99999999999999999999"),
        (["--exclude-pid", "x"], "--exclude-pid"),
        (["--user", "no-such-user"], "no-such-user"),
        (["--user", "-1"], "-1"),
        (["--container", ""], "--container"),
        (["--cgroup"], "--cgroup"),
        (["--no-such-option"], "--no-such-option"),
        (["surplus"], "surplus"),
    ],
)
def test_bad_option(args, word):
    run = pybpf("ps", *args)
    assert run.code == 2 and run.out == ""
    assert word in one_sentence(run.err)


@pytest.mark.parametrize(
    "args, word",
    [
        (["--container", "no-such-container"], "no-such-container"),
        (["--container", "x"], "4 characters"),
        (["--cgroup", "/no/such/group"], "/no/such/group"),
        (["--cgroup", "/tmp"], "outside"),
        (["--cgroup", "/etc/passwd"], "/etc/passwd"),
    ],
)
def test_no_such_group(args, word):
    run = pybpf("ps", *args)
    assert run.code == 1 and run.out == ""
    assert word in one_sentence(run.err)


def test_help():
    run = pybpf("ps", "--help")
    assert run.code == 0 and run.err == ""
    for option in ("--container", "--cgroup", "--user", "--comm", "--exclude-pid", "--children", "--json"):
        assert option in run.out
    assert all(len(line) <= 80 for line in run.out.split("\n"))


def test_output_is_full():
    with sleeping() as (process,), open("/dev/full", "wb") as full:
        run = pybpf("ps", "-p", process.pid, stdout=full)
    assert run.code == 1 and "space" in one_sentence(run.err)


def test_deleted_interpreter(tmp_path):
    """Its file is gone, and another program has taken its name."""
    copy = tmp_path / "python"
    shutil.copy(os.path.realpath(pythons.one(kind="static").argv[0]), copy)
    with sleeping(argv=[str(copy), "-S", "-E", "-c", SLEEP]) as (process,):
        harness.wait_for(lambda: process.pid in rows())
        copy.unlink()
        os.mkfifo(copy)
        row = rows()[process.pid]
    assert row["version"] and row["path"] == str(copy)


def test_five_hundred_processes():
    with sleeping(500, ["sleep", "300"]), sleeping(20) as processes:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = rows()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert {process.pid for process in processes} <= found.keys()
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert cpu_s < 10, "%.1f s of CPU time for 520 processes" % cpu_s


def costly_elf(path):
    """An ELF file whose symbol and string tables claim to be huge, with every name that is looked for."""
    names = b"\0".join(
        name.encode()
        for name in "_PyRuntime PyInterpreterState_Head _PyThreadState_Current PyCode_Type pypy_main_startup".split()
    )
    machine = {"x86_64": 62, "aarch64": 183}[os.uname().machine]
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    sections, strings, huge = 0x2000, b"\0.symtab\0.strtab\0.shstrtab\0", 1 << 50
    header = struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, sections, 0, 64, 56, 1, 64, 4, 3)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 4096, 4096, 4096)

    def section(name, kind, offset, size, link, entry):
        return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, link, 0, 8, entry)

    with open(path, "wb") as out:
        out.write(ident + header + load)
        out.seek(sections)
        out.write(bytes(64) + section(1, 2, 1 << 30, huge, 2, 24) + section(9, 3, 1 << 20, huge, 0, 0))
        out.write(section(17, 3, 0x3000, len(strings), 0, 0))
        out.seek(0x3000)
        out.write(strings)
        out.seek((1 << 20) + 1)
        out.write(names + b"\0")
        out.truncate(1 << 40)


MAPPER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
/* Maps each of its arguments executable. */
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[i], O_RDONLY), 0) == MAP_FAILED)
			return 1;
	puts("{}");
	fflush(stdout);
	sleep(300);
	return 0;
}
"""


def test_files_made_to_cost_time(tmp_path):
    """A process that maps a hundred of them is given up, by name, and the others are listed."""
    if not shutil.which("gcc"):
        pytest.skip("gcc is missing")
    (tmp_path / "mapper.c").write_text(MAPPER)
    program = tmp_path / "mapper"
    subprocess.run(["gcc", "-o", program, tmp_path / "mapper.c"], check=True)
    files = []
    for number in range(100):
        files.append(str(tmp_path / ("%d.so" % number)))
        costly_elf(files[-1])
    with sleeping(argv=[str(program), *files], stdout=subprocess.PIPE) as (process,), sleeping() as (other,):
        harness.read_ready_line(process)
        found = rows()
    assert found[other.pid]["version"]
    told = found.get(process.pid)
    assert told and re.search(r"take too long to read: after \d+ of 10\d", told["not_supported"]), told


def without_ptrace(*args):
    """As root, without the right to read processes that have more rights."""
    return ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", *args]


def test_unreadable_processes_are_named_with_the_true_reason():
    argv = without_ptrace(harness.PYBPF, "ps")
    with harness.started(["sleep", "300"]) as process:
        pid = process.pid
        done = subprocess.run([*argv, "-v"], capture_output=True, text=True)
        assert re.search(r"process %d \(sleep\).* without CAP_SYS_PTRACE" % pid, done.stderr), done.stderr
        few = subprocess.run(argv, capture_output=True, text=True).stderr.splitlines()[-1]
        # Eight are named.
        assert len(re.findall(r"\d+ \([^)]*\)[, ]", few.partition("; of the first")[0])) in range(1, 9)
        assert "run as root" not in few and "CAP_SYS_PTRACE" in few
        alone = subprocess.run([*argv, "-p", str(pid)], capture_output=True, text=True)
        assert alone.returncode == 1 and "without CAP_SYS_PTRACE" in one_sentence(alone.stderr)


def test_unreadable_processes_of_a_user_without_rights():
    with harness.started(["sleep", "300"]) as process, public_copy() as binary:
        done = subprocess.run(as_nobody(binary, "ps", "-p", str(process.pid)), capture_output=True, text=True)
    assert done.returncode == 1 and "run as root" in one_sentence(done.stderr)


def test_root_of_a_user_namespace_only():
    with harness.started(["sleep", "300"]) as process:
        done = subprocess.run(
            ["unshare", "-U", "-r", harness.PYBPF, "ps", "-p", str(process.pid)], capture_output=True, text=True
        )
    if "unshare:" in done.stderr:
        pytest.skip("user namespaces are missing: " + done.stderr.strip())
    assert done.returncode == 1 and "in a user namespace only" in one_sentence(done.stderr)


# A process in a domain of Landlock cannot read processes outside of it, whatever its capabilities.
LANDLOCKED = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
rules = libc.syscall(444, struct.pack("Q", 1 << 12), 8, 0)  # LANDLOCK_ACCESS_FS_MAKE_SYM
if rules < 0 or libc.syscall(446, rules, 0):
    sys.exit("landlock: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("command", [["ps"], ["record", "-d", "1"]], ids=" ".join)
def test_denied_by_a_security_module(command):
    python = harness.default_python().argv[0]
    with sleeping() as (process,):
        done = subprocess.run(
            [python, "-c", LANDLOCKED, harness.PYBPF, *command, "-p", str(process.pid)], capture_output=True, text=True
        )
    if done.stderr.startswith("landlock:"):
        pytest.skip("Landlock is missing: " + done.stderr.strip())
    # ps lists it: its name says Python.
    assert done.returncode == (command != ["ps"]), done
    sentence = done.stdout + done.stderr
    assert "CAP_SYS_PTRACE does not help" in sentence and "security module" in sentence
    assert "run as root" not in sentence


def test_long_commands_in_a_pipe():
    """A hundred arguments are not printed; --json has them all."""
    argv = [harness.default_python().argv[0], "-c", SLEEP, *("argument-%d" % i for i in range(100))]
    with sleeping(argv=argv) as (process,):
        harness.wait_for(lambda: rows("-p", process.pid))
        (row,) = [line for line in pybpf("ps").out.splitlines() if line.split()[:1] == [str(process.pid)]]
        assert row.endswith("...") and "argument-0" in row and len(row) < 250
        assert rows("-p", process.pid)[process.pid]["command"].endswith("argument-99")
