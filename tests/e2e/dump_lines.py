# SPDX-License-Identifier: Apache-2.0
"""Writes, for build/linecheck, every line table of this interpreter's standard library with the lines that the
interpreter itself gives for every instruction, and from 3.11 on the columns. Runs under 2.7 and 3.6 to 3.15, so its syntax suits all.

    python dump_lines.py [--every N] [--truth dis|addr2line] [DIRECTORY] | build/linecheck

dis is code.co_lines() from 3.10 on and dis.findlinestarts() before; addr2line is the C function
PyCode_Addr2Line() that tracebacks use, called through ctypes. Where they have no line there is none, but for the
instructions with which a function is entered, before any on another line than the first: they are on that.
"""
import array
import dis
import os
import struct
import sys
import types
import warnings

NO_LINE = -1

# enum pybpf_line_kind
if sys.version_info < (3, 6):
    KIND = 1
elif sys.version_info < (3, 10):
    KIND = 2
elif sys.version_info < (3, 11):
    KIND = 3
else:
    KIND = 4


def table_of(code):
    return code.co_lnotab if KIND < 3 else code.co_linetable


def offsets(code):
    """Byte offsets of the instructions; every code unit from 3.6 on, with caches and EXTENDED_ARG."""
    bytecode = code.co_code
    if sys.version_info >= (3, 6):
        return list(range(0, len(bytecode), 2))
    found = []
    offset = 0
    while offset < len(bytecode):
        found.append(offset)
        offset += 3 if ord(bytecode[offset]) >= dis.HAVE_ARGUMENT else 1
    return found


def ranges(code):
    """(start, end, line) as the interpreter has it."""
    if KIND >= 3:
        for start, end, line in code.co_lines():
            yield start, end, NO_LINE if line is None else line
        return
    starts = list(dis.findlinestarts(code))
    ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
    for (start, line), end in zip(starts, ends):
        yield start, end, line


def lines_by_dis(code, positions):
    by_offset = [NO_LINE] * len(code.co_code)
    for start, end, line in ranges(code):
        end = min(end, len(by_offset))
        by_offset[start:end] = [line] * (end - start)
    return [by_offset[position] for position in positions]


def lines_by_addr2line(code, positions):
    import ctypes
    addr2line = ctypes.pythonapi.PyCode_Addr2Line
    addr2line.argtypes = [ctypes.py_object, ctypes.c_int]
    addr2line.restype = ctypes.c_int
    return [addr2line(code, position) for position in positions]


def spans_of(code, positions):
    """Last lines, columns and end columns of the expressions, NO_LINE for those that are not known: from 3.11 on."""
    known = list(code.co_positions())
    spans = []
    for position in positions:
        line, end_line, column, end_column = known[position // 2] if position >= 0 else (None, None, None, None)
        is_known = line and None not in (end_line, column, end_column)
        spans.append((end_line, column, end_column) if is_known else (NO_LINE, NO_LINE, NO_LINE))
    return list(zip(*spans))


def code_objects(code):
    pending = [code]
    while pending:
        code = pending.pop()
        yield code
        pending.extend(const for const in code.co_consts if isinstance(const, types.CodeType))


def write_record(out, code, path, lines_of):
    # A frame that has not begun is on its first line: frame.f_lineno calls PyCode_Addr2Line(code, -1).
    positions = offsets(code)
    lines = lines_of(code, positions)
    first = code.co_firstlineno
    entered = next((i for i, line in enumerate(lines) if line not in (NO_LINE, first)), len(lines))
    lines = [first] + [first] * entered + lines[entered:]
    positions = [-1] + positions
    table = table_of(code)
    label = "%s:%d %s" % (path, code.co_firstlineno, code.co_name)
    if not isinstance(label, bytes):
        label = label.encode("utf-8", "backslashreplace")
    out.write(struct.pack("=iiIII", KIND, code.co_firstlineno, len(table), len(positions), len(label)))
    out.write(table)
    out.write(label)
    for numbers in [positions, lines] + (spans_of(code, positions) if KIND == 4 else []):
        packed = array.array("i", numbers)
        out.write(packed.tobytes() if hasattr(packed, "tobytes") else packed.tostring())


def python_files(directory):
    found = []
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name not in ("site-packages", "dist-packages")]
        found.extend(os.path.join(folder, name) for name in files if name.endswith(".py"))
    return sorted(found)


def main(argv):
    every = 1
    lines_of = lines_by_dis
    directory = os.path.dirname(os.path.realpath(os.__file__))
    while argv:
        argument = argv.pop(0)
        if argument == "--every":
            every = int(argv.pop(0))
        elif argument == "--truth":
            lines_of = {"dis": lines_by_dis, "addr2line": lines_by_addr2line}[argv.pop(0)]
        else:
            directory = argument

    warnings.simplefilter("ignore")
    sys.setrecursionlimit(10000)
    out = getattr(sys.stdout, "buffer", sys.stdout)
    files = 0
    failed = 0
    for path in python_files(directory)[::every]:
        files += 1
        try:
            with open(path, "rb") as source:
                code = compile(source.read(), path, "exec", 0, True)
        except (SyntaxError, ValueError, TypeError, RuntimeError, MemoryError):
            # Test data that is wrong on purpose, and templates.
            failed += 1
            continue
        for nested in code_objects(code):
            write_record(out, nested, path, lines_of)
    out.write(struct.pack("=iiIII", 0, files, failed, 0, 0))
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
