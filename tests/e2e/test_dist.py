# SPDX-License-Identifier: Apache-2.0
"""What make dist makes, used from its file alone as its user would: pip, dpkg, rpm, tar; the same bytes again."""

import email
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

import harness
import pythons
import test_systemd
from artefacts import BUILD, BUILD_LIMIT_S, CLEAN, EPOCH, check_paths, check_profile, deb_files, make_dist, only, pack, run
from harness import PYBPF, STATIC, TOP

sys.path[:0] = [str(TOP / "tests"), str(TOP / "tools/dist")]

import linked  # noqa: E402
import peers  # noqa: E402

SUITES = ("bookworm", "trixie", "sid")
UNIT = "/usr/lib/systemd/system/pybpf-agent.service"


@pytest.fixture(scope="session")
def sdist(dist):
    return dist / ("pybpf-%s.tar.gz" % harness.pybpf("version").out.split()[1])


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


def test_no_path_of_the_builder(dist):
    check_paths(dist, STATIC)


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
    linked = {row[0] for row in (line.split() for line in run([STATIC, "version", "-v"]).splitlines()[1:])}
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
    """A root with what is essential, and apt; made once."""
    cache = Path(os.environ.get("PYBPF_TEST_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pybpf-tests")
    root = cache / "roots-dist" / ("apt-" + suite)
    if not root.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        making = tempfile.mkdtemp(dir=root.parent)
        # A mirror that is a snapshot may be older than its Release file allows.
        options = ["--mode=root", "--variant=apt", "--quiet", '--aptopt=Acquire::Check-Valid-Until "false"']
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
        steps = ("apt-get install -y /pybpf.deb >/dev/null; pybpf doctor >/doctor; cat /doctor; echo ====; pybpf -q -p %d -d 1; echo ====; "
                 "pybpf ps -p %d; test -e %s; apt-get remove -y pybpf >/dev/null; test ! -e /usr/bin/pybpf; test ! -e %s" % (busy.pid, busy.pid, UNIT, UNIT))
        doctor, folded, _ = run(["unshare", "--mount", "sh", "-c", INSTALL, "install", root, over, steps]).split("====\n")
        assert "the main job can run: sudo pybpf -p PID" in doctor
        check_profile(folded)
    finally:
        shutil.rmtree(over)


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


@pytest.mark.skipif(not shutil.which("dnf"), reason="dnf is not installed; tools/install-deps --test installs it")
def test_rpm_by_dnf(dist, tmp_path, busy):
    """In a root without repositories: it depends on nothing."""
    dnf = ["dnf", "--installroot", tmp_path, "--releasever", "1", "--disablerepo", "*", "-y"]
    run([*dnf, "install", only(dist, "*.rpm")])
    assert run(["rpm", "--root", tmp_path, "-V", "pybpf"]) == ""
    check_profile(run([tmp_path / "usr/bin/pybpf", "-p", busy.pid, "-d", 1]))
    run([*dnf, "remove", "pybpf"])
    assert not (tmp_path / "usr/bin/pybpf").exists() and not (tmp_path / UNIT.lstrip("/")).exists()
