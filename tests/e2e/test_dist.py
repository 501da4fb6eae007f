# SPDX-License-Identifier: Apache-2.0
"""What make dist makes, used from its file alone as its user would: pip, dpkg, tar, a container; the same bytes again."""

import email
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

import containers
import formats
import harness
import nameserver
import pythons
import receiver
import test_static
import test_systemd
from harness import PYBPF, TOP, total

sys.path[:0] = [str(TOP / "tests"), str(TOP / "tools/dist")]

import linked  # noqa: E402
import peers  # noqa: E402

BUILD = Path(PYBPF).resolve().parent
BUILD_LIMIT_S = 900
CONTAINER = "pybpf-dist-%d" % os.getpid()
SUITES = ("bookworm", "trixie", "sid")
EPOCH = "1700000000"
UNIT = "/usr/lib/systemd/system/pybpf-agent.service"
CLEAN = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "BUILD", "SOURCE_DATE_EPOCH")}


def make_dist(top, *options):
    done = subprocess.run(["make", "-s", "-j2", *map(str, options), "dist"], cwd=top, env={**CLEAN, "SOURCE_DATE_EPOCH": EPOCH},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_LIMIT_S)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def pack(folder, *options):
    """Packs the binary that make test-programs has linked."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("make dist makes packages on Debian")
    return make_dist(TOP, "-o", PYBPF, "-o", test_static.STATIC, "BUILD=%s" % BUILD, "DIST=%s" % folder, *options)


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    pack(folder)
    return folder


@pytest.fixture(scope="session")
def sdist(dist):
    return dist / ("pybpf-%s.tar.gz" % harness.pybpf("version").out.split()[1])


def only(dist, pattern):
    (path,) = dist.glob(pattern)
    return path


@pytest.fixture(scope="session")
def busy():
    with harness.target(harness.default_python(), "shares.py") as target:
        yield target


def run(argv, **options):
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, timeout=harness.PATIENCE, **options)
    assert done.returncode == 0, (argv, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def check_profile(folded):
    stacks = harness.parse(folded)
    assert total(stacks) > 0 and all(any(frame.name == "work" for frame in stack) for stack, _ in stacks)


def test_sums(dist):
    rows = [row.split("  ") for row in (dist / "SHA256SUMS").read_text().splitlines()]
    assert {name for _, name in rows} == {path.name for path in dist.iterdir()} - {"pybpf-stage", "SHA256SUMS"}
    for digest, name in rows:
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest


def test_same_bytes_from_another_folder(dist, sdist, tmp_path):
    """The sources' own archive, built elsewhere, makes every artefact again, and itself."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "another-folder")
    (top,) = (tmp_path / "another-folder").iterdir()
    flags = (BUILD / "flags").read_text(encoding="utf-8")
    make_dist(top, *(["WERROR=1"] if "-Werror" in flags else []))
    there = (top / "build/flags").read_text(encoding="utf-8").replace(str(top), str(TOP))
    if there != flags:
        pytest.skip("%s was made with other options than make has here: nothing to compare with" % PYBPF)
    assert (top / "build/dist/SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()


def test_times_and_owners(dist):
    """Nothing of the builder: one time, root."""
    for path in dist.glob("*.tar*"):
        with tarfile.open(path) as archive:
            for member in archive:
                assert (member.mtime, member.uid, member.gid, member.uname) == (int(EPOCH), 0, 0, ""), (path, member.name)


def check_paths(folder, program):
    """No file that is packed, which compression would hide it in, names a folder of the builder; nor does what strip leaves only in the build-id."""
    words = "|".join(re.escape(str(place)) for place in (TOP, BUILD, Path.home(), pythons.cache(), folder) if len(place.parts) > 1)
    files = [path for path in (folder / "pybpf-stage").rglob("*") if path.is_file()]
    assert folder / "pybpf-stage/usr/bin/pybpf" in files
    for path in [program, *files]:
        # /proc/PID/root is a folder of any process.
        assert re.findall(rb"(?<![\w%])(?:" + words.encode() + rb")/.{,40}", path.read_bytes()) == [], path


def test_no_path_of_the_builder(dist):
    check_paths(dist, test_static.STATIC)


def test_files_of_others_stay(tmp_path):
    """DIST may be a folder that has something else in it; what an older version has made is replaced."""
    for name in ("notes", "stage/notes", "pybpf-sources/notes", "pybpf-sources.zip"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("not of make dist")
    for name in ("pybpf-0.0.9-x86_64.spdx.json", "pybpf_0.0.9-1_amd64.deb", "pybpf-0.0.9.tar.gz", "pybpf-0.0.9-image-amd64.tar"):
        (tmp_path / name).touch()
    before = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file() and "0.0.9" not in path.name}
    pack(tmp_path, "ARTEFACTS=sbom")
    after = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    (made,) = tmp_path.glob("*.spdx.json")
    assert before == {path for path in after if path.parts[0] != "pybpf-stage"} - {Path("SHA256SUMS"), made.relative_to(tmp_path)}


def test_maintainer(tmp_path):
    """One who is not named is missed; the package has the name."""
    assert "the packages have no maintainer; make dist MAINTAINER=" in pack(tmp_path, "ARTEFACTS=deb")
    assert "no maintainer" not in pack(tmp_path, "ARTEFACTS=deb", "MAINTAINER=A Person <person@site.example>")
    assert run(["dpkg-deb", "-f", only(tmp_path, "*.deb"), "Maintainer"]) == "A Person <person@site.example>\n"


@pytest.mark.parametrize("question", ["import sdist; print(sdist.sources())", "import artefact; print(artefact.epoch())"])
@pytest.mark.parametrize("how, says", [("other owner", "dubious ownership"), ("no git", "git, which is not installed"), ("broken", "not a git repository")])
def test_git_that_fails(tmp_path, question, how, says):
    """Where the sources are of git, nothing else is taken for what it does not say."""
    environment = {key: value for key, value in CLEAN.items() if not key.startswith("GIT_")}
    shutil.copytree(TOP / "tools/dist", tmp_path / "tools/dist")
    (tmp_path / "Makefile").touch()
    run(["git", "init", "-q", tmp_path], env=environment)
    if how == "other owner":
        environment["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
    elif how == "no git":
        environment["PATH"] = str(tmp_path)
    else:
        (tmp_path / ".git/HEAD").unlink()
        environment["GIT_CEILING_DIRECTORIES"] = str(tmp_path.parent)
    done = subprocess.run([sys.executable, "-B", "-c", question], cwd=tmp_path / "tools/dist", env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "" and says in done.stderr and "Traceback" not in done.stderr, done


def test_tarball(dist, tmp_path, busy):
    with tarfile.open(only(dist, "*-linux-*.tar.gz")) as archive:
        archive.extractall(tmp_path)
    (top,) = tmp_path.iterdir()
    assert top.name == "pybpf-%s-linux-%s" % (harness.pybpf("version").out.split()[1], platform.machine())
    check_profile(run([top / "bin/pybpf", "-p", busy.pid, "-d", 1]))
    assert {"bin", "lib", "share", "licences", "sbom.spdx.json", "README.md"} == {path.name for path in top.iterdir()}
    assert b"GNU LESSER GENERAL PUBLIC LICENSE" in b"".join(path.read_bytes() for path in (top / "licences").iterdir())
    # The licence of a library that pybpf builds itself names its sources.
    for name in ("curl", "libmicrohttpd"):
        assert re.search(rb"the source package %s [0-9]\S+ of Debian" % name.encode(), (top / "licences" / name).read_bytes())


def test_bill_of_materials(dist):
    """Every library that the binary says it has is in it, with a version and a licence; and what no version is told of."""
    document = json.loads(only(dist, "*.spdx.json").read_text())
    packages = {package["name"]: package for package in document["packages"]}
    assert document["spdxVersion"] == "SPDX-2.3" and document["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
    linked = {row[0] for row in (line.split() for line in run([test_static.STATIC, "version", "-v"]).splitlines()[1:])}
    sources = {"libelf": "elfutils", "liblzma": "xz-utils", "libyaml-0": "libyaml"}
    assert {sources.get(name, name) for name in linked} < set(packages)
    assert {"glibc", "xz-utils", "bzip2"} < set(packages) and packages["libmicrohttpd"]["licenseConcluded"] == "LGPL-2.1-or-later"
    for package in packages.values():
        assert package["licenseConcluded"] not in ("", "NOASSERTION") and package["versionInfo"][:1].isdigit()
    related = {row["relatedSpdxElement"] for row in document["relationships"] if row["relationshipType"] in ("STATIC_LINK", "CONTAINS")}
    assert related == {package["SPDXID"] for package in packages.values()} - {"SPDXRef-pybpf"}
    # By the name and version of its sources: what says which vulnerabilities are known.
    (compiler,) = {name for name in packages if name.startswith("gcc")}
    source, version = run(["dpkg-query", "-W", "-f", "${source:Package}\n${source:Version}", "libgcc-%s-dev" % compiler.rpartition("-")[2]]).split()
    assert (compiler, packages[compiler]["versionInfo"]) == (source, version)
    assert purls(packages[compiler]) == ["pkg:deb/debian/%s@%s?arch=source" % (source, version.replace("+", "%2B"))]


def purls(package):
    return [row["referenceLocator"] for row in package["externalRefs"] if row["referenceType"] == "purl"]


def test_what_the_page_has_in_it(dist):
    """The HTML report's: each package of npm by the lock file that it was made with, with the text of its licence."""
    packages = {package["name"]: package for package in json.loads(only(dist, "*.spdx.json").read_text())["packages"]}
    locked = json.loads((TOP / "tools/html/package-lock.json").read_text())["packages"]
    with tarfile.open(only(dist, "*-linux-*.tar.gz")) as archive:
        texts = {Path(member.name).name: archive.extractfile(member).read().decode() for member in archive if "/licences/" in member.name}
    for name, holder in (("preact", "Jason Miller"), ("d3-array", "Mike Bostock")):
        known = locked["node_modules/" + name]
        assert (packages[name]["versionInfo"], packages[name]["licenseConcluded"]) == (known["version"], known["license"])
        assert purls(packages[name]) == ["pkg:npm/%s@%s" % (name, known["version"])]
        assert holder in texts[name] and "WARRANTIES" in texts[name] and texts[name].count("Copyright") == 1


@pytest.mark.parametrize("version, licence", [("5.4.1-1", "LicenseRef-Public-Domain"), ("5.6.0-0.1", "0BSD"), ("5.8.1-1", "0BSD"), ("5.10.0-1", "0BSD")])
def test_licence_of_liblzma(version, licence):
    """Version 5.6.0 has the licence 0BSD in place of the public domain."""
    assert linked.licence("xz-utils", version) == licence


# The wheel


def pip():
    """A pip that any Python can run: that of a Python's ensurepip."""
    found = sorted(Path.home().glob(".pyenv/versions/*/lib/python3*/ensurepip/_bundled/pip-*.whl"),
                   key=lambda path: [int(part) for part in re.findall(r"\d+", path.name.split("-")[1])])
    found = found or sorted(Path("/usr/share/python-wheels").glob("pip-*.whl"))
    if not found:
        pytest.skip("no Python here has pip's wheel in its ensurepip")
    return found[-1]


def wheel_pythons():
    found = [one for one in pythons.interpreters() if one.version >= (3, 8) and one.kind in ("shared", "static", "free-threaded")]
    # The last pip of a Python here knows no newer Python than this.
    return [one for one in found if "musl" not in one.name and "pie" not in one.name and one.version < (3, 15)]


@pytest.mark.parametrize("interpreter", wheel_pythons(), ids=lambda one: one.name)
def test_wheel_by_pip(dist, interpreter, busy):
    """Into an environment of its own; the script, and python -m pybpf."""
    place = Path(tempfile.mkdtemp(dir=interpreter.root and interpreter.root + "/tmp"))
    inside = "/tmp/" + place.name if interpreter.root else str(place)
    try:
        for file in (only(dist, "*.whl"), pip()):
            shutil.copy(file, place)
        wheel, installer = ("%s/%s" % (inside, path.name) for path in (only(dist, "*.whl"), pip()))
        run([*interpreter.argv, "-m", "venv", "--without-pip", inside + "/v"])
        python = [*interpreter.argv[:-1], inside + "/v/bin/python"]
        enter = ["env", "PYTHONPATH=" + installer]
        install = [*python[:-1], *enter, python[-1], "-m", "pip", "install", "--no-index", "--disable-pip-version-check", "--no-cache-dir", wheel]
        run(install)
        version = harness.pybpf("version").out.strip() + " (static)\n"
        assert run([*python[:-1], inside + "/v/bin/pybpf", "version"]) == version
        assert run([*python, "-m", "pybpf", "version"]) == version
        assert (place / "v/share/man/man1/pybpf-record.1").exists()
        if not interpreter.root:
            check_profile(run([*python, "-m", "pybpf", "-p", busy.pid, "-d", 1]))
            told = run([place / "v/bin/pybpf", "doctor"])
            assert "sudo %s/v/bin/pybpf" % place in told
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("tag, version", [("musllinux_1_1", "3.8"), ("musllinux_1_1", "3.15"), ("manylinux_2_17", "3.15")])
def test_wheel_elsewhere(dist, tmp_path, tag, version):
    """pip takes it for other C libraries and Pythons than there are here. --target has a layout of its own."""
    run([sys.executable, "-m", "pip", "install", "--no-index", "--platform", "%s_%s" % (tag, platform.machine()), "--python-version", version,
         "--only-binary", ":all:", "--target", tmp_path, only(dist, "*.whl")], env={**os.environ, "PYTHONPATH": str(pip())})
    out = run([sys.executable, "-m", "pybpf", "version"], env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert out.endswith("(static)\n")


def installer(name):
    try:
        return peers.installers() / name
    except peers.Missing as missing:
        pytest.skip(str(missing))


def test_wheel_by_uvx(dist, tmp_path):
    environment = {**os.environ, "UV_CACHE_DIR": str(tmp_path), "UV_OFFLINE": "1", "UV_PYTHON_DOWNLOADS": "never"}
    out = run([installer("uvx"), "--from", only(dist, "*.whl"), "pybpf", "version"], env=environment)
    assert out == harness.pybpf("version").out.strip() + " (static)\n"


def uv(place, inside, enter, *words):
    """Without network. inside: what place is called in the root that enter enters."""
    environment = ["env", "UV_CACHE_DIR=%s/cache" % inside, "UV_OFFLINE=1", "UV_PYTHON_DOWNLOADS=never", "HOME=" + inside]
    if not (place / "uv").exists():
        shutil.copy(installer("uv"), place)
    run([*enter, *environment, inside + "/uv", *words])


def test_wheel_by_uv(dist):
    """Into an environment of a Python that no pip here knows."""
    python = next((one for one in pythons.interpreters() if one.name == "sid-python3.15"), None)
    if not python:
        pytest.skip("there is no Python 3.15 of sid here: tools/setup-pythons sid makes it")
    place = Path(tempfile.mkdtemp(dir=python.root + "/tmp"))
    inside, enter = "/tmp/" + place.name, python.argv[:-1]
    try:
        wheel = shutil.copy(only(dist, "*.whl"), place)
        uv(place, inside, enter, "venv", "--python", python.argv[-1], inside + "/v")
        uv(place, inside, enter, "pip", "install", "--python", inside + "/v", "%s/%s" % (inside, Path(wheel).name))
        for argv in ([inside + "/v/bin/pybpf"], [inside + "/v/bin/python", "-m", "pybpf"]):
            assert run([*enter, *argv, "version"]) == harness.pybpf("version").out.strip() + " (static)\n"
    finally:
        shutil.rmtree(place)


def test_wheel_by_uv_for_musl(dist, tmp_path):
    """Into a folder: the Python here that has musl is without the modules that uv, pip and python -m pybpf import."""
    uv(tmp_path, str(tmp_path), [], "pip", "install", "--python", sys.executable, "--target", tmp_path / "v",
       "--python-platform", platform.machine() + "-unknown-linux-musl", only(dist, "*.whl"))
    assert run([tmp_path / "v/bin/pybpf", "version"]) == harness.pybpf("version").out.strip() + " (static)\n"


def test_wheel_by_auditwheel(dist):
    out = " ".join(run([installer("auditwheel"), "show", only(dist, "*.whl")]).split())
    assert "The wheel requires no external shared libraries" in out and "no external versioned symbols" in out


def test_wheel_is_whole(dist):
    """What pip checks only in part: each file with its hash, and the tags that its name has."""
    path = only(dist, "*.whl")
    with zipfile.ZipFile(path) as archive:
        (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        rows = [row.rsplit(",", 2) for row in archive.read(info + "/RECORD").decode().splitlines()]
        assert {row[0] for row in rows} == set(archive.namelist())
        metadata = email.message_from_bytes(archive.read(info + "/METADATA"))
        tags = email.message_from_bytes(archive.read(info + "/WHEEL")).get_all("Tag")
    assert metadata["Name"] == "pybpf" and metadata["Requires-Python"] == ">=3.8"
    assert {tag.rpartition("-")[2] for tag in tags} == set(path.name[:-len(".whl")].rpartition("-")[2].split("."))


def test_sdist_by_pip(sdist, tmp_path):
    """It builds from source, with the compilers of this machine."""
    run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"])
    environment = {**CLEAN, "PYTHONPATH": str(pip()), "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run([tmp_path / "v/bin/python", "-m", "pip", "install", "--no-index", "--disable-pip-version-check", sdist],
                          env=environment, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
    assert done.returncode == 0, done.stdout[-4000:]
    assert run([tmp_path / "v/bin/python", "-m", "pybpf", "version"]) == harness.pybpf("version").out.strip() + " (static)\n"


# Debian's package

INSTALL = """
set -e
root=$1; over=$2; shift 2
mount --make-rprivate /
mkdir $over/upper $over/work $over/root
mount -t overlay overlay -o lowerdir=$root,upperdir=$over/upper,workdir=$over/work $over/root
cp $over/*.deb $over/root/pybpf.deb
for folder in proc sys dev; do mount --rbind /$folder $over/root/$folder; done
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 chroot $over/root /bin/sh -ec "$@"
"""


def debian(suite):
    """A root with what is essential, and dpkg; made once."""
    cache = Path(os.environ.get("PYBPF_TEST_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pybpf-tests")
    root = cache / "roots-dist" / suite
    if not root.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        making = tempfile.mkdtemp(dir=root.parent)
        # A mirror that is a snapshot may be older than its Release file allows.
        options = ["--mode=root", "--variant=essential", "--quiet", '--aptopt=Acquire::Check-Valid-Until "false"']
        mirror = os.environ.get("PYBPF_DEBIAN_MIRROR", "http://deb.debian.org/debian")
        done = subprocess.run(["mmdebstrap", *options, suite, making, mirror], capture_output=True, text=True, timeout=BUILD_LIMIT_S)
        if done.returncode:
            shutil.rmtree(making)
            pytest.skip("no root of %s could be made: %s" % (suite, done.stderr.strip()[-300:]))
        os.rename(making, root)
    return root


@pytest.mark.skipif(not shutil.which("mmdebstrap"), reason="mmdebstrap is not installed; tools/install-deps --test installs it")
@pytest.mark.parametrize("suite", SUITES)
def test_deb_in_a_clean_root(dist, suite, busy):
    root = debian(suite)
    over = Path(tempfile.mkdtemp(dir=root.parent))
    try:
        shutil.copy(only(dist, "*.deb"), over)
        steps = ("dpkg -i /pybpf.deb >/dev/null; pybpf doctor >/doctor; cat /doctor; echo ====; pybpf -q -p %d -d 1; echo ====; "
                 "pybpf ps -p %d; test -e %s; dpkg -r pybpf >/dev/null; test ! -e /usr/bin/pybpf; test ! -e %s" % (busy.pid, busy.pid, UNIT, UNIT))
        doctor, folded, _ = run(["unshare", "--mount", "sh", "-c", INSTALL, "install", root, over, steps]).split("====\n")
        assert "the main job can run: sudo pybpf -p PID" in doctor
        check_profile(folded)
    finally:
        shutil.rmtree(over)


def deb_files(path):
    """Name -> content."""
    packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}


def test_deb_has_the_licences(dist):
    """Those that Debian has no copy of, with the name by which the file of copyrights refers to it."""
    files = deb_files(only(dist, "*.deb"))
    named = "/usr/share/doc/pybpf/licences/pybpf-bpf.BSD-2-Clause"
    assert files["." + named] == (TOP / "bpf/LICENSE.BSD-2-Clause").read_bytes() and named in files["./usr/share/doc/pybpf/copyright"].decode()
    assert {"preact", "d3-array"} < {Path(name).name for name in files if "/licences/" in name}


MANAGERS = {
    "deb": (["sh", "-c", "mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates && touch /var/lib/dpkg/status"], ["dpkg", "-i"], ["dpkg", "-P", "pybpf"]),
    "rpm": (["rpm", "--initdb"], ["rpm", "-U", "--oldpackage"], ["rpm", "-e", "pybpf"]),
}


@pytest.fixture(scope="module")
def older(dist, tmp_path_factory):
    """Packages of the same program, for what their managers take for another version."""
    folder = tmp_path_factory.mktemp("older")
    pack(folder, "VERSION=0.0.9", "ARTEFACTS=deb rpm")
    return folder


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root")
@pytest.mark.skipif(not os.path.exists(test_systemd.SYSTEMD), reason="%s is not installed" % test_systemd.SYSTEMD)
@pytest.mark.parametrize("kind", MANAGERS)
def test_package_with_systemd(dist, older, tmp_path, kind):
    """A new version is what runs, if one has run before; nothing runs or is enabled when the package is gone."""
    prepare, install, remove = MANAGERS[kind]
    if not shutil.which(install[0]):
        pytest.skip("%s is not installed; tools/install-deps --test installs it" % install[0])

    def write(folder):
        test_systemd.write_settings(folder)
        shutil.copy(only(dist, "*." + kind), folder / "new")
        shutil.copy(only(older, "*." + kind), folder / "old")
        # That of a container's image forbids to start and stop services.
        (folder / "usr/sbin").mkdir(parents=True)
        (folder / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\n")
        (folder / "usr/sbin/policy-rc.d").chmod(0o755)

    with test_systemd.booted(tmp_path, write) as systemd:
        def do(*words):
            code, told = systemd.run(*words)
            assert code == 0, (words, told)

        do(*prepare)
        do(*install, "/old")
        do(*install, "/new")
        assert (systemd.show("LoadState"), systemd.show("ActiveState")) == ("loaded", "inactive")
        systemd.control("enable", test_systemd.AGENT)
        systemd.control("start", test_systemd.AGENT)
        before = systemd.show("MainPID")
        do(*install, "/old")
        after = systemd.show("MainPID")
        assert systemd.show("SubState") == "running" and after not in (before, "0")
        assert systemd.run("readlink", "/proc/%s/exe" % after)[1] == "/usr/bin/pybpf\n"
        do(*remove)
        assert (systemd.show("LoadState"), systemd.show("ActiveState")) == ("not-found", "inactive")
        assert systemd.run("test", "-e", "/proc/" + after)[0] == 1
        assert systemd.run("find", "/etc/systemd/system", "-name", "pybpf-agent.service")[1] == ""


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed; tools/install-deps --test installs it")
def test_deb_by_lintian(dist):
    done = subprocess.run(["lintian", "--fail-on", "error", only(dist, "*.deb")], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0 and not re.search(r"^E:", done.stdout, re.M), done.stdout


# For arm64, made on another machine


@pytest.fixture(scope="module")
def arm64(tmp_path_factory):
    cache = Path(os.environ.get("PYBPF_TEST_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pybpf-tests")
    if platform.machine() != "x86_64" or not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("nothing is built for arm64 here; tools/install-deps --arm64 installs what it takes")
    if not (cache / "arm64-bookworm/usr/lib/aarch64-linux-gnu/libcares.a").exists():
        pytest.skip("no libraries of arm64: tools/setup-pythons arm64-bookworm fetches them")
    folder = tmp_path_factory.mktemp("arm64")
    flags = (BUILD / "flags").read_text(encoding="utf-8")
    make_dist(TOP, "ARCH=arm64", "BUILD=%s" % (BUILD / "arm64"), "DIST=%s" % folder, *(["WERROR=1"] if "-Werror" in flags else []))
    return folder


def check_arm64(binary):
    """A position-independent program of arm64 (ET_DYN, EM_AARCH64) that names no loader (PT_INTERP)."""
    assert binary[:6] == b"\x7fELF\x02\x01" and struct.unpack_from("<HH", binary, 16) == (3, 183)
    (start,), (size, count) = struct.unpack_from("<Q", binary, 32), struct.unpack_from("<HH", binary, 54)
    kinds = [struct.unpack_from("<I", binary, start + index * size)[0] for index in range(count)]
    assert 1 in kinds and 3 not in kinds


def test_arm64_packages(arm64):
    """Each holds the same program, for this machine by its name and by what it says of itself."""
    with tarfile.open(only(arm64, "*-linux-aarch64.tar.gz")) as archive:
        (member,) = [one for one in archive if one.name.endswith("/bin/pybpf")]
        binary = archive.extractfile(member).read()
    check_arm64(binary)
    with zipfile.ZipFile(only(arm64, "*-manylinux_2_17_aarch64.musllinux_1_1_aarch64.whl")) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".data/scripts/pybpf")]
        assert archive.read(name) == binary
    assert run(["dpkg-deb", "-f", only(arm64, "*_arm64.deb"), "Architecture"]) == "arm64\n"
    assert deb_files(only(arm64, "*_arm64.deb"))["./usr/bin/pybpf"] == binary
    assert run(["rpm", "-qp", "--qf", "%{ARCH} %{OS}", only(arm64, "*.aarch64.rpm")]) == "aarch64 linux"


def test_arm64_image(arm64, tmp_path):
    config = unpack_image(only(arm64, "*-image-arm64.tar"), tmp_path)
    assert (config["architecture"], config["os"]) == ("arm64", "linux")
    check_arm64((tmp_path / "pybpf").read_bytes())


def test_arm64_bill_of_materials(arm64):
    """The libraries of arm64's root, not those of this machine; the compiler's with the version of its sources."""
    document = json.loads(only(arm64, "*-aarch64.spdx.json").read_text())
    packages = {package["name"]: package["versionInfo"] for package in document["packages"]}
    assert {"glibc", "gcc-12", "elfutils", "libbpf", "ncurses", "curl", "openssl", "c-ares", "libmicrohttpd"} < set(packages)
    assert re.match(r"12\.\d", packages["gcc-12"]), packages


def test_arm64_has_no_path_of_the_builder(arm64):
    check_paths(arm64, BUILD / "arm64/pybpf-static")


needs_qemu = pytest.mark.skipif(not shutil.which("qemu-aarch64-static"),
                                reason="qemu-aarch64-static is not installed; tools/install-deps --arm64 installs it")


@needs_qemu
def test_arm64_starts(arm64, tmp_path):
    unpack_image(only(arm64, "*-image-arm64.tar"), tmp_path)
    assert run(["qemu-aarch64-static", tmp_path / "pybpf", "version"]) == harness.pybpf("version").out.strip() + " (static)\n"


@needs_qemu
def test_arm64_sends(arm64, tmp_path):
    unpack_image(only(arm64, "*-image-arm64.tar"), tmp_path)
    paths, saved = receiver.certificate(tmp_path), formats.made(tmp_path) / "recursive.pybpf"
    with receiver.receiving(context=receiver.server_context(paths)) as it:
        run(["qemu-aarch64-static", tmp_path / "pybpf", "report", saved, "-o", it.url, "--http-ca", paths[0]])
    (request,) = it.requests
    assert b"cpython" in gzip.decompress(request.body)


# The rpm


@pytest.mark.skipif(not shutil.which("rpm"), reason="rpm is not installed; tools/install-deps --test installs it")
def test_rpm_in_a_root(dist, tmp_path, busy):
    """Into an empty root, where no dependency could be met; checked, used and removed."""
    rpm = ["rpm", "--root", tmp_path, "--define", "_dbpath /var/lib/rpm"]
    run([*rpm, "--initdb"])
    run([*rpm, "-i", only(dist, "*.rpm")])
    run([*rpm, "-V", "pybpf"])
    check_profile(run([tmp_path / "usr/bin/pybpf", "-p", busy.pid, "-d", 1]))
    assert {"/usr/share/man/man1/pybpf-record.1", UNIT} < set(run([*rpm, "-ql", "pybpf"]).splitlines())
    run([*rpm, "-e", "pybpf"])
    assert not (tmp_path / "usr/bin/pybpf").exists()
    told = run(["rpm", "-qp", "--qf", "%{BUILDHOST} %{BUILDTIME} %{LICENSE}", only(dist, "*.rpm")])
    assert told.startswith("localhost %s Apache-2.0" % EPOCH)


# The image


def unpack_image(path, folder):
    """As a runtime does, by digest. Returns the image's configuration."""
    with tarfile.open(path) as archive:
        def blob(digest):
            content = archive.extractfile("blobs/sha256/" + digest.partition(":")[2]).read()
            assert "sha256:" + hashlib.sha256(content).hexdigest() == digest
            return content

        index = json.load(archive.extractfile("index.json"))
        manifest = json.loads(blob(index["manifests"][0]["digest"]))
        config = json.loads(blob(manifest["config"]["digest"]))
        layer = gzip.decompress(blob(manifest["layers"][0]["digest"]))
        (old,) = json.load(archive.extractfile("manifest.json"))
        assert old["Layers"] == ["blobs/sha256/" + manifest["layers"][0]["digest"].partition(":")[2]]
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()]
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        archive.extractall(folder)
    return config


def write_bundle(dist, folder, arguments, capabilities, mounts=(), no_new_privileges=True):
    """For runc: on a root that is read-only, with the host's processes and no more than these rights."""
    (folder / "rootfs").mkdir()
    image = unpack_image(only(dist, "*-image-*.tar"), folder / "rootfs")
    for mount in mounts:
        (folder / "rootfs" / mount["destination"].lstrip("/")).mkdir(parents=True, exist_ok=True)
    run(["runc", "spec"], cwd=folder)
    config = json.loads((folder / "config.json").read_text())
    config["process"].update(terminal=False, args=[*image["config"]["Entrypoint"], *map(str, arguments)],
                             capabilities={kind: ["CAP_" + name for name in capabilities] for kind in ("bounding", "effective", "permitted")})
    config["linux"]["namespaces"] = [one for one in config["linux"]["namespaces"] if one["type"] in ("mount", "ipc", "uts")]
    places = {mount["destination"] for mount in mounts}
    config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] not in places] + list(mounts)
    config["linux"]["seccomp"] = json.loads((TOP / "docs/seccomp.json").read_text())
    # Without it runc has the filter before it has given up its own rights.
    config["process"]["noNewPrivileges"] = no_new_privileges
    assert config["root"]["readonly"]
    (folder / "config.json").write_text(json.dumps(config))


def run_image(dist, folder, *arguments, **options):
    write_bundle(dist, folder, *arguments, **options)
    return run(["runc", "run", CONTAINER], cwd=folder)


needs_runc = pytest.mark.skipif(not shutil.which("runc"), reason="runc is not installed; tools/install-deps --test installs it")


TRACEFS = {"destination": "/sys/kernel/tracing", "type": "bind", "source": harness.TRACEFS, "options": ["rbind", "ro"]}


@needs_runc
@pytest.mark.parametrize("arguments, shows", [
    (["-p", "PID", "-d", 1], r"work \(shares\.py"),
    (["-p", "PID", "-d", 1, "--mode=wall", "--threads", "-f", "json"], "shares.py"),
    (["-p", "PID", "-d", 1, "--mode=gil", "--async", "--stats"], ""),
    (["-p", "PID", "-d", 1, "--event=tracepoint:sched:sched_switch", "--kernel"], ""),
    (["--all", "-d", 1, "--by=container"], r"\[host\]"),
    (["ps", "-p", "PID"], "shares.py"),
    (["dump", "-p", "PID", "--locals"], "Process PID"),
    (["dump", "-p", "PID", "--native"], r"^  C "),
    (["top", "-p", "PID", "--output", "jsonl", "-d", 1], '"functions"'),
    (["doctor"], "the main job can run"),
], ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value)))
def test_image_with_few_rights(dist, tmp_path, busy, arguments, shows):
    """Three capabilities, and the system calls of docs/seccomp.json."""
    words = [str(busy.pid) if word == "PID" else word for word in arguments]
    out = run_image(dist, tmp_path, words, ["BPF", "PERFMON", "SYS_PTRACE"], [TRACEFS])
    assert re.search(shows.replace("PID", str(busy.pid)), out, re.M), out


@needs_runc
def test_image_sends_and_serves(dist, tmp_path, busy):
    """An agent of the image, with the capabilities to become a user without rights, too: names by resolv.conf, TLS by the certificates of a mounted folder."""
    etc, port = tmp_path / "etc", harness.free_port()
    (etc / "ssl/certs").mkdir(parents=True)
    (etc / "resolv.conf").write_text("nameserver %s\n" % nameserver.ADDRESS)
    paths = receiver.certificate(tmp_path, nameserver.NAME)
    shutil.copy(paths[0], etc / "ssl/certs/ca-certificates.crt")
    mounts = [{"destination": "/etc", "type": "bind", "source": str(etc), "options": ["rbind", "ro"]}]
    (tmp_path / "bundle").mkdir()
    with receiver.receiving(context=receiver.server_context(paths)) as it, nameserver.answering(), ThreadPoolExecutor(1) as other:
        arguments = ["agent", "-p", busy.pid, "--epoch", "1s", "--otlp", "https://%s:%d" % (nameserver.NAME, it.server.server_port),
                     "--listen", "127.0.0.1:%d" % port]
        running = other.submit(run_image, dist, tmp_path / "bundle", arguments, ["BPF", "PERFMON", "SYS_PTRACE", "SETUID", "SETGID"], mounts)
        try:
            harness.wait_for(lambda: it.requests or running.done())
            assert not running.done(), running.result()
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=harness.PATIENCE) as answer:
                assert b"pybpf_requests_sent_total" in answer.read()
        finally:
            subprocess.run(["runc", "kill", CONTAINER, "TERM"], check=False)
        running.result()
    assert all(b"cpython" in gzip.decompress(request.body) for request in it.requests)


@needs_runc
def test_image_as_docker_runs_it(dist, tmp_path, busy):
    check_profile(run_image(dist, tmp_path, ["-p", busy.pid, "-d", 1], ["BPF", "PERFMON", "SYS_PTRACE"], no_new_privileges=False))


def test_seccomp_profile_has_what_runs_need():
    """Each call that pybpf allows itself later is one that its container may have allowed it."""
    named = set(re.findall(r"\{SYS_(\w+)", (TOP / "user/rights/filter.c").read_text()))
    (allowed,) = json.loads((TOP / "docs/seccomp.json").read_text())["syscalls"]
    assert len(named) > 50 and named <= set(allowed["names"]) and allowed["names"] == sorted(set(allowed["names"]))
    assert not {"mount", "init_module", "reboot", "kexec_load", "unshare", "keyctl"} & set(allowed["names"])


def manifest():
    """The DaemonSet of the page, and its container."""
    text = (TOP / "docs/containers.md").read_text(encoding="utf-8")
    found = yaml.safe_load("\n".join(re.search(r"^(?:    .*\n)+", text[text.index("    apiVersion: "):], re.M).group().splitlines()))
    return found, found["spec"]["template"]["spec"]["containers"][0]


def conforms(document):
    try:
        command = peers.kubeconform()
    except peers.Missing as missing:
        pytest.skip(str(missing))
    done = subprocess.run(command, input=yaml.safe_dump(document), capture_output=True, text=True, timeout=harness.PATIENCE)
    return done.returncode == 0, done.stdout + done.stderr


def test_daemon_set_by_schema():
    """That of Kubernetes 1.30; what it would refuse is found."""
    found, container = manifest()
    good, told = conforms(found)
    assert good, told
    container["securityContext"]["capabilities"]["add"] = "BPF"
    good, told = conforms(found)
    assert not good and "expected array" in told
    found, _ = manifest()
    found["spec"]["template"]["spec"]["hostPid"] = True
    good, told = conforms(found)
    assert not good and "'hostPid' not allowed" in told


def mounts_of(pod, places):
    """A container's mounts. places: the folders that stand for volumes, by their names."""
    sources = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    sources.update(places)
    return [{"destination": mount["mountPath"], "type": "bind", "source": str(sources[mount["name"]]),
             "options": ["rbind", "ro" if mount.get("readOnly") else "rw"]} for mount in pod["containers"][0]["volumeMounts"]]


def check_rights(pod):
    """Those that runc is told of otherwise than by the manifest. Returns the capabilities."""
    (container,) = pod["containers"]
    assert pod["hostPID"] and container["image"] == "pybpf:" + harness.pybpf("version").out.split()[1]
    rights = container["securityContext"]
    assert rights["capabilities"]["drop"] == ["ALL"] and rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"]
    assert rights["seccompProfile"] == {"type": "Localhost", "localhostProfile": "pybpf.json"}
    return rights["capabilities"]["add"]


@needs_runc
def test_daemon_set(dist, tmp_path):
    """Run as it says, on this machine: profiles of all processes, with the names of containers."""
    if containers.why_not():
        pytest.skip(containers.why_not())
    found, container = manifest()
    pod = found["spec"]["template"]["spec"]
    rights = check_rights(pod)
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    arguments = ["2" if word == "3600" else word for word in container["args"]]
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    with containers.container("fleet", containers.command("spin.py")) as one:
        run_image(dist, bundle, arguments, rights, mounts_of(pod, {"profiles": profiles}))
    roots = {stack[0].text for stack, _ in harness.parse((profiles / "last.folded").read_text())}
    assert one.id in roots, roots


def agent_manifest(replace=lambda text: text):
    """docs/pybpf-agent.yaml: its documents by kind."""
    text = (TOP / "docs/pybpf-agent.yaml").read_text(encoding="utf-8")
    return {one["kind"]: one for one in yaml.safe_load_all(replace(text))}


def test_manifest_of_the_agent_by_schema():
    """What it has in comments, too: the probes of an agent that serves."""
    found = agent_manifest()
    serving = agent_manifest(lambda text: re.sub(r"^( +)#(?=\w)", r"\1", text, flags=re.M))["DaemonSet"]
    (container,) = serving["spec"]["template"]["spec"]["containers"]
    assert [container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")] == ["/healthz", "/readyz"]
    assert set(found) == {"Namespace", "ConfigMap", "DaemonSet"}
    for document in [*found.values(), serving]:
        good, told = conforms(document)
        assert good, told
    found["ConfigMap"]["data"] = ["epoch"]
    good, told = conforms(found["ConfigMap"])
    assert not good and "expected object" in told


def expand(container, facts):
    """The container's arguments as the kubelet gives them, with its environment, of such facts of the pod."""
    named = {one["name"]: facts[one["valueFrom"]["fieldRef"]["fieldPath"]] for one in container["env"]}
    return [re.sub(r"\$\((\w+)\)", lambda found: named[found.group(1)], word) for word in container["args"]]


def mount_config(folder, data):
    """Files as the kubelet gives a ConfigMap's: links into a folder that it replaces as a whole, below one that all may write to."""
    folder.mkdir()
    (folder / "..2026").mkdir()
    (folder / "..data").symlink_to("..2026")
    for name, text in data.items():
        (folder / "..2026" / name).write_text(text)
        (folder / name).symlink_to("..data/" + name)
    folder.chmod(0o777)


@needs_runc
def test_manifest_of_the_agent(dist, tmp_path):
    """Run as it says, but for the length of epochs, until SIGTERM: each process's samples, with the name of its container."""
    if containers.why_not():
        pytest.skip(containers.why_not())
    found = agent_manifest(lambda text: text.replace("epoch: 60s", "epoch: 1s"))
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["tolerations"] == [{"operator": "Exists"}]
    mount_config(tmp_path / "config", found["ConfigMap"]["data"])
    (tmp_path / "profiles").mkdir()
    (tmp_path / "bundle").mkdir()
    mounts = mounts_of(pod, {"config": tmp_path / "config", "profiles": tmp_path / "profiles"})
    arguments = expand(pod["containers"][0], {"spec.nodeName": "node-7"})
    write_bundle(dist, tmp_path / "bundle", arguments, check_rights(pod), mounts)
    name, folder = "pybpf-agent-%d" % os.getpid(), tmp_path / "profiles" / "agent"
    with containers.container("fleet", containers.command("spin.py")) as one, open(tmp_path / "said", "w+", encoding="utf-8") as said:
        with harness.started(["runc", "run", name], cwd=tmp_path / "bundle", stdin=subprocess.DEVNULL, stdout=said, stderr=said) as agent:
            harness.wait_for(lambda: agent.poll() is not None or len(list(folder.glob("*.pybpf"))) >= 2)
            assert agent.poll() is None, (tmp_path / "said").read_text()
            run(["runc", "kill", name, "TERM"])
            assert agent.wait(harness.PATIENCE) == 0, (tmp_path / "said").read_text()
    report = harness.pybpf("report", "-q", "-f", "json", folder)
    assert report.code == 0, report
    seen = json.loads(report.out)
    assert one.id in {process.get("container") for process in seen["processes"]}, report.out
    assert seen["facts"]["host"] == "node-7"
