# SPDX-License-Identifier: Apache-2.0
"""Where pybpf writes as root, other users may have been first: links, FIFOs, files of theirs; and whose the files are."""

import contextlib
import os
import pty
import select
import shutil
import stat
import struct
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

import formats
import harness
from harness import one_sentence, pybpf

pytestmark = pytest.mark.usefixtures("profiler")
# Users that need no account: the one who calls sudo, and one who means harm.
CALLER, CALLER_GROUP = 310001, 310002
OTHER = 310003
SECONDS = 20  # for what must not wait for anybody


@pytest.fixture(scope="module")
def saved(profiler, tmp_path_factory):
    return formats.made(tmp_path_factory.mktemp("made")) / "recursive.pybpf"


@pytest.fixture
def small(saved):
    """What fits into a pipe that nobody reads."""
    return saved.with_name("empty.pybpf")


@pytest.fixture
def place():
    """A folder that every user can reach; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="pybpf-output-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def shared(place):
    """Like /tmp."""
    folder = place / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def victim(place):
    """A file that only root may write, in a folder that only root may write."""
    (place / "private").mkdir()
    path = place / "private" / "victim.html"
    path.write_bytes(b"precious")
    return path


def owned(folder, uid, gid=None, mode=0o755):
    folder.mkdir()
    os.chown(folder, uid, gid or uid)
    folder.chmod(mode)
    return folder


def run_as(uid, *argv):
    subprocess.run([str(word) for word in argv], user=uid, group=uid, extra_groups=[], check=True, timeout=SECONDS)


def report(saved, *args, sudo=False, **options):
    environment = dict(os.environ, PYBPF_PAGER="")
    if sudo:
        environment.update(SUDO_UID=str(CALLER), SUDO_GID=str(CALLER_GROUP))
    return pybpf("report", "-q", saved, *args, env=environment, timeout=SECONDS, **options)


def written(saved, path, *args, **options):
    run = report(saved, "-o", path, *args, **options)
    assert run.code == 0, run.err
    return run


def refused(saved, path, *args, **options):
    run = report(saved, "-o", path, *args, **options)
    assert run.code == 1, "%s was written to" % path
    return one_sentence(run.err)


def status(path):
    found = os.stat(path)
    return stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid


def is_report(path):
    return path.read_bytes().rstrip().endswith(b"</html>")


# Links


@pytest.mark.parametrize("where", ["shared", "own"])
def test_planted_link(saved, place, shared, victim, where):
    folder = shared if where == "shared" else owned(place / "own", OTHER)
    run_as(OTHER, "ln", "-s", victim, folder / "last.html")
    run_as(OTHER, "ln", "-s", victim.parent, folder / "way")
    run_as(OTHER, "ln", "-s", victim.parent / "new.html", folder / "dangling.html")
    for path in ("last.html", "way/victim.html", "way/new.html", "dangling.html"):
        for sudo in (False, True):
            assert "belongs to user %d" % OTHER in refused(saved, folder / path, sudo=sudo)
    assert victim.read_bytes() == b"precious" and os.listdir(victim.parent) == [victim.name]
    assert sorted(os.listdir(folder)) == ["dangling.html", "last.html", "way"]


def test_planted_link_behind_a_good_one(saved, shared, victim):
    """Each link on the way is looked at, not only the first."""
    run_as(OTHER, "ln", "-s", victim, shared / "bad.html")
    (shared / "good.html").symlink_to("bad.html")
    assert "belongs to user %d" % OTHER in refused(saved, shared / "good.html")
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("option", ["-o", "--json-stats"])
def test_planted_link_of_a_run(spinning, shared, victim, option):
    run_as(OTHER, "ln", "-s", victim, shared / "last.html")
    run = pybpf("-p", spinning.pid, "-d", 0.1, option, shared / "last.html", timeout=SECONDS)
    assert run.code == 1 and "belongs to user %d" % OTHER in one_sentence(run.err)
    assert victim.read_bytes() == b"precious"


SWAP = """
import os, sys
folder, victim = sys.argv[1:]
os.chdir(folder)
os.symlink(victim, "victim")
os.symlink("/dev/null", "device")
os.mkfifo("pipe")
print("ready", flush=True)
while True:
    for name in ("device", "victim", "pipe", "file"):
        if name == "file":
            open(name, "w").close()
        else:
            os.path.lexists("copy") and os.unlink("copy")
            os.link(name, "copy", follow_symlinks=False)
        try:
            os.rename(name if name == "file" else "copy", "swapped.html")
            if name == "file":
                os.unlink("swapped.html")
        except (PermissionError, FileNotFoundError):
            pass  # root's file has the name, in a folder where that counts
