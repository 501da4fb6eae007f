# SPDX-License-Identifier: Apache-2.0
"""Threads whose thread states come and go: made by C for one call, swapped, beside an interpreter that is idle."""
import shutil
import subprocess

import harness
import pythons
import pytest
from inline import Source, check_sums, names, native, running

# No header of Python's: the program that loads it has the symbols, whichever version it is.
HELPER = r"""
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct _object PyObject;
typedef struct _ts PyThreadState;
extern int PyGILState_Ensure(void);
extern void PyGILState_Release(int);
extern PyObject *PyObject_CallObject(PyObject *, PyObject *);
extern void Py_DecRef(PyObject *);
extern void PyErr_Print(void);
extern PyThreadState *PyThreadState_Swap(PyThreadState *);
extern PyThreadState *PyThreadState_New(void *);
extern void PyThreadState_Clear(PyThreadState *);
extern void PyThreadState_Delete(PyThreadState *);
extern PyThreadState *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(PyThreadState *);

static void call(PyObject *function)
{
	PyObject *result = PyObject_CallObject(function, 0);

	if (result)
		Py_DecRef(result);
	else
		PyErr_Print();
}

static volatile unsigned long turns;

/* CPU time of this thread that is spent outside of Python. */
static void spin(long microseconds)
{
	struct timespec now;
	long end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	end = now.tv_sec * 1000000 + now.tv_nsec / 1000 + microseconds;
	do {
		turns++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000000 + now.tv_nsec / 1000 < end);
}

/* Takes and leaves memory of every size that a thread state may have: the next one lies elsewhere. */
#define SIZES 64
static void shuffle(void **kept, unsigned round)
{
	for (int i = 0; i < SIZES; i++) {
		free(kept[i]);
		kept[i] = round % 3 ? malloc(256 + 16 * i) : 0;
	}
}

/* A thread that C made, with a thread state for the time of each call. */
static void *ensuring(void *function)
{
	void *kept[SIZES] = {0};

	for (unsigned round = 0;; round++) {
		int state = PyGILState_Ensure();

		call(function);
		PyGILState_Release(state);
		shuffle(kept, round);
		spin(100);
	}
}

int call_from_threads(PyObject *function, int count)
{
	pthread_t thread;

	while (count-- > 0)
		if (pthread_create(&thread, 0, ensuring, function))
			return -1;
	return 0;
}

/* One thread, two thread states in turn, neither below the other. */
int call_in_turn(PyObject *first, PyObject *second, void *interpreter, int turns)
{
	PyThreadState *own = PyThreadState_Swap(0), *a, *b;

	PyThreadState_Swap(own);
	a = PyThreadState_New(interpreter);
	b = PyThreadState_New(interpreter);
	while (turns-- != 0) {
		PyThreadState_Swap(a);
		call(first);
		PyThreadState_Swap(b);
		call(second);
	}
	PyThreadState_Clear(a);
	PyThreadState_Swap(own);
	PyThreadState_Clear(b);
	PyThreadState_Delete(a);
	PyThreadState_Delete(b);
	return 0;
}

/* A function in another thread state of the same thread. */
int call_in_another(PyObject *function, void *interpreter)
{
	PyThreadState *own = PyThreadState_Swap(0), *other;

	PyThreadState_Swap(own);
	other = PyThreadState_New(interpreter);
	PyThreadState_Swap(other);
	call(function);
	PyThreadState_Clear(other);
	PyThreadState_Swap(own);
	PyThreadState_Delete(other);
	return 0;
}

/* The same, and from there one in the first thread state again: its frames are then inside and outside. */
static PyThreadState *first_state;

int remember_state(void)
{
	first_state = PyThreadState_Swap(0);
	PyThreadState_Swap(first_state);
	return 0;
}

int call_in_first(PyObject *function)
{
	PyThreadState *own = PyThreadState_Swap(first_state);

	call(function);
	PyThreadState_Swap(own);
	return 0;
}

/* A thread that C made, with two thread states of its own. */
struct pair {
	PyObject *first, *second;
	void *interpreter;
};

static void *swapping(void *arg)
{
	struct pair *pair = arg;
	int state = PyGILState_Ensure();

	(void)state;
	call_in_turn(pair->first, pair->second, pair->interpreter, -1);
	return 0;
}

int call_in_turn_from_thread(PyObject *first, PyObject *second, void *interpreter)
{
	static struct pair pair;
	pthread_t thread;

	pair = (struct pair){first, second, interpreter};
	return pthread_create(&thread, 0, swapping, &pair);
}
"""

IDLE = """
def idle():
    try: import _interpreters as interpreters
    except ImportError: import _xxsubinterpreters as interpreters
    return interpreters.create()
keep = idle() if "idle" in sys.argv else None
"""

# Threads of C's that call Python: with a subinterpreter that does nothing, if asked for.
CALLED = Source(IDLE + """
import ctypes
library = ctypes.PyDLL(sys.argv[1])
def deeper():
    for _ in range(200000): pass
def called():
    deeper()
def main():
    assert library.call_from_threads(ctypes.py_object(called), int(sys.argv[2])) == 0
    ready()
    while True: time.sleep(100)
main()
""")

