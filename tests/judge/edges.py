# SPDX-License-Identifier: Apache-2.0
"""Which calls of a profile's native frames there cannot have been, by the instructions of the files.

The files are taken apart by binutils. A function may have called another one if one of its call instructions leads there,
where that is direct, or if it has an indirect one, and the other function's address is taken somewhere: by an instruction, in
data, by a relocation. What is called may jump on to another function, which then stands in its place.
"""

import bisect
import functools
import gzip
import re
import subprocess

from protobuf import fields, numbers, of

TEXT_MAX = 16 << 20  # bytes of a file; a larger one takes minutes
# What a signal handler returns to, and which nobody calls; and what at its end returns to whoever handles an exception.
ANYBODYS = ("__restore_rt", "_Unwind_")
ROW = re.compile(r"^ *([0-9a-f]+):\t(?:(?:lock|rep|repz|repnz|bnd|notrack|data16|rex\S*|cs|ds) )*(\w+)(?: +(.*))?$")
DIRECT = re.compile(r"([0-9a-f]+) <(?:([^>]+)@plt)?")
TAKEN = re.compile(r"\$0x([0-9a-f]+)|# ([0-9a-f]+)")


def lines_of(*argv):
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as process:
        yield from process.stdout


class Part:
    """What the compiler made of a function, or of a part of it that it put elsewhere."""

    def __init__(self, start, end):
        self.start, self.end = start, end
        self.calls, self.jumps = set(), set()  # addresses, and names of the PLT
        self.takes = set()  # addresses of functions
        self.is_indirect = self.jumps_anywhere = False

    def add(self, name, operand):
        is_call = name.startswith("call")
        if not is_call and not name.startswith("j"):
            return
        direct = DIRECT.match(operand)
        if direct:
            target = int(direct[1], 16)
            if is_call or not self.start <= target < self.end:
                (self.calls if is_call else self.jumps).update({target, direct[2]} - {None})
        elif is_call:
            self.is_indirect = True
        else:
            self.jumps_anywhere = True  # or a table of this function's own


