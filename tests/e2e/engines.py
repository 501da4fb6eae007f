# SPDX-License-Identifier: Apache-2.0
"""Parca: started where it is installed, and what it has read back as stacks with values."""
import base64
import contextlib
import gzip
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter, defaultdict

import pytest

import harness
from protobuf import fields, numbers, of

PATIENCE = 60

PARCA = """
object_storage:
  bucket:
    type: FILESYSTEM
    config:
      directory: %(folder)s
scrape_configs:
%(scrapes)s
"""
SCRAPE = """
  - job_name: %(name)s
    scrape_interval: 2s
    static_configs:
      - targets: ["127.0.0.1:%(port)d"]
    profiling_config:
      pprof_config:
        memory: {enabled: false}
        block: {enabled: false}
        goroutine: {enabled: false}
        mutex: {enabled: false}
        process_cpu: {enabled: %(cpu)s, delta: true, path: /debug/pprof/profile}
%(others)s
"""


def program(name):
    return shutil.which(name) or pytest.skip("%s is not installed: no package of Debian has it" % name)


def asked(request):
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def expected(profile, scale=1, waits=None):
    """The stacks of a profile as the format json has them -> their values. waits: only those that wait, or that do not."""
    found = Counter()
    for sample in profile["samples"]:
        path, at = [], sample["stack"]
        while at is not None:
            path.append(profile["frames"][profile["stacks"][at]["frame"]])
            at = profile["stacks"][at]["parent"]
        if waits is None or waits == bool(path[0].get("state")):
            found[tuple((f["name"], f["file"] or "", f["line"] or 0) for f in path)] += sample["value"] * scale
    return found


def fields_of(message):
    """The last value of each field's number; 0 where there is none."""
    return defaultdict(int, fields(message))


def read_pprof(body):
    """
    (type, unit) -> stacks, leaf first, of (name, file, line) -> value; those that are 0 are left out. What has no name is
    ("", build-id, address).
    """
    data = gzip.decompress(body)
    texts = [text.decode() for text in of(data, 6)]
    functions, builds, lines = {}, {}, {}
    for one in map(fields_of, of(data, 5)):
        functions[one[1]] = texts[one[2]], texts[one[4]]
    for one in map(fields_of, of(data, 3)):
        builds[one[1]] = texts[one[6]]
    for message in of(data, 4):
        one = fields_of(message)
        named = [(*functions[line[1]], line[2]) for line in map(fields_of, of(message, 4))]
        lines[one[1]] = named or [("", builds.get(one[2], ""), one[3])]
    types = [(texts[one[1]], texts[one[2]]) for one in map(fields_of, of(data, 1))]
    found = defaultdict(Counter)
    for message in of(data, 2):
        many = {1: [], 2: []}
        for key, value in fields(message):
            if key in many:
                many[key] += [value] if isinstance(value, int) else numbers(value)
        stack = tuple(line for location in many[1] for line in lines[location])
        for kind, value in zip(types, many[2]):
            if value:
                found[kind][stack] += value
    return found


def is_ready(url):
    with contextlib.suppress(OSError):
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status == 200
    return False


@contextlib.contextmanager
def running(name, folder, argv, ready):
    with open(folder / (name + ".log"), "wb") as log:
        process = subprocess.Popen(harness.tied(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    try:
        harness.wait_for(lambda: process.poll() is not None or is_ready(ready), step=0.2)
        assert process.poll() is None, (folder / (name + ".log")).read_text(encoding="utf-8", errors="replace")[-2000:]
        yield
    finally:
        harness.stop(process)


class Parca:
    def __init__(self, port):
        self.port, self.url = port, "http://127.0.0.1:%d" % port

    def ask(self, path, **words):
        return asked("%s/api/profiles/%s?%s" % (self.url, path, urllib.parse.urlencode(words)))

    def types(self):
        keys = "name", "sampleType", "sampleUnit", "periodType", "periodUnit"
        found = self.ask("types").get("types", [])
        return {":".join(one.get(key, "") for key in keys) + (":delta" if one.get("delta") else "") for one in found}

    def stacks(self, query):
        """Its answer has samples of a period as the time that they stand for."""
        now = time.time()
        start, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + s)) for s in (-3600, 3600))
        words = {"mode": "MODE_MERGE", "report_type": "REPORT_TYPE_PPROF", "merge.query": query, "merge.start": start, "merge.end": end}
        try:
            answer = self.ask("query", **words)
        except urllib.error.HTTPError as refused:
            if refused.code == 404:  # nothing yet
                return Counter()
            raise
        return next(iter(read_pprof(base64.b64decode(answer["pprof"])).values()), Counter())


@contextlib.contextmanager
def parca(folder, port=None, cpu=False, **paths):
    """scraping: what is at the port: profiles of CPU time, and others by their names."""
    name = program("parca")
    scrapes = ""
    if port:
        others = "".join("        %s: {enabled: true, delta: true, path: %s}\n" % one for one in paths.items())
        scrapes = SCRAPE % {"name": "pybpf", "port": port, "cpu": str(cpu).lower(), "others": others}
    config = folder / "parca.yaml"
    config.write_text(PARCA % {"folder": folder / "parca", "scrapes": scrapes}, encoding="utf-8")
    it = Parca(harness.free_port())
    argv = [name, "--config-path=%s" % config, "--http-address=127.0.0.1:%d" % it.port, "--debuginfod-upstream-servers=127.0.0.1:1"]
    with running("parca", folder, argv, it.url + "/metrics"):
        yield it
