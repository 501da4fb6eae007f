# SPDX-License-Identifier: Apache-2.0
"""The kernel's walk and user space's find the same: frames, code objects, signatures, names, lines."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

import harness
import pythons
import pytest
from inline import Source, check_sums, dump_map, names, recording, running

# Walks one thread by user space's build of the walk, and names what it finds.
WALKER = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "discovery/discovery.h"
#include "symbols/pysym.h"
#include "symbols/walk_user.h"

static void json_string(const char *key, const char *text)
{
	printf("\"%s\": \"", key);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	printf("\", ");
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 2 ? atoi(argv[1]) : 0;
	struct discovery_python python;
	struct pybpf_runtime proc = {0};
	struct walk_memory memory;
	struct walk_stack stack;
	struct pysym *names;
	struct error error;
	size_t count;

	if (discovery_runtimes(pid, &python, 1, &count, &error) || discovery_validate(&python, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	proc.interp_head = python.interp_head_addr;
	proc.tstate_current = python.tstate_current_addr;
	proc.code_type = python.code_type_addr;
	walk_process_memory(&memory, &pid);
	if (walk_thread(&memory, &python.build.layout, &proc, strtoull(argv[2], NULL, 0), &stack)) {
		fprintf(stderr, "no such thread\n");
		return 1;
	}
	names = pysym_new(PYSYM_LINES_CURRENT, true);
	if (!names || pysym_add_process(names, 1, pid, &python.build.layout))
		return 1;
	printf("{\"flags\": %u, \"depth\": %u, \"frames\": [", stack.flags, stack.depth);
	for (unsigned i = 0; i < stack.depth && i < PYBPF_MAX_FRAMES; i++) {
		struct pysym_frame frame;
		struct walk_code code;

		if (pysym_resolve(names, 1, 0, &stack.frames[i], &frame) ||
		    walk_read_code(&memory, &python.build.layout, stack.frames[i].code,
				   stack.frames[i].sig & PYBPF_SIG_TEXTS, &code))
			return 1;
		printf("%s{", i ? ", " : "");
		json_string("name", frame.name);
		json_string("file", frame.file);
		printf("\"line\": %d, \"code\": %llu, \"sig\": %u, \"own_sig\": %u}", frame.line,
		       (unsigned long long)stack.frames[i].code, stack.frames[i].sig, code.sig);
	}
	printf("]}\n");
	free(stack.frames);
	pysym_free(names);
	discovery_free();
	return 0;
}
"""

# The main thread stays in one place: only the position in leaf moves.
PLACE = Source("""
try: from thread import get_ident
except ImportError: from threading import get_ident
class Klass(object):
    def method(self, n):
        if n: return self.method(n - 1)  #: recursion
        leaf()  #: method
def leaf():
    while True: pass
def generator():
    Klass().method(20)  #: generator
    yield 1
def middle():
    for _ in generator(): pass  #: middle
def root():
    return [(lambda: middle())() for _ in (1,)]
def other():
    while True: time.sleep(0.01)
for _ in range(3):
    thread = threading.Thread(target=other)
    thread.daemon = True
    thread.start()
ready(thread=get_ident() & 0xffffffffffffffff)
root()
""")

SLEEPERS = Source("""
def first(): time.sleep(100)
def second(): time.sleep(100)
def third(): time.sleep(100)
threads = [threading.Thread(target=f, name=f.__name__) for f in (first, second, third)]
for thread in threads:
    thread.daemon = True
    thread.start()
ready(sleepers={thread.name: thread.ident for thread in threads})
time.sleep(100)
""")


