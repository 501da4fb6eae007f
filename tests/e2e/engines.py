# SPDX-License-Identifier: Apache-2.0
"""Pyroscope and Parca: started where they are installed, and what they have read back as stacks with values."""
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
PAST_MS = 3600 * 1000

# One process with the storage that shows at once what it took; nothing listens elsewhere, and nothing is told to anybody.
PYROSCOPE = """
server: {http_listen_address: 127.0.0.1, http_listen_port: %(http)d, grpc_listen_address: 127.0.0.1, grpc_listen_port: %(grpc)d}
memberlist: {bind_addr: [127.0.0.1], bind_port: %(gossip)d, advertise_addr: 127.0.0.1}
analytics: {reporting_enabled: false}
self_profiling: {disable_push: true}
architecture_storage: v1
limits: {write_path: ingester, max_global_series_per_tenant: 0}
"""
# Which would be those of the first network card.
ADDRESSES = (
    "compactor.ring.instance-addr",
    "distributor.ring.instance-addr",
    "ingester.lifecycler.addr",
    "overrides-exporter.ring.instance-addr",
    "query-frontend.instance-addr",
    "query-scheduler.ring.instance-addr",
    "store-gateway.sharding-ring.instance-addr",
)
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


class Pyroscope:
    def __init__(self, port):
        self.url = "http://127.0.0.1:%d" % port

    def ask(self, method, **words):
        now = round(time.time() * 1000)
        body = json.dumps({"start": now - PAST_MS, "end": now + PAST_MS, **words}).encode()
        return asked(urllib.request.Request("%s/querier.v1.QuerierService/%s" % (self.url, method), body, {"Content-Type": "application/json"}))

    def types(self):
        """The IDs of all types of profiles."""
        return {one["ID"] for one in self.ask("ProfileTypes").get("profileTypes", [])}

    def series(self, matcher):
        """The labels of each series, without those of Pyroscope's own."""
        found = self.ask("Series", matchers=[matcher], labelNames=[]).get("labelsSet", [])
        return [{one["name"]: one["value"] for one in labels["labels"]} for labels in found]

    def stacks(self, kind, selector):
        profile = self.ask("SelectMergeProfile", profile_typeID=kind, label_selector=selector)
        texts = profile.get("stringTable", [])
        functions = {one["id"]: (texts[int(one.get("name", 0))], texts[int(one.get("filename", 0))]) for one in profile.get("function", [])}
        lines = {
            one["id"]: [(*functions[line["functionId"]], int(line.get("line", 0))) for line in one.get("line", [])]
            for one in profile.get("location", [])
        }
        found = Counter()
        for sample in profile.get("sample", []):
            (value,) = sample["value"]
            found[tuple(line for location in sample["locationId"] for line in lines[location])] += int(value)
        return found

    def render(self, kind, selector):
        """What the older interface has: the total, and the names of functions."""
        query = urllib.parse.urlencode({"query": kind + selector, "from": "now-1h", "until": "now+1h", "format": "json"})
        answer = asked("%s/pyroscope/render?%s" % (self.url, query))["flamebearer"]
        return answer["numTicks"], set(answer["names"])


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


@contextlib.contextmanager
def pyroscope(folder):
    """One process with all of Pyroscope, whose data is below the folder."""
    name = program("pyroscope")
    ports = {kind: harness.free_port() for kind in ("http", "grpc", "gossip")}
    config = folder / "pyroscope.yaml"
    config.write_text(PYROSCOPE % ports, encoding="utf-8")
    it = Pyroscope(ports["http"])
    with running("pyroscope", folder, [name, "-config.file=%s" % config, *("-%s=127.0.0.1" % one for one in ADDRESSES)], it.url + "/ready"):
        yield it


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
