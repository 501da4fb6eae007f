# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --locals: the values of variables, compared with what repr() says in the program."""

import json
import re
import sys

import pytest

import harness
import pythons
from harness import pybpf

sys.path[:0] = [str(harness.TOP / "tests/judge")]

import wheels  # noqa: E402

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)


def dump(pid, *args):
    run = pybpf("dump", "-p", pid, "--json", "--no-source", *args)
    assert run.code == 0 and not run.err, run
    return json.loads(run.out)


def values(snapshot):
    """By function and name, of all functions of all threads."""
    found = {}
    for thread in snapshot["threads"]:
        for frame in thread["frames"]:
            names = found.setdefault(frame["function"].rsplit(".", 1)[-1], {})
            for local in frame.get("locals", ()):
                names[local["name"]] = local["value"]
    return found


# What docs/dump.md says that differs from repr().
DIFFERS = {
    "long": "'" + "x" * 100 + "'...",
    "longest": "<int of about 70020 bits>",
    "not_pandas": "<Index _range=7>",
    "not_decimal": "<Decimal _int='12'>",
    "point_delta": "<datetime.timedelta days=1>",
    "plain": {"objects": "<Plain first=1, second='two'>"},
    "empty": {"objects": "<Empty object>"},
    "slots": "<Slots left=1, right=[2]>",
    "slots_dict": "<SlotsAndDict left=1, right=[2], more=None>",
    "grown": "<Plain first=1, second='two', third=3>",
    "dictionary": "<Plain first=1, second='two', x y=1>",
    "keyed": "<Plain first=1, second='two', 5: 6, ('password', <hidden>): <hidden>, mine=3, '%s'...: <hidden>>" % ("n" * 100),
    "of_class": "OfClass(a=1, b='b', fixed=3)",
    "old": "<Old a=1>",
    "turned": "<Plain second=2, first=1>",
    "anew": "<Plain second='two', first=5>",
    "long_name": "<%s object>" % ("Long" * 40),
    "longer_name": "<%s... object>" % ("Long" * 47),
    "long_slot": "<LongSlot %s=1>" % ("s" * 100),
    "my_int": "MyInt(5)",
    "my_str": "MyStr('mine')",
    "my_list": "MyList([1])",
    "my_dict": "MyDict({'a': 1})",
    "ordered": "OrderedDict({'a': 1, 'b': 2})",
    "many": "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 990 more]",
    "many_items": "{%s, ... 990 more}" % ", ".join("%d: None" % i for i in range(10)),
    "long_queue": "deque([150, 151, 152, 153, 154, 155, 156, 157, 158, 159, ... 40 more])",
    "nested": "[[1, [2, [...]]], (5,)]",
    "func": "<function function>",
    "builtin": "<built-in function len>",
    "method": "<built-in method append of list object>",
    "bound": "<bound method Plain.__init__ of Plain object>",
    "module": "<module 'os'>",
    "generator": "<generator object>",
    "inner": "<function cells.<locals>.inner>",
    "make": "<function make>",
    "password": "<hidden>",
    "api_key": "<hidden>",
    "token": "<hidden>",
    "config": "{'Password': <hidden>, 'user': 'u', b'secret': <hidden>}",
    "headers": "[('Authorization', <hidden>), ('Accept', 'y')]",
    "holder": "<Plain first=1, second='two', db_password=<hidden>>",
    "subclassed": "{MyStr('password'): <hidden>}",
    "account": "Account(password=<hidden>, %s, ... 2 more)" % ", ".join("%s='%s'" % (i, i) for i in "bcdefghij"),
    "pairs": "[(MyStr('cookie'), <hidden>)]",
    "wide": {"secrets": "{MyStr('\u20actoken'): <hidden>}"},
    "members": "{<Secret.PASSWORD: <hidden>>: <hidden>}",
    "far": "{b'%stoken': <hidden>}" % ("x" * 80),
}
OF_2 = {
    "my_wide": "MyStr('mine')",
    "bound": "<bound method __init__ of Plain object>",
    "inner": "<function inner>",
    "config": None,  # the order of 2.7's dicts is of hashes
    "counter": None,
    "ordered": None,  # 2.7 has it in Python
    "plain": None,
    "turned": None,
    "turned_dict": None,
    "anew": None,
    "grown": None,
    "holder": None,
    "slots_dict": None,
}


