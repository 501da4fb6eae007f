# SPDX-License-Identifier: Apache-2.0
"""pybpf-VERSION.tar.gz: the sources, from which make builds, and pip by tools/dist/backend.py."""
import artefact
import wheel

PARTS = ("Makefile", "pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "bpf", "user", "vmlinux", "docs", "tools")


def sources():
    """The files that git tracks; in a source archive, which has no git, its own."""
    tracked = artefact.git("ls-files", "-z", *PARTS)
    if tracked is not None:
        return sorted(name for name in tracked.split("\0") if name)
    found = [path for part in PARTS for path in [artefact.TOP / part, *(artefact.TOP / part).rglob("*")]]
    return sorted(str(path.relative_to(artefact.TOP)) for path in found if path.is_file() and "__pycache__" not in path.parts)


def make(build):
    name = "pybpf-" + build.version
    found = [(name + "/PKG-INFO", wheel.metadata(build.version).encode(), 0o644)]
    for file in sources():
        path = artefact.TOP / file
        found.append(("%s/%s" % (name, file), path.read_bytes(), 0o755 if path.stat().st_mode & 0o100 else 0o644))
    path = build.out / (name + ".tar.gz")
    path.write_bytes(artefact.compress(artefact.tar(found, build.epoch)))
    return path