"""


@pytest.mark.parametrize("own", [False, True])
def test_swapped_link(saved, place, shared, victim, own):
    """What has the name changes all the time: a device, a link to the victim, a FIFO, a file, nothing."""
    folder = owned(place / "own", OTHER) if own else shared
    inode = victim.stat().st_ino
    argv = ["/usr/bin/python3", "-c", SWAP, folder, victim]
    with harness.started(argv, user=OTHER, group=OTHER, extra_groups=[], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        for _ in range(150):
            run = report(saved, "-o", folder / "swapped.html")
            assert run.code in (0, 1)
            assert run.code == 0 or one_sentence(run.err)
            assert victim.read_bytes() == b"precious" and victim.stat().st_ino == inode
            if run.code == 0 and not own:
                with contextlib.suppress(FileNotFoundError):
                    (folder / "swapped.html").unlink()
        assert process.poll() is None
    assert os.listdir(victim.parent) == [victim.name]


def test_links_that_are_followed(saved, place, shared):
    """Those of root and of the caller; what they lead to is replaced, and they stay."""
    (shared / "to").mkdir()
    target = shared / "to" / "there.html"
    target.write_bytes(b"old")
    os.chown(shared / "to", CALLER, CALLER_GROUP)
    (shared / "relative.html").symlink_to("to/../to//there.html")
    (shared / "absolute.html").symlink_to(target)
    (shared / "chain.html").symlink_to("./absolute.html")
    (shared / "way").symlink_to("to")
    for path in ("relative.html", "absolute.html", "chain.html", "way/there.html", "way/../to/there.html"):
        target.write_bytes(b"old")
        written(saved, shared / path)
        assert is_report(target)
    run_as(CALLER, "ln", "-s", target, shared / "caller.html")
    target.write_bytes(b"old")
    assert "belongs to user %d" % CALLER in refused(saved, shared / "caller.html")
    assert target.read_bytes() == b"old"
    written(saved, shared / "caller.html", sudo=True)
    assert is_report(target)
    for link in ("relative.html", "absolute.html", "chain.html", "caller.html", "way"):
        assert (shared / link).is_symlink()
    # As open(2) with O_CREAT: what is missing is made where the link leads to.
    (shared / "dangling.html").symlink_to("to/new.html")
    written(saved, shared / "dangling.html")
    assert is_report(shared / "to" / "new.html") and (shared / "dangling.html").is_symlink()


def test_links_in_a_circle(saved, shared):
    (shared / "a.html").symlink_to("b.html")
    (shared / "b.html").symlink_to("a.html")
    for path in ("a.html", "a.html/x.html"):
        assert "symbolic links" in refused(saved, shared / path)
    (shared / "long.html").symlink_to("x/" * 2000 + "y")
    assert refused(saved, shared / "long.html")


def test_names_that_are_none(saved, shared):
    for path in (shared, "%s/" % shared, "%s/." % shared, "%s/.." % shared, "/", "%s/new.html/" % shared):
        assert "Is a directory" in refused(saved, path, "-f", "html")
    (shared / "file.html").write_bytes(b"old")
    assert "Not a directory" in refused(saved, shared / "file.html" / "x.html")
    assert "Not a directory" in refused(saved, "%s/file.html/" % shared)
    assert "too long" in refused(saved, shared / ("n" * 256 + ".html"))
    assert "too long" in refused(saved, shared / "/".join(["n" * 100] * 50))
    assert os.listdir(shared) == ["file.html"]


# FIFOs and devices


def test_fifo_without_a_reader(saved, spinning, shared):
    os.mkfifo(shared / "pipe.html")
    assert "nobody reads" in refused(saved, shared / "pipe.html")
    for args in (("-o", shared / "pipe.html"), ("--json-stats", shared / "pipe.html")):
        run = pybpf("-p", spinning.pid, "-d", 0.1, *args, timeout=SECONDS)
        assert run.code == 1 and "nobody reads" in one_sentence(run.err)


def test_fifo_of_another(saved, shared):
    """Its reader need not read."""
    run_as(OTHER, "mkfifo", shared / "pipe.html")
    reader = os.open(shared / "pipe.html", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert "FIFO of user %d" % OTHER in refused(saved, shared / "pipe.html")
    finally:
        os.close(reader)


def test_fifo_with_a_reader(saved, shared):
    os.mkfifo(shared / "pipe.html")
    got = []
    reader = threading.Thread(target=lambda: got.append((shared / "pipe.html").read_bytes()))
    reader.start()

    try:
        harness.wait_for(lambda: report(saved, "-o", shared / "pipe.html").code == 0)
    finally:
        reader.join(SECONDS)
    assert got[0].rstrip().endswith(b"</html>") and len(got[0]) > 65536
    assert stat.S_ISFIFO(os.stat(shared / "pipe.html").st_mode)


def test_descriptors(saved, shared):
    (shared / "plain.html").symlink_to("/dev/stdout")
    for path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", shared / "plain.html"):
        run = report(saved, "-o", path, "-f", "html")
        assert run.code == 0 and run.out.rstrip().endswith("</html>"), path
    # The file that stdout is: written as stdout is, after what is there.
    with open(shared / "out", "wb") as out:
        out.write(b"before\n")
        out.flush()
        assert report(saved, "-o", "/dev/stdout", "-f", "html", stdout=out).code == 0
    assert (shared / "out").read_bytes().startswith(b"before\n") and is_report(shared / "out")
    read, write = os.pipe()
    with os.fdopen(read, "rb") as end:
        got = []
        reader = threading.Thread(target=lambda: got.append(end.read()))
        reader.start()
        run = report(saved, "-o", "/dev/fd/%d" % write, "-f", "html", pass_fds=[write])
        os.close(write)
        reader.join(SECONDS)
    assert run.code == 0 and got[0].rstrip().endswith(b"</html>")
    assert "Bad file descriptor" in refused(saved, "/dev/fd/0", stdin=open("/dev/null", "rb"))
    assert refused(saved, "/dev/fd/777")


def test_another_processes_pipe(small):
    """As in a container: -o /proc/1/fd/1."""
    with harness.started(["sleep", "60"], stdout=subprocess.PIPE) as process:
        written(small, "/proc/%d/fd/1" % process.pid, "-f", "json")
        process.terminate()
        assert process.stdout.read().strip()
    with harness.started(["sleep", "60"], stdout=subprocess.PIPE, user=OTHER, group=OTHER) as process:
        assert "belongs to user %d" % OTHER in refused(small, "/proc/%d/fd/1" % process.pid)


FLIPS = """
import os, sys
null, victim = os.open("/dev/null", os.O_WRONLY), os.open(sys.argv[1], os.O_WRONLY)
print("ready", flush=True)
while True:
    os.dup2(victim, 1)
    os.dup2(null, 1)
