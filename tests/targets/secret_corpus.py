# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""
Variables with the names and values of a corpus, of the kind that the second argument says, or with those that no JSON has.
Every function calls the next one; the last one sleeps. Values are globals: a local is shown once only, under its own name.
"""

import collections
import ctypes
import json
import keyword
import os
import re
import sys
import time

PY3 = sys.version_info[0] == 3
PER_FUNCTION = 25
SECRET = "hunter2-Zq9"


class Holder(object):
    pass


class Slots(object):
    __slots__ = ("db_password", "author")


class NamedSlots(object):
    __slots__ = ("value", "name")


class MyStr(str):
    pass


class PasswordField(object):
    pass


Login = collections.namedtuple("Login", "user api_key author")

Parameter = collections.namedtuple("Parameter", "name value")

if PY3:
    import enum
    import pathlib

    class Kind(enum.Enum):
        TOKEN = 1
        OTHER = "password"
        AUTHOR = 2


def native(text):
    return text if PY3 else text.encode("utf-8")


def read_cases(path):
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    # 2.7 has both kinds of text.
    return [(native(row[1]), native(row[2]) if i % 2 and not isinstance(row[2], (list, dict, int)) else row[2]) for i, row in enumerate(rows)]


def is_name(text):
    return re.match("[A-Za-z_][A-Za-z_0-9]*$", text) and not keyword.iskeyword(text)


def as_variable(name, i):
    return "%s = V[%d]" % (name, i) if is_name(name) else "k%d = {N[%d]: V[%d]}" % (i, i, i)


def as_key(name, i):
    return "k%d = {N[%d]: V[%d]}" % (i, i, i)


def as_attribute(name, i):
    return "k%d = Holder(); k%d.__dict__[N[%d]] = V[%d]" % (i, i, i, i)


def as_pair(name, i):
    return "k%d = (N[%d], V[%d])" % (i, i, i) if is_name(name) else as_key(name, i)


def make_functions(cases, kind):
    """The source of functions, each with some cases, none with a name twice."""
    bodies, places = [[]], []
    for i, (name, value) in enumerate(cases):
        body = bodies[-1]
        if len(body) >= PER_FUNCTION or any(line.startswith(name + " = ") for line in body):
            bodies.append([])
            body = bodies[-1]
        line = globals()["as_" + kind](name, i)
        body.append(line)
        places.append(["f%d" % (len(bodies) - 1), re.match(r"\w+", line).group()])
    text = "".join(
        "def f%d():\n    %s\n    f%d()\n" % (number, "\n    ".join(body), number + 1) for number, body in enumerate(bodies)
    )
    return text + "def f%d():\n    stand()\n" % len(bodies), places


def stand():
    time.sleep(1000)


def forms():
    header, by_tuple, by_nested = ("Authorization", "Bearer " + SECRET, 1), {("db", "password"): SECRET}, {(("a", "token"), 1): SECRET}
    by_nul, by_nuls, by_high = {b"\0password": SECRET}, {b"\0\0\0api_key\0": SECRET}, {b"\xffsecret": SECRET}
    by_long, by_longer, by_whole = {b"x" * 2000 + b" token": SECRET}, {"y " * 2500 + "password": SECRET}, {"z" * 70000: SECRET}
    by_list, by_set, by_class = {("x", ("y", ("z", ("password",)))): SECRET}, {frozenset(["password"]): SECRET}, {PasswordField: SECRET}
    by_object = {PasswordField(): SECRET}
    by_str, item_str = {MyStr("db_pass"): SECRET}, [MyStr("--password"), MyStr(SECRET)]
    login, slots, queue = Login("bob", SECRET, "x"), Slots(), collections.deque(["--password", SECRET, "x"])
    slots.db_password = SECRET
    ordered, default = collections.OrderedDict([("token", SECRET)]), collections.defaultdict(list, {"passwd": [SECRET]})
    data, array, error = b"Authorization: Bearer " + SECRET.encode(), bytearray(b"password=" + SECRET.encode()), ValueError("password=" + SECRET)
    several, frozen, lines = {"password=" + SECRET}, frozenset(["token: " + SECRET]), [b"--password", SECRET.encode(), 7]
    cut, cut_url = "x" * 85 + " password=" + SECRET, "postgres://bob:" + SECRET * 30 + "@db/x"
    # Digits alone could be a port, until the @ behind what is shown.
    cut_digits = "x" * 60 + " https://bob:" + "4711" * 15 + "@example.org/"
    cut_json, cut_block = '{"password": "' + SECRET * 200, "-----BEGIN PRIVATE KEY-----\n" + SECRET * 200
    before, behind = u"\u20ac\u4e2d password=" + SECRET, u"password=" + SECRET + u"\u20ac"
    held = Holder()
    held.name, held.value = "DB_PASSWORD", SECRET
    parameter, reverse, basic = Parameter("DB_PASSWORD", SECRET), {"value": SECRET, "name": "DB_PASSWORD"}, ["Authorization:", "Basic", SECRET]
    named_slots, several_options = NamedSlots(), ["--password", "--token", SECRET, "token", "=", SECRET]
    named_slots.value, named_slots.name = SECRET, "api_key"
    numbers, deep = {"pin": 4711471147, "otp": [4711471147]}, {"a": [{"b": ("password", SECRET)}]}
    unreadable = {Holder(): SECRET, 1: "shown"}
    pair = [Holder(), SECRET]
    for broken in [broken for broken in unreadable if broken != 1] + pair[:1]:
        # An invalid type.
        ctypes.c_size_t.from_address(id(broken) + object.__basicsize__ - ctypes.sizeof(ctypes.c_size_t)).value = 0xDEADBEEF0
        del broken
    if PY3:
        member, member_value, member_pair = {Kind.TOKEN: SECRET}, {Kind.OTHER: SECRET}, [Kind.TOKEN, SECRET]
        path = pathlib.PurePosixPath("/v1/gh" + "p_0123456789abcdefghij" + SECRET)
        shown_member = {Kind.AUTHOR: "shown"}
    shown_name, shown_tuple, shown_login = {"monkey": "shown"}, {("a", "b"): "shown"}, Login("shown", None, "shown")
    locals()
    stand()


def main():
    path, kind = sys.argv[1:]
    says = {"pid": os.getpid()}
    if kind == "forms":
        first = forms
    else:
        cases = read_cases(path)
        source, says["places"] = make_functions(cases, kind)
        scope = {"V": [value for _, value in cases], "N": [name for name, _ in cases], "Holder": Holder, "stand": stand}
        exec(source, scope)
        first = scope["f0"]
        del cases, source, scope
    print(json.dumps(says))
    sys.stdout.flush()
    first()


main()