def expected(function, name, said, python):
    if name in ("lock", "wide_set"):
        return None
    own = DIFFERS.get(name)
    if isinstance(own, dict):
        own = own.get(function)
    if python.version[0] == 2 and name in OF_2:
        return OF_2[name]
    if name == "my_wide":
        return "MyStr(%s)" % said
    if name == "long_data":
        return said[:102].rstrip("'")[: 102 if said[0] == "b" else 101] + "'..."
    return said if own is None else own


@every_python
def test_values_are_those_of_repr(python):
    with harness.target(python, "values.py") as target:
        found = values(dump(target.pid, "--locals"))
        shown = values(dump(target.pid, "--locals", "--show-secrets"))
        said = target.says["frames"]
    wrong = []
    for function, names in said.items():
        if function == "wait":
            continue
        if set(names) - set(found[function]):
            wrong.append((function, "missing", set(names) - set(found[function])))
        for name, text in names.items():
            value = found[function].get(name)
            want = expected(function, name, text, python)
            if want is not None and value != want:
                wrong.append((function, name, value, want))
    assert not wrong, "\n".join(map(str, wrong))
    assert shown["secrets"]["token"] == "'tok'" and "'p'" in shown["secrets"]["config"]
    assert "'Bearer x'" in shown["secrets"]["headers"] and "<hidden>" not in str(shown)


EVERY = pythons.of_each_version(pythons.interpreters())


@pytest.mark.parametrize(
    "python, library",
    [(python, "numpy") for python in EVERY] + [(python, "pandas") for python in EVERY if python.version in ((3, 9), (3, 13))],
    ids=lambda item: getattr(item, "name", item),
)
def test_numpy_and_pandas(python, library):
    """Scalars by their value, arrays and tables by their shape."""
    folder, why = wheels.find(python, library)
    if why:
        pytest.skip("%s has no %s: %s" % (python.name, library, why))
    with harness.target(python, "tables.py", library, folder) as target:
        found = values(dump(target.pid, "--locals"))["stand_" + library]
        said = target.says["said"]
    assert len(said) >= 10
    assert {name: found.get(name) for name in said} == said


# All that values of mutates.py can consist of.
TOKEN = re.compile(
    r"<unreadable>|<hidden>|'(?:v\d*)+'|v\d*=|one=|two=|'v'|\d+(?:\.0)?|Thing|Slotted|deque|set|object|"
    r"<bound method|None|\.\.\.(?: \d+ more)?|[][(){}<>,: ]+"
)
# What each variable can be.
SHAPES = {
    "numbers": r"\[.*\]",
    "names": r"\{.*\}",
    "both": r"(set\(|\{).*(\}|\))",
    "queue": r"deque\(\[.*\]\)",
    "thing": r"<Thing .*>",
    "slotted": r"<Slotted .*>",
    "i": r"\d+",
    "text": r"'v\d+'",
    "deep": r"\[.*\]",
    # All of them of one moment.
    "equal": r"None|\[(\d+\.0), \1, \1, \1\]",
}


def rest(value):
    """What the value cannot consist of. The second of two whose first cannot be read is hidden: that may be its name."""
    return TOKEN.sub("", value.replace("<unreadable>, <hidden>", "").replace("<unreadable>", ""))


@every_python
def test_values_that_change_all_the_time(python):
    """No value is of a wrong type or has anything in it that never was there; some are readable."""
    seen = {}
    with harness.target(python, "mutates.py", "2") as target:
        for i in range(12):
            snapshot = dump(target.pid, "--locals", *(["--freeze"] if i % 4 == 3 else []))
            for name, value in values(snapshot).get("change", {}).items():
                seen.setdefault(name, []).append(value)
                assert value == "<unreadable>" or re.fullmatch(SHAPES[name], value), (name, value)
                assert not rest(value), (name, value, rest(value))
        harness_alive = harness.state(target.pid)
    assert harness_alive in "RS"
    assert any("<unreadable>" not in value for texts in seen.values() for value in texts), seen


