# SPDX-License-Identifier: Apache-2.0
"""Dataclasses for values.py; Python 2.7 and 3.6 have none."""

import dataclasses
import sys
import typing


@dataclasses.dataclass
class Data:
    a: int
    b: str = "b"


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int = 1


if sys.version_info >= (3, 10):

    @dataclasses.dataclass(slots=True)
    class Slotted:
        a: int = 1
        b: list = dataclasses.field(default_factory=list)

else:
    Slotted = Frozen


@dataclasses.dataclass
class Inherited(Data):
    c: float = 0.5


@dataclasses.dataclass
class Hides(Data):
    """repr() shows its fields, but not that one, and what else it has neither; in the order of the class."""

    shared: typing.ClassVar[int] = 1
    hidden: str = dataclasses.field(default="h", repr=False)
    given: dataclasses.InitVar[int] = 5
    late: int = dataclasses.field(init=False)

    def __post_init__(self, given):
        self.cache = given
        self.shared = 2
        self.late = given
        self.b = self.__dict__.pop("b")


class Late:
    """A value that repr() would have to ask for."""

    def __get__(self, instance, owner):
        return "asked"


@dataclasses.dataclass
class OfClass(Data):
    """Fields of which the class has the value: of an argument that no object takes, and of those that were deleted."""

    fixed: int = dataclasses.field(init=False, default=3)
    late: str = dataclasses.field(init=False, default=Late())

    def __post_init__(self):
        del self.b


def make():
    return Data(1), Frozen(2), Slotted(3), Inherited(1, "c"), Hides(1), OfClass(1)
