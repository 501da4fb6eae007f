/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with two Pythons: runtimes MODE LIBRARY HOME LIBRARY HOME. The first runs alpha(), the second beta(), for
 * ever. A line on stdin is answered with a line: what CPU time each has had, in ns, by a clock of this program's own.
 *   apart     each in a thread of its own
 *   later     likewise, but the second is loaded after a line "load"
 *   turns     one thread runs alpha() and beta() by turns; neither is called by the other
 *   forked    likewise, in a child that was made by fork after both were there
 *   nested    alpha's loop calls beta() through C, and keeps its own GIL meanwhile
 *   released  likewise, and releases it
 *   woven     alpha's loop calls beta's, which calls gamma() of the first Python
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

typedef void object;

struct method {
	const char *name;
	object *(*call)(object *self, object *args);
	int flags;
	const char *doc;
};
#define NO_ARGUMENTS 4 /* METH_NOARGS */

struct runtime {
	const char *path, *home;
	int (*run)(const char *text);
	int (*ensure)(void);
	void (*release)(int state);
	void *(*save)(void);
	void (*restore)(void *tstate);
	object *(*call)(object *function, object *args);
	object *(*get)(object *from, const char *name);
	void (*keep)(object *o);
	object *main, *none;
};

enum {
	ALPHA,
	BETA,
	COUNT
};

static struct runtime runtimes[COUNT];
static _Atomic uint64_t *spent; /* ns of CPU time, shared with a child */
static uint64_t last_ns;
static int release_first, weave;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, dlerror());
	_exit(3);
}

