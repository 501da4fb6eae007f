# SPDX-License-Identifier: Apache-2.0
"""A Collector of OpenTelemetry that takes profiles: built into the cache of the tests, started, and what it wrote read back."""
import contextlib
import fcntl
import functools
import json
import os
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass

import pytest

import harness
import pythons

VERSION = "v0.161.0"
MODULES = (
    "go.opentelemetry.io/collector/otelcol",
    "go.opentelemetry.io/collector/receiver/otlpreceiver",
    "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter",
)
SOURCE = harness.TOP / "tests" / "collector" / "main.go"
BUILD_S = 1800

CONFIG = """
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:%(port)d
%(tls)s
exporters:
  file:
    path: %(out)s
    append: true
    flush_interval: 50ms
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [file]
"""
TLS = """        tls:
          cert_file: %s
          key_file: %s
"""


def build(home):
    shutil.copy(SOURCE, home / "main.go")
    for argv in (
        ["go", "mod", "init", "collector"],
        ["go", "get", *("%s@%s" % (module, VERSION) for module in MODULES)],
        ["go", "build", "-mod=mod", "-o", "collector.new", "."],
    ):
        done = subprocess.run(argv, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_S)
        assert done.returncode == 0, "%s: %s" % (" ".join(argv[:3]), done.stderr)
    os.replace(home / "collector.new", home / "collector")


@functools.lru_cache(maxsize=None)
def program():
    """The Collector, built once for all work trees: of these modules and this source."""
    if not shutil.which("go"):
        pytest.skip("go is not installed; tools/install-deps --test installs it")
    home = pythons.cache() / "collector"
    home.mkdir(parents=True, exist_ok=True)
    whole = home / "built-of.txt"  # written last
    wanted = "\n".join([VERSION, *MODULES, SOURCE.read_text(encoding="utf-8")])
    with open(home / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists() or whole.read_text(encoding="utf-8") != wanted:
            for name in ("built-of.txt", "go.mod", "go.sum"):
                (home / name).unlink(missing_ok=True)
            build(home)
            whole.write_text(wanted, encoding="utf-8")
    return home / "collector"


class Collector:
    """certificate: (certificate, key), for https."""

    def __init__(self, folder, port, certificate):
        self.port, self.folder, self.out, self.process = port, folder, folder / "profiles.json", None
        tls = TLS % certificate if certificate else ""
        (folder / "collector.yaml").write_text(CONFIG % {"port": port, "out": self.out, "tls": tls}, encoding="utf-8")

    def start(self):
        argv = [str(program()), "--config", str(self.folder / "collector.yaml"), "--feature-gates=+service.profilesSupport"]
        with open(self.folder / "collector.log", "ab") as log:
            self.process = subprocess.Popen(harness.tied(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        harness.wait_for(lambda: harness.answers(self.port))

    def stop(self):
        """It answers what it has taken, and writes it."""
        self.process.terminate()
        assert self.process.wait(harness.PATIENCE) == 0, (self.folder / "collector.log").read_text(encoding="utf-8")

    @property
    def url(self):
        return "http://127.0.0.1:%d/v1development/profiles" % self.port

    def lines(self):
        return self.out.read_bytes().split(b"\n")[:-1] if self.out.exists() else []  # the last one is not whole

    def requests(self, behind=0):
        """What it wrote: a document for each request, without the first ones."""
        return [json.loads(line) for line in self.lines()[behind:]]


@contextlib.contextmanager
def running(folder, port=None, certificate=None):
    it = Collector(folder, port or harness.free_port(), certificate)
    try:
        it.start()
        yield it
    finally:
        if it.process:
            harness.stop(it.process)


def plain(value, strings):
    if "stringValueStrindex" in value:
        return strings[value["stringValueStrindex"]]
    return value.get("stringValue", value.get("intValue"))


def resource(entry, strings):
    """The attributes of a resource: the Collector moves their texts into the dictionary."""
    return {
        attribute.get("key") or strings[attribute["keyStrindex"]]: plain(attribute["value"], strings)
        for attribute in entry["resource"].get("attributes", [])
    }


@dataclass
class Profile:
    resource: dict
    type: tuple  # (type, unit)
    period_type: tuple
    period: int
    start_ns: int
    duration_ns: int
    id: str
    # (frames, root first, each (name, file, line, kind); attributes as a sorted tuple) -> value
    samples: Counter


def attributes_of(indices, table, strings):
    return tuple(sorted((strings[table[i]["keyStrindex"]], plain(table[i]["value"], strings)) for i in indices))


def read_profile(attributes, profile, tables):
    strings = tables["stringTable"]
    attribute_table = tables["attributeTable"]

    def value_type(of):
        return strings[of.get("typeStrindex", 0)], strings[of.get("unitStrindex", 0)]

    def frame(index):
        location = tables["locationTable"][index]
        (line,) = location["lines"]
        function = tables["functionTable"][line["functionIndex"]]
        kind = dict(attributes_of(location.get("attributeIndices", []), attribute_table, strings))
        return (
            strings[function.get("nameStrindex", 0)],
            strings[function.get("filenameStrindex", 0)],
            int(line.get("line", 0)),
            kind.get("profile.frame.type"),
        )

    samples = Counter()
    for sample in profile["samples"]:
        (value,) = sample["values"]
        stack = tables["stackTable"][sample["stackIndex"]]["locationIndices"]
        key = tuple(frame(i) for i in reversed(stack)), attributes_of(sample["attributeIndices"], attribute_table, strings)
        samples[key] += int(value)
    return Profile(
        resource=attributes,
        type=value_type(profile["sampleType"]),
        period_type=value_type(profile.get("periodType", {})),
        period=int(profile.get("period", 0)),
        start_ns=int(profile.get("timeUnixNano", 0)),
        duration_ns=int(profile.get("durationNano", 0)),
        id=profile["profileId"],
        samples=samples,
    )


def profiles(requests):
    """All profiles of these requests."""
    found = []
    for request in requests:
        tables = request["dictionary"]
        for entry in request["resourceProfiles"]:
            attributes = resource(entry, tables["stringTable"])
            (scope,) = entry["scopeProfiles"]
            assert scope["scope"]["name"] == "pybpf"
            found += [read_profile(attributes, profile, tables) for profile in scope["profiles"]]
    return found
