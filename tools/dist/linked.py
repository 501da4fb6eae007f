# SPDX-License-Identifier: Apache-2.0
"""The libraries that are in the static binary, by the linker's own map: Debian's packages, versions and licences."""
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import bundled
from artefact import TOP

# SPDX's expressions for what /usr/share/doc/PACKAGE/copyright says of the parts that are linked, by source package.
LICENCES = {
    "bzip2": "bzip2-1.0.6",
    "c-ares": "MIT",
    "curl": "curl",
    "elfutils": "GPL-2.0-or-later OR LGPL-3.0-or-later",
    "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "jansson": "MIT",
    "libyaml": "MIT",
    "libbpf": "LGPL-2.1-only OR BSD-2-Clause",
    "libiberty": "LGPL-2.1-or-later",
    "libmicrohttpd": "LGPL-2.1-or-later",
    "libzstd": "BSD-3-Clause OR GPL-2.0-only",
    "ncurses": "X11-distribute-modifications-variant",
    "openssl": "Apache-2.0",
    "protobuf-c": "BSD-2-Clause",
    "xz-utils": "0BSD",
    "zlib": "Zlib",
}
PUBLIC_DOMAIN = "LicenseRef-Public-Domain"
COMMON = Path("/usr/share/common-licenses")
# Of the root of another architecture, and of the folder of tools/static-libraries: which packages hold what can be linked.
ARCHIVES = "archives.tsv"


@dataclass(frozen=True)
class Library:
    source: str
    version: str
    licence: str
    packages: tuple
    root: Path  # in which they are


def archives(map_file):
    """The files of others whose members the linker took, from its map."""
    text = map_file.read_text(encoding="utf-8", errors="replace")
    members = text.partition("Archive member included")[2].partition("Discarded input sections")[0]
    taken = set(re.findall(r"^(/\S+\.a)\(", members, re.M))
    started = set(re.findall(r"^LOAD (/\S+\.o)$", text, re.M))
    return sorted({str(path) for path in map(Path.resolve, map(Path, taken | started)) if map_file.resolve().parent not in path.parents})


def find_root(path):
    """The root of tools/setup-pythons or tools/static-libraries in which a file is; else this machine's."""
    return next((parent for parent in Path(path).parents if (parent / ARCHIVES).is_file()), Path("/"))


def query_root(root, path):
    for line in (root / ARCHIVES).read_text(encoding="utf-8").splitlines():
        name, package, source, version = line.split("\t")
        if (root / name[1:]).resolve() == Path(path):
            return source, version, package
    raise SystemExit("dist: %s is linked in and in no package of %s: its version and licence are not known" % (path, root / ARCHIVES))


def query(path):
    """Of a file: the source package, its version, and the package."""
    root = find_root(path)
    if root != Path("/"):
        return query_root(root, path)
    done = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit("dist: %s is linked in and in no Debian package: its version and licence are not known" % path)
    return source_of(done.stdout.rpartition(": ")[0].split(",")[0])


def source_of(package):
    query = ["dpkg-query", "-W", "-f", "${source:Package}\t${source:Version}\t${Version}", package]
    source, version, own = subprocess.run(query, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\t")
    if source.endswith("-cross"):
        # Its source package counts the packagings of a compiler's sources, which the package has the version of.
        version = re.sub(r"cross\d+$", "", own)
    return re.sub(r"-cross$", "", source), version, package.partition(":")[0]


def licence(source, version):
    """None if it is not known."""
    if source == "xz-utils" and tuple(map(int, re.findall(r"\d+", version)[:2])) < (5, 6):
        return PUBLIC_DOMAIN
    return LICENCES.get(re.sub(r"^gcc-\d+$", "gcc", source))


def libraries(map_file):
    found = {}
    for path in archives(map_file):
        source, version, package = query(path)
        found.setdefault((source, version), (find_root(path), set()))[1].add(package)
    # The descriptions of terminals are data of this package.
    source, version, package = source_of("ncurses-base")
    found.setdefault((source, version), (Path("/"), set()))[1].add(package)
    unknown = {source for source, version in found if not licence(source, version)}
    if unknown:
        raise SystemExit("dist: tools/dist/linked.py has no licence for %s" % ", ".join(sorted(unknown)))
    return [Library(source, version, licence(source, version), tuple(sorted(packages)), root) for (source, version), (root, packages) in sorted(found.items())]


def texts(known):
    """Name -> the licences' own text, for what is handed on with the binary."""
    found = {"pybpf": (TOP / "LICENSE").read_bytes()}
    for name in ("GPL-2.0", "BSD-2-Clause"):
        found["pybpf-bpf." + name] = (TOP / "bpf" / ("LICENSE." + name)).read_bytes()
    found.update((package.name.replace("/", "."), package.text) for package in bundled.packages())
    named = set()
    for library in known:
        text = (library.root / "usr/share/doc" / library.packages[0] / "copyright").read_bytes()
        found[library.source] = text
        named |= set(re.findall(rb"/usr/share/common-licenses/((?:L?GPL|Apache)-[\d.]*\d)", text))
    for name in sorted(named):
        found["common." + name.decode()] = (COMMON / name.decode()).read_bytes()
    return found
