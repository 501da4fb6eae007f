# SPDX-License-Identifier: Apache-2.0
"""What make dist makes, made for a test and looked into."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

import harness
import pythons
from harness import PYBPF, STATIC, TOP, total

BUILD = Path(PYBPF).resolve().parent
BUILD_LIMIT_S = 900
EPOCH = "1700000000"
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
    return make_dist(TOP, "-o", PYBPF, "-o", STATIC, "BUILD=%s" % BUILD, "DIST=%s" % folder, *options)


def only(dist, pattern):
    (path,) = dist.glob(pattern)
    return path


def run(argv, **options):
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, timeout=harness.PATIENCE, **options)
    assert done.returncode == 0, (argv, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def check_profile(folded):
    stacks = harness.parse(folded)
    assert total(stacks) > 0 and all(any(frame.name == "work" for frame in stack) for stack, _ in stacks)


def check_paths(folder, program):
    """No file that is packed, which compression would hide it in, names a folder of the builder; nor does what strip leaves only in the build-id."""
    words = "|".join(re.escape(str(place)) for place in (TOP, BUILD, Path.home(), pythons.cache(), folder) if len(place.parts) > 1)
    files = [path for path in (folder / "pybpf-stage").rglob("*") if path.is_file()]
    assert folder / "pybpf-stage/usr/bin/pybpf" in files
    for path in [program, *files]:
        # /proc/PID/root is a folder of any process.
        assert re.findall(rb"(?<![\w%])(?:" + words.encode() + rb")/.{,40}", path.read_bytes()) == [], path


def deb_files(path):
    """Name -> content."""
    packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}


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