static void *need(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		fail(name);
	return found;
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Since the last call the thread was in that Python. */
static void account(int which)
{
	uint64_t now = thread_ns();

	spent[which] += now - last_ns;
	last_ns = now;
}

static const char burn[] = "def %s():\n"
			   "    n = 0\n"
			   "    for i in range(100000):\n"
			   "        n += i\n"
			   "    return n\n";

static void define(const struct runtime *r, const char *name)
{
	char text[256];

	snprintf(text, sizeof(text), burn, name);
	if (r->run(text))
		fail("definition");
}

static void begin(struct runtime *r, int flags, const char *name)
{
	void *library = dlopen(r->path, RTLD_NOW | flags);
	static wchar_t wide[COUNT][4096];
	wchar_t *home = wide[r - runtimes];
	int *no_site;

	if (!library)
		fail(r->path);
	if (strstr(r->path, "libpython2")) {
		((void (*)(const char *))need(library, "Py_SetPythonHome"))(r->home);
	} else {
		mbstowcs(home, r->home, 4095);
		((void (*)(const wchar_t *))need(library, "Py_SetPythonHome"))(home);
	}
	no_site = dlsym(library, "Py_NoSiteFlag");
	if (no_site)
		*no_site = 1;
	((void (*)(int))need(library, "Py_InitializeEx"))(0);
	r->run = need(library, "PyRun_SimpleString");
	r->ensure = need(library, "PyGILState_Ensure");
	r->release = need(library, "PyGILState_Release");
	r->save = need(library, "PyEval_SaveThread");
	r->restore = need(library, "PyEval_RestoreThread");
	r->call = need(library, "PyObject_CallObject");
	r->get = need(library, "PyObject_GetAttrString");
	r->keep = need(library, "Py_IncRef");
	r->none = need(library, "_Py_NoneStruct");
	r->main = ((object * (*)(const char *)) need(library, "PyImport_AddModule"))("__main__");
	define(r, name);
}

static void call(const struct runtime *r, const char *name)
{
	object *function = r->get(r->main, name);

	if (!function || !r->call(function, NULL))
		fail(name);
}

static object *enter(object *self, object *args)
{
	void *tstate = NULL;
	int state;

	(void)self;
	(void)args;
	account(ALPHA);
	if (release_first)
		tstate = runtimes[ALPHA].save();
	state = runtimes[BETA].ensure();
	call(&runtimes[BETA], weave ? "turn" : "beta");
	runtimes[BETA].release(state);
	if (tstate)
		runtimes[ALPHA].restore(tstate);
	account(BETA);
	runtimes[ALPHA].keep(runtimes[ALPHA].none);
	return runtimes[ALPHA].none;
}

static object *back(object *self, object *args)
{
	(void)self;
	(void)args;
	account(BETA);
	call(&runtimes[ALPHA], "gamma");
	account(ALPHA);
	runtimes[BETA].keep(runtimes[BETA].none);
	return runtimes[BETA].none;
}

static void add_function(const struct runtime *r, struct method *method)
{
	void *library = dlopen(r->path, RTLD_NOW | RTLD_NOLOAD);
	object *(*make)(struct method *, object *, object *) = need(library, "PyCFunction_NewEx");

	((int (*)(object *, const char *, object *))need(library, "PyObject_SetAttrString"))(r->main, method->name,
											     make(method, NULL, NULL));
}

static void begin_alpha(void)
{
	begin(&runtimes[ALPHA], RTLD_GLOBAL, "alpha");
}

static void begin_beta(void)
{
	begin(&runtimes[BETA], RTLD_LOCAL | RTLD_DEEPBIND, "beta");
}

/* One thread for one Python. */
static void *apart(void *arg)
{
	struct runtime *r = arg;
	int which = (int)(r - runtimes);
	const char *name = which == ALPHA ? "alpha" : "beta";

	prctl(PR_SET_NAME, name);
	if (which == ALPHA)
		begin_alpha();
	else
		begin_beta();
	for (;;) {
		call(r, name);
		spent[which] = thread_ns();
	}
	return NULL;
}

static void begin_both(void)
{
	begin_alpha();
	runtimes[ALPHA].save();
	begin_beta();
	runtimes[BETA].save();
	last_ns = thread_ns();
}

static void take_turns(void)
{
	last_ns = thread_ns();
	for (;;) {
		for (int i = 0; i < COUNT; i++) {
			int state = runtimes[i].ensure();

			call(&runtimes[i], i == ALPHA ? "alpha" : "beta");
			runtimes[i].release(state);
			account(i);
		}
	}
}

static void *turns(void *arg)
{
	begin_both();
	*(_Atomic int *)arg = 1;
	take_turns();
	return NULL;
}

static void *nested(void *arg)
{
	static struct method inwards = {"enter", enter, NO_ARGUMENTS, NULL},
			     outwards = {"back", back, NO_ARGUMENTS, NULL};
	struct runtime *alpha = &runtimes[ALPHA];

	begin_both();
	runtimes[BETA].ensure();
	if (weave) {
		add_function(&runtimes[BETA], &outwards);
		runtimes[BETA].run("def turn():\n    beta()\n    back()\n");
	}
	runtimes[BETA].save();
	alpha->ensure();
	add_function(alpha, &inwards);
	define(alpha, "gamma");
	alpha->run("def outer():\n    while True:\n        alpha()\n        enter()\n");
	*(_Atomic int *)arg = 1;
	call(alpha, "outer");
	return NULL;
}

static void start(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, arg))
		_exit(3);
}

static void wait_for(_Atomic int *flag)
{
	while (!*flag)
		usleep(1000);
}

int main(int argc, char **argv)
{
	static _Atomic int ready;
	const char *mode;
	char line[64];

	if (argc != 6)
		return 2;
	mode = argv[1];
	for (int i = 0; i < COUNT; i++) {
		runtimes[i].path = argv[2 + 2 * i];
		runtimes[i].home = argv[3 + 2 * i];
	}
	spent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	release_first = !strcmp(mode, "released");
	weave = !strcmp(mode, "woven");
	if (!strcmp(mode, "apart") || !strcmp(mode, "later")) {
		start(apart, &runtimes[ALPHA]);
		while (!spent[ALPHA])
			usleep(1000);
		if (!strcmp(mode, "apart")) {
			start(apart, &runtimes[BETA]);
			while (!spent[BETA])
				usleep(1000);
		}
	} else if (!strcmp(mode, "turns")) {
		start(turns, &ready);
		wait_for(&ready);
	} else if (!strcmp(mode, "forked")) {
		begin_both();
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, 9);
			take_turns();
		}
	} else {
		start(nested, &ready);
		wait_for(&ready);
	}
	printf("{}\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "load\n"))
			start(apart, &runtimes[BETA]);
		printf("{\"alpha\": %llu, \"beta\": %llu}\n", (unsigned long long)spent[ALPHA],
		       (unsigned long long)spent[BETA]);
		fflush(stdout);
	}
	return 0;
}