"""


def test_another_processes_descriptor_changes(small, victim):
    """A file there would be written into, instead of being replaced; it is not, also when it comes last."""
    refusals = 0
    with harness.started(["/usr/bin/python3", "-c", FLIPS, victim], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        for _ in range(60):
            run = report(small, "-o", "/proc/%d/fd/1" % process.pid, "-f", "json")
            assert run.code == 0 or "open file of another process" in one_sentence(run.err)
            refusals += run.code
            assert victim.read_bytes() == b"precious"
    assert 0 < refusals < 60, "%d: the file was not there, or only" % refusals


def test_own_descriptors(spinning):
    """Those that a run has for itself are nobody's place for output."""
    said = []
    for fd in range(3, 20):
        run = pybpf("-q", "-p", spinning.pid, "-d", 0.1, "-f", "json", "-o", "/dev/fd/%d" % fd, timeout=SECONDS)
        assert run.code == 1, fd
        said.append(one_sentence(run.err).rpartition(": ")[2])
    assert set(said) == {"Bad file descriptor", "No such file or directory"}, said


def test_terminal_and_null(small):
    keyboard, terminal = pty.openpty()
    try:
        written(small, os.ttyname(terminal), "-f", "json")
        assert select.select([keyboard], [], [], SECONDS)[0] and os.read(keyboard, 100)
    finally:
        os.close(keyboard)
        os.close(terminal)
    written(small, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# Owner and mode


@pytest.mark.parametrize("mask", [0, 0o022, 0o277])
def test_new_file_is_private(saved, place, mask):
    before = os.umask(mask)
    try:
        written(saved, place / "new.html")
    finally:
        os.umask(before)
    assert status(place / "new.html") == (0o600, 0, 0)


def test_files_of_a_run_are_private(spinning, place):
    run = pybpf("-p", spinning.pid, "-d", 0.1, "-o", place / "x.pybpf", "--json-stats", place / "x.json")
    assert run.code == 0, run.err
    assert status(place / "x.pybpf") == status(place / "x.json") == (0o600, 0, 0)


def test_new_file_of_who_called_sudo(saved, place, shared):
    own = owned(place / "own", CALLER, CALLER_GROUP, 0o700)
    written(saved, own / "new.html", sudo=True)
    assert status(own / "new.html") == (0o600, CALLER, CALLER_GROUP)
    for folder in (shared, place, owned(place / "other", OTHER)):
        written(saved, folder / "new.html", sudo=True)
        assert status(folder / "new.html") == (0o600, 0, 0)
    group = owned(place / "group", CALLER, 310009, 0o2775)
    written(saved, group / "new.html", sudo=True)
    assert status(group / "new.html") == (0o600, CALLER, 310009)
    # Not every text is a user.
    for uid, gid in (("", ""), ("-1", "-1"), ("0x4baf1", "1"), ("4294967295", "4294967295"), (str(CALLER), "x")):
        environment = dict(os.environ, SUDO_UID=uid, SUDO_GID=gid)
        run = pybpf("report", "-q", saved, "-o", own / "odd.html", env=environment, timeout=SECONDS)
        assert run.code == 0 and status(own / "odd.html") == (0o600, 0, 0), run.err
        (own / "odd.html").unlink()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444, 0o6755])
