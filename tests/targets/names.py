# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""Names that are hard to carry: wide characters, great length, separators, control characters."""

import sys

import expect

PY2 = sys.version_info[0] == 2
CODE = type((lambda: 0).__code__)
HOSTILE = "semi;colon and\nnewline, tab\t, back\\slash (x.py:7) 12"
PATHS = ["semi;colon.py", "new\nline.py", "spa ce (x:1).py", "back\\slash.py"]
WIDE = [
    "caf\xe9",  # Latin-1
    "\u0438\u043c\u044f_\u6f22\u5b57",  # UCS-2
    "x\U00020000\U00020001",  # UCS-4
    "\xe9" * 4000,
]


def burn():
    sum(range(8000))  # burn: hot


def renamed(code, name):
    """A copy of a code object under another name, whatever characters it has."""
    if hasattr(code, "replace"):
        changes = {"co_name": name}
        if hasattr(code, "co_qualname"):
            changes["co_qualname"] = name
        return code.replace(**changes)
    counts = [code.co_argcount] if PY2 else [code.co_argcount, code.co_kwonlyargcount]
    counts += [code.co_nlocals, code.co_stacksize, code.co_flags]
    tables = [code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_filename]
    ends = [name, code.co_firstlineno, code.co_lnotab, code.co_freevars, code.co_cellvars]
    return CODE(*(counts + tables + ends))


def function(code):
    return type(burn)(code, globals())


def defined(name):
    """A function that the compiler itself gave this name."""
    scope = {"burn": burn}
    code = compile("def %s():\n    burn()\n" % name, "defined.py", "exec")
    exec(code, scope)
    return [value for key, value in scope.items() if callable(value) and value is not burn][0]


def template():
    burn()


def build(wanted):
    """Every function with the frame that it must have: name, file, line of its call."""
    built = []
    line = template.__code__.co_firstlineno + 1
    for name in [HOSTILE, "n" * 4000, "", "\x01\x1f\x7f"]:
        built.append((function(renamed(template.__code__, name)), name, "names.py", line))
    for path in PATHS:
        scope = {"burn": burn}
        exec(compile("def here():\n    burn()\n", path, "exec"), scope)
        built.append((scope["here"], "here", path, 2))
    if not PY2:
        for name in WIDE:
            built.append((defined(name), name, "defined.py", 2))
        for path in ["\xfcml\xe4ut.py", "\u6f22.py", "\U0001f40d.py"]:
            scope = {"burn": burn}
            exec(compile("def here():\n    burn()\n", path, "exec"), scope)
            built.append((scope["here"], "here", path, 2))
    wanted.more["names"] = [[name, path, line] for _, name, path, line in built]
    return [entry[0] for entry in built]


def main(functions):
    while True:
        for each in functions:
            each()


if __name__ == "__main__":
    wanted = expect.describe(__file__)
    wanted.more["caller"] = "main"
    functions = build(wanted)
    expect.ready(wanted)
    main(functions)  # <module> > main
