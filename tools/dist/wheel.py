# SPDX-License-Identifier: Apache-2.0
"""pybpf-VERSION-py3-none-PLATFORMS.whl: the binary as a script, for every Python 3 with glibc or musl; python -m pybpf."""
import base64
import hashlib
import io
import time
import zipfile

import artefact
import linked
import sbom

# A static binary needs neither C library; these are the oldest that the tags speak of.
PLATFORMS = ("manylinux_2_17_%s", "musllinux_1_1_%s")

MAIN = '''"""python -m pybpf: runs the program that the wheel has installed."""
import importlib.metadata
import os
import pathlib
import sys


def find_program():
    found = [file.locate() for file in importlib.metadata.files("pybpf") or () if file.name == "pybpf" and file.parent.name == "bin"]
    # pip install --target puts it elsewhere than its list of files says.
    found.append(pathlib.Path(__file__).resolve().parents[1] / "bin" / "pybpf")
    for path in found:
        if os.access(path, os.X_OK):
            return os.path.abspath(path)
    sys.exit("python -m pybpf: the wheel's program is not where pip has put it; install pybpf again")


program = find_program()
os.execv(program, [program, *sys.argv[1:]])
'''


def platform(build):
    return ".".join(one % build.machine for one in PLATFORMS)


def metadata(version):
    return ("Metadata-Version: 2.1\nName: pybpf\nVersion: %s\nSummary: %s\nLicense: %s\nRequires-Python: >=3.8\n"
            "Classifier: Operating System :: POSIX :: Linux\nClassifier: Programming Language :: C\n"
            "Classifier: Topic :: Software Development :: Debuggers\nDescription-Content-Type: text/markdown\n\n%s\n"
            % (version, artefact.SUMMARY, artefact.LICENCE, artefact.DESCRIPTION))


def files(build):
    """(path in the wheel, content, mode)."""
    info, data = "pybpf-%s.dist-info/" % build.version, "pybpf-%s.data/" % build.version
    tag = "".join("Tag: py3-none-%s\n" % (one % build.machine) for one in PLATFORMS)
    found = [
        ("pybpf/__init__.py", b'"""The profiler is a program: pybpf, or python -m pybpf."""\n', 0o644),
        ("pybpf/__main__.py", MAIN.encode(), 0o644),
        (data + "scripts/pybpf", build.binary.read_bytes(), 0o755),
    ]
    # systemd looks for units in no environment of Python.
    found += [(data + "data/%s" % path, content, 0o644) for path, content in build.other_files() if path.parts[0] == "share"]
    for name, text in linked.texts(build.libraries).items():
        found.append((info + "licenses/" + name, text, 0o644))
    return found + [
        (info + "sboms/pybpf.spdx.json", sbom.content(build), 0o644),
        (info + "METADATA", metadata(build.version).encode(), 0o644),
        (info + "WHEEL", ("Wheel-Version: 1.0\nGenerator: pybpf-dist\nRoot-Is-Purelib: false\n" + tag).encode(), 0o644),
    ]


def record(found, name):
    rows = "".join("%s,sha256=%s,%d\n" % (path, base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode(), len(content))
                   for path, content, _ in found)
    return rows + name + ",,\n"


def make(build):
    path = build.out / ("pybpf-%s-py3-none-%s.whl" % (build.version, platform(build)))
    found = sorted(files(build))
    name = "pybpf-%s.dist-info/RECORD" % build.version
    found.append((name, record(found, name).encode(), 0o644))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file, content, mode in found:
            info = zipfile.ZipInfo(file, time.gmtime(max(build.epoch, 315532800))[:6])  # a zip's years begin in 1980
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content, compresslevel=9)
    path.write_bytes(buffer.getvalue())
    return path
