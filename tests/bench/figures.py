# SPDX-License-Identifier: Apache-2.0
"""Figures with their spread and their targets, and the table and JSON that are made of them. Touches no process."""

import statistics
from dataclasses import dataclass, field
from typing import List, Optional


@dataclass(frozen=True)
class Target:
    """What a figure's median should be: at most the limit, or with at_least no less."""

    limit: float
    text: str
    at_least: bool = False

    def verdict(self, figure):
        median = figure.median
        if median >= self.limit if self.at_least else median <= self.limit:
            return "target %s, met" % self.text
        inside = figure.low <= self.limit <= figure.high
        return "target %s, missed%s" % (self.text, " (within the spread)" if inside else "")


@dataclass
class Figure:
    """One number per round; a round that failed has none."""

    values: List[float]
    digits: int = 2
    target: Optional[Target] = None
    spread: bool = True  # is shown, beside the median

    def __post_init__(self):
        self.values = [value for value in self.values if value is not None]

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def low(self):
        return min(self.values)

    @property
    def high(self):
        return max(self.values)

    def text(self):
        if not self.values:
            return "-"
        if not self.spread:
            return "%.*f" % (self.digits, self.median)
        return "%.*f (%.*f..%.*f)" % (self.digits, self.median, self.digits, self.low, self.digits, self.high)

    def verdict(self):
        return self.target.verdict(self) if self.target and self.values else ""

    def missed(self):
        return "missed" in self.verdict()

    def machine(self):
        if not self.values:
            return None
        words = {"median": self.median, "min": self.low, "max": self.high, "values": self.values}
        if self.target:
            words.update(target=self.target.text, missed=self.missed())
        return words


def each(rounds, value):
    """A value of every round's result, None where the round has none."""
    return [None if result is None else value(result) for result in rounds]


def ratios(ours, theirs, scale=1.0):
    """The ratio within each round of two lists with a value per round, None where it failed."""
    assert len(ours) == len(theirs), "%d rounds against %d" % (len(ours), len(theirs))
    return [scale * a / b if a is not None and b is not None and b > 0 else None for a, b in zip(ours, theirs)]


@dataclass
class Section:
    """A part of the table. A row has a cell per column, a text or a Figure."""

    title: str
    columns: List[str]
    rows: List[list] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    def add(self, *cells):
        assert len(cells) == len(self.columns), "%d cells for %d columns" % (len(cells), len(self.columns))
        self.rows.append(list(cells))

    def text(self):
        lines = [self.columns + [""]]
        for row in self.rows:
            verdicts = [cell.verdict() for cell in row if isinstance(cell, Figure)]
            lines.append(
                [cell.text() if isinstance(cell, Figure) else str(cell) for cell in row]
                + ["; ".join(verdict for verdict in verdicts if verdict)]
            )
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))] + [0]
        numbers = [any(isinstance(row[at], Figure) for row in self.rows) for at in range(len(self.columns))] + [False]
        out = ["== " + self.title]
        for line in lines:
            cells = [
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(line, widths, numbers)
            ]
            out.append("  ".join(cells).rstrip())
        return "\n".join(out + ["   " + note for note in self.notes])

    def machine(self):
        rows = []
        for row in self.rows:
            cells = zip(self.columns, row)
            rows.append({name: cell.machine() if isinstance(cell, Figure) else cell for name, cell in cells})
        return {"title": self.title, "notes": self.notes, "rows": rows}

    def missed(self):
        return sum(cell.missed() for row in self.rows for cell in row if isinstance(cell, Figure))