def test_old_file_keeps_owner_and_mode(saved, place, mode):
    own = owned(place / "own", OTHER)
    path = own / "old.html"
    path.write_bytes(b"old")
    os.chown(path, OTHER, CALLER_GROUP)
    path.chmod(mode)
    os.link(path, own / "hard link")
    for sudo in (False, True):
        written(saved, path, sudo=sudo)
        assert status(path) == (mode & 0o777, OTHER, CALLER_GROUP) and is_report(path)
    assert (own / "hard link").read_bytes() == b"old"


def acl(*entries):
    """linux/posix_acl_xattr.h: version 2, then tag, permissions, ID of each."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 0xFFFFFFFF
OWNER, USER, GROUP, MASK, REST = 1, 2, 4, 16, 32
ONE_READER = acl((OWNER, 6, NOBODY), (USER, 4, OTHER), (GROUP, 0, NOBODY), (MASK, 4, NOBODY), (REST, 0, NOBODY))
ALL_READ = acl((OWNER, 7, NOBODY), (USER, 7, OTHER), (GROUP, 7, NOBODY), (MASK, 7, NOBODY), (REST, 5, NOBODY))


def test_old_file_keeps_its_acl(saved, place):
    (place / "old.html").write_bytes(b"old")
    try:
        os.setxattr(place / "old.html", "system.posix_acl_access", ONE_READER)
    except OSError as error:
        pytest.skip("no ACL in /tmp: %s" % error)
    assert status(place / "old.html")[0] == 0o640
    written(saved, place / "old.html")
    assert os.getxattr(place / "old.html", "system.posix_acl_access") == ONE_READER
    assert status(place / "old.html")[0] == 0o640
    # What a folder gives its new files is for neither kind.
    (place / "plain.html").write_bytes(b"old")
    (place / "plain.html").chmod(0o640)
    os.setxattr(place, "system.posix_acl_default", ALL_READ)
    for path, mode in ((place / "plain.html", 0o640), (place / "new.html", 0o600)):
        written(saved, path)
        assert status(path)[0] == mode
        with contextlib.suppress(FileNotFoundError):
            run = subprocess.run(["cat", path], user=OTHER, group=OTHER, extra_groups=[], capture_output=True, check=False)
            assert run.returncode and not run.stdout


def test_planted_file(saved, shared):
    """It would keep its owner, who would read what root has seen."""
    run_as(OTHER, "touch", shared / "new.html")
    assert "belongs to user %d" % OTHER in refused(saved, shared / "new.html")
    assert (shared / "new.html").read_bytes() == b""
    run_as(CALLER, "touch", shared / "mine.html")
    written(saved, shared / "mine.html", sudo=True)
    assert status(shared / "mine.html")[1] == CALLER and is_report(shared / "mine.html")


@pytest.mark.parametrize("way", ["straight", "below", "from within", "by a link of root", "by /proc"])
def test_planted_folder(saved, place, shared, way):
    """A stranger's folder in a shared one: a file of his in it is as planted as one beside it."""
    folder = shared / "perf"
    run_as(OTHER, "mkdir", "-p", folder / "sub")
    for name in ("x.html", "sub/x.html"):
        run_as(OTHER, "sh", "-c", 'umask 0 && : >"$1"', "sh", folder / name)
    if way == "from within":
        for cwd, path in ((folder, "x.html"), (folder / "sub", "x.html"), (folder, "sub/../x.html")):
            assert "belongs to user %d" % OTHER in refused(saved, path, cwd=cwd)
    elif way == "by /proc":
        assert "belongs to user %d" % OTHER in refused(saved, "/proc/self/cwd/x.html", cwd=folder)
    else:
        (place / "link").symlink_to("shared/perf")
        path = {"straight": "x.html", "below": "sub/x.html"}.get(way)
        for sudo in (False, True):
            at = folder / path if path else place / "link" / "x.html"
            assert "belongs to user %d" % OTHER in refused(saved, at, sudo=sudo)
    assert (folder / "x.html").read_bytes() == (folder / "sub" / "x.html").read_bytes() == b""
    # What is new there is root's; so is what is replaced and root's.
    for _ in range(2):
        written(saved, folder / "new.html")
        assert status(folder / "new.html") == (0o600, 0, 0)


