# SPDX-License-Identifier: Apache-2.0
"""--wakers puts who ended a wait behind it; --kernel where in the kernel the wait was."""

import collections
import json
import re

import pytest

import harness
import html_page
import pythons
from browser import browse
from harness import pybpf
from html_page import steps
from test_events import some_pythons

pytestmark = pytest.mark.usefixtures("profiler")
chromium = html_page.chromium  # a fixture

# Pairs of threads of which one ends the waits of the other, beside a process that does nothing but system calls, so that
# timers hit those.
TARGET = """
import os, signal, socket, subprocess, sys, threading, time
N = 60
lock, event = threading.Lock(), threading.Event()
there, here = os.pipe()
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(1)
near = socket.create_connection(listener.getsockname())
far = listener.accept()[0]
def takes():
    for _ in range(N):
        lock.acquire()
def releases():
    for _ in range(N):
        time.sleep(0.01)
        while not lock.locked():
            time.sleep(0.001)
        lock.release()
def reads():
    for _ in range(N):
        os.read(there, 1)
def writes():
    for _ in range(N):
        time.sleep(0.01)
        os.write(here, b"x")
def receives():
    for _ in range(N):
        near.recv(1)
def sends():
    for _ in range(N):
        time.sleep(0.01)
        far.send(b"x")
def awaits():
    event.wait()
def sets():
    time.sleep(0.5)
    event.set()
def expires():
    own = threading.Lock()
    own.acquire()
    for _ in range(N if sys.version_info >= (3, 2) else 0):
        own.acquire(timeout=0.01)
def busy():
    signal.alarm(20)
    while True:
        os.getpid()
lock.acquire()
child = os.fork()
if not child:
    busy()
threads = [threading.Thread(target=run) for run in (takes, releases, reads, writes, receives, sends, awaits, sets, expires)]
for thread in threads: thread.start()
subprocess.call(["sleep", "0.5"])
for thread in threads: thread.join()
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""
# Who ends the waits of a function, and their leaf.
PAIRS = {
    "takes": ("releases", "[lock]"),
    "reads": ("writes", "[pipe: read]"),
    "receives": ("sends", "[network"),
    "awaits": ("sets", "[lock]"),
}


def run(python, *options):
    done = pybpf("--wakers", *options, "--", *python.argv, "-c", TARGET)
    assert done.code == 0, done.err
    return [([frame.text for frame in stack], us) for stack, us in done.stacks()]


def waits_in(stacks, function, leaf):
    """Microseconds by what follows the leaf of the waits in a function."""
    found = collections.Counter()
    for texts, us in stacks:
        if any(text.startswith(function + " (") for text in texts):
            at = next((i for i, text in enumerate(texts) if text.startswith(leaf)), None)
            if at is not None:
                found[tuple(texts[at + 1 :])] += us
    return found


def functions(behind):
    """The functions of TARGET in a waker's frames."""
    names = (re.match(r"\[waker: (\w+) \(<string>", text) for text in behind)
    return [name.group(1) for name in names if name and name.group(1) != "<module>"]