# What each variable of replaces.py can be, by its function; a number and what is made of it are of one moment.
REPLACED = {
    "texts": {
        "n": r"\d+",
        "text": r"'(\d+):\1'",
        "big": r"[1-9]\d*0{30}L?",
        "data": r"b'(\d+)\|\1'|'(\d+):\2'",
        "pair": r"\((\d+), -\1\)",
        "nested": r"\[\((\d+), \[\1, -\1\]\)\]",
        "entries": r"\{'[ab]': (\d+), '[ab]': \1\}",
    },
    "numbers": {"up": r"\d+", "down": r"0|-\d+", "half": r"\d+\.5"},
    "parts": {
        "thing": r"<Thing (up=\d+, down=-\d+|down=-\d+, up=\d+)>",
        "slotted": r"<Slotted (up=\d+, down=-\d+|down=-\d+, up=\d+)>",
        "both": r"\[\d+, -\d+\]",
        "entries": r"\{('up': \d+, 'down': -\d+|'down': -\d+, 'up': \d+)\}",
        "cell": r"\d+",
        "inner": r"<function parts\.<locals>\.inner>|<function inner>",
    },
    "naps": {"a%d" % i: r"1\.5" for i in range(150)},
}


@every_python
@pytest.mark.parametrize("function", REPLACED)
def test_no_value_is_that_of_another_variable(python, function):
    """Memory that is freed and taken again within a microsecond makes no value that never was."""
    seen = {}
    with harness.target(python, "replaces.py", function) as target:
        for _ in range(20):
            for thread in dump(target.pid, "--locals")["threads"]:
                for frame in thread["frames"]:
                    if frame["function"].split(".")[-1] == function:
                        for variable in frame.get("locals", []):
                            seen.setdefault(variable["name"], []).append(variable["value"])
    false = [
        (name, value)
        for name, texts in seen.items()
        for value in texts
        if value != "<unreadable>" and not re.fullmatch(REPLACED[function][name], value)
    ]
    assert not false
    assert any(value != "<unreadable>" for texts in seen.values() for value in texts), seen


def test_longer_values_by_repetition():
    with harness.target(harness.default_python(), "values.py") as target:
        short, longer, longest = (values(dump(target.pid, *["--locals"] * times)) for times in (1, 2, 3))
    assert len(short["texts"]["long"]) < 110 and longer["texts"]["long"] == longest["texts"]["long"] == "'" + "x" * 500 + "'"
    assert short["containers"]["many"].count(",") == 10
    assert longer["containers"]["many"].endswith("99, ... 900 more]")
    assert longest["containers"]["many"].endswith("999]")
    assert longer["containers"]["nested"] == "[[1, [2, [3, [4]]]], (5,)]"


def test_kinds_and_text():
    with harness.target(harness.default_python(), "values.py") as target:
        snapshot = dump(target.pid, "--locals")
        bare = dump(target.pid)
        run = pybpf("dump", "-p", target.pid, "--locals", "--no-source")
    (thread,) = snapshot["threads"]
    kinds = {
        frame["function"].rsplit(".", 1)[-1]: {local["name"]: local["kind"] for local in frame["locals"]}
        for frame in thread["frames"]
    }
    assert kinds["numbers"]["arg"] == kinds["numbers"]["args"] == kinds["numbers"]["kwargs"] == "argument"
    assert kinds["numbers"]["zero"] == "local"
    assert kinds["cells"] == {"captured": "argument", "plain": "argument", "shared": "cell", "inner": "local"}
    assert kinds["inner"] == {"own": "argument", "local": "local", "captured": "free", "shared": "free"}
    assert all(frame["locals_complete"] for frame in thread["frames"])
    assert not any("locals" in frame for frame in bare["threads"][0]["frames"])
    assert re.search(r", in cells\n      captured = 1\n      plain = 2\n", run.out), run.out


LIES = r"""
import ctypes, sys, time
def stand():
    name = "\x1b[2J\nThread 1"
    gone = [1, 2]
    kinds = {"a": [object()]}
    # Invalid length, items and types.
    ctypes.c_size_t.from_address(id(gone) + 16).value = 1 << 40
    broken = (1.5,)
    ctypes.c_size_t.from_address(id(broken) + object.__basicsize__ + 8).value = 0xdeadbeef0
    print("[]"); sys.stdout.flush()
    time.sleep(1000)
stand()
"""


def test_what_cannot_be_read_says_so():
    with harness.started([harness.default_python().argv[0], "-c", LIES], stdout=-1) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        run = pybpf("dump", "-p", process.pid, "--locals")
    assert "gone = <unreadable>" in run.out and "broken = (<unreadable>,)" in run.out, run.out
    assert "\x1b" not in run.out and "kinds = {'a': [<object object>]}" in run.out, run.out


def test_secrets_need_locals():
    run = pybpf("dump", "-p", "1", "--show-secrets")
    assert run.code == 2 and "--show-secrets goes with --locals" in harness.one_sentence(run.err)
