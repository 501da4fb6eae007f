# SPDX-License-Identifier: Apache-2.0
"""What pybpf can still do while it samples, that this is enough for a whole profile, and as whom a command runs."""

import contextlib
import gzip
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

import pytest

import containers
import harness
import pythons
from harness import one_sentence, pybpf, total
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("profiler")

# linux/capability.h
BITS = {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40}
# Those who sample: all that may be left, and only before Linux 5.19; see user/rights/rights.c.
SAMPLING = {"BPF"}
# Those who look at other programs' files and memory.
HELPING = {"SYS_PTRACE", "DAC_READ_SEARCH", "CHECKPOINT_RESTORE", "SETUID", "SETGID"}
STRANGER = 54321  # a user without account
SECCOMP_FILTER = "2"


def mask(names):
    return sum(1 << BITS[name] for name in names)


def status(pid, tid=None):
    with open("/proc/%d/task/%d/status" % (pid, tid or pid), encoding="utf-8", errors="replace") as file:
        return dict(row.rstrip("\n").split(":\t", 1) for row in file if ":\t" in row)


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def child_of(pid, name):
    (found,) = [child for child in children(pid) if status(child)["Name"] == name]
    return found


def forkserver_of(pid):
    """The one that makes the helpers that look at other programs' files."""
    return child_of(pid, "pybpf-maker")


def committer_of(pid):
    """The one that puts written files in their places."""
    return child_of(pid, "pybpf-writer")


def opener_of(pid):
    """The one that opens events on CPUs that come online."""
    return child_of(pid, "pybpf-opener")


def paranoid():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        return int(file.read())


def threads(pid):
    return [int(name) for name in os.listdir("/proc/%d/task" % pid)]


def cpu_s(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
        words = stat.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def dropped(pid):
    with contextlib.suppress(OSError):
        return all(status(pid, tid)["Seccomp"] == SECCOMP_FILTER for tid in threads(pid))
    return False


def check_rights(pid, most):
    """Every thread has at most these capabilities, and no way to others."""
    for tid in threads(pid):
        told = status(pid, tid)
        for name in "CapPrm", "CapEff":
            left = int(told[name], 16)
            assert not left & ~mask(most), "%s of %s is %x" % (name, told["Name"], left)
        for name in "CapInh", "CapBnd", "CapAmb":
            assert int(told[name], 16) == 0, "%s of %s is %s" % (name, told["Name"], told[name])
        assert told["NoNewPrivs"] == "1"
        assert told["Seccomp"] == SECCOMP_FILTER


@contextlib.contextmanager
def running(*args, **options):
    """A pybpf that has given up its rights, and what it started; its stderr must not name a refused call."""
    argv = harness.tied([harness.PYBPF, *map(str, args)], "TERM")
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, **options)
        try:
            harness.wait_for(lambda: process.poll() is not None or dropped(process.pid))
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                process.terminate()
                process.wait(harness.PATIENCE)  # what it has, it writes
            harness.stop(process)
            err.seek(0)
            told = err.read().decode("utf-8", "replace")
        assert "was refused" not in told, told
        assert process.returncode == 0, told


@contextlib.contextmanager
def folder_of(uid, mode=0o755):
    """A folder that another user owns; nobody but root can reach what lies in it where mode says so."""
    place = tempfile.mkdtemp(prefix="pybpf-rights-")
    try:
        os.chmod(place, mode)
        os.chown(place, uid, uid)
        yield place
    finally:
        shutil.rmtree(place)


