# SPDX-License-Identifier: Apache-2.0
"""A file is whole or absent: whatever kills pybpf, and whatever its disk, quota or limits refuse."""

import contextlib
import ctypes
import errno
import glob
import json
import os
import platform
import pty
import random
import re
import resource
import select
import signal
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import formats
import harness
from harness import one_sentence, pybpf

pytestmark = pytest.mark.usefixtures("profiler")
SECONDS = 30
LONG_ENOUGH = ("-F", "999", "-d", "0.5")  # for samples of a program that spins, beside any load
KILLS = 100
RUN_S = 0.2
AT_ONCE = 4


@pytest.fixture(scope="module")
def saved(profiler, tmp_path_factory):
    return formats.made(tmp_path_factory.mktemp("made")) / "recursive.pybpf"


@pytest.fixture(scope="module")
def span(profiler, tmp_path_factory):
    """Seconds within which most runs, AT_ONCE side by side, have written their output."""
    folder = tmp_path_factory.mktemp("span")
    with harness.target(harness.default_python(), "spin.py") as running:
        begin = time.monotonic()
        processes = [start(running.pid, folder, "-o", "%d.pybpf" % number) for number in range(AT_ONCE)]
        for process in processes:
            assert process.wait(SECONDS) == 0
            process.stderr.close()
        return 1.3 * (time.monotonic() - begin)


def report(saved, *args, **options):
    return pybpf("report", "-q", saved, *args, timeout=SECONDS, **options)


def with_closed(closed, *args):
    argv = ["sh", "-c", 'exec "$@" ' + closed, "sh", harness.PYBPF, *[str(arg) for arg in args]]
    return subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_place_for_files(tmp_path, closed):
    path = tmp_path / "p.folded"
    with harness.target(harness.default_python(), "spin.py") as running:
        done = with_closed(closed, "-p", running.pid, "-d", 1, "-F", 499, "-o", path)
        assert done.returncode == 0, done.stderr
        assert harness.total(harness.parse(path.read_text())) > 0
        # Without a sample there is nothing to be written.
        seconds = 0.2
        while (unwritten := with_closed(">&-", "-p", running.pid, "-d", seconds)).returncode == 0 and seconds < SECONDS / 2:
            seconds *= 4
    assert unwritten.returncode == 1 and "cannot write to stdout" in unwritten.stderr, unwritten


