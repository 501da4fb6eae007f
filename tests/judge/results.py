# SPDX-License-Identifier: Apache-2.0
"""What came of one program on one Python, and how stacks are held against the program's rule."""

import functools
from dataclasses import dataclass, field

import harness

EXAMPLES = 5


@dataclass
class Result:
    program: str
    python: str
    sampler: str = "pybpf"
    samples: int = 0
    impossible: int = 0
    wrong_names: int = 0
    given_up: int = 0
    of: int = 0
    calls: int = 0  # of native functions, by all samples
    stacks: int = 0
    causes: dict = field(default_factory=dict)
    examples: list = field(default_factory=list)
    begun: dict = field(default_factory=dict)  # samples by the first frame that the rule is about
    shares: dict = field(default_factory=dict)
    failed: str = ""

    def good(self):
        return not (self.impossible or self.wrong_names or self.failed)

    def why(self):
        """What is wrong with it, for the message of a failed test."""
        counts = "%d samples: %d impossible, %d wrong names" % (self.samples, self.impossible, self.wrong_names)
        return "\n".join([counts] + [self.failed] * bool(self.failed) + self.examples)

    def tally(self, cause, number):
        if number:
            self.causes[cause] = self.causes.get(cause, 0) + number

    def hold(self, program, stacks, spellings, lines=True):
        """Counts what contradicts the program's rule.

        spellings: whether names may be plain (False), qualified (True); lines: whether each frame has to have one.
        """

        @functools.lru_cache(maxsize=None)
        def is_right(frame):
            return any(program.right_name(frame, qualified, lines) for qualified in spellings)

        @functools.lru_cache(maxsize=None)
        def short(frame):
            return harness.Frame(frame.name.rpartition(".")[2], frame.file, frame.line)

        for stack, count in stacks:
            wrong = [frame for frame in stack if not is_right(frame)]
            own = program.own([short(frame) for frame in stack])
            what = ""
            if wrong:
                self.wrong_names += count
                what = "wrong name %s" % harness.show(wrong[:1])
            if not program.possible(own):
                self.impossible += count
                what += (" and " if what else "") + "impossible"
            elif own:
                self.begun[own[0].name] = self.begun.get(own[0].name, 0) + count
            if what and len(self.examples) < EXAMPLES:
                self.examples.append("%d x %s: %s" % (count, what, harness.show(stack)))