def test_home_beside_a_shared_folder(saved, place):
    """A user's file in his own folder keeps its owner, from wherever the path comes."""
    own, sub = owned(place / "own", OTHER), owned(place / "own" / "sub", OTHER)
    owned(own / "open", OTHER, mode=0o777)
    team = owned(owned(place / "own" / "team", OTHER, mode=0o2775) / "deeper", OTHER, mode=0o2775)
    for path in (own / "old.html", sub / "old.html", team / "old.html"):
        path.write_bytes(b"old")
        os.chown(path, OTHER, OTHER)
    for cwd, path in ((own, "old.html"), (sub, "old.html"), (sub, "../old.html"), (own, "open/../old.html"),
                      (place, "own/sub/old.html"), (team, "old.html"), (place, "own/team/deeper/old.html"), (own, "/proc/self/cwd/sub/old.html")):
        written(saved, path, cwd=cwd)
        assert status(Path(cwd, path) if "proc" not in path else sub / "old.html")[1] == OTHER


# Files that cannot be replaced: known before the run, not after it


def refused_at_once(spinning, path, words):
    """Nothing is begun that a run needs time for."""
    run = pybpf("-p", spinning.pid, "-d", 300, "-o", path, timeout=SECONDS)
    assert run.code == 1 and words in one_sentence(run.err)


