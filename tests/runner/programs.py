# SPDX-License-Identifier: Apache-2.0
"""Tests that are programs of C: unit tests (cmocka), and the fuzz targets on the inputs that are kept."""
import concurrent.futures
import glob
import hashlib
import os
import re
import subprocess
import time

from runner.commands import TOP, captured, environment, headline, make, run, say

PROGRAM_LIMIT_S = 1200
FUZZ_LIMIT_S = 600


def unit_names():
    return sorted(path[:-2] for path in glob.glob("*/test_*.c", root_dir=os.path.join(TOP, "tests/unit")))


def cmocka(folder, name, limit_s=PROGRAM_LIMIT_S):
    """Runs one program. Returns (passed, skipped, failures, seconds, text).

    A test that was announced and has no result failed: the program crashed.
    """
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return 0, 0, ["%s was not built" % name], 0, ""
    start = time.monotonic()
    log = path + ".log"
    with open(log, "wb") as out:
        status = run([os.path.abspath(path)], limit_s, stdout=out, stderr=subprocess.STDOUT,
                     env=environment(CMOCKA_MESSAGE_OUTPUT="TAP"))
    with open(log, errors="replace") as out:
        text = out.read()
    announced = sum(int(number) for number in re.findall(r"^\s*1\.\.(\d+)$", text, re.M))
    results = re.findall(r"(not )?ok \d+ (?:- (.*)|(# SKIP))", text)
    skipped = sum(1 for _, _, skip in results if skip)
    failures = ["%s: %s" % (name, test) for wrong, test, skip in results if wrong and not skip]
    passed = len(results) - skipped - len(failures)
    why = "exit status %d" % status if status is not None else "took more than %d s" % limit_s
    if status is not None and status < 0:
        why = "ended by signal %d" % -status
    lost = announced - passed - skipped - len(failures)
    failures += ["%s: no result (%s)" % (name, why)] * max(0, lost)
    if status != 0 and not failures:
        failures = ["%s: %s" % (name, why)]
    return passed, skipped, failures, time.monotonic() - start, text


def digest(*paths):
    """The digest of the contents of files, and of all files below folders."""
    found = hashlib.sha256()
    for path in paths:
        inner = sorted(glob.glob(path + "/**", recursive=True)) if os.path.isdir(path) else [path]
        for file in filter(os.path.isfile, inner):
            with open(file, "rb") as content:
                found.update(file.encode() + b"\0" + hashlib.sha256(content.read()).digest())
    return found.hexdigest()


def unit(build, count, changed=False):
    """All unit tests; with changed, those that are not the same program as when they last passed."""
    headline("unit tests, under ASan and UBSan")
    folder = os.path.join(TOP, build, "unit")
    names = unit_names()
    data = digest(os.path.join(TOP, "tests/data"))
    keys = {name: data + digest(os.path.join(folder, name)) for name in names}
    if changed:
        same = [name for name in names if passed_as(folder, name) == keys[name]]
        names = [name for name in names if name not in same]
        say("%d programs are what they were when they passed" % len(same))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as lanes:
        for name, result in zip(names, lanes.map(lambda name: cmocka(folder, name), names)):
            passed, skipped, failures, seconds, text = result
            count.passed += passed
            count.skipped += skipped
            count.times.append((seconds, "unit/" + name))
            for failure in failures:
                count.fail(failure)
            if failures:
                say(text)
            else:
                with open(os.path.join(folder, name + ".passed"), "w", encoding="ascii") as out:
                    out.write(keys[name])
            say("%-36s %s%d passed%s (%.1f s)" % (
                name, "FAILED, " if failures else "", passed, ", %d skipped" % skipped if skipped else "", seconds))


def passed_as(folder, name):
    path = os.path.join(folder, name + ".passed")
    if not os.path.exists(path):
        return None
    with open(path, encoding="ascii") as stamp:
        return stamp.read()


def fuzz(build, count):
    """One test per target; one that was not built or has no line of its own failed."""
    headline("fuzz targets, on the inputs that are kept (make fuzz makes up others)")
    targets = [os.path.basename(path)[:-2] for path in sorted(glob.glob(os.path.join(TOP, "tests/fuzz/fuzz_*.c")))]
    if not make("replay-programs"):
        count.fail("the fuzz targets were not built", len(targets))
        return
    folder = os.path.join(build, "replay")
    _, lines = captured([os.path.join(TOP, "tests/fuzz/run-fuzz"), folder, "replay", *targets], FUZZ_LIMIT_S)
    say("\n".join(lines))
    for target in targets:
        if any(line.startswith(target + ": ") and line.endswith("nothing found") for line in lines):
            count.passed += 1
        else:
            count.fail("fuzz: " + target)
