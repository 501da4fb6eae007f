# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear sentence on stderr, a non-zero exit, and no file left behind."""

import contextlib
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest

import harness
import pythons
from harness import one_sentence, pybpf, total

pytestmark = pytest.mark.usefixtures("profiler")

ENDLESS_S = 2 * harness.PATIENCE  # of sampling: what is said only afterwards is not said in time


def refused(tmp_path, *args, **options):
    """Runs pybpf with an -o that must not come to be; returns its one sentence."""
    before = sorted(os.listdir(tmp_path))
    run = pybpf("-o", tmp_path / "profile.folded", *args, **options)
    assert run.code not in (0, -11, -6), run
    assert run.out == ""
    assert sorted(os.listdir(tmp_path)) == before, "something was left behind"
    return one_sentence(run.err)


def free_pid():
    """A PID that is nobody's: of a process that has just been waited for."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_no_such_pid(tmp_path):
    pid = free_pid()
    assert str(pid) in refused(tmp_path, "-p", pid, "-d", 1)


@pytest.mark.parametrize("command", ["record", "top --output=jsonl", "dump", "ps"])
def test_a_thread(command):
    """As `top -H` shows them, and /proc has them."""
    with harness.target(harness.default_python(), "threads.py", "2") as running:
        threads = set(map(int, os.listdir("/proc/%d/task" % running.pid))) - {running.pid}
        run = pybpf(*command.split(), "-p", max(threads))
    words = "%d is a thread of process %d: give -p %d" % (max(threads), running.pid, running.pid)
    assert run.code == 1 and words in one_sentence(run.err) and not run.out


@pytest.mark.parametrize("pid", ["0", "-1", "abc", "", "12x", "99999999999999999999", "4194305"])
def test_impossible_pid(tmp_path, pid):
    sentence = refused(tmp_path, "-p", pid, "-d", 1)
    assert pid in sentence


def test_not_python(tmp_path):
    with harness.started(["sleep", "60"]) as process:
        sentence = refused(tmp_path, "-p", process.pid, "-d", 1)
    assert "Python" in sentence and str(process.pid) in sentence


def test_kernel_thread(tmp_path):
    threads = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_kernel_thread(pid)]
    if not threads:
        pytest.skip("no kernel thread is visible here (a PID namespace)")
    assert refused(tmp_path, "-p", threads[0], "-d", 1)


def is_kernel_thread(pid):
    try:
        with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[6]) & 0x00200000
    except OSError:
        return False


def test_name_alone_makes_no_python(tmp_path):
    """A program called python3.11 that is not a Python."""
    fake = tmp_path / "python3.11"
    shutil.copy(shutil.which("sleep"), fake)
    with harness.started([str(fake), "60"]) as process:
        sentence = refused(tmp_path, "-p", process.pid, "-d", 1)
    assert "Python" in sentence


def test_pypy_is_refused_by_name(tmp_path):
    pypy = shutil.which("pypy3")
    if not pypy:
        pytest.skip("pypy3 is missing")
    with harness.started([pypy, "-c", "import time; time.sleep(60)"]) as process:
        time.sleep(1)
        sentence = refused(tmp_path, "-p", process.pid, "-d", 1)
    assert "PyPy" in sentence


def test_too_old(tmp_path):
    """A program with the marks of Python 3.5: its symbols, its version text, no more."""
    sentence = refused_version(tmp_path, "3.5.10")
    assert "3.5" in sentence


def test_unknown_version(tmp_path):
    sentence = refused_version(tmp_path, "4.1.0")
    assert "4.1" in sentence


def refused_version(tmp_path, version):
    if not shutil.which("gcc"):
        pytest.skip("gcc is missing")
    major, minor = version.split(".")[:2]
    name = "libpython%s.%s.so.1.0" % (major, minor)
    source, library, program = tmp_path / "fake.c", tmp_path / name, tmp_path / "main"
    number = int(major) << 24 | int(minor) << 16 | 0xF0
    source.write_text(
        'const unsigned long Py_Version = %d;\nconst char marks[] = "%s\\0Python %s";\n'
        "char _PyRuntime[4096] = {1};\n"
        "void *interp_head, *_PyThreadState_Current, *PyCode_Type[64];\n"
        "int Py_Main(void) { return 0; }\nconst char *Py_GetVersion(void) { return marks; }\n"
        % (number, version, version)
    )
    (tmp_path / "main.c").write_text(
        "#include <unistd.h>\nint Py_Main(void);\n"
        "int main(void) { Py_Main(); sleep(60); return 0; }\n"
    )
    soname = "-Wl,-soname," + name
    subprocess.run(["gcc", "-shared", "-fPIC", soname, "-o", library, source], check=True)
    link = ["-Wl,-rpath," + str(tmp_path)]
    subprocess.run(["gcc", "-o", program, tmp_path / "main.c", library, *link], check=True)
    with harness.started([str(program)]) as process:
        time.sleep(0.3)
        return refused(tmp_path, "-p", process.pid, "-d", 1)


def test_first_milliseconds(tmp_path):
    """The interpreter is waited for: attaching right after the start works."""
    for _ in range(5):
        argv = harness.default_python().command("spin.py")
        with harness.started(argv, stdout=subprocess.DEVNULL) as process:
            run = pybpf("-p", process.pid, "-d", 1, "-F", 199)
            assert run.code == 0, run.err
            assert total(run.stacks()) > 0


def test_interpreter_that_never_comes_up(tmp_path):
    """Stopped before its first instruction: the wait has an end."""
    script = 'kill -STOP $$; exec "$0" -c 0'
    with harness.started(["sh", "-c", script, harness.default_python().argv[0]]) as process:
        harness.wait_for(lambda: harness.state(process.pid) == "T")
        sentence = refused(tmp_path, "-p", process.pid, "-d", 1)
        process.send_signal(signal.SIGCONT)
    assert "Python" in sentence


def test_zombie(tmp_path):
    process = subprocess.Popen(["true"])
    harness.wait_for(lambda: harness.state(process.pid) == "Z")
    sentence = refused(tmp_path, "-p", process.pid, "-d", 1)
    process.wait()
    assert "ended" in sentence or "zombie" in sentence


def tiny_elf32(path):
    """A static 32-bit x86 program: pause() for ever. By hand: it takes no 32-bit compiler."""
    code = bytes.fromhex("b81d000000cd80ebf7")  # mov eax, 29; int 0x80; jmp back
    base, start = 0x08048000, 52 + 32
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    header = ident + struct.pack(
        "<HHIIIIIHHHHHH", 2, 3, 1, base + start, 52, 0, 0, 52, 32, 1, 40, 0, 0
    )
    size = start + len(code)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096)
    path.write_bytes(header + segment + code)
    path.chmod(0o755)


@contextlib.contextmanager
def running_32_bit(folder):
    """A 32-bit program called python3, or the test is skipped."""
    program = folder / "python3"
    tiny_elf32(program)
    try:
        process = subprocess.Popen([str(program)])
    except OSError as error:
        pytest.skip("this kernel runs no 32-bit programs: %s" % error)
    try:
        time.sleep(0.2)
        assert process.poll() is None, "the 32-bit program does not run"
        yield process
    finally:
        harness.stop(process)


def test_32_bit_process(tmp_path):
    with running_32_bit(tmp_path) as process:
        sentence = refused(tmp_path, "-p", process.pid, "-d", 1)
    assert "32-bit" in sentence or "64-bit" in sentence


def as_nobody(*args, user=65534):
    """A command line that runs without any capability, as a user who owns nothing."""
    return [
        "setpriv",
        "--reuid=%d" % user,
        "--regid=%d" % user,
        "--clear-groups",
        "--bounding-set=-all",
        *args,
    ]


@contextlib.contextmanager
def public_copy():
    """The binary where an unprivileged user can reach it."""
    with harness.for_everybody(harness.PYBPF) as (binary,):
        yield binary


def test_no_privilege(spinning):
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is missing")
    with public_copy() as binary:
        done = subprocess.run(
            as_nobody(binary, "-p", str(spinning.pid), "-d", "1"), capture_output=True, text=True
        )
        sentence = one_sentence(done.stderr)
        assert done.returncode != 0 and done.stdout == ""
        assert "CAP_" in sentence
        # Pasted into a shell, what it names does it, where sudo's secure_path has no such program.
        advice = re.search(r"run `(sudo %s -p %d -d 1)`" % (re.escape(binary), spinning.pid), sentence)
        assert advice, sentence
        if shutil.which("sudo"):
            done = subprocess.run(advice.group(1), shell=True, capture_output=True, text=True, cwd="/")
            assert done.returncode == 0 and done.stdout.strip(), done.stderr


@pytest.mark.parametrize("folder, program", [("/usr/bin", "pybpf"), ("/usr/local/bin", "/usr/local/bin/pybpf")])
def test_no_privilege_where_sudo_looks(folder, program):
    """Also in /usr/local/bin, which is in the path of some distributions' sudo only. The words are quoted for a shell."""
    over = 'mount -t overlay overlay -o "lowerdir=$1:$2" "$2" && shift 2 && exec "$@"'
    with public_copy() as binary:
        done = subprocess.run(["unshare", "--mount", "sh", "-c", over, "sh", os.path.dirname(binary), folder,
                               *as_nobody(folder + "/pybpf", "--comm", "a b*", "-d", "1")], capture_output=True, text=True)
    assert "run `sudo %s --comm 'a b*' -d 1`" % program in one_sentence(done.stderr)