KINDS = {
    "pid": ["-p", "{pid}", "-d", "3"],
    "all": ["--all", "-d", "3"],
    "children": ["-p", "{pid}", "--children", "-d", "3"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_rights_of_a_run(spinning, tmp_path, kind):
    words = [word.format(pid=spinning.pid) for word in KINDS[kind]]
    with running("-o", tmp_path / "p.html", "--json-stats", tmp_path / "stats.json", *words) as process:
        check_rights(process.pid, SAMPLING)
        committer = committer_of(process.pid)
        check_rights(committer, set())
        # As kernel.perf_event_paranoid at 3 asks for it, on Debian.
        check_rights(opener_of(process.pid), {"PERFMON", "BPF", "SYS_ADMIN"} if paranoid() > 2 else {"PERFMON", "BPF"})
        forkserver = forkserver_of(process.pid)
        helpers = children(forkserver)
        assert helpers
        for pid in [forkserver, *helpers]:
            check_rights(pid, HELPING)
        process.wait(4 * harness.PATIENCE)
    assert (tmp_path / "p.html").stat().st_size > 10000
    assert json.loads((tmp_path / "stats.json").read_text())["samples"]["python"] > 0


def test_rights_beside_a_command(tmp_path):
    """The command keeps root's; what lets pybpf signal it comes on top."""
    script = "import sys, time; print('on', flush=True); time.sleep(600)"
    argv = ["-q", "-o", tmp_path / "p.folded", "--", harness.default_python().argv[0], "-c", script]
    with running(*argv) as process:
        check_rights(process.pid, SAMPLING | {"KILL"})
        check_rights(committer_of(process.pid), set())
        (pid,) = [pid for pid in children(process.pid) if status(pid)["Seccomp"] == "0"]
        command = status(pid)
        for name in "CapPrm", "CapEff", "CapBnd", "NoNewPrivs":
            assert command[name] == status(os.getpid())[name]
        os.kill(pid, signal.SIGKILL)
        assert process.wait(harness.PATIENCE) == 128 + signal.SIGKILL
        process.returncode = 0  # as was wanted


def test_rights_in_the_folder_of_another(spinning):
    """Only the process that puts the file there can do that, below that folder."""
    with folder_of(STRANGER) as folder:
        path = os.path.join(folder, "p.folded")
        with running("-p", spinning.pid, "-d", 3, "-o", path) as process:
            check_rights(process.pid, SAMPLING)
            committer = committer_of(process.pid)
            check_rights(committer, {"DAC_OVERRIDE"})
            process.wait(harness.PATIENCE)
        assert os.listdir(folder) == ["p.folded"]
        assert os.path.getsize(path) > 0


@pytest.mark.parametrize("command", ["report", "diff"])
def test_rights_of_a_report(command, tmp_path):
    """They are gone before the first byte of a profile is read: here it is waited for."""
    ends = [os.pipe() for _ in range(2 if command == "diff" else 1)]
    paths = ["/dev/fd/%d" % reader for reader, _ in ends]
    argv = [harness.PYBPF, command, "-o", str(tmp_path / "x.html"), *paths]
    with harness.started(argv, pass_fds=[reader for reader, _ in ends], stderr=subprocess.PIPE) as process:
        harness.wait_for(lambda: dropped(process.pid))
        check_rights(process.pid, set())
        committer = committer_of(process.pid)
        check_rights(committer, set())
        for end in ends:
            os.close(end[0])
            os.close(end[1])
        assert process.wait(harness.PATIENCE) == 1
        assert "is empty" in one_sentence(process.stderr.read().decode())
    assert os.listdir(tmp_path) == []


def test_nothing_stays_after_a_kill(spinning, tmp_path):
    """The process that keeps the files removes what is not finished, and ends."""
    argv = [harness.PYBPF, "-p", str(spinning.pid), "-o", str(tmp_path / "p.html")]
    with harness.started(argv, stderr=subprocess.DEVNULL) as process:
        harness.wait_for(lambda: dropped(process.pid))
        committer = committer_of(process.pid)
        process.kill()
        process.wait()
        harness.wait_for(lambda: not os.path.exists("/proc/%d" % committer) or harness.state(committer) == "Z")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("how", ["KILL", "STOP"])
def test_a_run_needs_no_opener(spinning, tmp_path, how):
    """Not before a CPU comes online; one that somebody has stopped ends with the run."""
    with running("-p", spinning.pid, "-o", tmp_path / "p.folded") as process:
        opener = harness.wait_for(lambda: opener_of(process.pid))
        os.kill(opener, signal.Signals["SIG" + how])
        process.send_signal(signal.SIGINT)
        assert process.wait(harness.PATIENCE) == 0
        harness.wait_for(lambda: not os.path.exists("/proc/%d" % opener) or harness.state(opener) == "Z")
    assert (tmp_path / "p.folded").exists()


def test_a_killed_committer_is_an_error(spinning, tmp_path):
    argv = [harness.PYBPF, "-q", "-p", str(spinning.pid), "-d", "2", "-o", str(tmp_path / "p.html")]
    with harness.started(argv, stderr=subprocess.PIPE) as process:
        harness.wait_for(lambda: dropped(process.pid))
        os.kill(committer_of(process.pid), signal.SIGKILL)
        assert process.wait(harness.PATIENCE) == 1
        sentence = one_sentence(process.stderr.read().decode())
    assert "p.html" in sentence
    assert not (tmp_path / "p.html").exists()


def unpacked(path):
    with open(path, "rb") as file:
        assert file.readline().startswith(b"pybpf profile ")
        return gzip.decompress(file.read())


# A Python of the user's own: its folder bound to where that user can reach it, in a mount namespace of its own.
BIND = 'mount --bind "$1" /mnt; shift; exec "$@"'


def as_stranger(interpreter, folder, uid=STRANGER):
    """The target as another user: in a chroot, or with Python and program where only root and that user can look."""
    uid = str(uid)
    if interpreter.root:
        words = interpreter.command("spin.py")
        return [words[0], "--userspec=%s:%s" % (uid, uid), *words[1:]]
    become = ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups"]
    program = interpreter.argv[-1]
    main = os.path.join(folder, "spin.py")
    if not program.startswith("/root/"):
        return [*become, program, "-B", main]
    prefix = os.path.dirname(os.path.dirname(program))
    python = os.path.join("/mnt/bin", os.path.basename(program))
    environment = ["env", "LD_LIBRARY_PATH=/mnt/lib", "PYTHONHOME=/mnt"]
    private = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-ec", BIND, "sh", prefix]
    return [*private, *become, *environment, python, "-B", main]


STRANGERS = pythons.of_each_version([item for item in pythons.interpreters() if item.argv[0] != "env"])


@pytest.mark.parametrize("interpreter", STRANGERS, ids=[item.name for item in STRANGERS])
def test_a_strangers_profile_is_whole(interpreter, tmp_path):
    """Names, lines and sources, with what is left of the rights."""
    path = tmp_path / "p.pybpf"
    with folder_of(STRANGER, 0o700) as folder:
        for file in pythons.TARGETS.glob("*.py"):
            os.chown(shutil.copy(file, folder), STRANGER, STRANGER)
        argv = as_stranger(interpreter, folder)
        with harness.started(argv, interpreter.argv, stdout=subprocess.PIPE, bufsize=0) as process:
            target = harness.Target(process, harness.read_ready_line(process))
            assert status(target.pid)["Uid"].split() == [str(STRANGER)] * 4
            run = pybpf("-p", target.pid, "-d", 3, "-F", 999, "-o", path)
    assert run.code == 0 and "refused" not in run.err, run.err
    assert "without Python frames" not in run.err and "incomplete" not in run.err, run.err
    harness.Expectation(target.says).check(harness.parse(pybpf("report", path, "-f", "folded").out))
    assert b"sum(range(20000))" in unpacked(path), "its source is missing: " + run.err


# A kind each: shared, static, of another C library, free-threaded, in another root.
LATER_NAMES = ("pyenv-3.6.15", "system-python3.11", "built-python3.13-musl", "built-python3.13t", "sid-python3.13")
LATER = [item for item in STRANGERS if item.name in LATER_NAMES]


@pytest.mark.parametrize("interpreter", LATER, ids=[item.name for item in LATER])
def test_a_stranger_that_starts_later_is_whole(interpreter, tmp_path):
    """What it is, is found out with what is left of the rights."""
    path = tmp_path / "p.pybpf"
    # Nobody else's, so that the only spin.py that is sampled is this test's.
    uid = STRANGER + 1 + LATER.index(interpreter)
    with folder_of(uid, 0o700) as folder:
        for file in pythons.TARGETS.glob("*.py"):
            os.chown(shutil.copy(file, folder), uid, uid)
        argv = [harness.PYBPF, "--all", "--user", str(uid), "-F", "999", "-o", str(path)]
        with harness.started(argv, stderr=subprocess.PIPE) as process:
            harness.wait_for(lambda: dropped(process.pid))
            argv = as_stranger(interpreter, folder, uid)
            with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as started:
                target = harness.Target(started, harness.read_ready_line(started))
                end = cpu_s(target.pid) + 0.5
                harness.wait_for(lambda: cpu_s(target.pid) > end, 4 * harness.PATIENCE)
                process.send_signal(signal.SIGINT)
                assert process.wait(4 * harness.PATIENCE) == 0
            said = process.stderr.read().decode()
            assert "refused:" not in said
    own = [
        (stack[1:], count)
        for stack, count in harness.parse(pybpf("report", path, "-f", "folded").out)
        if str(target.pid) in stack[0].text and any(frame.name == "outer" for frame in stack)
    ]
    assert total(own) > 0
    harness.Expectation(target.says).check(own)
    assert b"sum(range(20000))" in unpacked(path), "its source is missing: " + said


def test_a_container_is_whole(tmp_path):
    """A user namespace's root, in a file system that is mounted there only."""
    if containers.why_not():
        pytest.skip(containers.why_not())
    path = tmp_path / "p.pybpf"
    with containers.container("rights", containers.command("spin.py")) as one:
        run = pybpf("-p", one.pid, "-d", 3, "-F", 499, "-o", path, "--by", "container")
    assert run.code == 0 and "refused" not in run.err, run.err
    stacks = harness.parse(pybpf("report", path, "-f", "folded").out)
    assert total(stacks) > 10
    inner = sum(count for stack, count in stacks if stack[-1].name == "inner" and stack[-1].line)
    assert inner >= 0.9 * total(stacks)
    assert one.id[:12] in stacks[0][0][0].text or one.id in stacks[0][0][0].text
    assert b"sum(range(20000))" in unpacked(path)


SHOW = """
import json, os, sys
status = dict(row.rstrip("\\n").split(":\\t", 1) for row in open("/proc/self/status") if ":\\t" in row)
fds = sorted(int(name) for name in os.listdir("/proc/self/fd"))
targets = {}
for fd in fds:
    try:
        targets[fd] = os.readlink("/proc/self/fd/%d" % fd)
    except OSError:
        pass  # the listing's own
json.dump({"status": status, "fds": targets, "env": dict(os.environ), "groups": os.getgroups()}, sys.stdout)
"""
PYTHON = "/usr/bin/python3"


def shown(*options, **more):
    """What a command finds about itself."""
    run = pybpf("-q", "-o", os.devnull, *options, "--", PYTHON, "-c", SHOW, **more)
    assert run.code == 0, run.err
    return json.loads(run.out)


def sudo_environment(uid, gid, path="/usr/local/sbin:/usr/sbin:/sbin"):
    return {**os.environ, "SUDO_UID": str(uid), "SUDO_GID": str(gid), "PATH": path, "HOME": "/root", "USER": "root"}


def check_user(told, uid, gid, groups, home, name):
    assert told["status"]["Uid"].split() == [str(uid)] * 4
    assert told["status"]["Gid"].split() == [str(gid)] * 4
    assert set(told["groups"]) == groups
    for kind in "CapInh", "CapPrm", "CapEff", "CapAmb":
        assert int(told["status"][kind], 16) == 0, kind
    assert sorted(told["fds"]) == ["0", "1", "2"]
    assert told["env"]["HOME"] == home
    for variable in "USER", "LOGNAME":
        assert told["env"].get(variable) == name
    folders = told["env"]["PATH"].split(":")
    assert "/usr/bin" in folders and "/sbin" not in folders and "/usr/sbin" not in folders


@pytest.fixture
def nobody():
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("nobody")
    pytest.skip("there is no user nobody")


@pytest.fixture
def inherited():
    """A descriptor that the shell which calls pybpf has left open."""
    with open("/etc/passwd", "rb") as file:
        os.set_inheritable(file.fileno(), True)
        yield file.fileno()


@pytest.mark.parametrize("by", ["name", "uid"])
def test_as_a_user(nobody, inherited, by):
    who = nobody.pw_name if by == "name" else str(nobody.pw_uid)
    told = shown("--as", who, env=sudo_environment(STRANGER, STRANGER), pass_fds=[inherited])
    groups = set(os.getgrouplist(nobody.pw_name, nobody.pw_gid))
    check_user(told, nobody.pw_uid, nobody.pw_gid, groups, nobody.pw_dir, nobody.pw_name)
    assert told["env"]["SHELL"] == nobody.pw_shell


def test_as_the_caller_without_account(inherited):
    told = shown("--as", "caller", env=sudo_environment(STRANGER, STRANGER + 1), pass_fds=[inherited])
    check_user(told, STRANGER, STRANGER + 1, {STRANGER + 1}, "/", None)
    said = pybpf("-o", os.devnull, "--as", "caller", "--", "/bin/true", env=sudo_environment(STRANGER, STRANGER + 1)).err
    assert "this host has no user %d" % STRANGER in said and "no group but %d" % (STRANGER + 1) in said


def test_setuid_programs_work_in_a_command(nobody):
    """As they do in the user's own shell."""
    told = shown("--as", nobody.pw_name)
    assert told["status"]["NoNewPrivs"] == "0"
    assert int(told["status"]["CapBnd"], 16) == int(status(os.getpid())["CapBnd"], 16)


def test_the_command_is_sampled(nobody, tmp_path):
    path = tmp_path / "p.folded"
    script = "import time; end = time.process_time() + 1\nwhile time.process_time() < end: sum(range(9999))"
    run = pybpf("-q", "-F", 499, "-o", path, "--as", nobody.pw_name, "--", PYTHON, "-c", script)
    assert run.code == 0, run.err
    assert total(harness.parse(path.read_text())) > 0


def test_signals_reach_a_command_of_another_user(nobody, tmp_path):
    path = tmp_path / "p.folded"
    argv = ["-q", "-o", str(path), "--as", nobody.pw_name, "--", PYTHON, "-c", "import time; time.sleep(600)"]
    with harness.started([harness.PYBPF, *argv], stderr=subprocess.PIPE) as process:
        harness.wait_for(lambda: dropped(process.pid))
        harness.wait_for(lambda: any(status(pid)["Name"] == "python3" for pid in children(process.pid)))
        process.send_signal(signal.SIGTERM)
        assert process.wait(harness.PATIENCE) == 128 + signal.SIGTERM
        assert process.stderr.read() == b""


def test_root_passes_on_what_its_shell_opened_and_nothing_of_its_own(inherited):
    """A shell's `<(...)` has to work, as with perf and strace; outputs and pipes of pybpf are not to be seen."""
    with folder_of(0) as folder:
        told = shown("--json-stats", os.path.join(folder, "stats.json"), pass_fds=[inherited])
    assert sorted(map(int, told["fds"])) == [0, 1, 2, inherited]
    assert told["fds"][str(inherited)] == "/etc/passwd"
    assert told["status"]["Uid"].split() == ["0"] * 4


def test_root_is_told_where_sudo_was_used():
    arguments = ["-o", os.devnull, "--", "/bin/true"]
    said = "runs as root"
    called = sudo_environment(STRANGER, STRANGER)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    lines = [line for line in pybpf(*arguments, env=called).err.split("\n") if said in line]
    assert len(lines) == 1 and "--as caller" in lines[0]
    assert said not in pybpf("-q", *arguments, env=called).err
    assert said not in pybpf("--as", "caller", *arguments, env=called).err
    assert said not in pybpf(*arguments, env=plain).err


@pytest.mark.parametrize("who", ["no-such-user-anywhere", "4294967295", "-1", "1.5", ""])
def test_unknown_user(tmp_path, who):
    run = pybpf("-o", tmp_path / "p.folded", "--as", who, "--", "/bin/echo", "it ran")
    assert run.code == 2 and "it ran" not in run.out
    assert who in one_sentence(run.err) and "--as" in run.err
    assert os.listdir(tmp_path) == []


def test_nobody_called():
    env = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    run = pybpf("--as", "caller", "--", "/bin/echo", "it ran", env=env)
    assert run.code == 2 and "it ran" not in run.out
    assert "sudo" in one_sentence(run.err)


def test_as_without_a_command(spinning):
    run = pybpf("--as", "nobody", "-p", spinning.pid, "-d", 1)
    assert run.code == 2
    assert "--as" in one_sentence(run.err)


def test_command_not_found_as_another(nobody, tmp_path):
    run = pybpf("-o", tmp_path / "p.folded", "--as", nobody.pw_name, "--", "no-such-command-anywhere")
    assert run.code == 127
    assert "no-such-command-anywhere" in one_sentence(run.err)
    # Root could execute it.
    with folder_of(0, 0o700) as folder:
        program = shutil.copy("/bin/true", folder)
        run = pybpf("-o", tmp_path / "p.folded", "--as", nobody.pw_name, "--", program)
    assert run.code == 126 and "ermission" in one_sentence(run.err)
    assert os.listdir(tmp_path) == []


def test_as_takes_the_right_to(nobody):
    """Without CAP_SETUID it fails, rather than to run the command as root."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is missing")
    argv = ["setpriv", "--bounding-set=-setuid", "--inh-caps=-setuid", harness.PYBPF, "--as", nobody.pw_name]
    done = subprocess.run([*argv, "--", "/bin/echo", "it ran"], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 126 and "it ran" not in done.stdout
    assert "--as" in one_sentence(done.stderr)


def capabilities_file(tmp_path, names):
    binary = shutil.copy(harness.PYBPF, tmp_path)
    subprocess.run(["setcap", ",".join("cap_" + name for name in names) + "+ep", binary], check=True)
    return binary


def test_capabilities_of_the_file(spinning):
    """A user without capabilities runs a binary that has some, as docs/security.md shows; nothing else is needed."""
    if not shutil.which("setcap"):
        pytest.skip("setcap is missing")
    with folder_of(STRANGER) as folder:
        binary = capabilities_file(folder, ["bpf", "perfmon", "sys_ptrace"])
        path = os.path.join(folder, "p.folded")
        user = ["setpriv", "--reuid=%d" % STRANGER, "--regid=%d" % STRANGER, "--clear-groups"]
        argv = [*user, binary, "-p", str(spinning.pid), "-d", "2", "-F", "499", "-o", path]
        with harness.started(argv, stderr=subprocess.PIPE) as process:
            harness.wait_for(lambda: process.poll() is not None or dropped(process.pid))
            told = status(process.pid)
            assert not int(told["CapPrm"], 16) & ~mask({"SYS_PTRACE", "BPF"})
            assert process.wait(harness.PATIENCE) == 0, process.stderr.read()
            assert b"refused" not in process.stderr.read()
        with open(path, encoding="utf-8") as file:
            assert total(harness.parse(file.read())) > 0


@pytest.mark.parametrize("names", [["bpf", "perfmon"], ["bpf", "sys_ptrace"], ["perfmon", "sys_ptrace"]], ids="+".join)
@pytest.mark.parametrize("which", ["own", "all"])
def test_two_capabilities_do_not_do(names, which):
    """Not for a user's own process either; a sentence names the third. What needs none still works."""
    if not shutil.which("setcap"):
        pytest.skip("setcap is missing")
    user = ["setpriv", "--reuid=%d" % STRANGER, "--regid=%d" % STRANGER, "--clear-groups"]
    with folder_of(STRANGER) as folder:
        binary = capabilities_file(folder, names)
        with harness.started([*user, "/usr/bin/python3", "-c", "import time; time.sleep(600)"]) as own:
            target = ["-p", str(own.pid)] if which == "own" else ["--all"]
            done = subprocess.run([*user, binary, *target, "-d", "1"], capture_output=True, text=True, timeout=harness.PATIENCE)
            assert done.returncode != 0 and not done.stdout
            (missing,) = {"bpf", "perfmon", "sys_ptrace"} - set(names)
            assert "CAP_" + missing.upper() in one_sentence(done.stderr)
            harness.wait_for(lambda: os.path.basename(os.readlink("/proc/%d/exe" % own.pid)).startswith("python3"))
            plain = shutil.copy(harness.PYBPF, os.path.join(folder, "plain"))
            listed = subprocess.run([*user, plain, "ps", "-p", str(own.pid)], capture_output=True, text=True, timeout=harness.PATIENCE)
            assert listed.returncode == 0 and str(own.pid) in listed.stdout, listed.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_of_a_user_namespace(spinning):
    """Its capabilities do not count for bpf(2), and no token changes that."""
    argv = ["unshare", "--user", "--map-root-user", harness.PYBPF, "-p", str(spinning.pid), "-d", "1"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=harness.PATIENCE)
    assert run.returncode != 0 and "in a user namespace only" in harness.one_sentence(run.stderr), run.stderr
    assert not run.stdout


@pytest.mark.parametrize("variable", ["TERMINFO", "TERMINFO_DIRS", "HOME"])
def test_terminals_that_a_user_describes(spinning, variable):
    """With capabilities of its file, top reads no description of a terminal that its caller chose; root chooses."""
    if not shutil.which("setcap"):
        pytest.skip("setcap is missing")
    with folder_of(STRANGER) as folder:
        binary = capabilities_file(folder, ["bpf", "perfmon", "sys_ptrace"])
        described = os.path.join(folder, ".terminfo")
        source = subprocess.run(["infocmp", "-1", "xterm"], stdout=subprocess.PIPE, check=True, timeout=60).stdout
        # The first line that is no comment has the names.
        lines = [line for line in source.decode().splitlines(keepends=True) if not line.startswith("#")]
        source = "mine|described by its user,\n" + "".join(lines[1:])
        subprocess.run(["tic", "-x", "-o", described, "-"], input=source.encode(), check=True, timeout=60)
        environment = {"TERM": "mine", variable: folder if variable == "HOME" else described}
        args = ["top", "-p", spinning.pid, "-d", "1"]
        plain = Terminal(*args, columns=80, **environment)
        assert plain.code == 0, plain.err
        user = ["setpriv", "--reuid=%d" % STRANGER, "--regid=%d" % STRANGER, "--clear-groups"]
        lent = Terminal(*args, columns=80, command=[*user, binary], **environment)
        assert lent.code == 1 and "TERM=mine" in one_sentence(lent.err)
        known = Terminal(*args, columns=80, command=[*user, binary], **{**environment, "TERM": "xterm"})
        assert known.code == 0, known.err


def test_doctor_tells_what_remains():
    run = pybpf("doctor")
    rows = {row[6:24].strip(): row[25:] for row in run.out.split("\n") if row}
    named = {word.strip() for word in rows["rights kept"].split(",")}
    assert named <= {"none", *("CAP_" + name for name in SAMPLING)}
    assert "no_new_privs" in rows["further rights"] and "bounding set is empty" in rows["further rights"]
    assert "seccomp" in rows["system calls"]
    assert "Landlock" in rows["putting files"]


WITHOUT_NULL = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh"]


@pytest.mark.parametrize("words", [["ps"], ["dump"], ["-d", "1", "-F", "199"]], ids=["ps", "dump", "record"])
def test_a_container_without_dev_null(spinning, words):
    done = subprocess.run(
        [*WITHOUT_NULL, harness.PYBPF, *words, "-p", str(spinning.pid)], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0 and "spin" in done.stdout, done.stderr
    assert "was refused" not in done.stderr
