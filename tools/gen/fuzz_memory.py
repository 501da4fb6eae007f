# SPDX-License-Identifier: Apache-2.0
"""Memory of a CPython 3.12 or 3.14 with asyncio's tasks, threads and locks, as the fuzz targets take it: small, and it
begins anew at its end, so that fields far behind an object's start lie somewhere in it, too."""
import struct

BASE, SIZE = 0x7F0000000000, 7168
# Bytes at the start for the fields of an interpreter, also for those beyond SIZE.
INTERPRETER = 1024
# Types lie within each other, so that no field that is written is in the place of another type's.
TYPE_DISTANCE, TYPE_SIZE, TYPES = 96, 304, 16
HEAP, READY, LONG, TEXT, DICT, TYPE = 1 << 9, 1 << 12, 1 << 24, 1 << 28, 1 << 29, 1 << 31
# Index in fuzz.h's layouts, and fields by their offsets (user/cpython/layout_tables.h, tests/data/debug-offsets-*).
LAYOUTS = {
    (3, 12): {"index": 14, "interp_next": 0, "threads": 72, "modules": 944, "thread_id": 136, "datastack": 240,
              "owner": 70, "adaptive": 192},
    (3, 14): {"index": 18, "interp_next": 7272, "threads": 7344, "modules": 7688, "thread_id": 152, "datastack": 240,
              "owner": 74, "adaptive": 208},
}  # fmt: skip
OFFSETS_3_14 = 2  # index in known_debug_offsets


class Memory:
    def __init__(self, version, base=BASE):
        self.bytes, self.used, self.types = bytearray(SIZE), INTERPRETER, {}
        self.base = base
        self.l = LAYOUTS[version]
        self.first_type = self.alloc(TYPE_DISTANCE * (TYPES - 1) + TYPE_SIZE)
        self.meta = self.type("type", TYPE)

    def alloc(self, size):
        addr = self.base + self.used
        self.used += (size + 15) // 16 * 16
        assert self.used <= SIZE, self.used
        return addr

    def put(self, addr, *words):
        for i, word in enumerate(words):
            at = (addr + 8 * i - self.base) % SIZE
            assert at + 8 <= SIZE
            struct.pack_into("<Q", self.bytes, at, word)

    def put_bytes(self, addr, data):
        at = (addr - self.base) % SIZE
        self.bytes[at : at + len(data)] = data

    def name(self, text):
        addr = self.alloc(len(text) + 1)
        self.put_bytes(addr, text.encode() + b"\0")
        return addr

    def type(self, name, flags, size=64, dictoffset=0):
        if name not in self.types:
            assert len(self.types) < TYPES
            addr = self.types[name] = self.first_type + TYPE_DISTANCE * len(self.types)
            self.put(addr + 8, getattr(self, "meta", addr), 0, self.name(name), size, 0)
            self.put(addr + 16 + 152, flags | READY)
            self.put(addr + 16 + 272, dictoffset)
        return self.types[name]

    def object(self, of, *words):
        addr = self.alloc(16 + 8 * len(words))
        self.put(addr, 1, of, *words)
        return addr

    def text(self, text):
        addr = self.alloc(40 + len(text) + 1)
        self.put(addr, 1, self.type("str", TEXT), len(text), 0, (1 | 8 | 16) << 2)
        self.put_bytes(addr + 40, text.encode() + b"\0")
        return addr

    def int(self, number):
        return self.object(self.type("int", LONG), 2 << 3, number & 0x3FFFFFFF | number >> 30 << 32)

    def dict(self, entries, hashed=False):
        """hashed: the keys are numbers, whose hashes they are."""
        words = [1, (0 if hashed else 1) << 16 | 3 << 8 | 3, 0, len(entries), 0]
        for key, value in entries:
            words += [key, self.int(key), value] if hashed else [key, value]
        keys = self.alloc(8 * len(words))
        self.put(keys, *words)
        return self.object(self.type("dict", DICT), len(entries), 0, keys, 0)

    def names(self, **entries):
        return self.dict([(self.text(name), value) for name, value in entries.items()])

    def instance(self, name, **attributes):
        return self.object(self.type(name, HEAP, 64, 16), self.names(**attributes))

    def set(self, keys):
        table = self.alloc(16 * 8)
        self.put(table, *[word for key in keys for word in (key, 1)])
        return self.object(self.type("set", 0), len(keys), len(keys), 7, table)

    def input(self, head):
        return bytes([self.l["index"]]) + head + bytes(self.bytes) + bytes(8)


