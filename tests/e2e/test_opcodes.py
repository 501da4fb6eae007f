# SPDX-License-Identifier: Apache-2.0
"""--opcodes: the instruction that the last function of a sample executes."""

import collections
import re
import subprocess

import pytest

import harness
import pythons
from harness import record

pytestmark = pytest.mark.usefixtures("profiler")

UNKNOWN = "[opcode not read]"
# The instruction that most of the time of a line is in, by the first version that has it.
TYPICAL = {
    "adds": {(2, 7): "BINARY_ADD", (3, 11): "BINARY_OP_ADD_INT"},
    "loads": {(2, 7): "LOAD_ATTR", (3, 11): "LOAD_ATTR_INSTANCE_VALUE"},
    "calls": {(2, 7): "CALL_FUNCTION", (3, 7): "CALL_METHOD", (3, 11): "CALL_PY_EXACT_ARGS"},
}
FREE_THREADED = {"adds": "BINARY_OP", "loads": "LOAD_ATTR", "calls": "CALL"}
NAMES = {
    "pyenv-2.7.18", "pyenv-3.6.15", "pyenv-3.7.16", "pyenv-3.8.18", "pyenv-3.9.18", "pyenv-3.10.13", "pyenv-3.11.7",
    "system-python3.11", "system-python3.11-dbg", "pyenv-3.12.1", "pyenv-3.13.0", "sid-python3.14", "sid-python3.15",
    "built-python3.13t", "built-python3.14t", "sid-python3.14-dbg",
}
some = pytest.mark.parametrize(
    "python", [item for item in pythons.interpreters() if item.name in NAMES], ids=lambda item: item.name
)


def typical(python, function):
    if "free-threaded" in python.kind and python.version == (3, 13):
        return FREE_THREADED[function]
    return max((version, name) for version, name in TYPICAL[function].items() if version <= python.version)[1]


@some
def test_opcodes_are_those_of_their_line(python):
    stacks = []

    def are_enough():
        stacks.extend(record(running.pid, "--opcodes", seconds=1, rate=2999).stacks())
        return sum(count for _, count in stacks) > 500

    with harness.target(python, "opcodes.py") as running:
        harness.wait_for(are_enough)
        lines = running.says["more"]
    found, total, unknown = collections.defaultdict(collections.Counter), 0, 0
    for stack, count in stacks:
        *_, leaf, instruction = stack
        function = leaf.name.rpartition(".")[2]
        if function not in lines or not leaf.file.endswith("opcodes.py"):
            continue
        total += count
        if instruction.text == UNKNOWN:
            unknown += count
            continue
        possible = lines[function].get(str(leaf.line), []) + lines[function].get("0", [])
        assert instruction.text in possible, (function, leaf.line, instruction.text, count, possible)
        found[function][instruction.text] += count
    assert total > 200, total
    # Frames that have not begun to run.
    assert unknown < 0.1 * total, (unknown, total)
    for function in TYPICAL:
        name = typical(python, function)
        assert found[function][name] > 0.01 * sum(found[function].values()), (function, name, found[function])
    assert found["extends"], found


HEADERS = "import sysconfig, sys; sys.stdout.write(sysconfig.get_paths()['include'])"
DEFINE = re.compile(r"^#define ([A-Z][A-Za-z_0-9]+)\s+(\d+)\s*$", re.M)
# DO_TRACING is what the evaluation loop jumps to; it is never in memory.
NOT_INSTRUCTIONS = {"DO_TRACING", "ENABLE_SPECIALIZATION", "HAVE_ARGUMENT", "MIN_INSTRUMENTED_OPCODE", "MIN_PSEUDO_OPCODE", "MAX_PSEUDO_OPCODE",
                    "EXCEPT_HANDLER", "PY_OPCODES_H"}


@pytest.mark.parametrize("python", [item for item in pythons.interpreters() if item.kind == "shared"],
                         ids=lambda item: item.name)
def test_names_are_those_of_the_headers(python):
    """The tables were made of Python's own modules; its headers say the same by themselves."""
    include = subprocess.run([*python.argv, "-c", HEADERS], capture_output=True, text=True, check=True).stdout
    name = "opcode_ids.h" if python.version >= (3, 13) else "opcode.h"
    with open("%s/%s" % (include, name)) as file:
        defined = {(int(number), name) for name, number in DEFINE.findall(file.read()) if int(number) < 256}
    defined = {(number, name) for number, name in defined if name not in NOT_INSTRUCTIONS and name[:3] != "NB_"
               and not name.startswith("PyCmp")}
    with open(harness.TOP / "user/cpython/opcode_tables.h") as file:
        table = re.search(r"opcodes_%d_%d\[256\] = \{(.*?)\};" % python.version, file.read(), re.S).group(1)
    # 2.7 calls SLICE+1 what its header calls SLICE_1.
    ours = {(int(number), name.replace("+0", "").replace("+", "_")) for number, name in re.findall(r'\[(\d+)\] = "([^"]*)"', table)}
    assert len(defined) > 70 and defined <= ours, sorted(defined - ours)