def test_removed_folder(saved, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    argv = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", harness.PYBPF, "report", saved, "-o", "p.folded"]
    done = subprocess.run(argv, cwd=gone, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1 and "No such file or directory" in one_sentence(done.stderr), done


def absent(run, path, *words):
    """The run failed with one sentence that has one of the words, and made nothing."""
    assert run.code == 1, (run.code, run.err)
    sentence = one_sentence(run.err)
    assert not words or any(word in sentence for word in words), sentence
    assert not path.exists()


# Killed


def objects():
    """IDs of the kernel's BPF programs, maps and links."""
    found = set()
    for kind in ("prog", "map", "link"):
        shown = subprocess.run(["bpftool", "-j", kind, "list"], capture_output=True, text=True, check=True).stdout
        found.update((kind, item["id"]) for item in json.loads(shown or "[]"))
    return found


def held():
    """Those that a process has open; other pybpfs may run on this machine."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/fdinfo/*"):
        with contextlib.suppress(OSError):
            text = Path(path).read_text(encoding="ascii", errors="replace")
            found.update((kind, int(number)) for kind, number in re.findall(r"^(prog|map|link)_id:\s*(\d+)$", text, re.M))
    for kind, number in list(found):
        if kind == "prog":
            shown = subprocess.run(
                ["bpftool", "-j", "prog", "show", "id", str(number)], capture_output=True, text=True, check=False
            ).stdout
            with contextlib.suppress(ValueError):
                found.update(("map", ident) for ident in json.loads(shown).get("map_ids", ()))
    return found


def below(pid):
    """Processes that were started by that one, and theirs."""
    found, parents = set(), {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            parents[int(text.split()[0])] = int(text.rpartition(")")[2].split()[1])
    layer = {pid}
    while layer:
        layer = {child for child, parent in parents.items() if parent in layer}
        found |= layer
    return found


def groups():
    """But for those of tests that run beside."""
    others = re.compile(r"/pybpf-(runc|crun|starts|parent|test)")
    return {path for path in glob.glob("/sys/fs/cgroup/**/", recursive=True) if not others.search(path)}


def start(pid, folder, *args):
    argv = [harness.PYBPF, "-q", "-p", str(pid), "-d", str(RUN_S), "-F", "999", *map(str, args)]
    return subprocess.Popen(
        argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def is_whole(path):
    run = pybpf("report", "-q", path, "-f", "folded", timeout=SECONDS)
    assert run.code == 0, "%s is not whole: %s" % (path.name, run.err)
    return True


def kill_one(pid, folder, span, number):
    """Ends a run at a random point. Returns what it left, and the processes that it had started."""
    wait = random.Random(number).uniform(0, span)
    own = folder / str(number)
    own.mkdir()
    if number % 3 == 0:
        (own / "x.pybpf").write_bytes(b"old")
    with start(pid, own, "-o", "x.pybpf", "--json-stats", "x.json") as process:
        time.sleep(wait)
        children = below(process.pid)
        process.kill()
        process.wait()
    return own, children


def test_killed_at_random_points(spinning, span, tmp_path):
    before, groups_before, files_before = objects(), groups(), set(os.listdir("/tmp"))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda number: kill_one(spinning.pid, tmp_path, span, number), range(KILLS)))
    whole = 0
    for number, (folder, children) in enumerate(ended):
        names = set(os.listdir(folder))
        assert names <= {"x.pybpf", "x.json"}, names
        old = number % 3 == 0
        assert not old or "x.pybpf" in names
        if "x.pybpf" in names and not (old and (folder / "x.pybpf").read_bytes() == b"old"):
            whole += is_whole(folder / "x.pybpf")
        if "x.json" in names:
            json.loads((folder / "x.json").read_text(encoding="utf-8"))
        for child in children:
            harness.wait_for(lambda child=child: not os.path.exists("/proc/%d" % child), 10)
    assert 0 < whole < KILLS, "%d of %d runs were done: the points say nothing" % (whole, KILLS)
    harness.wait_for(lambda: not objects() - before - held(), 30, 1)
    assert {path for path in groups() - groups_before if "pybpf" in path} == set()
    assert {name for name in set(os.listdir("/tmp")) - files_before if name.startswith(".pybpf")} == set()


LIKE_INTERRUPT = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGXFSZ]
DEADLY = [signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGIO, signal.SIGPIPE, signal.SIGPROF,
          signal.SIGPWR, signal.SIGSEGV, signal.SIGSTKFLT, signal.SIGSYS, signal.SIGTRAP, signal.SIGUSR1, signal.SIGUSR2,
          signal.SIGVTALRM, signal.SIGXCPU, signal.SIGRTMIN, signal.SIGRTMAX]


def signal_one(pid, folder, number, wait):
    own = folder / ("%d-%.3f" % (number, wait))
    own.mkdir()
    with start(pid, own, "-o", "x.pybpf") as process:
        time.sleep(wait)
        process.send_signal(number)
        process.wait(SECONDS)
        told = process.stderr.read().decode()
    names = os.listdir(own)
    assert names == [] or (names == ["x.pybpf"] and is_whole(own / "x.pybpf")), (number, names)
    if process.returncode == 1:
        assert "stopped by a signal" in told and "nothing was sampled" in told, told
    return number, process.returncode, names != []


def test_signals_at_random_points(spinning, span, tmp_path):
    dice = random.Random(7)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    points = [(number, dice.uniform(0, span)) for number in LIKE_INTERRUPT * 3 + DEADLY]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda point: signal_one(spinning.pid, tmp_path, *point), points))
    for number, code, whole in ended:
        # What is deadly can come between the file's appearance and the end.
        assert whole == (code == 0) or (whole and number in DEADLY), (number, code)
        assert code in (0, 1, -number), (number, code)
    assert any(whole for _, _, whole in ended) and not all(whole for _, _, whole in ended)


@pytest.mark.parametrize("number", LIKE_INTERRUPT)
def test_signals_that_end_a_run(spinning, tmp_path, number):
    """What was sampled until then is written."""
    path = tmp_path / "x.pybpf"
    argv = [harness.PYBPF, "-p", str(spinning.pid), "-d", "60", "-o", path]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        harness.wait_for(lambda: harness.samples_now(process.pid))
        time.sleep(0.3)
        process.send_signal(number)
        _, err = process.communicate(timeout=SECONDS)
    finally:
        harness.stop(process)
    assert process.returncode == 0, err
    assert is_whole(path)


# Refused by the disk


@contextlib.contextmanager
def disk(folder, options, kind="tmpfs", what="tmpfs"):
    folder.mkdir()
    argv = ["mount", "-t", kind, "-o", options, what, folder]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no %s can be mounted here with %s: %s" % (kind, options, done.stderr.strip().split("\n")[0]))
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_disk(saved, tmp_path):
    with disk(tmp_path / "disk", "size=16k") as folder:
        for kib in (12, 16):  # 4 KiB are left, or nothing
            (folder / "rest").write_bytes(bytes(kib << 10))
            for name in ("html", "json", "svg", "text"):
                path = folder / "new"
                whole = len(report(saved, "-f", name).out)
                run = report(saved, "-f", name, "-o", path)
                if whole > (16 - kib) << 10:
                    absent(run, path, "No space left")
                    assert os.listdir(folder) == ["rest"]
                else:
                    assert run.code == 0 and path.stat().st_size == whole
                    path.unlink()
            (folder / "rest").unlink()
        old = folder / "old.html"
        old.write_bytes(b"old")
        (folder / "rest").write_bytes(bytes(12 << 10))
        assert report(saved, "-o", old).code == 1 and old.read_bytes() == b"old"
        assert sorted(os.listdir(folder)) == ["old.html", "rest"]


def test_full_disk_of_a_run(spinning, tmp_path):
    """What cannot be made once more is written on another file system."""
    with disk(tmp_path / "disk", "size=8k") as folder, disk(tmp_path / "other", "size=64m") as other:
        (folder / "rest").write_bytes(bytes(8 << 10))
        run = pybpf("-q", "-p", spinning.pid, *LONG_ENOUGH, "-o", folder / "x.pybpf", "--json-stats", folder / "x.json",
                    env=dict(os.environ, TMPDIR=str(other)))
        assert run.code == 1, run.err
        sentences = run.err.strip().split("\n")
        assert len(sentences) == 2 and all("No space left" in sentence for sentence in sentences), run.err
        assert os.listdir(folder) == ["rest"]
        (kept,) = other.iterdir()
        assert kept.name.endswith("-x.pybpf") and sentences[0].endswith("is in %s" % kept)
        assert harness.total(harness.parse(report(kept, "-f", "folded").out)) > 0


@pytest.mark.parametrize("owner", [310001, 0])
def test_full_disk_of_a_run_under_sudo(spinning, tmp_path, owner):
    """What is written on the other file system is the user's who called sudo, if the file would have been."""
    caller = 310001
    with disk(tmp_path / "disk", "size=8k") as folder, disk(tmp_path / "other", "size=64m,mode=1777") as other:
        os.chown(folder, owner, owner)
        (folder / "rest").write_bytes(bytes(8 << 10))
        environment = dict(os.environ, TMPDIR=str(other), SUDO_UID=str(caller), SUDO_GID=str(caller + 1))
        run = pybpf("-q", "-p", spinning.pid, *LONG_ENOUGH, "-o", folder / "x.pybpf", env=environment)
        assert run.code == 1 and "No space left" in one_sentence(run.err), run.err
        (kept,) = other.iterdir()
        found = kept.stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (owner, owner and caller + 1, 0o600)
        assert is_whole(kept)


# Every other file system where a temporary file may be is full. What runs pybpf is where none is.
NOWHERE = """
mount -t tmpfs tmpfs /mnt && cp "$0" /mnt/pybpf || exit 7
for folder in /var/tmp /dev/shm /tmp; do mount -t tmpfs -o size=64k tmpfs $folder || exit 7; done
head -c 65536 /dev/zero > /tmp/rest
exec /mnt/pybpf "$@"
"""


@pytest.mark.parametrize("key", ["Enter", "Ctrl-C", "Ctrl-D"])
def test_full_disk_of_a_run_on_a_terminal(spinning, key):
    """Where no other has room, pybpf waits until somebody has made some, or gives up."""
    argv = ["unshare", "-m", "sh", "-c", NOWHERE, harness.PYBPF, "-q", "-p", str(spinning.pid), *LONG_ENOUGH]
    pid, terminal = pty.fork()
    if not pid:
        os.execvp(argv[0], [*argv, "-f", "folded", "-o", "/tmp/x.folded"])
    shown, status, folder = b"", None, os.open("/", os.O_PATH)
    try:
        while b"Enter" not in shown and select.select([terminal], [], [], SECONDS)[0]:
            shown += os.read(terminal, 4096)
        os.close(folder)
        folder = os.open("/proc/%d/root/tmp" % pid, os.O_PATH)
        os.unlink("rest", dir_fd=folder)
        os.write(terminal, {"Enter": b"\n", "Ctrl-C": b"\x03", "Ctrl-D": b"\x04"}[key])
        with contextlib.suppress(OSError):  # nobody has the terminal open any more
            while select.select([terminal], [], [], SECONDS)[0]:
                shown += os.read(terminal, 4096)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        there = os.listdir("/proc/self/fd/%d" % folder)
        if key == "Enter":
            assert (status, there) == (0, ["x.folded"]), shown
            text = Path("/proc/self/fd/%d/x.folded" % folder).read_text(encoding="utf-8")
            assert harness.total(harness.parse(text)) > 0
        else:
            assert (status, there) == (1, []), shown
            assert b"no file was made" in shown
    finally:
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(folder)
        os.close(terminal)


def test_no_inode_is_left(saved, tmp_path):
    with disk(tmp_path / "disk", "nr_inodes=2") as folder:
        (folder / "rest").write_bytes(b"")
        absent(report(saved, "-o", folder / "x.html"), folder / "x.html", "No space left")


def test_quota(saved, tmp_path):
    """A user's quota meets the file that becomes this user's, also where root writes it."""
    caller = 310001
    with disk(tmp_path / "disk", "size=4m,usrquota,usrquota_block_hardlimit=16k") as folder:
        os.chown(folder, caller, caller)
        environment = dict(os.environ, SUDO_UID=str(caller), SUDO_GID=str(caller))
        absent(report(saved, "-o", folder / "x.html", env=environment), folder / "x.html", "quota exceeded")


# seccomp_data of linux/seccomp.h: the number, and the low halves of the arguments.
NUMBER, FIRST, THIRD = 0, 16, 32
OPENAT, WRITE, CLOSE, FSYNC = {"x86_64": (257, 1, 3, 74), "aarch64": (56, 64, 57, 82)}[platform.machine()]
TMPFILE_BIT = 0o20000000
LOAD, EQUAL, GREATER, BITS, RETURN = 0x20, 0x15, 0x25, 0x45, 0x06


def refusing(number, argument, test, value, error):
    """Makes a system call fail that has such an argument, as file systems do that are not to be had everywhere."""
    rows = [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 3, number), (LOAD, 0, 0, argument), (test, 0, 1, value),
            (RETURN, 0, 0, 0x00050000 | error), (RETURN, 0, 0, 0x7FFF0000)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *row) for row in rows))
    head = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(rows), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)

    def apply():
        # PR_SET_NO_NEW_PRIVS; PR_SET_SECCOMP with SECCOMP_MODE_FILTER
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(head), 0, 0):
            os._exit(99)

    apply.keeps = (program, head)
    return apply