@pytest.mark.parametrize("python", some_pythons(), ids=lambda item: item.name)
def test_the_waker_is_the_thread_that_did_it(python):
    stacks = run(python, "--mode=wall")
    tells_gil = python.kind != "free-threaded"
    for function, (waker, leaf) in PAIRS.items():
        found = waits_in(stacks, function, leaf)
        right = sum(us for behind, us in found.items() if functions(behind) == [waker])
        # A lock of a free-threaded build yields the CPU 40 times before it sleeps: beside a load it need not sleep at all.
        yields = not tells_gil and leaf == "[lock]" and sum(waits_in(stacks, function, "[waiting for a CPU]").values()) > 300000
        assert right > 0 or yields, (function, found)
        # Now and then a waker is not known. A stop of all threads, for garbage for one, is a lock in free-threaded
        # builds; who began it ends it.
        assert right >= 0.9 * sum(found.values()) or (leaf == "[lock]" and not tells_gil), (function, found)
        # Elsewhere a wait for the GIL is a lock, too.
        if tells_gil or leaf != "[lock]":
            assert not [behind for behind in found if functions(behind) not in ([], [waker])], (function, found)
    timed = [("releases", "[sleep]"), ("writes", "[sleep]"), ("sends", "[sleep]"), ("sets", "[sleep]"), ("expires", "[lock]")]
    # 2.7 has no limit in time for a lock.
    for function, leaf in timed if python.version >= (3, 2) else timed[:-1]:
        found = waits_in(stacks, function, leaf)
        # A page of the call's arguments may have to wait until a fork has copied the page table.
        others = [behind for behind in found if len(behind) == 1 and behind[0] not in ("[woken by a timer]", "[waker not known]")]
        assert not others, found
        # It sleeps for as long at least.
        assert found[("[woken by a timer]",)] >= 0.9 * sum(found.values()) > 400000, found
    children = [texts for texts, _ in stacks if "[child: " in str(texts) and "subprocess.py" in str(texts)]
    assert children
    for texts in children:
        at = next(i for i, text in enumerate(texts) if text.startswith("[child: "))
        assert texts[at + 1] == "[woken by: sleep (%s)]" % texts[at][8:-1], texts
    # The process that timers hit ends nothing but the wait for its own end.
    busy = [texts for texts, _ in stacks if any(text.startswith("[waker: busy") for text in texts)]
    assert all(any(text.startswith(("[child", "[other")) for text in texts) for texts in busy), busy


def test_other_modes():
    python = harness.default_python()
    found = waits_in(run(python, "--mode=offcpu", "--wait-detail=none"), "reads", "[pipe]")
    assert {behind[0] for behind in found} <= {"[woken by a thread]", "[waker not known]"}, found
    right = sum(us for behind, us in found.items() if functions(behind) == ["writes"])
    assert right >= 0.9 * sum(found.values()) > 0, found
    gil = run(python, "--mode=gil")
    assert gil and all(text.startswith(("[wake", "[woken")) for texts, _ in gil for text in texts[-1:]), gil[:3]


def threads_of(trace):
    """TIDs by the function that a thread runs, as its name tells from 3.10 on."""
    named = [e for e in trace if e["ph"] == "M" and e["name"] == "thread_name"]
    return {re.sub(r".*\((\w+)\)$", r"\1", e["args"]["name"]): e["tid"] for e in named}


def function_of(label):
    """The function that a lane's thread runs, or the whole label of one that is not named after one."""
    found = re.search(r"\((\w+)\) \(", label)
    return found.group(1) if found else label


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("wakers") / "wakers.pybpf"
    run(pythons.one((3, 12)) or pythons.one((3, 11)), "--mode=wall", "-F", "999", "-o", path)
    return path


def flows_of(saved):
    """The events of the timeline, TIDs by function, and the pairs of events that are a flow."""
    trace = json.loads(pybpf("report", saved, "-f", "chrometrace").out)["traceEvents"]
    flows = collections.defaultdict(dict)
    for event in trace:
        if event["ph"] in "sf":
            flows[event["id"]][event["ph"]] = event
    return trace, threads_of(trace), flows.values()