@pytest.fixture(scope="module")
def walker(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler: the user-space walk cannot be built")
    folder = tmp_path_factory.mktemp("walker")
    source, program = folder / "walker.c", folder / "walker"
    source.write_text(WALKER)
    library = os.path.join(os.path.dirname(harness.PYBPF), "libuser.a")
    include = ["-I", str(harness.TOP / "user"), "-I", str(harness.TOP / "bpf")]
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", '-DPYBPF_VERSION="test"']
    done = subprocess.run(
        [compiler, *flags, *include, "-o", program, source, library, "-lbpf", "-lelf", "-lz", "-lm", "-l:libjansson.a", "-l:libprotobuf-c.a"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return program


def walk(walker, target, thread=None):
    done = subprocess.run(
        [walker, str(target.pid), str(thread or target.says["thread"])],
        capture_output=True,
        timeout=harness.PATIENCE,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode())


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        harness.wait_for(lambda: harness.state(pid) == "T")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def all_interpreters():
    return [pytest.param(item, id=item.name) for item in pythons.interpreters()]


def kernel_codes(recorder):
    """(address, signature) of each code object that the kernel side has met."""
    number = recorder.map_id("codes")
    assert number, "bpftool does not show the map of code objects"
    found = set()
    for entry in dump_map("dump", number):
        key = entry["formatted"]["key"]
        found.add((int(key["code"]), int(key["sig"])))
    return found


def in_leaf(walked):
    return walked["frames"][0]["name"].endswith("leaf")


@pytest.mark.parametrize("interpreter", all_interpreters())
def test_same_frames(walker, interpreter):
    with running(interpreter, PLACE) as target:
        harness.wait_for(lambda: in_leaf(walk(walker, target)))
        with recording(target.pid, "--full-filenames") as recorder:
            with stopped(target.pid):
                walked = walk(walker, target)
            codes = kernel_codes_after_some_samples(recorder)
            run = recorder.finish()
    assert walked["flags"] == 0
    assert walked["depth"] == len(walked["frames"]) >= 25
    frames = walked["frames"]
    # The two ways in which user space reads a code object agree on its signature.
    for frame in frames:
        assert frame["sig"] == frame["own_sig"], frame
    # What the program knows of itself.
    lines = {name: PLACE.line(name) for name in ("method", "generator", "middle", "recursion")}
    own = [frame["name"].rpartition(".")[2] for frame in frames]
    assert own[:22] == ["leaf"] + ["method"] * 21
    assert [frame["line"] for frame in frames[1:22]] == [lines["method"]] + [lines["recursion"]] * 20
    assert own[22:24] == ["generator", "middle"]
    assert [frame["line"] for frame in frames[22:24]] == [lines["generator"], lines["middle"]]
    assert own[-1] == "<module>"
    # The kernel's stacks: the same but for where in leaf the thread was.
    wanted = [(frame["name"], frame["file"], frame["line"]) for frame in reversed(frames[1:])]
    stacks = [stack for stack, _ in check_sums(run) if names(stack)[-1] == "leaf"]
    mains = [stack for stack in stacks if len(stack) == len(frames)]
    assert mains, "no stack of %d frames: %s" % (len(frames), [len(stack) for stack in stacks])
    for stack in mains:
        assert [(frame.name, frame.file, frame.line) for frame in stack[:-1]] == wanted
        assert stack[-1].file == frames[0]["file"]
    assert not any(run.stats["incomplete"].values()), run.stats
    if codes is not None:
        missing = {(frame["code"], frame["sig"]) for frame in frames} - codes
        assert not missing, "the kernel does not have %s" % missing


def kernel_codes_after_some_samples(recorder):
    """None without bpftool, which reads another program's maps."""
    if not shutil.which("bpftool"):
        time.sleep(0.5)
        return None
    harness.wait_for(lambda: len(kernel_codes(recorder)) >= 6)
    return kernel_codes(recorder)


@pytest.mark.skipif(not shutil.which("bpftool"), reason="bpftool is missing")
def test_maps_can_be_read(walker):
    """So that the comparison of signatures cannot fall silent unnoticed."""
    with running(harness.default_python(), PLACE) as target, recording(target.pid) as recorder:
        assert kernel_codes_after_some_samples(recorder)


def test_each_thread_its_own(walker):
    """Threads asleep show where they sleep; a thread that Python does not have is not found."""
    item = harness.default_python()
    with running(item, SLEEPERS) as target:
        for name, thread in target.says["sleepers"].items():
            harness.wait_for(lambda: name in [f["name"] for f in walk(walker, target, thread)["frames"]])
        done = subprocess.run([walker, str(target.pid), "0x1000"], capture_output=True)
        assert done.returncode == 1