def test_exceeded_quota_of_any_file_system(saved, tmp_path):
    """Also one that tells when the file is half written, or when it is closed (NFS)."""
    refuse = refusing(WRITE, FIRST, GREATER, 2, errno.EDQUOT)
    for name in ("x.html", "x.pybpf", "x.txt", "x.json", "x.pb.gz"):
        path = tmp_path / name
        absent(report(saved, "-o", path, preexec_fn=refuse), path, "quota exceeded")
        path.write_bytes(b"old")
        assert report(saved, "-o", path, preexec_fn=refuse).code == 1 and path.read_bytes() == b"old"
        path.unlink()
        assert os.listdir(tmp_path) == []


def test_failure_of_writeback(saved, spinning, tmp_path):
    """What was taken from pybpf and did not get to the disk is not whole, and gets no name."""
    refuse = refusing(FSYNC, FIRST, GREATER, 2, errno.EIO)
    path = tmp_path / "x.html"
    absent(report(saved, "-o", path, preexec_fn=refuse), path, "Input/output error")
    path.write_bytes(b"old")
    runs = [report(saved, "-o", path, preexec_fn=refuse),
            pybpf("-q", "-p", spinning.pid, "-d", 0.1, "-o", path, preexec_fn=refuse, timeout=SECONDS)]
    for run in runs:
        assert run.code == 1 and "Input/output error" in one_sentence(run.err), run.err
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x.html"]


