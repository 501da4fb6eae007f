# SPDX-License-Identifier: Apache-2.0
"""The static binary in a root that holds nothing else: what it needs of a host is the kernel's."""

import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

import harness
import test_top_view
from harness import STATIC, total

needs_static = pytest.mark.skipif("PYBPF_WITHOUT_STATIC" in os.environ, reason="its libraries, of Debian's sources, could not be made")
pytestmark = needs_static
ENTER = """
root=$1; shift
mount --make-rprivate /
for folder in proc sys dev; do mount --rbind /$folder $root/$folder; done
exec chroot $root "$@"
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Empty but for the binary, where the kernel shows its files, and a list of users that is no other's."""
    root = tmp_path_factory.mktemp("root")
    for folder in ("proc", "sys", "dev", "etc", "tmp"):
        (root / folder).mkdir()
    assert STATIC.exists(), "there is no %s: run make test-programs" % STATIC
    shutil.copy(STATIC, root / "pybpf")
    (root / "etc/passwd").write_text("+nobody::0:0:::\nsomeone:x:0:0::/:/bin/sh\n")
    return root


def enter(root, *args):
    return ["unshare", "--mount", "sh", "-c", ENTER, "enter", str(root), "/pybpf", *map(str, args)]


def run(root, *args):
    environment = {"PATH": os.environ["PATH"], "LANG": "de_DE.ISO-8859-1"}
    done = subprocess.run(enter(root, *args), capture_output=True, text=True, env=environment, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def busy():
    with harness.target(harness.default_python(), "shares.py") as target:
        yield target


def test_linked():
    """At any address as the other one, without a loader, without a library."""
    told = subprocess.run(["readelf", "-W", "-h", "-l", "-d", STATIC], capture_output=True, text=True, check=True).stdout
    assert "DYN" in told and "GNU_RELRO" in told and re.search(r"FLAGS_1.*\bNOW\b", told)
    assert "INTERP" not in told and "NEEDED" not in told and "TEXTREL" not in told


def test_version(root):
    first, *libraries, last = run(root, "version", "-v").stdout.splitlines()
    assert first == "pybpf %s (static)" % harness.pybpf("version").out.split()[1]
    assert last == "  libiberty  linked in"
    assert len(libraries) == 12 and all(re.search(r"  \S+ +\d[\w.]*, linked in$", line) for line in libraries), libraries


def test_samples(root, busy):
    done = run(root, "-p", busy.pid, "-d", 1, "-F", 499)
    stacks = harness.parse(done.stdout)
    assert total(stacks) > 0 and all(any(frame.name == "work" for frame in stack) for stack, _ in stacks), done.stderr


def test_ps(root, busy):
    rows = json.loads(run(root, "ps", "--json", "-p", busy.pid).stdout)
    assert [(row["pid"], row["user"]) for row in rows] == [(busy.pid, "someone")]
    assert [row["pid"] for row in json.loads(run(root, "ps", "--json", "-p", busy.pid, "--user", "someone").stdout)] == [busy.pid]


def test_dump_native(root, busy):
    out = run(root, "dump", "--native", "-p", busy.pid).stdout
    assert re.search(r"^  C \S+ \[interpreter\]", out, re.M) and re.search(r'^  File ".*shares\.py", line \d+, in ', out, re.M), out


@pytest.mark.parametrize("term, answer", [
    ("xterm-256color", "functions, by self"), ("screen", "functions, by self"), ("linux", "functions, by self"),
    ("dumb", "(TERM=dumb) is not known"), ("nonsense-256color", "is not known"),
])
def test_top(root, busy, tmp_path, term, answer):
    """It describes the usual terminals itself."""
    command = " ".join(map(shlex.quote, enter(root, "top", "-p", busy.pid, "-i", "0.3")))
    screen = test_top_view.Tmux(str(tmp_path / "tmux"), command, environment="LC_ALL=C.UTF-8 TERM=" + term)
    try:
        screen.until(lambda lines: any(answer in line for line in lines))
        if "known" not in answer:
            screen.until(lambda lines: any("large (shares.py" in line for line in lines))
            screen.keys("q")
        screen.until(lambda lines: any(line.startswith("exit %d" % ("known" in answer)) for line in lines))
    finally:
        screen.tmux("kill-server")


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed; tools/install-deps --test installs it")
@pytest.mark.parametrize("command", [("ps",), ("dump", "--native"), ("record", "-d", "1", "--as", "root", "-o", os.devnull, "--")])
def test_nothing_of_the_host_is_loaded(busy, tmp_path, command):
    """On a host that has them: no library, no name service, no converter, whatever the locale.

    c-ares alone looks into nsswitch.conf, for the order of the file of hosts and name servers.
    """
    target = ["/bin/true"] if "--" in command else ["-p", busy.pid]
    log = tmp_path / "log"
    trace = ["strace", "-f", "-qq", "-e", "trace=%file", "-o", log]
    environment = {**os.environ, "LC_ALL": "de_DE.ISO-8859-1", "DEBUGINFOD_URLS": "http://127.0.0.1:9/"}
    settings = "" if "--native" in command else "|nsswitch"
    done = subprocess.run([*map(str, [*trace, STATIC, *command, *target])], capture_output=True, text=True, env=environment,
                          timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr
    own = [line for line in log.read_text().split("execve(\"/bin/true\"")[0].splitlines() if "O_" in line]
    assert any("/etc/passwd" in line for line in own) or command[0] != "ps"
    assert not [line for line in own if re.search(r"nscd|gconv|debuginfod|libnss|openssl" + settings, line)]