def test_no_privilege_with_a_quote():
    with public_copy() as binary:
        quoted = subprocess.run(as_nobody(binary, "--comm", "it's"), capture_output=True, text=True)
    assert "run `sudo %s ...`" % binary in one_sentence(quoted.stderr)


def test_no_privilege_for_a_command():
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is missing")
    with public_copy() as binary:
        done = subprocess.run(
            as_nobody(binary, "--", "/usr/bin/env", "echo", "it ran"),
            capture_output=True,
            text=True,
        )
    sentence = one_sentence(done.stderr)
    assert done.returncode != 0 and "it ran" not in done.stdout
    assert "CAP_" in sentence and "sudo" in sentence


@pytest.mark.parametrize("capability", ["bpf", "perfmon", "sys_ptrace"])
def test_the_missing_capability_is_named(spinning, capability):
    """Root without one capability, and without sys_admin, which stands for many."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is missing")
    drop = "-sys_admin,-" + capability
    done = subprocess.run(
        ["setpriv", "--bounding-set=" + drop, "--inh-caps=" + drop]
        + [harness.PYBPF, "-p", str(spinning.pid), "-d", "1"],
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        # Not needed after all is as good: then it has to work.
        assert total(harness.parse(done.stdout)) > 0
    else:
        assert "CAP_" + capability.upper() in one_sentence(done.stderr)


def in_mount_namespace(script, *args):
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *map(str, args)], capture_output=True, text=True, timeout=harness.PATIENCE
    )


def test_no_btf(spinning):
    if not shutil.which("unshare"):
        pytest.skip("unshare is missing")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        pytest.skip("this kernel has no BTF to hide")
    script = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    done = in_mount_namespace(script, harness.PYBPF, "-p", spinning.pid, "-d", 1)
    assert done.returncode != 0 and done.stdout == ""
    sentence = one_sentence(done.stderr)
    assert "BTF" in sentence


def test_no_sysfs_and_no_procfs(spinning):
    if not shutil.which("unshare"):
        pytest.skip("unshare is missing")
    for words in (["-p", spinning.pid, "-d", 1], ["--all", "-d", 1], ["ps"], ["dump", "-p", spinning.pid]):
        done = in_mount_namespace('umount -l /proc && exec "$@"', harness.PYBPF, *words)
        assert (done.returncode, done.stdout) == (1, "") and "/proc, which is not mounted" in one_sentence(done.stderr)
    done = in_mount_namespace('umount -l /sys && exec "$@"', harness.PYBPF, "-p", spinning.pid, "-d", 1)
    assert (done.returncode, done.stdout) == (1, "") and "/sys is not mounted" in one_sentence(done.stderr)


SECCOMP = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
/* Runs a program for which bpf(2) fails with the errno ERROR. */
int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_CALL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ERROR),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {4, code};
	if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 125;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 125;
	execv(argv[1], argv + 1);
	return 125;
}
"""


