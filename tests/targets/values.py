# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Functions with a local of each kind, which prints what repr() says of them and sleeps in the innermost one."""

import collections
import datetime
import decimal
import json
import os
import sys
import threading
import time

PY3 = sys.version_info[0] == 3
LAZY = range if PY3 else eval("xrange")


class Plain(object):
    def __init__(self):
        self.first = 1
        self.second = "two"


class Index(object):
    """As a class of pandas that is written by its shape."""

    def __init__(self):
        self._range = 7


class Decimal(object):
    """As the module decimal's in Python."""

    def __init__(self):
        self._int = "12"


class Empty(object):
    pass


class Slots(object):
    __slots__ = ("left", "right", "unset")

    def __init__(self):
        self.left = 1
        self.right = [2]


class SlotsAndDict(Slots):
    def __init__(self):
        Slots.__init__(self)
        self.more = None


class MyInt(int):
    pass


class MyStr(str):
    pass


class MyList(list):
    pass


class MyDict(dict):
    pass


class Old:
    def __init__(self):
        self.a = 1


LongName = type("Long" * 40, (object,), {})
LongerName = type("Long" * 60, (object,), {})


class LongSlot(object):
    __slots__ = ("s" * 100,)


class MyError(Exception):
    pass


Point = collections.namedtuple("Point", "x y")
Account = collections.namedtuple("Account", "password b c d e f g h i j k l")


def function():
    pass


if PY3:
    import enum
    import pathlib

    class Color(enum.Enum):
        RED = 1

    class Secret(enum.Enum):
        PASSWORD = 1

    class Number(enum.IntEnum):
        ONE = 1

    class Perm(enum.Flag):
        R = 4
        W = 2


def numbers(arg, *args, **kwargs):
    zero, one, minus, big, bigger, huge = 0, 1, -1, 2**30, -(2**64) - 7, 3**500
    longest = 1 << 70000
    yes, no, none, dots, not_impl = True, False, None, Ellipsis, NotImplemented
    half, tenth, whole, large, small, minus_zero = 0.5, 0.1, 3.0, 1e22, 1.5e-7, -0.0
    edge, edge2, third, inf, nan = 1e16, 123456789012345.6, 1 / 3.0, float("inf"), float("nan")
    power, power_small, power_neg, tiny, most = 2.0**89, 2.0**-44, -(2.0**-1017), 5e-324, 1.7976931348623157e308
    imaginary, both, negative, with_nan = 2j, 1.5 - 2.25j, complex(-0.0, 1), complex(1, -nan)
    my_int = MyInt(5)
    locals()
    texts()


def texts():
    empty, ascii, quote, both, escape = "", "abc", "it's", "it's \"both\"", "a\n\t\r\\\x00\x7f"
    latin, wide, wider, mixed = u"\xe9t\xe9\xa0\xad", u"\u20ac\u4e2d\u200b", u"\U0001f600\U0010ffff", u"a\u0100'"
    surrogate, formats = u"\ud800", u"\u0890\u0891\U000110cd\U00013430\U0001343f"
    data, array, none = b"\x00ab'\xff", bytearray(b"ab\x01"), bytearray()
    array_single, array_both, array_double = bytearray(b"it's"), bytearray(b"'\""), bytearray(b'"')
    point_delta = type("datetime.timedelta", (object,), {})()
    point_delta.days = 1
    long, long_data = "x" * 500, b"y" * 500
    my_str = MyStr("mine")
    my_wide = MyStr("mine") if not PY3 else MyStr(u"\u20acmine")
    locals()
    containers()


def containers():
    list0, list3, nested = [], [1, "b", None], [[1, [2, [3, [4]]]], (5,)]
    tuple0, tuple1, tuple2 = (), (1,), (1, "b")
    set0, set1, set9, frozen, frozen0 = set(), {1}, set(range(9)), frozenset({"a"}), frozenset()
    dict0, dict1, mixed = {}, {"a": 1}, {"a": 1, 2: "b", None: (3,), (4, 5): []}
    deleted = {"a": 1, "b": 2, "c": 3}
    del deleted["b"]
    circle = [1]
    circle.append(circle)
    ring = {}
    ring["self"] = ring
    many, many_items = list(range(1000)), dict.fromkeys(range(1000))
    removed = set(range(9))
    removed.discard(3)
    wide_set = set(range(0, 100000, 1000))
    span, step = LAZY(1, 7), LAZY(0, 9 if PY3 else 10, 2)
    cut, cut3 = slice(1, 2), slice(None, None, -1)
    default = collections.defaultdict(list, {"a": [1]})
    ordered = collections.OrderedDict([("a", 1), ("b", 2)])
    counter = collections.Counter("aab")
    queue, bounded, queue0 = collections.deque([1, 2]), collections.deque(range(9), 3), collections.deque()
    long_queue = collections.deque(range(200))
    for _ in range(150):
        long_queue.popleft()
    my_list, my_dict = MyList([1]), MyDict(a=1)
    locals()
    objects()