@pytest.mark.parametrize("error", [errno.EINVAL, errno.EROFS, errno.ENOSYS, errno.EOPNOTSUPP])
def test_no_writeback(saved, tmp_path, error):
    """File systems that have nothing to wait for."""
    path = tmp_path / "x.html"
    run = report(saved, "-o", path, preexec_fn=refusing(FSYNC, FIRST, GREATER, 2, error))
    assert run.code == 0 and path.read_bytes().rstrip().endswith(b"</html>"), run.err


def test_no_tmpfile(saved, tmp_path):
    """NFS, 9p: the file has a name of its own beside its place, is as private, and is gone after a failure."""
    refuse = refusing(OPENAT, THIRD, BITS, TMPFILE_BIT, errno.EOPNOTSUPP)
    path = tmp_path / "x.html"
    for mode in (0o600, 0o640):
        assert report(saved, "-o", path, preexec_fn=refuse).code == 0
        assert path.read_bytes().rstrip().endswith(b"</html>")
        assert path.stat().st_mode & 0o777 == mode and os.listdir(tmp_path) == ["x.html"]
        path.chmod(0o640)
    path.write_bytes(b"old")

    def refuse_both():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        refuse()

    run = report(saved, "-o", path, preexec_fn=refuse_both)
    assert run.code == 1 and "File too large" in one_sentence(run.err)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x.html"]