def build_without(tmp_path, call, error):
    if not shutil.which("gcc"):
        pytest.skip("gcc is missing")
    source, program = tmp_path / "without.c", tmp_path / "without"
    source.write_text(SECCOMP)
    macros = ["-DSYS_CALL=SYS_" + call, "-DERROR=" + error]
    subprocess.run(["gcc", *macros, "-o", program, source], check=True)
    return program


@pytest.mark.parametrize(
    "call, error, word",
    [
        ("bpf", "ENOSYS", "bpf"),
        ("bpf", "EPERM", "bpf"),
        ("perf_event_open", "ENOSYS", "perf"),
        ("perf_event_open", "EACCES", "perf"),
        ("process_vm_readv", "EPERM", "ptrace"),
    ],
)
def test_system_call_switched_off(spinning, tmp_path, call, error, word):
    """A kernel without BPF, or a container that forbids it; likewise for the other calls."""
    program = build_without(tmp_path, call, error)
    done = subprocess.run(
        [program, harness.PYBPF, "-p", str(spinning.pid), "-d", "1"], capture_output=True, text=True
    )
    if done.returncode == 0:
        assert total(harness.parse(done.stdout)) > 0 and call == "process_vm_readv"
    else:
        assert word in one_sentence(done.stderr).lower()


