# SPDX-License-Identifier: Apache-2.0
"""docker's and podman's own containers: their names, a restart, and the recipe of docs/containers.md.

Neither is installed for the tests: where one is missing, or cannot start a container here, its tests are skipped.
"""

import contextlib
import functools
import io
import os
import re
import secrets
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import pytest

import artefacts
import harness
from harness import pybpf
from processes import RATE, by_process, sampling

pytestmark = pytest.mark.usefixtures("profiler")

RUNTIMES = ("docker", "podman")
DOCS = Path(__file__).parents[2] / "docs"
PYTHON = Path("/usr/bin/python3.11")  # Debian 12's
PROGRAM = "while True: sum(range(1000))"
LIMITS = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000"]
# What podman may need where the machine's limits or its control groups are mixed.
CHOICES = {"docker": [[]], "podman": [[], LIMITS, ["--runtime=runc", *LIMITS]]}


def call(*argv, timeout=120):
    return subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=timeout, check=False)


def libraries(program):
    return re.findall(r"(/\S+) \(0x", call("ldd", program).stdout)


def image():
    """A root file system with Python and what pybpf is linked with, as a tar."""
    out = io.BytesIO()
    files = {str(PYTHON): "usr/bin/python3", "/bin/true": "bin/true"}
    for library in {*libraries(PYTHON), *libraries(harness.PYBPF), *libraries("/bin/true")}:
        files[library] = library.lstrip("/")
    with tarfile.open(fileobj=out, mode="w", dereference=True) as tar:
        for source, place in files.items():
            tar.add(source, place)
        for name in "encodings", "collections", "importlib", "re":
            tar.add("/usr/lib/python3.11/" + name, "usr/lib/python3.11/" + name)
        for path in Path("/usr/lib/python3.11").glob("*.py"):
            tar.add(path, "usr/lib/python3.11/" + path.name)
    return out.getvalue()


@functools.lru_cache(maxsize=None)
def options(runtime):
    """(The options with which the runtime starts a container here, its image); a text that says why it does not."""
    if os.geteuid() != 0 or not shutil.which(runtime):
        return "%s is not installed, or the tests do not run as root" % runtime
    if not PYTHON.exists():
        return "%s is missing" % PYTHON
    if call(runtime, "info").returncode:
        return "%s does not answer: %s" % (runtime, call(runtime, "info").stderr.strip().split("\n")[-1])
    name = "pybpf-test-" + secrets.token_hex(4)
    made = subprocess.run([runtime, "import", "-", name], input=image(), capture_output=True, check=False)
    if made.returncode:
        return "%s import: %s" % (runtime, made.stderr)
    why = ""
    for words in CHOICES[runtime]:
        words = [*global_words(words), "run", *(w for w in words if w not in global_words(words)), "--network=none"]
        trial = call(runtime, *words, "--rm", name, "/bin/true")
        if trial.returncode == 0:
            return words, name
        why = trial.stderr.strip().split("\n")[-1]
    call(runtime, "rmi", name)
    return "%s run: %s" % (runtime, why)


def global_words(words):
    return [word for word in words if word.startswith("--runtime=")]


@pytest.fixture(scope="module", autouse=True)
def images():
    yield
    for runtime in RUNTIMES:
        if options.cache_info().currsize and not isinstance(options(runtime), str):
            call(runtime, "rmi", "--force", options(runtime)[1])


def need(runtime):
    found = options(runtime)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@contextlib.contextmanager
def running(runtime, name):
    words, made = need(runtime)
    try:
        started = call(runtime, *words, "-d", "--name", name, made, "/usr/bin/python3", "-c", PROGRAM)
        assert started.returncode == 0, started.stderr
        yield pid_of(runtime, name)
    finally:
        call(runtime, "rm", "--force", name)


def pid_of(runtime, name):
    return int(call(runtime, "inspect", "--format={{.State.Pid}}", name).stdout)


def row_of(text, pid):
    return next((row.split() for row in text.splitlines() if row.split()[:1] == [str(pid)]), None)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_name_and_restart(runtime):
    name = "pybpf-test-" + secrets.token_hex(4)
    with running(runtime, name) as pid:
        assert name in row_of(pybpf("ps").out, pid)
        run = pybpf("--container", name[:-1] + "?", "-d", 1, "-F", RATE)
        assert list(by_process(run, container=True)) == [pid], run.err
        with sampling("--container", name, "--by=container") as run:
            time.sleep(1)
            again = call(runtime, "restart", "-t", 0, name)
            assert again.returncode == 0, again.stderr
            later = pid_of(runtime, name)
            time.sleep(2)
    found = by_process(run, container=True)
    assert later != pid and set(found) == {pid, later}, (sorted(found), run.err)
    assert {root.container for root, _ in found.values()} == {name}


