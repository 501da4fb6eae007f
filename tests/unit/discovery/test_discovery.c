// SPDX-License-Identifier: Apache-2.0
/* Discovery and validation on processes that are no Python; real interpreters are tested end to end. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "discovery/ask.h"
#include "discovery/discovery.h"
#include "base/remote.h"

static struct discovery *discovery;

static int begin(void **state)
{
	(void)state;
	discovery = discovery_new();
	return discovery ? 0 : -1;
}

static int forget(void **state)
{
	(void)state;
	discovery_free(discovery);
	discovery = NULL;
	return 0;
}

static enum discovery_result look(pid_t pid, struct discovery_python *python, struct error *error)
{
	size_t count;

	return discovery_runtimes(discovery, pid, python, 1, &count, error);
}

static pid_t start_waiting(void)
{
	pid_t child = fork();

	if (!child) {
		alarm(60);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void this_program_is_no_python(void **state)
{
	struct discovery_python python;
	struct error error = {0};

	(void)state;
	/* The second time from memory. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(look(getpid(), &python, &error), DISCOVERY_NOT_PYTHON);
		assert_non_null(strstr(error.text, "no Python"));
		assert_int_equal(python.pid, getpid());
		assert_true(python.start_time > 0);
		assert_non_null(strstr(python.comm, "test_discovery"));
	}
	discovery_free(NULL);
}

static void a_look_at_many_gives_the_same_answers(void **state)
{
	struct discovery_python python;
	pid_t child = start_waiting();
	struct error first, error;

	(void)state;
	discovery_memo_begin(discovery);
	assert_int_equal(look(getpid(), &python, &first), DISCOVERY_NOT_PYTHON);
	/* It maps the same files. */
	assert_int_equal(look(child, &python, &error), DISCOVERY_NOT_PYTHON);
	assert_non_null(strstr(error.text, "no Python"));
	assert_int_equal(look(getpid(), &python, &error), DISCOVERY_NOT_PYTHON);
	assert_string_equal(error.text, first.text);
	discovery_memo_end(discovery);
	discovery_memo_end(discovery);
	end(child);
}

static void a_thread_without_memory_is_no_python(void **state)
{
	struct discovery_python python;
	enum discovery_result result;
	struct error error;

	(void)state;
	/* kthreadd; in a container it does not exist. */
	result = look(2, &python, &error);
	assert_true(result == DISCOVERY_NOT_PYTHON || result == DISCOVERY_GONE || result == DISCOVERY_DENIED);
	assert_true(strlen(error.text) > 0);
}

