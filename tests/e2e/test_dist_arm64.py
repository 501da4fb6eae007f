# SPDX-License-Identifier: Apache-2.0
"""What make dist makes for arm64 on another machine, looked into, and used on an emulated one."""

import gzip
import json
import platform
import re
import shutil
import struct
import subprocess
import tarfile
import zipfile

import pytest

import formats
import harness
import receiver
from artefacts import BUILD, BUILD_LIMIT_S, CLEAN, check_paths, deb_files, make_dist, only, run, unpack_image
from harness import TOP
from pythons import cache


@pytest.fixture(scope="module")
def arm64(tmp_path_factory):
    if platform.machine() != "x86_64" or not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("nothing is built for arm64 here; tools/install-deps --arm64 installs what it takes")
    if not (cache() / "arm64-bookworm/usr/lib/aarch64-linux-gnu/libcares.a").exists():
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


def test_arm64_same_bytes_from_another_folder(arm64, tmp_path):
    """The sources' own archive, built elsewhere, makes every artefact again."""
    sources = "pybpf-%s.tar.gz" % harness.pybpf("version").out.split()[1]
    with tarfile.open(arm64 / sources) as archive:
        archive.extractall(tmp_path / "another-folder")
    (top,) = (tmp_path / "another-folder").iterdir()
    flags = (BUILD / "flags").read_text(encoding="utf-8")
    make_dist(top, "ARCH=arm64", *(["WERROR=1"] if "-Werror" in flags else []))
    assert (top / "build/arm64/dist/SHA256SUMS").read_text() == (arm64 / "SHA256SUMS").read_text()


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed; tools/install-deps --test installs it")
def test_arm64_deb_by_lintian(arm64):
    done = subprocess.run(["lintian", "--fail-on", "error", only(arm64, "*_arm64.deb")], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0 and not re.search(r"^E:", done.stdout, re.M), done.stdout


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


@needs_qemu
def test_arm64_installed(arm64):
    """By dpkg, rpm, pip and tar of arm64, on a machine with its kernel; each profiles there, and is removed."""
    if not (cache() / "arm64-installers").exists():
        pytest.skip("no package managers of arm64: tools/setup-pythons arm64-installers fetches them")
    build = BUILD / "arm64"
    done = subprocess.run(["make", "-s", "ARCH=arm64", "BUILD=%s" % build, "CFLAGS=-O0", "all", "vm-programs"], cwd=TOP, env=CLEAN,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_LIMIT_S)
    assert done.returncode == 0, done.stdout[-4000:]
    done = subprocess.run([TOP / "tests/vm/run-kernels", "--arch", "arm64", "--build", build, "--dist", arm64, "6.12"], env=CLEAN,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=BUILD_LIMIT_S)
    assert done.stdout.endswith("\n1 passed, 0 failed, 0 skipped\n"), done.stdout[-4000:]
    for way in ("archive", "deb", "rpm", "wheel"):
        assert re.search(r"^  %s +ok$" % way, done.stdout, re.M), done.stdout