def test_one_name_in_docker_and_podman():
    name = "pybpf-test-" + secrets.token_hex(4)
    with contextlib.ExitStack() as stack:
        pids = {runtime: stack.enter_context(running(runtime, name)) for runtime in RUNTIMES}
        listed = pybpf("ps").out
        run = pybpf("--container", name + "*", "--by=container", "-d", 1, "-F", RATE)
    found = by_process(run, container=True)
    for runtime, pid in pids.items():
        assert "%s:%s" % (runtime, name) in row_of(listed, pid)
        assert found[pid][0].container == "%s:%s" % (runtime, name)


def test_podman_with_another_root():
    words, _ = need("podman")
    name = "pybpf-test-" + secrets.token_hex(4)
    # podman takes no run root with a path of more than 50 characters, such as tmp_path.
    place = tempfile.mkdtemp(prefix="pybpf-")
    other = ["--root=%s/root" % place, "--runroot=%s/run" % place]
    subprocess.run(["podman", *other, "import", "-", "image"], input=image(), capture_output=True, check=True)
    try:
        started = call("podman", *other, *words, "-d", "--name", name, "image", "/usr/bin/python3", "-c", PROGRAM)
        assert started.returncode == 0, started.stderr
        pid = int(call("podman", *other, "inspect", "--format={{.State.Pid}}", name).stdout)
        assert name in row_of(pybpf("ps").out, pid)
    finally:
        call("podman", *other, "rm", "--force", name)
        call("podman", *other, "rmi", "--all", "--force")
        call("umount", place + "/root/overlay")
        shutil.rmtree(place)


def words_of(lines):
    """The options in a page, whose profile for seccomp is beside it."""
    return [word.replace("=seccomp.json", "=%s" % (DOCS / "seccomp.json")) for word in lines.split() if word != "\\"]


def recipe(runtime):
    text = (DOCS / "containers.md").read_text(encoding="utf-8")
    lines = re.search(r"^    docker run (.*?)\s+pybpf:\S+ --all", text, re.M | re.S).group(1)
    words = words_of(lines)
    version = call(runtime, "version", "--format={{.Server.Version}}" if runtime == "docker" else "--format={{.Client.Version}}").stdout
    old = re.search(r"Docker before (\d+)\.0 .*?`(--cap-add=\w+)` instead of `(--cap-add=\w+)` and\s+`(--cap-add=\w+)`", text, re.S)
    if runtime == "docker" and int(version.split(".")[0]) < int(old.group(1)):
        words = [word for word in words if word not in old.group(3, 4)] + [old.group(2)]
    return words


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_recipe(runtime):
    """pybpf in a container, started as the page says, has the names of the others."""
    words, made = need(runtime)
    name = "pybpf-test-" + secrets.token_hex(4)
    with running(runtime, name) as pid:
        inside = [*words, *recipe(runtime), "-v", harness.PYBPF + ":/pybpf:ro", made, "/pybpf"]
        listed = call(runtime, *inside, "ps")
        assert row_of(listed.stdout, pid), listed.stderr
        assert name in row_of(listed.stdout, pid), listed.stdout
        assert "each with its name" in call(runtime, *inside, "doctor").stdout


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_image_of_make_dist(runtime, dist):
    """Loaded from its file, and run by the line of docs/install.md; by that of docs/containers.md for docker."""
    words, _ = need(runtime)
    (path,) = dist.glob("*-image-*.tar")
    loaded = call(runtime, "load", "-i", path)
    assert loaded.returncode == 0, loaded.stderr
    (name,) = re.findall(r"^Loaded image(?:\(s\))?: (\S+)$", loaded.stdout, re.M)
    line = re.search(r"^    sudo podman run (.*?)\s+(\S+) --all -d 30$", (DOCS / "install.md").read_text(encoding="utf-8"), re.M | re.S)
    options = recipe(runtime) if runtime == "docker" else words_of(line.group(1))
    assert name == line.group(2) or runtime == "docker"
    try:
        with harness.target(harness.default_python(), "shares.py") as target:
            done = call(runtime, *words, *options, name, "-p", target.pid, "-d", 1)
        assert done.returncode == 0, done.stderr
        artefacts.check_profile(done.stdout)
    finally:
        call(runtime, "rmi", "--force", name)