def test_file_that_is_a_mount(saved, spinning, place):
    """As `docker run -v /host/x.html:/x.html` makes one."""
    (place / "outer.html").write_bytes(b"old")
    (place / "x.html").write_bytes(b"")
    done = subprocess.run(["mount", "--bind", place / "outer.html", place / "x.html"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("no file can be mounted here: %s" % done.stderr.decode().strip())
    try:
        refused_at_once(spinning, place / "x.html", "mount its folder")
        assert (place / "outer.html").read_bytes() == b"old"
        assert sorted(os.listdir(place)) == ["outer.html", "x.html"]
    finally:
        subprocess.run(["umount", place / "x.html"], check=True)
    written(saved, place / "x.html")


@pytest.mark.parametrize("flag", ["i", "a"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_file_that_must_stay(saved, spinning, place, flag, what):
    folder = place / "folder"
    folder.mkdir()
    (folder / "x.html").write_bytes(b"old")
    marked = folder if what == "folder" else folder / "x.html"
    done = subprocess.run(["chattr", "+" + flag, marked], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("chattr does nothing in /tmp: %s" % done.stderr.decode().strip())
    try:
        refused_at_once(spinning, folder / "x.html", "chattr" if (what, flag) != ("folder", "i") else "not permitted")
        assert (folder / "x.html").read_bytes() == b"old" and os.listdir(folder) == ["x.html"]
    finally:
        subprocess.run(["chattr", "-" + flag, marked], check=True)
    written(saved, folder / "x.html")


# Without root


def test_without_root(saved, place):
    """Others write where they may, and take no file from its owner."""
    readable = place / "in.pybpf"
    shutil.copy(saved, readable)
    readable.chmod(0o644)
    own = owned(place / "own", OTHER)
    ids = {"user": OTHER, "group": OTHER, "extra_groups": []}
    binary = place / "pybpf"
    shutil.copy(harness.PYBPF, binary)

    def run(path):
        return subprocess.run(
            [binary, "report", "-q", readable, "-o", path], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SECONDS, check=False, cwd="/", **ids
        )

    done = run(own / "new.html")
    assert done.returncode == 0, done.stderr
    assert status(own / "new.html") == (0o600, OTHER, OTHER)
    done = run(place / "new.html")
    assert done.returncode == 1 and "Permission denied" in one_sentence(done.stderr)
    (own / "roots.html").write_bytes(b"old")
    done = run(own / "roots.html")
    assert done.returncode == 1 and "belongs to user 0" in one_sentence(done.stderr)
    # A group that this user is not in: its members keep what everybody has.
    for before, after in ((0o644, 0o644), (0o640, 0o600), (0o604, 0o600), (0o664, 0o644)):
        path = own / ("%o.html" % before)
        path.write_bytes(b"old")
        os.chown(path, OTHER, CALLER_GROUP)
        path.chmod(before)
        assert run(path).returncode == 0
        assert status(path) == (after, OTHER, OTHER)


# One FILE for two things


def test_same_file_twice(spinning, place):
    old, other = place / "old.json", place / "hard.json"
    old.write_bytes(b"old")
    os.link(old, other)
    (place / "link.json").symlink_to("old.json")
    (place / "folder").symlink_to(".")
    pairs = [("new.json", "./new.json"), ("new.json", "folder/new.json"), ("old.json", "link.json"),
             ("old.json", "hard.json"), ("folder/../%s/new.json" % place.name, "new.json")]
    for first, second in pairs:
        run = pybpf("-p", spinning.pid, "-d", 0.1, "-o", place / first, "--json-stats", second, cwd=place)
        assert run.code == 2 and "same file" in one_sentence(run.err)
    assert old.read_bytes() == b"old" and not (place / "new.json").exists()
    run = pybpf("-p", spinning.pid, "-d", 0.1, "-q", "-o", "/dev/null", "-f", "json", "--json-stats", "/dev/null")
    assert run.code == 0, run.err