def begin(version):
    m = Memory(version)
    tstate, interp = m.alloc(512), BASE + 16
    m.put(BASE, interp)
    m.put(interp + m.l["interp_next"], 0)
    m.put(interp + m.l["threads"], tstate)
    m.put(tstate, 0, 0, interp)
    m.put(tstate + m.l["thread_id"], 0x7000)
    return m, interp, tstate


def code(m, **fields):
    """fields: offsets from the header on, as f16=value."""
    text, lines = m.text("f"), m.object(m.type("bytes", 1 << 27), 2, 0, 0x80F0)
    addr = m.alloc(m.l["adaptive"] + 32)
    m.put(addr, 1, m.type("code", 0))
    m.put(addr + 112, text, text, text, lines)
    for field, value in fields.items():
        m.put(addr + 16 + int(field[1:]), value)
    return addr


def generator(m, of, body, awaited):
    """3.14: gi_frame_state at 67, gi_iframe at 72; what is awaited is on top of the frame's stack."""
    addr = m.alloc(72 + 80 + 32)
    m.put(addr, 1, m.type(of, 0))
    m.put_bytes(addr + 67, struct.pack("b", -1 if awaited else -2))
    frame = addr + 72
    m.put(frame, body, 0, 0x1000)
    m.put(frame + 56, body + 210, frame + 80 + 16)
    m.put(frame + 80 + 8, awaited)
    m.put_bytes(frame + 74, b"\1")
    return addr


ASYNCIO = struct.Struct("<QHBBBBBBHHI")  # struct pybpf_asyncio


def tasks_3_14(whole_tree, changes):
    m, interp, tstate = begin((3, 14))
    asyncio = ASYNCIO.pack(0, 392, 24, 32, 40, 48, 56, 1, 400, 384, 7400)
    lists = [interp + 7400, tstate + 400]
    m.put(tstate + 384, m.instance("Loop"))
    body, of_task = code(m), m.type("_asyncio.Task", HEAP)
    future = m.object(m.type("_asyncio.Future", HEAP), 0, 0, 0, 0, 0, 0)
    coros = [generator(m, "coroutine", body, m.object(m.type("_asyncio.FutureIter", HEAP), future))]
    coros.append(generator(m, "coroutine", body, coros[0]))
    coros.append(generator(m, "coroutine", body, 0))
    tasks = [m.object(of_task, m.int(3), m.text("name"), coro, 0, 0, 0, 0) for coro in coros]
    awaits = m.set([tasks[2], future])
    m.put(tasks[0] + 40, tasks[1], 0)
    m.put(tasks[1] + 40, awaits, 1)
    chain = [lists[1]] + [task + 56 for task in tasks] + [lists[1]]
    for before, node, after in zip(chain, chain[1:], chain[2:]):
        m.put(node, after, before)
    m.put(lists[1], chain[1], chain[-2])
    m.put(lists[0], lists[0], lists[0])
    return m.input(bytes([whole_tree | changes << 2]) + asyncio)


def with_lies(data):
    """The same under debug offsets of which two words are given anew, here as they are: unicode_object's sizes."""
    return bytes([0x80 | OFFSETS_3_14, 2]) + struct.pack("<BHBH", 77, 64, 80, 40) + data[1:]


def modules_3_12():
    """sys.modules with _asyncio and threading. Returns the memory, and where the dict of running tasks is."""
    m, interp, tstate = begin((3, 12))
    loop, of_task = m.instance("Loop", _thread_id=m.int(0x7000)), m.type("_asyncio.Task", HEAP, 176)
    task = m.alloc(176)
    m.put(task, 1, of_task, loop)
    m.put(task + 136, m.object(m.type("coroutine", 0), 0, 0), m.text("t"))
    running = m.dict([(loop, task)])
    weak = m.object(m.type("weakref.ReferenceType", 0), task)
    sets = {"_scheduled_tasks": m.instance("WeakSet", data=m.set([weak])), "_eager_tasks": m.set([task])}
    active = m.dict([(0x7000, m.instance("Thread", _ident=m.int(0x7000), _name=m.text("T"), _daemonic=m.int(1)))], True)
    names = m.names(Task=of_task, _current_tasks=running, **sets), m.names(_active=active)
    module = [m.object(m.type("module", 0), name) for name in names]
    m.put(interp + m.l["modules"], m.names(_asyncio=module[0], threading=module[1]))
    m.put(tstate + m.l["thread_id"] - 24, m.names(__asyncio_running_event_loop__=loop))
    return m, running