class File:
    def __init__(self, path):
        self.path = path
        self.symbols = {}  # name -> addresses
        self.exported = set()  # addresses of functions that dlsym() finds
        self.choosers = set()  # functions that return the address of what is called in their place
        self.taken = set()  # addresses
        self.taken_elsewhere = set()  # names
        ranges = {}
        for row in lines_of("readelf", "-W", "--debug-dump=frames", path):
            found = re.search(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)", row)
            if found:
                ranges[int(found[1], 16)] = int(found[2], 16)
        self.read_symbols(ranges)
        self.starts = sorted(ranges)
        after = dict(zip(self.starts, self.starts[1:]))
        # Where a function of assembly ends is not always told.
        self.parts = [Part(start, ranges[start] if ranges[start] > start else after.get(start, start)) for start in self.starts]
        for part, after in zip(self.parts, self.parts[1:]):
            if part.end > after.start:
                part.jumps.add(after.start)  # assembly that runs on into the next one
        self.read_code()
        self.read_data()
        self.called = set().union(self.taken, *(part.calls for part in self.parts))
        self.names = {}
        for name, starts in self.symbols.items():
            for start in starts:
                self.names.setdefault(start, set()).add(name)
        self.is_reached = self.reached(self.taken)
        # The address of a function may be taken that does nothing but to jump on to one of another file.
        self.taken_elsewhere |= {name for part in self.parts for name in part.jumps if isinstance(name, str)}

    def read_symbols(self, ranges):
        for row in lines_of("readelf", "-W", "--syms", "--dyn-syms", self.path):
            words = row.split()
            if len(words) < 8 or words[3] not in ("FUNC", "IFUNC") or words[6] == "UND":
                continue
            at, size = int(words[1], 16), int(words[2], 0)
            self.symbols.setdefault(words[7].partition("@")[0], set()).add(at)
            if words[4] != "LOCAL":
                self.exported.add(at)
            if words[3] == "IFUNC":
                self.choosers.add(at)
            if at not in ranges:
                ranges[at] = at + size

    def read_code(self):
        part, is_plt = None, False
        for row in lines_of("objdump", "-d", "-w", "--no-show-raw-insn", self.path):
            found = ROW.match(row)
            if not found:
                is_plt = "section .plt" in row if row.startswith("Disassembly") else is_plt
                continue
            at = int(found[1], 16)
            if part is None or not part.start <= at < part.end:
                # A function of assembly may go on behind what is told of its frame.
                part = self.part(at) or self.parts[max(0, bisect.bisect(self.starts, at) - 1)]
            operand = found[3] or ""
            if not is_plt:  # objdump names its entries
                part.add(found[2], operand)
            part.takes.update(int(one or other, 16) for one, other in TAKEN.findall(operand))

    def read_data(self):
        for row in lines_of("readelf", "-W", "-r", self.path):
            found = re.search(r" R_X86_64_(?:I?RELATIV\w*) +([0-9a-f]+)", row)
            if found:
                self.taken.add(int(found[1], 16))
            found = re.search(r" R_X86_64_(?:GLOB_DAT|64) +[0-9a-f]+ +([^ @]+)", row)
            if found:
                self.taken_elsewhere.add(found[1])
        # Programs that are linked to a fixed address have no relocations of these, and RELR is a list of places.
        for row in lines_of("readelf", "-W", "-S", self.path):
            found = re.search(r" (?:PROGBITS|\w+_ARRAY) +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) [0-9a-f]+ +W?A ", row)
            if found:
                with open(self.path, "rb") as file:
                    file.seek(int(found[1], 16))
                    data = file.read(int(found[2], 16))
                self.taken.update(memoryview(data[: len(data) & -8]).cast("Q"))
        self.taken.update(*(part.takes for part in self.parts))
        self.taken = {at for at in self.taken if self.part(at) and self.part(at).start == at}

    def part(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        return self.parts[i] if i >= 0 and address < self.parts[i].end else None

    def addresses(self, target):
        chooser = re.match(r"\*ABS\*\+0x([0-9a-f]+)$", str(target))
        if chooser:
            self.choosers.add(int(chooser[1], 16))
            return (int(chooser[1], 16),)
        return self.symbols.get(target, ()) if isinstance(target, str) else (target,)

    def reached(self, targets):
        """The parts that can be the caller's next frame after a call of one of them, and whether any function can."""
        found, left, anywhere = set(), list(targets), False
        while left:
            for address in self.addresses(left.pop()):
                part = self.part(address)
                if part and part not in found:
                    found.add(part)
                    left += part.jumps
                    left += part.takes if part.start in self.choosers else ()
                    anywhere |= part.jumps_anywhere
        return found, anywhere

    @functools.lru_cache(maxsize=None)
    def reached_by_name(self, names):
        return self.reached(names)

    @functools.lru_cache(maxsize=None)
    def own(self, part):
        """With the parts of the same function: those that it jumps into, and that nobody calls or that jump back."""
        found, left = {part}, [part]
        while left:
            one = left.pop()
            for target in one.jumps:
                other = self.part(target) if isinstance(target, int) else None
                if not other or other in found:
                    continue
                back = any(isinstance(at, int) and self.part(at) in found and self.part(at).start != at for at in other.jumps)
                if target != other.start or back or not self.called & {other.start, *self.names.get(other.start, ())}:
                    found.add(other)
                    left.append(other)
        return found


    @functools.lru_cache(maxsize=None)
    def called_by(self, part):
        """The parts that it may call where that is direct, the names of other files' functions, whether it may be any one."""
        parts = self.own(part)
        targets = set().union(*(one.calls for one in parts))
        direct, anywhere = self.reached(targets)
        named = {name for name in targets.union(*(one.jumps for one in direct)) if isinstance(name, str)}
        return direct, frozenset(named), anywhere or any(one.is_indirect for one in parts)


@functools.lru_cache(maxsize=64)
def file_of(path):
    """None if it is too large, or no ELF file."""
    for row in lines_of("readelf", "-W", "-S", path):
        found = re.search(r"\] \.text +PROGBITS +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", row)
        if found:
            return File(path) if int(found[1], 16) <= TEXT_MAX else None
    return None


@functools.lru_cache(maxsize=None)
def taken_elsewhere(file, paths):
    """The parts that can be the next frame after a call by an address that another file has taken."""
    files = [file_of(path) for path in paths]
    return file.reached(set().union(*(other.taken_elsewhere for other in files if other)))[0]


@functools.lru_cache(maxsize=None)
def lead_anywhere(names, paths):
    """Whether one of these functions may jump to any function."""
    return any(file.reached_by_name(names)[1] for file in map(file_of, paths) if file)


@functools.lru_cache(maxsize=None)
def may_call(path, caller, other_path, callee, paths):
    """Whether the function at an address of a file may have called that at an address of another one, or of the same.

    None: not known. paths: those of all files, which may take addresses.
    """
    file, other = file_of(path), file_of(other_path)
    outer, inner = file and file.part(caller), other and other.part(callee)
    if not outer or not inner:
        return None
    direct, named, anywhere = file.called_by(outer)
    anywhere |= lead_anywhere(named, paths)
    if (file is other and inner in direct) or inner in other.reached_by_name(named)[0]:
        return True
    is_found = file is not other and inner.start in other.exported
    if not is_found and inner not in other.is_reached[0] and inner not in taken_elsewhere(other, paths):
        # Its address is nowhere, and nothing jumps to it from what has one.
        return False
    return anywhere


def stacks(profile):
    """[(stack, count)] of a pprof file: root first, (path, address, name) of a native frame, a text of another one."""
    with gzip.open(profile) as file:
        data = file.read()
    texts = [text.decode(errors="replace") for text in of(data, 6)]
    paths = {message[1]: texts[message.get(5, 0)] for message in map(lambda one: dict(fields(one)), of(data, 3))}
    names = {message[1]: texts[message.get(2, 0)] for message in map(lambda one: dict(fields(one)), of(data, 5))}
    frames = {}
    for location in of(data, 4):
        message = dict(fields(location))
        line = dict(fields(message[4])) if 4 in message else {}
        name = names.get(line.get(1), "")
        path, address = paths.get(message.get(2), ""), message.get(3, 0)
        frames[message[1]] = (path, address, name) if address and path.startswith("/") else name
    for sample in of(data, 2):
        message = dict(fields(sample))
        yield [frames[number] for number in reversed(list(numbers(message[1])))], next(numbers(message[2]))


def edges(stack):
    """Pairs of native frames that called each other. Python's frames lie between those of the loop that runs them."""
    before = None
    for frame in stack:
        if isinstance(frame, tuple):
            if before:
                yield before, frame
            before = frame
        elif frame.startswith("["):
            before = None


def judge(profile):
    """Returns [(samples, caller, callee)] of calls that there cannot have been, and how many calls of samples were held."""
    impossible, held = {}, 0
    found = list(stacks(profile))
    paths = tuple({frame[0] for stack, _ in found for frame in stack if isinstance(frame, tuple)})
    for stack, count in found:
        for caller, callee in edges(stack):
            may = callee[2].startswith(ANYBODYS) or may_call(caller[0], caller[1], callee[0], callee[1], paths)
            held += count * (may is not None)
            if may is False:
                impossible[caller, callee] = impossible.get((caller, callee), 0) + count
    return [(count, *edge) for edge, count in impossible.items()], held
