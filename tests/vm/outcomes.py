# SPDX-License-Identifier: Apache-2.0
"""What a mode left behind, what that is worth, and the tables of it."""

import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "e2e")]

import harness  # noqa: E402


class Outcome:
    """What a mode left behind."""

    def __init__(self, folder, name):
        self.path = os.path.join(folder, name)

    def read(self, suffix):
        try:
            with open(self.path + "." + suffix, encoding="utf-8", errors="surrogateescape") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    @property
    def status(self):
        return self.read("status").strip()

    @property
    def said(self):
        """The numbers by name that the program printed at its end."""
        return {name: float(number) for name, number in map(str.split, self.read("said").splitlines())}

    @property
    def stats(self):
        return json.loads(self.read("json"))

    @property
    def stacks(self):
        return harness.parse_all(self.read("folded"))

    @property
    def words(self):
        """What pybpf said to its user."""
        return [line for line in self.read("err").splitlines() if not line.startswith("pybpf: debug:")]

    @property
    def kernel(self):
        """(major, minor) of the kernel that it ran on."""
        with open(os.path.join(os.path.dirname(self.path), "release"), encoding="ascii") as file:
            return tuple(map(int, re.match(r"(\d+)\.(\d+)", file.read()).groups()))

    def programs(self):
        """(name, instructions gone through, stack of each function) of each program that the verifier let pass."""
        log = (
            r"prog '(\w+)': -- BEGIN PROG LOAD LOG --(?:(?!-- END PROG LOAD LOG --).)*?"
            r"stack depth ([\d+]+)(?:(?!-- END PROG LOAD LOG --).)*?processed (\d+) insns"
        )
        for name, stack, count in re.findall(log, self.read("err"), re.S):
            yield name, int(count), stack


def check_account(outcome):
    """All samples are accounted for, and of a process whose Python is known next to none is lost."""
    samples, lost = outcome.stats["samples"], outcome.stats["lost"]
    assert samples["asked"] == samples["taken"] + samples["lost"], "asked is not taken + lost: %s" % samples
    assert samples["lost"] == sum(lost.values()), "the losses do not add up: %s" % lost
    later = samples["lost"] - lost["not_ready"]
    causes = {cause: count for cause, count in lost.items() if count}
    assert later <= 0.05 * samples["asked"] + 1, "%d of %d samples are lost: %s" % (later, samples["asked"], causes)


def check_sentences(words, kernel):
    """What needs a newer kernel than this one is not to be said of an older one."""
    for line in words:
        for major, minor in re.findall(r"Linux (\d+)\.(\d+) (?:or|and) newer", line):
            assert kernel < (int(major), int(minor)), "an untrue sentence: %s" % line


def judge_mode(mode, outcome):
    """ok, or refused, or FAILED; and why."""
    kernel = outcome.kernel
    last = next((line for line in reversed(outcome.words) if line.startswith("pybpf: ")), "nothing said")
    try:
        check_sentences(outcome.words, kernel)
        if outcome.status == "0":
            if mode.account:
                check_account(outcome)
            return "ok", mode.check(outcome) or ""
        if kernel < mode.least and re.search(mode.refusal, last):
            return "refused", last[len("pybpf: ") :]
        return "FAILED", "status %s: %s" % (outcome.status or "none", last)
    except (AssertionError, KeyError, ValueError, IndexError) as error:
        return "FAILED", "%s%s" % ("" if isinstance(error, AssertionError) else type(error).__name__ + ": ", error)


def verified(outcomes):
    """The most that the verifier went through, of each program, and the stack of its functions then."""
    most = {}
    for outcome in outcomes:
        for name, count, stack in outcome.programs():
            most[name] = max(most.get(name, (0, "")), (count, stack))
    return most


def judge(modes, folder):
    """Prints a line for each mode that ran, and leaves FOLDER/modes.json. Returns how many have FAILED."""
    rows, outcomes = [], []
    for mode in modes:
        outcome = Outcome(os.path.join(folder, "modes"), mode.key)
        if outcome.status:
            outcomes.append(outcome)
            rows.append((mode.name, *judge_mode(mode, outcome)))
    for name, verdict, why in rows:
        print("  %-36s %s%s" % (name, verdict, why and ": " + why))
    with open(os.path.join(folder, "modes.json"), "w", encoding="utf-8") as file:
        json.dump({"modes": rows, "programs": verified(outcomes)}, file)
    return sum(verdict == "FAILED" for _, verdict, _ in rows)


def print_matrix(columns, rows, cell):
    width = max(map(len, rows), default=0)
    wide = {column: max([len(column)] + [len(cell(row, column)) for row in rows]) for column in columns}
    print("  ".join([" " * width] + ["%-*s" % (wide[column], column) for column in columns]).rstrip())
    for row in rows:
        print("  ".join(["%-*s" % (width, row)] + ["%-*s" % (wide[c], cell(row, c)) for c in columns]).rstrip())


def compare(modes, folders):
    """Prints mode by kernel, and program by kernel."""
    found = {}
    for folder in folders:
        with open(os.path.join(folder, "modes.json"), encoding="utf-8") as file:
            found[os.path.basename(os.path.normpath(folder))] = json.load(file)
    verdicts = {kernel: {name: (verdict, why) for name, verdict, why in data["modes"]} for kernel, data in found.items()}
    shown = [mode.name for mode in modes if any(mode.name in column for column in verdicts.values())]
    notes = []

    def verdict_of(row, kernel):
        verdict, why = verdicts[kernel].get(row, ("not run", ""))
        if not why:
            return verdict
        if why not in notes:
            notes.append(why)
        return "%s (%d)" % (verdict, notes.index(why) + 1)

    print_matrix(list(found), shown, verdict_of)
    for number, note in enumerate(notes, 1):
        print("(%d) %s" % (number, note))
    programs = sorted({name for data in found.values() for name in data["programs"]})
    print("\nthe verifier: instructions that it went through at most, and the stack of each function then")
    print_matrix(
        list(found), programs, lambda row, kernel: "%d  %s" % tuple(found[kernel]["programs"].get(row, (0, "-")))
    )
