# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Every way in which Python code comes to call Python code, one after the other, for ever."""

import functools
import sys

import expect

try:
    import ctypes
except ImportError:
    ctypes = None


def burn(*_):
    sum(range(8000))  # burn: hot
    return 1


def nested_outer():
    nested_middle()  # nested_outer > nested_middle


def nested_middle():
    for _ in range(2):
        burn()  # nested_middle > burn


def recurse(depth):
    if depth:
        recurse(depth - 1)  # recurse > recurse
    else:
        burn()  # recurse > burn


def generator():
    for _ in range(2):
        burn()  # generator > burn
        yield 1


def generator_chain():
    for value in generator():  # generator_chain > generator
        yield value


def generator_user():
    for _ in generator_chain():  # generator_user > generator_chain
        pass


def genexpr_user():
    #: genexpr_user > genexpr_user.<locals>.<genexpr>; genexpr_user.<locals>.<genexpr> > burn
    sum(burn() for _ in range(2))


# Python 2 and 3.12 on run a list's comprehension in the frame of the function.
def list_user():
    #: [3.0-3.11] list_user > list_user.<locals>.<listcomp>
    #: [3.0-3.11] list_user.<locals>.<listcomp> > burn; [-2.7] list_user > burn
    #: [3.12-] list_user > burn
    return [burn() for _ in range(2)]


def dict_user():
    #: [-3.11] dict_user > dict_user.<locals>.<dictcomp>
    #: [-3.11] dict_user.<locals>.<dictcomp> > burn; [3.12-] dict_user > burn
    return {n: burn() for n in (1, 2)}


def set_user():
    #: [-3.11] set_user > set_user.<locals>.<setcomp>; [-3.11] set_user.<locals>.<setcomp> > burn
    #: [3.12-] set_user > burn
    return {burn() for n in (1, 2)}


def sort_key(value):
    burn()  # sort_key > burn
    return value


def sort_user():
    sorted([2, 1], key=sort_key)  # sort_user > sort_key


def map_user():
    list(map(burn, [1, 2]))  # map_user > burn


def add(left, right):
    return left + burn()  # add > burn


def reduce_user():
    functools.reduce(add, [1, 2, 3])  # reduce_user > add


def partial_user():
    functools.partial(burn, 1)()  # partial_user > burn


if ctypes:
    c_callback = ctypes.CFUNCTYPE(ctypes.c_int)(burn)


def ctypes_user():
    c_callback()


class Inner(object):
    def __call__(self):
        return burn()  # Inner.__call__ > burn


class Outer(object):
    def __init__(self):
        burn()  # Outer.__init__ > burn
        self.inner = Inner()

    def __call__(self):
        return self.inner()  # Outer.__call__ > Inner.__call__

    @property
    def attribute(self):
        return burn()  # Outer.attribute > burn

    def __getattr__(self, name):
        return burn()  # Outer.__getattr__ > burn

    def __add__(self, other):
        return burn()  # Outer.__add__ > burn

    @staticmethod
    def static():
        return burn()  # Outer.static > burn

    @classmethod
    def of_class(cls):
        return burn()  # Outer.of_class > burn


class Derived(Outer):
    def __init__(self):
        super(Derived, self).__init__()  # Derived.__init__ > Outer.__init__


def object_user():
    made = Derived()  # object_user > Derived.__init__
    made()  # object_user > Outer.__call__
    made.attribute  # object_user > Outer.attribute
    made.no_such_attribute  # object_user > Outer.__getattr__
    made + 1  # object_user > Outer.__add__
    Outer.static()  # object_user > Outer.static
    Outer.of_class()  # object_user > Outer.of_class


def class_user():
    class Body(object):  # class_user > class_user.<locals>.Body
        attribute = burn()  # class_user.<locals>.Body > burn

    return Body


def lambda_user():
    #: lambda_user > lambda_user.<locals>.<lambda>; lambda_user.<locals>.<lambda> > burn
    (lambda: burn())()


def closure_user():
    count = 2

    def closure():
        for _ in range(count):
            burn()  # closure_user.<locals>.closure > burn

    closure()  # closure_user > closure_user.<locals>.closure


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)  # decorate.<locals>.wrapper > decorated

    return wrapper


@decorate
def decorated():
    burn()  # decorated > burn


def decorator_user():
    decorated()  # decorator_user > decorate.<locals>.wrapper


class Manager(object):
    def __enter__(self):
        burn()  # Manager.__enter__ > burn

    def __exit__(self, *_):
        burn()  # Manager.__exit__ > burn


# From 3.10 on leaving a block is at the line of its "with"; before, at the last line inside.
def with_user():
    with Manager():  # with_user > Manager.__enter__; [3.10-] with_user > Manager.__exit__
        burn()  # with_user > burn; [-3.9] with_user > Manager.__exit__


def raising():
    burn()  # raising > burn
    raise KeyError("expected")


def except_user():
    try:
        raising()  # except_user > raising
    except KeyError:
        burn()  # except_user > burn
    finally:
        burn()  # except_user > burn


GENERATED = compile("\n" * 499 + "def made():\n    burn()\nmade()\n", "generated.py", "exec")


def exec_user():
    exec(GENERATED, {"burn": burn})


observed = None


def argument(*_):
    if observed is not None:
        observed.append(sys._getframe(1).f_lineno)
    return burn()  # argument > burn


# Which line of a call over several lines counts changed with the versions: it asks its own frame.
def spread_user():
    return argument(
        argument(
            1,
            argument(),
        )
        + argument(
            2,
            3,
        ),
    )


def observe_spread():
    global observed
    observed = []
    spread_user()
    lines, observed = observed, None
    return lines


def main():
    while True:
        nested_outer()  # main > nested_outer
        recurse(3)  # main > recurse
        generator_user()  # main > generator_user
        genexpr_user()  # main > genexpr_user
        list_user()  # main > list_user
        dict_user()  # main > dict_user
        set_user()  # main > set_user
        sort_user()  # main > sort_user
        map_user()  # main > map_user
        reduce_user()  # main > reduce_user
        partial_user()  # main > partial_user
        if ctypes:
            ctypes_user()
        object_user()  # main > object_user
        class_user()  # main > class_user
        lambda_user()  # main > lambda_user
        closure_user()  # main > closure_user
        decorator_user()  # main > decorator_user
        with_user()  # main > with_user
        except_user()  # main > except_user
        exec_user()  # main > exec_user
        spread_user()  # main > spread_user


def expectation():
    wanted = expect.describe(__file__)
    wanted.call("spread_user", "argument", *observe_spread())
    first = exec_user.__code__.co_firstlineno
    wanted.call("exec_user", "generated.py|<module>", first + 1)
    wanted.call("generated.py|<module>", "generated.py|made", 502)
    wanted.call("generated.py|made", "burn", 501)
    wanted.add_code(GENERATED, "generated.py|")
    wanted.files.add("generated.py")
    if ctypes:
        wanted.call("main", "ctypes_user", main_line("ctypes_user()"))
        wanted.call("ctypes_user", "burn", ctypes_user.__code__.co_firstlineno + 1)
    return wanted


def main_line(text):
    with open(__file__.replace(".pyc", ".py")) as source:
        lines = [number for number, line in enumerate(source, 1) if line.strip() == text]
    return lines[-1]


if __name__ == "__main__":
    expect.ready(expectation())
    main()  # <module> > main