@pytest.mark.parametrize(
    "args, word",
    [
        (["-F", "0"], "0"),
        (["-F", "-5"], "-5"),
        (["-F", "abc"], "abc"),
        (["-F", "10x"], "10x"),
        (["-F", "99999999999999999999"], "99999999999999999999"),
        (["-F", ""], "-F"),
        (["-d", "-1"], "-1"),
        (["-d", "0"], "0"),
        (["-d", "abc"], "abc"),
        (["-d", "nan"], "nan"),
        (["-d", "inf"], "inf"),
        (["-d", "1e30"], "1e30"),
        (["-d", "5x"], "5x"),
        (["--no-such-option"], "--no-such-option"),
        (["-Z"], "Z"),
        (["--lines=sometimes"], "sometimes"),
        (["-f", "docx"], "docx"),
        (["surplus"], "surplus"),
        (["--json-stats"], "json-stats"),
        (["--max-stacks", "0"], "0"),
    ],
)
def test_bad_option(spinning, tmp_path, args, word):
    assert word in refused(tmp_path, "-p", spinning.pid, *args)


def test_missing_argument(tmp_path):
    assert "-p" in refused(tmp_path, "-d", 1, "-p")


def test_no_target(tmp_path):
    assert refused(tmp_path, "-d", 1)


NO_PID = 1 << 22  # PID_MAX_LIMIT of include/linux/threads.h: never given


def test_two_targets(spinning, tmp_path):
    assert "two" in refused(tmp_path, "-p", spinning.pid, "--", "true")
    assert refused(tmp_path, "-p", spinning.pid, "-p", NO_PID)


def test_empty_command(tmp_path):
    assert refused(tmp_path, "--")


def test_output_folder_is_missing(spinning, tmp_path):
    path = tmp_path / "no-such-folder" / "profile.folded"
    run = pybpf("-p", spinning.pid, "-d", ENDLESS_S, "-o", path)
    assert run.code != 0
    assert "no-such-folder" in one_sentence(run.err)


@pytest.mark.parametrize("option", ["-o", "--json-stats"])
def test_output_is_not_writable(spinning, tmp_path, option):
    """On a read-only file system root cannot write either."""
    path = tmp_path / "read-only"
    path.mkdir()
    script = 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"'
    done = in_mount_namespace(
        script, path, harness.PYBPF, "-p", spinning.pid, "-d", ENDLESS_S, option, path / "out"
    )
    assert done.returncode != 0
    assert "read-only" in one_sentence(done.stderr)


def test_output_is_a_folder(spinning, tmp_path):
    run = pybpf("-p", spinning.pid, "-d", 30, "-o", tmp_path, timeout=20)
    assert run.code != 0 and str(tmp_path) in one_sentence(run.err)
    assert not os.listdir(tmp_path)


