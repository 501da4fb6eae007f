# SPDX-License-Identifier: Apache-2.0
"""--kernel puts the kernel's functions behind the Python function that called it."""

import json
import re
import subprocess

import pytest

import harness
import pythons
from harness import pybpf
from test_events import GETPPID, some_pythons

pytestmark = pytest.mark.usefixtures("profiler")

# reads() is in the kernel nearly all of its time, and spins() is not.
TARGET = """
import os
ZERO = os.open("/dev/zero", os.O_RDONLY)
def reads(seconds):
    end = sum(os.times()[:2]) + seconds  # of CPU time, whatever else runs
    while sum(os.times()[:2]) < end:
        os.read(ZERO, 1 << 20)
def spins(end):
    n = 0
    while n < end:
        n += 1
reads(0.4)
spins(2500000)
"""
RATE = ("-F", "999")
# What a sample itself goes through in the kernel: the timer of perf's CPU clock, and the program.
OWN = re.compile(r"perf_swevent|perf_event_overflow|bpf_overflow|bpf_prog_[0-9a-f]{16}|bpf_get_stack")


def is_kernel(frame):
    return frame.text.endswith("_[k]")


def run(python, *options, **more):
    done = pybpf(*options, "--", *python.argv, "-c", TARGET, **more)
    assert done.code == 0, done.err
    return done


def of_function(stacks, name):
    return [(stack, count) for stack, count in stacks if any(frame.name == name for frame in stack)]


def share_in_kernel(stacks):
    return harness.total([(stack, n) for stack, n in stacks if is_kernel(stack[-1])]) / max(1, harness.total(stacks))


@pytest.mark.parametrize("python", some_pythons(), ids=lambda item: item.name)
def test_a_sample_in_the_kernel_has_its_functions(python):
    stacks = run(python, "--kernel", *RATE).stacks()
    reads, spins = of_function(stacks, "reads"), of_function(stacks, "spins")
    assert harness.total(reads) > 50 and harness.total(spins) > 20, (reads, spins)
    assert share_in_kernel(reads) > 0.5, reads
    # Interrupts of devices and timers come there, too.
    assert share_in_kernel(spins) < 0.5, spins
    called = [(stack, n) for stack, n in reads if any(frame.text == "vfs_read_[k]" for frame in stack)]
    assert harness.total(called) > 0.6 * harness.total(reads), reads
    for stack, _ in stacks:
        first = next((i for i, frame in enumerate(stack) if is_kernel(frame)), len(stack))
        assert all(is_kernel(frame) for frame in stack[first:]), harness.show(stack)
        # Another one may count page faults by the kernel's software.
        names = " ".join(frame.text for frame in stack[first:]).partition(" ___perf_sw_event_[k]")[0]
        assert not OWN.search(names), harness.show(stack)


def test_native_functions_are_between_python_and_the_kernel():
    done = run(harness.default_python(), "--kernel", "--native", *RATE)
    whole = 0
    for stack, count in done.stacks():
        first = next((i for i, frame in enumerate(stack) if is_kernel(frame)), len(stack))
        assert all(is_kernel(frame) for frame in stack[first:]), harness.show(stack)
        names = [frame.name for frame in stack[:first]]
        if "reads" not in names or not any(frame.text == "vfs_read_[k]" for frame in stack[first:]):
            continue
        if any(frame.text == "[native frames incomplete]" for frame in stack):
            continue
        whole += count
        assert "read" in stack[first - 1].name and names[-1] != "reads", harness.show(stack)
    assert whole > 20, done.out


def test_one_python_stack_has_each_of_its_stacks_in_the_kernel():
    """The same instruction calls two functions in turn."""
    code = (
        "import functools, os\n"
        "calls = [functools.partial(os.read, os.open(path, os.O_RDONLY), 1 << 20) for path in ('/dev/zero', '/dev/urandom')]\n"
        "def both():\n    for n in range(300):\n        calls[n % 2]()\n"
        "both()\n"
    )
    done = pybpf("--kernel", *RATE, "--", *pythons.one((3, 12)).argv, "-c", code)
    found = {frame.text for stack, _ in of_function(done.stacks(), "both") for frame in stack if is_kernel(frame)}
    assert any("zero" in name for name in found) and any("random" in name for name in found), found


def test_without_the_option_there_are_none():
    stacks = run(pythons.one((3, 12)), *RATE).stacks()
    assert of_function(stacks, "reads") and not any(is_kernel(frame) for stack, _ in stacks for frame in stack)


def test_old_kernels_have_them():
    """The chain of programs of a kernel without bpf_loop."""
    reads = of_function(run(pythons.one((3, 12)), "--kernel", *RATE, "--without-kernel-feature", "bpf_loop").stacks(), "reads")
    assert share_in_kernel(reads) > 0.5, reads