def tasks_3_12(whole_tree, changes):
    m, running = modules_3_12()
    return m.input(bytes([whole_tree | changes << 2]) + ASYNCIO.pack(running, 0, 144, 136, 0, 0, 0, 1, 0, 0, 0))


def asyncio_3_12(changes):
    return modules_3_12()[0].input(bytes([changes]))


def locks(version, changes):
    """A function inside `with lock`, whose thread waits for another lock, which is in a variable."""
    m, *_ = begin(version)
    semaphore, is_3_14 = m.alloc(16), version == (3, 14)
    lock = m.object(m.type("_thread.lock", HEAP), 1 if is_3_14 else semaphore, 0, 1)
    wanted = m.object(m.type("_thread.RLock", HEAP), 1 if is_3_14 else semaphore, 0x7000, 1)
    definition = m.alloc(16)
    m.put(definition, m.name("__exit__"))
    leave = m.object(m.type("builtin_function_or_method", 0), definition, lock)
    of_bytes, hash_of_tuple = m.type("bytes", 1 << 27), [0] if is_3_14 else []
    names = m.object(m.type("tuple", 1 << 26), 2, *hash_of_tuple, m.text("password"), m.text("x"))
    kinds = m.object(of_bytes, 2, 0, 0x2020)
    # From the first instruction on, 8 of them, the handler, and the depth 2 (InternalDocs/exception_handling.md).
    table = m.object(of_bytes, 4, 0, 0x04000880)
    body = code(m, f24=table, f36=1, f48=2 | 2 << 32, f56=2)
    m.put(body + 96, names, kinds)
    frame = m.alloc(72 + 64)
    m.put(frame, body, 0, 0x1000)
    m.put(frame + (m.l["owner"] + 8 & ~7), m.int(5), wanted, leave, lock)
    frames = struct.pack("<QIiQ", body, 2, m.l["adaptive"] + 4, frame)
    return m.input(bytes([1 | changes << 2]) + struct.pack("<Q", semaphore) + b"\1" + frames)


def values_nested(level, changes):
    """Containers within each other, more of them than are shown, each beside a text."""
    m = Memory((3, 12), 0)
    of_list, of_tuple, value = m.type("list", 1 << 25), m.type("tuple", 1 << 26), m.int(7)
    for i in range(24):
        text = m.text("secret" if i % 4 == 1 else "text")
        m.used = (m.used + 31) // 32 * 32
        if i % 3 == 0:
            items = m.alloc(16)
            m.put(items, value, text)
            value = m.object(of_list, 2, items, 2)
        elif i % 3 == 1:
            value = m.dict([(text, value)])
        else:
            value = m.object(of_tuple, 2, value, text)
    m.put(64, 1, of_list, 1, 128, 1)
    m.put(128, value)
    return m.input(bytes([level | changes << 2]))


def seeds():
    """(target, name, input): of memory that stands, and that changes at one of eight reads."""
    for changes, suffix in ((0, ""), (8, "-changing")):
        for whole, tree in ((0, "chain"), (1, "tree")):
            yield "fuzz_tasks", "3.14-%s%s" % (tree, suffix), tasks_3_14(whole, changes)
            yield "fuzz_tasks", "3.12-%s%s" % (tree, suffix), tasks_3_12(whole, changes)
        yield "fuzz_tasks", "3.14-lies%s" % suffix, with_lies(tasks_3_14(0, changes))
        yield "fuzz_asyncio", "3.12%s" % suffix, asyncio_3_12(changes)
        yield "fuzz_values", "nested%s" % suffix, values_nested(3, changes)
        for version in LAYOUTS:
            yield "fuzz_locks", "%d.%d%s" % (*version, suffix), locks(version, changes)
        yield "fuzz_locks", "3.14-lies%s" % suffix, with_lies(locks((3, 14), changes))