def test_no_proc(saved, tmp_path):
    """Without it a file that has no name cannot be given one, and nobody can tell whether the old file has an ACL."""
    path = tmp_path / "x.html"
    script = 'mount -t tmpfs none /proc && exec "$0" report -q "$1" -o "$2"'
    for _ in range(2):
        argv = ["unshare", "-m", "sh", "-c", script, harness.PYBPF, saved, path]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        assert path.read_bytes().rstrip().endswith(b"</html>")
        assert path.stat().st_mode & 0o777 == 0o600 and os.listdir(tmp_path) == ["x.html"]
        path.chmod(0o640)


# stdout


def full_stdout(*args, **options):
    with open("/dev/full", "wb") as full:
        return pybpf(*args, stdout=full, timeout=SECONDS, **options)


@pytest.mark.parametrize("args", [
    ("--help",), ("--version",), ("--version", "-v"), ("record", "--help"), ("ps", "--help"), ("report", "--help"),
    ("diff", "--help"), ("doctor", "--help"), ("doctor",), ("ps",), ("ps", "--json"),
], ids=" ".join)
def test_full_stdout(spinning, args):
    # A list of the whole machine can fill the buffer before its end, where the reason of the first failure is lost.
    run = full_stdout(*args, *(("-p", spinning.pid) if args in (("ps",), ("ps", "--json")) else ()))
    said = [line for line in run.err.split("\n") if "stdout" in line]
    assert run.code == 1 and said == ["pybpf: cannot write to stdout: No space left on device"], run.err