def test_time_on_a_cpu_has_them_in_wall_mode():
    reads = of_function(run(pythons.one((3, 12)), "--kernel", "--mode=wall", *RATE).stacks(), "reads")
    assert any(frame.text == "vfs_read_[k]" for stack, _ in reads for frame in stack), reads


def test_a_tracepoint_has_the_stack_that_led_to_it(tracefs):
    command = pythons.one((3, 12)).command("events.py")
    done = pybpf("--kernel", "-o", "/dev/stderr", "-q", "-e", GETPPID, "--", *command)
    assert done.code == 0, done.err
    says, stacks = json.loads(done.out), harness.parse(done.err)
    assert harness.total(of_function(stacks, "ask")) == says["calls"]
    assert share_in_kernel(stacks) == 1
    assert all(any("syscall" in frame.text for frame in stack if is_kernel(frame)) for stack, _ in stacks)


def test_the_account_is_whole(tmp_path):
    stats = tmp_path / "stats"
    done = run(pythons.one((3, 12)), "--kernel", *RATE, "--json-stats", stats)
    samples = json.loads(stats.read_text())["samples"]
    assert samples["asked"] == samples["taken"] + samples["lost"], samples
    assert harness.total(harness.parse(done.out)) == samples["python"]
    assert harness.total(harness.parse_all(done.out)) <= samples["taken"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernel") / "saved.pybpf"
    run(pythons.one((3, 12)), "--kernel", *RATE, "-o", path)
    return path


def report(saved, *options):
    done = pybpf("report", saved, *options)
    assert done.code == 0, done.err
    return done.out


def test_a_saved_profile_keeps_their_kind(saved):
    frames = json.loads(report(saved, "-f", "json"))["frames"]
    kinds = {frame["kind"] for frame in frames if frame["name"].endswith("_[k]")}
    assert kinds == {"kernel"}
    assert not [frame for frame in frames if frame["kind"] == "kernel" and not frame["name"].endswith("_[k]")]


def test_firefox_shows_them_as_kernel(saved):
    profile = json.loads(report(saved, "-f", "gecko"))
    categories = [category["name"] for category in profile["meta"]["categories"]]
    shared = profile["shared"]
    names = [shared["stringArray"][i] for i in shared["funcTable"]["name"]]
    table = shared["frameTable"]
    seen = {
        categories[category]
        for category, function in zip(table["category"], table["func"])
        if names[function].endswith("_[k]")
    }
    assert seen == {"Kernel"}


@pytest.mark.parametrize("form", ["text", "svg", "speedscope", "callgrind", "chrometrace", "perf-script"])
def test_formats_name_them(saved, form):
    assert "vfs_read_[k]" in report(saved, "-f", form)


def test_their_names_are_no_secret(saved):
    text = report(saved, "--anonymize", "-f", "folded")
    assert "vfs_read_[k]" in text and "reads" not in re.findall(r"\w+", text)


def hidden_by(folder, content, *options):
    """A run in a mount namespace with another list of symbols."""
    symbols = folder / "kallsyms"
    symbols.write_text(content)
    argv = [harness.PYBPF, "--kernel", *RATE, *options, "--", *pythons.one((3, 12)).argv, "-c", TARGET]
    script = 'mount --bind "$0" /proc/kallsyms; exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, str(symbols), *map(str, argv)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def test_hidden_names_are_told_once(tmp_path):
    with open("/proc/kallsyms", encoding="ascii") as symbols:
        zeros = re.sub(r"(?m)^[0-9a-f]{16}", "0" * 16, symbols.read())
    done = hidden_by(tmp_path, zeros, "-q")
    sentence = harness.one_sentence(done.stderr)
    assert all(word in sentence for word in ("CAP_SYSLOG", "kptr_restrict", "perf_event_paranoid")), sentence
    reads = of_function(harness.parse(done.stdout), "reads")
    assert {frame.text for stack, _ in reads for frame in stack if is_kernel(frame)} == {"[unknown]_[k]"}


@pytest.mark.parametrize("content", ["", "\n\n", "zz t f\n", "ffffffff81000000\n", "ffffffff81000000 t \n", "\xff" * 999])
def test_a_list_that_is_none_does_no_harm(tmp_path, content):
    done = hidden_by(tmp_path, content, "-q", "-d", "0.5")
    assert "addresses of its functions" in harness.one_sentence(done.stderr)


def test_waits_for_the_gil_have_none():
    done = pybpf("--kernel", "--mode=gil", "--", "/bin/true")
    assert done.code == 2 and "--mode=wall" in harness.one_sentence(done.err)
