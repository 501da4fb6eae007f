# SPDX-License-Identifier: Apache-2.0
"""pybpf-VERSION-linux-MACHINE.tar.gz: one folder with bin and share, to be put anywhere."""
import artefact
import linked
import sbom


def entries(build):
    """(name, content, mode) of all that a user gets, below a folder."""
    found = [("bin/pybpf", build.binary.read_bytes(), 0o755), ("README.md", (artefact.TOP / "README.md").read_bytes(), 0o644),
             ("sbom.spdx.json", sbom.content(build), 0o644)]
    found += [(str(path), content, 0o644) for path, content in build.other_files()]
    texts = linked.texts(build.libraries)
    return found + [("licences/" + name, text, 0o644) for name, text in texts.items()]


def make(build):
    name = "pybpf-%s-linux-%s" % (build.version, build.machine)
    path = build.out / (name + ".tar.gz")
    path.write_bytes(artefact.compress(artefact.tar([(name + "/" + file, content, mode) for file, content, mode in entries(build)], build.epoch)))
    return path