SWAPPED = Source("""
import ctypes
library = ctypes.PyDLL(sys.argv[1])
api = ctypes.pythonapi
get = api.PyInterpreterState_Get if sys.version_info >= (3, 9) else api._PyInterpreterState_Get
get.restype = ctypes.c_void_p
def spin():
    for _ in range(50000): pass
def first():
    spin()
def second():
    spin()
    time.sleep(0.0001)
def main():
    assert library.call_in_turn_from_thread(ctypes.py_object(first), ctypes.py_object(second), ctypes.c_void_p(get())) == 0
    ready()
    while True: time.sleep(100)
main()
""")


CALLERS = Source("""
import ctypes
library = ctypes.PyDLL(sys.argv[1])
api = ctypes.pythonapi
get = api.PyInterpreterState_Get if sys.version_info >= (3, 9) else api._PyInterpreterState_Get
get.restype = ctypes.c_void_p
def spin():
    for _ in range(200000): pass
def inner():
    spin()
def again():
    library.call_in_first(ctypes.py_object(inner))
def other():
    spin()
    if len(sys.argv) > 2: again()
def main():
    library.remember_state()
    while True:
        library.call_in_another(ctypes.py_object(other), ctypes.c_void_p(get()))
ready()
main()
""")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler: threads outside of Python cannot be made")
    folder = tmp_path_factory.mktemp("native")
    source, made = folder / "states.c", folder / "states.so"
    source.write_text(HELPER)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", made, source, "-lpthread"], check=True)
    return made


def with_ctypes(least=(2, 7), module="import ctypes"):
    return [
        pytest.param(item, id=item.name)
        for item in native()
        if item.version >= least and pythons.can_run(item, module)
    ]


SUBINTERPRETERS = "import ctypes\ntry: import _interpreters\nexcept ImportError: import _xxsubinterpreters"


def check_called(run):
    """Nearly all samples have the frames of the thread's function, and no others."""
    for stack, _ in check_sums(run):
        assert names(stack) in (["called"], ["called", "deeper"]), harness.show(stack)
    samples = run.stats["samples"]
    assert samples["taken"] >= 100, run.stats
    # Some of their time is spent outside of Python.
    assert samples["python"] >= 0.8 * samples["taken"], run.stats


@pytest.mark.parametrize("interpreter", with_ctypes())
def test_called_from_threads_that_c_made(interpreter, library):
    """Each call has a thread state of its own, often where the one before was."""
    with running(interpreter, CALLED, library, 2) as target:
        run = harness.record_busy(target.pid, rate=1999)
    check_called(run)


@pytest.mark.parametrize("interpreter", with_ctypes((3, 8), SUBINTERPRETERS))
def test_called_beside_an_idle_interpreter(interpreter, library):
    """The thread states are made in an interpreter that is not the newest one."""
    with running(interpreter, CALLED, library, 3, "idle") as target:
        run = harness.record_busy(target.pid, rate=1999)
    check_called(run)


def may_swap(parameter):
    """A debug build of 3.11 or before ends when a second thread state of one thread and interpreter is attached."""
    item = parameter.values[0]
    return item.version >= (3, 12) or item.kind != "debug"


@pytest.mark.parametrize("interpreter", filter(may_swap, with_ctypes((3, 8))))
def test_two_thread_states_in_turn(interpreter, library):
    with running(interpreter, SWAPPED, library) as target:
        run = harness.record_busy(target.pid, rate=1999)
    seen = {"first": 0, "second": 0}
    for stack, count in check_sums(run):
        own = names(stack)
        assert own in ([own[0]], [own[0], "spin"]), harness.show(stack)
        seen[own[0]] += count
    samples = run.stats["samples"]
    assert samples["taken"] >= 100, run.stats
    assert samples["python"] >= 0.95 * samples["taken"], run.stats
    assert min(seen.values()) >= 0.3 * samples["taken"], (seen, run.stats)


@pytest.mark.parametrize("interpreter", filter(may_swap, with_ctypes((3, 10))))
def test_callers_in_another_thread_state(interpreter, library):
    """Stacks of the same interpreter belong together without a mark."""
    with running(interpreter, CALLERS, library) as target:
        run = harness.record_busy(target.pid, rate=1999)
    inside = 0
    for stack, count in check_sums(run):
        own = names(stack)
        assert own in (["<module>", "main", "other", "spin"][: len(own)],), harness.show(stack)
        inside += count if "other" in own else 0
    samples = run.stats["samples"]
    assert samples["taken"] >= 100, run.stats
    assert inside >= 0.8 * samples["taken"], run.stats
    assert not any(run.stats["incomplete"].values()), run.stats


@pytest.mark.parametrize("interpreter", filter(may_swap, with_ctypes((3, 10))))
def test_callers_that_alternate(interpreter, library):
    """Where a thread state's frames are on both sides of another's, these are left out, and that is said."""
    with running(interpreter, CALLERS, library, "again") as target:
        run = harness.record_busy(target.pid, rate=1999)
    inside = cut = 0
    for stack, count in check_sums(run):
        own = names(stack)
        if own[0] == "[incomplete]":
            cut += count
            del own[0]
        if "inner" in own:
            inside += count
            assert own in (["<module>", "main", "inner"], ["<module>", "main", "inner", "spin"]), harness.show(stack)
        else:
            assert own in (["<module>", "main", "other", "spin"][: len(own)],
                           ["<module>", "main", "other", "again"]), harness.show(stack)
    assert inside >= 0.3 * run.stats["samples"]["taken"], run.stats
    assert run.stats["incomplete"]["no_callers"] == cut, run.stats
    # Not where no sample was taken in the other thread state.
    assert cut >= 0.5 * inside, run.stats