def test_flows_lead_from_wakers_to_waits(saved):
    trace, tids, flows = flows_of(saved)
    slices = collections.defaultdict(list)
    for event in trace:
        if event["ph"] == "X":
            slices[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    pairs = collections.Counter()
    for flow in flows:
        assert flow["s"]["ts"] == flow["f"]["ts"] and flow["f"]["bp"] == "e"
        for event in flow.values():
            assert any(begin <= event["ts"] <= end for begin, end in slices[event["tid"]]), event
        pairs[flow["s"]["tid"], flow["f"]["tid"]] += 1
    for waiter, (waker, _) in PAIRS.items():
        if waiter != "awaits":  # who ends its one wait may not be seen then
            assert pairs[tids[waker], tids[waiter]] >= 3, (waiter, pairs, tids)
    # Its first wait may be one for the GIL.
    assert 0 <= sum(n for (_, to), n in pairs.items() if to == tids["reads"]) - pairs[tids["writes"], tids["reads"]] <= 1


def test_the_report_joins_waits_to_their_wakers(saved, chromium, tmp_path):
    path = tmp_path / "wakers.html"
    assert pybpf("report", "-q", saved, "-o", path).code == 0
    # The tenth of a second with the most waits of the pair that has the fewest there.
    _, tids, flows = flows_of(saved)
    ends = {waiter: [flow["f"]["ts"] for flow in flows if flow["f"]["tid"] == tids[waiter]] for waiter in PAIRS if waiter != "awaits"}

    def fewest(begin):
        return min(sum(begin + 5000 < ts < begin + 95000 for ts in times) for times in ends.values())

    begin = max(range(0, int(max(map(max, ends.values()))), 10000), key=fewest)
    told = browse(
        path,
        steps("""
  const lines = () => page.evaluate(() => document.querySelector(".host").timeline.lines.map(({ lane, waker, strong }) => [lane.label, waker.label, strong]));
  await page.goto(address + "#view=time&t=" + argument);
  await page.waitForFunction(() => document.querySelector(".host")?.timeline?.lines?.length > 0);
  const out = { drawn: await lines() };
  const at = await page.evaluate(() => {
    const { boxes, canvas } = document.querySelector(".host").timeline, { left, top } = canvas.getBoundingClientRect();
    const box = boxes.find((b) => b.lane.label.includes("reads") && b.lane.wakers[b.event] && b.right - b.left > 8 && b.left > 0);
    return { x: left + (box.left + box.right) / 2, y: top + box.top + 8 };
  });
  await page.mouse.move(at.x, at.y);
  await page.waitForFunction(() => document.querySelector(".host").timeline.lines.some((line) => line.strong));
  out.over = (await lines()).filter((line) => line[2]);
  out.tip = await page.textContent(".tip");
  return out;
"""),
        argument="%d-%d" % (begin, begin + 100000),
    )
    joined = collections.Counter(tuple(function_of(label) for label in line[:2]) for line in told["drawn"])
    for waiter, (waker, _) in PAIRS.items():
        if waiter != "awaits":
            assert joined[waiter, waker] >= fewest(begin) > 0, (joined, begin, ends)
    assert {waker for waiter, waker in joined if waiter == "reads"} == {"writes"}, joined
    ((waiter, waker, _),) = told["over"]
    assert "(reads)" in waiter and "(writes)" in waker and "ended by" in told["tip"] and "(writes)" in told["tip"], told


def test_names_are_hidden():
    text = str(run(harness.default_python(), "--mode=wall", "--anonymize"))
    assert "[woken by: w" in text and "[waker: w" in text
    assert not [name for name in ("releases", "writes", "sleep (", "python") if name in text]


def test_a_table_has_the_function_that_waits():
    done = pybpf("--mode=wall", "--wakers", "--kernel", "-f", "text", "--", *harness.default_python().argv, "-c", TARGET)
    assert re.search(r"\[waker: writes \(<string>:\d+\)\] in reads \(<string>\)", done.out), done.out[:2000]


def test_a_wait_has_its_functions_in_the_kernel():
    stacks = run(pythons.one((3, 12)), "--mode=wall", "--kernel")
    reads = [(texts, us) for texts, us in stacks if "[pipe: read]" in texts]
    in_pipe = [us for texts, us in reads if re.search(r"pipe_read_\[k\].*\b__schedule_\[k\] \[pipe: read\]", " ".join(texts))]
    assert sum(in_pipe) > 0.9 * sum(us for _, us in reads) > 0, reads
    for texts, _ in stacks:
        # Its caller may be the program of another tracepoint, in which the thread lost its CPU.
        switch = max((i for i, text in enumerate(texts) if text.startswith("__schedule_[k]")), default=-1)
        assert not [text for text in texts[switch + 1 :] if re.match("bpf_|__bpf_|__traceiter", text)], " ".join(texts)


@pytest.mark.parametrize("options", [[], ["--mode=gil", "--gil-holders"]])
def test_where_there_is_no_waker(options):
    done = pybpf("--wakers", *options, "--", "/bin/true")
    assert done.code == 2 and "--wakers" in harness.one_sentence(done.err)
