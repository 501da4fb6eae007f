# SPDX-License-Identifier: Apache-2.0
"""What passed, failed and was skipped."""
import re

from runner.commands import say

TEXT = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")
RESULT = "== result, after"
MOST_SECOND_TRIES = 3
SLOWEST = 40
REASON_LENGTH = 300
REASON_LINES = 2


def reason(why):
    """The first lines of what an assertion says, of pytest's text: a log may be cut to its end."""
    lines = why.splitlines()
    first = next((i for i, line in enumerate(lines) if re.match(r"E\s", line)), 0)
    return [line.strip()[:REASON_LENGTH] for line in lines[first : first + REASON_LINES]]


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []  # names
        self.second_tries = []  # (name, why) of tests that failed beside others, and passed alone
        self.times = []  # (seconds, name)

    def fail(self, name, number=1):
        self.failed += number
        self.failures.append(name)

    def add(self, lines, status, name):
        """Lines of another run of the tests, whose last one is its count."""
        told = TEXT.fullmatch(lines[-1]) if lines else None
        passed, failed, skipped = map(int, told.groups()) if told else (0, 0, 0)
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        self.failures += [line[len("FAILED "):] for line in lines if line.startswith("FAILED ")]
        if not told or (status and not failed):
            self.fail("%s %s" % (name, "took too long" if status is None else "ended with status %d" % status))

    def text(self):
        return "%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped)

    def tell(self, seconds, gib, slowest=0):
        """The end of a run, which took up to so much memory. Returns the exit status."""
        for took, name in sorted(self.times, reverse=True)[:slowest]:
            say("%7.1f s  %s" % (took, name))
        say(RESULT + " %d min %d s, with up to %.1f GiB of memory" % (*divmod(seconds, 60), gib))
        if self.second_tries:
            say("%d passed on a second try:" % len(self.second_tries))
            for name, why in self.second_tries:
                say("  " + name)
                for line in reason(why):
                    say("    " + line)
            if len(self.second_tries) > MOST_SECOND_TRIES:
                self.fail("more than %d tests needed a second try" % MOST_SECOND_TRIES)
        for name in self.failures:
            say("FAILED " + name)
        if not self.passed + self.failed:
            say("no test ran")
        say(self.text())
        return 0 if self.passed and not self.failed else 1
