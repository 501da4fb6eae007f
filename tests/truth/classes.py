# SPDX-License-Identifier: Apache-2.0
"""Classes that are made and freed, by the statement, by a metaclass and by type()."""

import start

STACKS = [
    "shop plain Plain helper",
    "shop special __new__",
    "shop special Special helper",
    "shop special __init__ helper",
    "shop special method",
    "shop called __new__",
    "shop called __init__ helper",
    "shop decorated decorate helper",
    "shop decorated Decorated",
]


def helper():
    for _ in range(4):
        pass


class Meta(type):
    def __new__(mcs, name, bases, members):
        return type.__new__(mcs, name, bases, members)

    def __init__(cls, name, bases, members):
        helper()
        type.__init__(cls, name, bases, members)


Root = Meta("Root", (), {})


def decorate(made):
    helper()
    return made


def plain():
    class Plain(object):
        helper()

        def method(self):
            pass

    return Plain


def special():
    class Special(Root):
        helper()

        def method(self):
            pass

    Special().method()


def called():
    Meta("Called", (object,), {"method": helper})


def decorated():
    @decorate
    class Decorated(object):
        pass

    return Decorated


def shop():
    plain()
    special()
    called()
    decorated()


if __name__ == "__main__":
    start.forever(shop)