def objects():
    not_pandas, not_decimal = Index(), Decimal()
    fifo = collections.OrderedDict() if not PY3 else {}
    for number in range(3000):
        fifo[number] = number
        if number > 2:
            del fifo[number - 3]
    fifo = dict(fifo) if not PY3 else fifo
    del number
    plain, empty, slots, slots_dict, grown = Plain(), Empty(), Slots(), SlotsAndDict(), Plain()
    grown.third = 3
    if PY3:
        dictionary = Plain()
        dictionary.__dict__["x y"] = 1
        keyed = Plain()
        keyed.__dict__.update({5: 6, ("password", 1): 2, MyStr("mine"): 3, "n" * 5000: 4})
    turned = Plain.__new__(Plain)
    turned.second, turned.first = 2, 1
    turned_dict, anew = turned.__dict__, Plain()
    del anew.first
    anew.first = 5
    old, long_name, longer_name, long_slot = Old(), LongName(), LongerName(), LongSlot()
    setattr(long_slot, "s" * 100, 1)
    point = Point(1, "y")
    error, error2, lookup_error, os_error, my_error = ValueError("bad"), ValueError(), KeyError("k"), OSError(2, "No"), MyError(1, 2)
    dec, dec_exp, dec_neg, dec_big = (decimal.Decimal(text) for text in ("1.10", "1E+7", "-0.00000012", "123456789012345678901234567890.5"))
    dec_nan, dec_inf, dec_payload, dec_snan = (decimal.Decimal(text) for text in ("NaN", "-Infinity", "NaN123", "-sNaN77"))
    day, moment, micro = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2), datetime.datetime(1, 2, 3, 4, 5, 6, 7)
    clock, clock_s = datetime.time(1, 2), datetime.time(1, 2, 3)
    delta, delta0, delta_neg = datetime.timedelta(1, 2, 3), datetime.timedelta(0), datetime.timedelta(-1)
    func, builtin, method, bound, klass, int_class, module = function, len, [].append, plain.__init__, Plain, int, os
    lock, generator = threading.Lock(), (i for i in ())
    if PY3:
        red, number, perm = Color.RED, Number.ONE, Perm.R
        zone, utc, east = datetime.datetime(2024, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=1))
        fold, fold_time = datetime.datetime(2024, 1, 1, fold=1, tzinfo=utc), datetime.time(1, fold=1, tzinfo=east)
        path_root, path_of_root, path_net, path_new = pathlib.Path("/"), pathlib.Path("/") / "etc", pathlib.Path("//net/x"), pathlib.Path("a") / "/b"
        path, path_rel, path_odd, path_str = pathlib.Path("/a/b"), pathlib.Path("a") / "b", pathlib.Path("a//b/./c/"), pathlib.Path("/s")
        str(path_str)
        pure, pure_windows = pathlib.PurePosixPath("x"), pathlib.PureWindowsPath("c:\\a\\b")
        path_byte, path_signs, path_slash = pathlib.Path("a\udcff"), pathlib.Path("b\u202e", "\\'\n"), pathlib.Path("//s", "..", "")
        path_byte_str = pathlib.Path("a\udcff\xe9")
        str(path_byte_str), str(pure_windows)
    locals()
    classes()


def classes():
    if sys.version_info >= (3, 7):
        from values_dataclasses import make

        data, frozen, slotted, inherited, hides, of_class = make()
    locals()
    cells(1, 2)


def cells(captured, plain):
    shared = [1]

    def inner(own):
        local = captured + own
        secrets("s3cret", "hunter2")
        return shared, local

    inner(3)


def secrets(password, api_key):
    token, monkey, config, headers = "tok", "banana", {"Password": "p", "user": "u", b"secret": 1}, [("Authorization", "Bearer x"), ("Accept", "y")]
    holder = Plain()
    holder.db_password = "p"
    subclassed, pairs = {MyStr("password"): "p"}, [(MyStr("cookie"), "c")]
    account = Account(*"pbcdefghijkl")
    if PY3:
        wide, members, far = {MyStr(u"\u20actoken"): "t"}, {Secret.PASSWORD: "p"}, {b"x" * 80 + b"token": "t"}
    locals()
    wait()


def wait():
    """repr() leaves something in what it was asked for, which no other program has: a child asks."""
    if not os.fork():
        say(sys._getframe(1), os.getppid())
        os._exit(0)
    os.wait()
    time.sleep(1000)


def say(here, pid):
    says = {"pid": pid, "frames": {}}
    while here:
        values = {name: repr(value) for name, value in here.f_locals.items() if name != "longest"}
        if not PY3:
            values = {name: text.decode("latin-1") for name, text in values.items()}
        says["frames"][here.f_code.co_name] = values
        here = here.f_back
    says["frames"].pop("<module>")
    print(json.dumps(says))
    sys.stdout.flush()


numbers(7, 8, 9, extra=10)