def test_full_stdout_is_told_once(saved, spinning):
    for args in (("report", saved), ("diff", saved, saved), ("-p", spinning.pid, "-d", 2)):
        run = full_stdout(*args)
        assert run.code == 1 and run.err.count("cannot write to stdout: No space left") == 1, run.err


def test_failure_when_stdout_is_closed(spinning):
    """NFS and FUSE say only then that nothing is on the server. The dynamic loader's descriptor, 3, must close."""
    refuse = refusing(CLOSE, FIRST, GREATER, 3, errno.EDQUOT)
    argv = [harness.PYBPF, "-q", "-p", str(spinning.pid), "-d", "0.1"]
    done = subprocess.run(argv, capture_output=True, text=True, preexec_fn=refuse, timeout=SECONDS, check=False)
    assert done.returncode == 1, done
    assert "cannot write to stdout: Disk quota exceeded" in one_sentence(done.stderr), done.stderr


def test_closed_stdout_without_output(saved, tmp_path):
    """What nobody writes to cannot fail."""
    done = with_closed(">&-", "report", "-q", saved, "-o", tmp_path / "x.html")
    assert done.returncode == 0 and not done.stderr, done
    done = with_closed(">&-", "--help")
    assert done.returncode == 1 and "cannot write to stdout" in one_sentence(done.stderr), done


# Refused by limits


def limited(kind, soft):
    return lambda: resource.setrlimit(kind, (soft, resource.getrlimit(kind)[1]))


def test_file_too_large(saved, spinning, tmp_path):
    path = tmp_path / "x.html"
    whole = len(report(saved, "-f", "html").out.encode())
    for limit in (0, 1, 4096, 65536, whole - 1):
        absent(report(saved, "-o", path, preexec_fn=limited(resource.RLIMIT_FSIZE, limit)), path, "File too large")
        assert os.listdir(tmp_path) == []
    run = report(saved, "-o", path, preexec_fn=limited(resource.RLIMIT_FSIZE, whole))
    assert run.code == 0 and path.stat().st_size == whole
    path.write_bytes(b"old")
    options = {"preexec_fn": limited(resource.RLIMIT_FSIZE, 4096), "timeout": SECONDS}
    run = pybpf("-q", "-p", spinning.pid, "-d", 0.2, "-o", path, **options)
    assert run.code == 1 and "File too large" in one_sentence(run.err) and path.read_bytes() == b"old"


def test_file_too_large_beside_a_command(tmp_path):
    """The signal that comes with it is not for the command."""
    argv = ["-q", "-d", 0.2, "-o", tmp_path / "x.html", "--", "sh", "-c", "sleep 2; exit 7"]
    run = pybpf(*argv, preexec_fn=limited(resource.RLIMIT_FSIZE, 4096), timeout=SECONDS)
    assert run.code == 1 and "File too large" in run.err and os.listdir(tmp_path) == []


def test_too_few_descriptors(saved, spinning, tmp_path):
    path = tmp_path / "x.html"
    done = set()
    for limit in range(3, 14):
        run = report(saved, "-o", path, preexec_fn=limited(resource.RLIMIT_NOFILE, limit))
        if path.exists():
            assert run.code == 0 and path.read_bytes().rstrip().endswith(b"</html>")
            path.unlink()
            done.add(True)
        else:
            # The dynamic loader needs some, too, and speaks for itself.
            assert run.code in (1, 127) and (run.code == 127 or one_sentence(run.err))
            done.add(False)
        assert os.listdir(tmp_path) == []
    assert done == {True, False}
    for limit in (5, 8, 12, 16, 24, 40, 64):
        options = {"preexec_fn": limited(resource.RLIMIT_NOFILE, limit), "timeout": SECONDS}
        run = pybpf("-q", "-p", spinning.pid, "-d", 0.1, "-o", path, **options)
        assert run.code in (0, 1) and (run.code == 0) == path.exists(), (limit, run.code, run.err)
        assert run.code == 0 or "Too many open files" in run.err or one_sentence(run.err), (limit, run.err)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        assert os.listdir(tmp_path) == []
