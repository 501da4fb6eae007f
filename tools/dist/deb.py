# SPDX-License-Identifier: Apache-2.0
"""pybpf_VERSION-1_ARCHITECTURE.deb, which depends on nothing: dpkg-deb packs it."""
import email.utils
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import artefact
import bundled
import linked
import unit
import sbom

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
DOC = "usr/share/doc/pybpf/"
# One file for every release of Debian and Ubuntu is the purpose; the bill of materials names the libraries.
OVERRIDES = """pybpf: statically-linked-binary
pybpf: shared-library-lacks-prerequisites
pybpf: embedded-library
"""


def copyright_text(libraries):
    text = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: pybpf\n\n"
    text += "Files: *\nCopyright: The pybpf authors\nLicense: Apache-2.0\n On Debian systems: /usr/share/common-licenses/Apache-2.0\n"
    text += "\nFiles: bpf/*\nCopyright: The pybpf authors\nLicense: GPL-2.0-only or BSD-2-Clause\n"
    text += " On Debian systems: /usr/share/common-licenses/GPL-2, or /usr/share/doc/pybpf/licences/pybpf-bpf.BSD-2-Clause\n"
    text += "Comment:\n Linked statically, with the licences in /usr/share/doc/pybpf/licences:\n"
    text += "".join(" %s %s, %s\n" % (one.source, one.version, one.licence) for one in libraries)
    text += " .\n In the HTML report's page, with the licences there, too:\n"
    return text + "".join(" %s %s, %s\n" % (one.name, one.version, one.licence) for one in bundled.packages())


def changelog(build, version):
    date = email.utils.formatdate(build.epoch)
    return "pybpf (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n" % (version, build.maintainer, date)


def files(build, version):
    """Path -> content."""
    found = {DOC + "copyright": copyright_text(build.libraries).encode()}
    found[DOC + "changelog.Debian.gz"] = artefact.compress(changelog(build, version).encode())
    found[DOC + "changelog.gz"] = artefact.compress((artefact.TOP / "CHANGELOG.md").read_bytes())
    found[DOC + "sbom.spdx.json"] = sbom.content(build)
    for name, text in linked.texts(build.libraries).items():
        if not name.startswith("common.") and name not in ("pybpf", "pybpf-bpf.GPL-2.0"):
            found[DOC + "licences/" + name] = text
    found["usr/share/lintian/overrides/pybpf"] = OVERRIDES.encode()
    for path, content in build.other_files():
        if path.parts[1] == "man":
            found["usr/%s.gz" % path] = artefact.compress(content)
        elif path.parts[1] == "zsh":
            found["usr/share/zsh/vendor-completions/" + path.name] = content
        else:
            found["usr/%s" % path] = content
    return found


def control(build, version, size):
    lines = artefact.DESCRIPTION.split("\n")
    return ("Package: pybpf\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nSection: utils\nPriority: optional\n"
            "Description: %s\n" % (version, ARCHITECTURES[build.machine], build.maintainer, size // 1024, artefact.SUMMARY)
            + "".join(" %s\n" % line for line in lines))


def write(path, content, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def make(build):
    version = build.version + "-1"
    path = build.out / ("pybpf_%s_%s.deb" % (version, ARCHITECTURES[build.machine]))
    root = Path(tempfile.mkdtemp(dir=build.out))
    try:
        found = files(build, version)
        found["usr/bin/pybpf"] = build.binary.read_bytes()
        for name, content in found.items():
            write(root / name, content, 0o755 if name.startswith("usr/bin/") else 0o644)
        sums = "".join("%s  %s\n" % (hashlib.md5(content).hexdigest(), name) for name, content in sorted(found.items()))
        write(root / "DEBIAN/md5sums", sums.encode())
        for name, script in unit.DEB_SCRIPTS.items():
            write(root / "DEBIAN" / name, script.encode(), 0o755)
        write(root / "DEBIAN/control", control(build, version, sum(map(len, found.values()))).encode())
        for folder in [root, *(one for one in root.rglob("*") if one.is_dir())]:
            folder.chmod(0o755)
        for one in [*root.rglob("*"), root]:
            os.utime(one, (build.epoch, build.epoch))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", root, path], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SOURCE_DATE_EPOCH": str(build.epoch)})
    finally:
        shutil.rmtree(root)
    return path