/* A program is stopped where exec has mapped it and its loader, which has not begun to work. */
static void a_program_that_is_being_loaded_is_young(void **state)
{
	struct discovery_python python;
	struct error error = {0};
	pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl("/bin/sleep", "sleep", "60", NULL);
		_exit(1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	assert_int_equal(look(child, &python, &error), DISCOVERY_UNMAPPED);
	assert_non_null(strstr(error.text, "just starting"));
	assert_int_equal(ptrace(PTRACE_DETACH, child, NULL, NULL), 0);
	for (int i = 0; i < 10000 && look(child, &python, &error) == DISCOVERY_UNMAPPED; i++)
		usleep(1000);
	assert_int_equal(look(child, &python, &error), DISCOVERY_NOT_PYTHON);
	end(child);
}

static void an_ended_process_is_a_zombie_then_gone(void **state)
{
	struct discovery_python python;
	pid_t child = fork();
	siginfo_t info;
	struct error error;

	(void)state;
	if (!child)
		_exit(0);
	assert_int_equal(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(look(child, &python, &error), DISCOVERY_ZOMBIE);
	assert_non_null(strstr(error.text, "has ended"));
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(look(child, &python, &error), DISCOVERY_GONE);
	assert_non_null(strstr(error.text, "no process"));
}

static void reads_memory_of_another_process(void **state)
{
	static char text[] = "in both after fork";
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), copy[64];
	pid_t child;

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	munmap(page + 4096, 4096);
	memcpy(page + 4096 - 8, "lastbyte", 8);
	child = start_waiting();
	assert_int_equal(remote_read(child, (uintptr_t)text, copy, sizeof(text)), 0);
	assert_string_equal(copy, text);
	assert_int_equal(remote_read(child, (uintptr_t)page + 4096 - 8, copy, 8), 0);
	assert_memory_equal(copy, "lastbyte", 8);
	/* All or nothing, at the end of a mapping, nowhere, and beyond the end of memory. */
	assert_int_equal(remote_read(child, (uintptr_t)page + 4096 - 8, copy, 9), -EFAULT);
	assert_int_equal(remote_read(child, (uintptr_t)page + 4096, copy, 1), -EFAULT);
	assert_int_equal(remote_read(child, 0, copy, 8), -EFAULT);
	assert_int_equal(remote_read(child, UINT64_MAX - 3, copy, 8), -EFAULT);
	assert_int_equal(remote_read(child, 1ULL << 63, copy, 8), -EFAULT);
	assert_int_equal(remote_read(child, 0, copy, 0), 0);
	end(child);
	assert_int_equal(remote_read(child, (uintptr_t)text, copy, 8), -ESRCH);
	munmap(page, 4096);
}

/* A model of an interpreter in this process's memory, read with 3.8's layout. */
struct model {
	uint64_t head;
	uint64_t interp[64], tstate[128], tcb[8], type[8];
	char name[8];
};

static void put(uint64_t *object, uint16_t offset, const void *value)
{
	uint64_t word = (uintptr_t)value;

	memcpy((char *)object + offset, &word, sizeof(word));
}

static void make_model(struct model *model, struct discovery_python *python)
{
	const struct pybpf_layout *layout = &python->build.layout;

	memset(model, 0, sizeof(*model));
	memset(python, 0, sizeof(*python));
	assert_int_equal(layout_from_table(3, 8, false, &python->build), 0);
	python->pid = getpid();
	strcpy(python->version, "3.8.0");
	python->interp_head_addr = (uintptr_t)&model->head;
	python->code_type_addr = (uintptr_t)model->type;
	model->head = (uintptr_t)model->interp;
	put(model->interp, layout->interp_threads_head, model->tstate);
	put(model->tstate, layout->tstate_interp, model->interp);
	put(model->tstate, layout->tstate_thread_id, model->tcb);
	put(model->tcb, 0, model->tcb);
	strcpy(model->name, "code");
	put(model->type, layout->code_type + 16, model->name);
}

static void validates_a_model(void **state)
{
	struct discovery_python python;
	struct model model;
	struct error error;

	(void)state;
	make_model(&model, &python);
	assert_int_equal(discovery_validate(&python, &error), 0);
	assert_string_equal(error.text, "");

	/* Not initialised yet: no interpreter, no thread. */
	model.head = 0;
	assert_int_equal(discovery_validate(&python, &error), -EAGAIN);
	assert_non_null(strstr(error.text, "not initialised"));
	make_model(&model, &python);
	put(model.interp, python.build.layout.interp_threads_head, NULL);
	assert_int_equal(discovery_validate(&python, &error), -EAGAIN);

	/* The thread state belongs to another interpreter; is no address; lies in unmapped memory. */
	make_model(&model, &python);
	put(model.tstate, python.build.layout.tstate_interp, model.tstate);
	assert_int_equal(discovery_validate(&python, &error), -EINVAL);
	assert_non_null(strstr(error.text, "thread state's interpreter"));
	make_model(&model, &python);
	put(model.interp, python.build.layout.interp_threads_head, (void *)0x1234567);
	assert_int_equal(discovery_validate(&python, &error), -EINVAL);
	put(model.interp, python.build.layout.interp_threads_head, (void *)0x10000);
	assert_int_equal(discovery_validate(&python, &error), -EINVAL);
	make_model(&model, &python);
	model.head = 3;
	assert_int_equal(discovery_validate(&python, &error), -EINVAL);
	make_model(&model, &python);
	python.interp_head_addr = 0x10000;
	assert_int_equal(discovery_validate(&python, &error), -EINVAL);

#if defined(__x86_64__)
	/* The only thread state is of a thread that has ended: what is at its id by now is something else. */
	make_model(&model, &python);
	put(model.tcb, 0, model.interp);
	assert_int_equal(discovery_validate(&python, &error), -EAGAIN);
	assert_non_null(strstr(error.text, "no thread that runs under its id"));
#endif

	/* PyCode_Type is another type. */
	make_model(&model, &python);
	strcpy(model.name, "cell");
	assert_int_equal(discovery_validate(&python, &error), -EINVAL);
	assert_non_null(strstr(error.text, "PyCode_Type"));
	python.code_type_addr = 0;
	assert_int_equal(discovery_validate(&python, &error), 0);

	/* Lists that loop end. */
	make_model(&model, &python);
	put(model.tstate, python.build.layout.tstate_next, model.tstate);
	put(model.interp, python.build.layout.interp_next, model.interp);
	assert_int_equal(discovery_validate(&python, &error), 0);
}

static void says_when_the_process_is_gone(void **state)
{
	struct discovery_python python;
	struct model model;
	struct error error;
	pid_t child;

	(void)state;
	make_model(&model, &python);
	child = start_waiting();
	python.pid = child;
	assert_int_equal(discovery_validate(&python, &error), 0);
	end(child);
	assert_int_equal(discovery_validate(&python, &error), -ESRCH);
	assert_non_null(strstr(error.text, "has ended"));
}

/* What a main process that was taken over could ask a helper. */
static void questions_without_room_are_refused(void **state)
{
	const uint32_t question[2] = {(uint32_t)getpid(), 0};
	char answer[16];
	size_t size = 0;

	(void)state;
	assert_int_equal(discovery_serve_cmdline(NULL, question, sizeof(question), answer, &size), -EINVAL);
	assert_int_equal(discovery_serve_cmdline(NULL, question, sizeof(question) - 1, answer, &size), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(this_program_is_no_python, begin, forget),
		cmocka_unit_test_setup_teardown(a_look_at_many_gives_the_same_answers, begin, forget),
		cmocka_unit_test_setup_teardown(a_thread_without_memory_is_no_python, begin, forget),
		cmocka_unit_test_setup_teardown(a_program_that_is_being_loaded_is_young, begin, forget),
		cmocka_unit_test_setup_teardown(an_ended_process_is_a_zombie_then_gone, begin, forget),
		cmocka_unit_test(reads_memory_of_another_process),
		cmocka_unit_test(validates_a_model),
		cmocka_unit_test(says_when_the_process_is_gone),
		cmocka_unit_test(questions_without_room_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