def test_command_does_not_run_when_output_is_bad(tmp_path):
    proof = tmp_path / "it-ran"
    run = pybpf("-o", tmp_path / "missing" / "x", "--", "touch", proof)
    assert run.code != 0 and not proof.exists()


def test_full_disk(tmp_path):
    """The file system has room for the temporary file's first page and not for the profile."""
    place = tmp_path / "small"
    place.mkdir()
    script = (
        'mount -t tmpfs -o size=16k none "$1"; place=$1; shift; "$@"; code=$?; '
        'ls "$place" >&2; exit $code'
    )
    with harness.target(harness.default_python(), "deep.py", "8000") as running:
        done = in_mount_namespace(
            script, place, harness.PYBPF, "-q", "-p", running.pid, "-d", 1, "-o", place / "profile"
        )
    assert done.returncode != 0
    assert "space" in one_sentence(done.stderr), done.stderr


def test_stdout_is_full(spinning):
    with open("/dev/full", "wb") as full:
        run = pybpf("-q", "-p", spinning.pid, "-d", 1, stdout=full)
    assert run.code != 0 and "space" in one_sentence(run.err)


def test_stdout_is_closed_by_its_reader(spinning):
    argv = [harness.PYBPF, "-q", "-p", str(spinning.pid), "-d", "1"]
    with harness.started(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        run.stdout = None
        code = run.wait(harness.PATIENCE)
        errors = run.stderr.read().decode()
    assert code != 0 and len(errors.splitlines()) <= 1


def test_target_dies_in_the_middle(tmp_path):
    path = tmp_path / "profile.folded"
    with harness.target(harness.default_python(), "mortal.py", "1.5") as running:
        run = pybpf("-p", running.pid, "-d", 30, "-F", 499, "-o", path)
    assert run.code == 0
    assert "ended" in run.err or "exited" in run.err, run.err
    assert total(harness.parse(path.read_text())) > 50


def test_target_is_killed_in_the_middle(tmp_path):
    path = tmp_path / "profile.folded"
    with harness.target(harness.default_python(), "spin.py") as running:
        argv = [harness.PYBPF, "-p", str(running.pid), "-d", "30", "-F", "499", "-o", str(path)]
        with harness.started(argv, stderr=subprocess.PIPE) as run:
            harness.wait_for(lambda: harness.samples_now(run.pid))
            time.sleep(2)
            running.process.kill()
            assert run.wait(10) == 0
    harness.Expectation(running.says).check(harness.parse(path.read_text()))


# One of each way in which frames are chained and switched.
HOSTILE_VERSIONS = ((3, 8), (3, 10), (3, 11), (3, 12), (3, 13), pythons.NEWEST)
HOSTILE_PYTHONS = [item for item in map(pythons.one, HOSTILE_VERSIONS) if item]


@pytest.mark.parametrize(
    "trick", ["cycle", "long-cycle", "wild", "kernel", "unaligned", "code", "name", "table"]
)
@pytest.mark.parametrize("interpreter", HOSTILE_PYTHONS, ids=lambda item: item.name)
def test_hostile_target(interpreter, trick, tmp_path):
    """It lies about its own frames. The run ends in time and prints only what is true."""
    with harness.target(interpreter, "hostile.py", trick) as running:
        run = harness.record(running.pid, rate=199)
        assert running.process.poll() is None, "the target was harmed"
    for stack, _ in run.stacks():
        assert len(stack) <= 8193
        for frame in stack:
            # A name that cannot be read, and a cut, are said in brackets.
            said = frame.line is None or re.fullmatch(r"\[[a-z ]+\]", frame.name)
            assert said or frame.name in (
                "<module>",
                "main",
                "liar",
            ), "invented: %s" % harness.show(stack[:20])
    # What is broken is counted, by cause, and not passed off as whole.
    if trick not in ("name", "table"):
        samples = run.stats["samples"]
        broken = sum(run.stats["incomplete"].values()) + samples["taken"] - samples["python"]
        assert broken >= 0.9 * samples["taken"], run.stats
    assert run.stats["peak_rss_kib"] < 500000
