// SPDX-License-Identifier: Apache-2.0
/* A parser in a helper that was made to answer anything: what the one who asks takes from it. Stands in for helper.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "discovery/ask.h"
#include "discovery/ask_tasks.h"
#include "helper/helper.h"
#include "pybpf.h"
#include "session/sources/source_file.h"

/* Every byte of an answer, as many as there is room for. */
static unsigned char byte;
/* The helper's error; 0: it answers. */
static int helper_err;

int helper_call(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double patience_s)
{
	(void)service;
	(void)subject;
	(void)question;
	(void)question_size;
	(void)patience_s;
	if (helper_err)
		return helper_err;
	memset(answer, byte, room);
	*size = room;
	return 0;
}

int helper_ask(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
	       void *answer, size_t room, size_t *size, double slice_s)
{
	return helper_call(service, subject, question, question_size, answer, room, size, slice_s);
}

bool helper_is_interrupted(void)
{
	return false;
}

double helper_cpu_s(void)
{
	return 0;
}

const char *helper_stuck_at(void)
{
	return "";
}

#define IS_TEXT(text) (strnlen(text, sizeof(text)) < sizeof(text))

static void test_texts_of_a_container(void **state)
{
	static struct container_found found[DISCOVERY_CONTAINERS_MAX];
	struct container container;
	struct error error;
	size_t count;

	(void)state;
	byte = 'x';
	assert_int_equal(discovery_ask_container_of(getpid(), &container), 0);
	assert_true(IS_TEXT(container.name) && IS_TEXT(container.id) && IS_TEXT(container.runtime) &&
		    IS_TEXT(container.pod_uid));
	/* A number of containers that no answer holds. */
	assert_int_equal(discovery_ask_container_find("name", 1, found, &count, &error), -EPROTO);
	assert_true(IS_TEXT(error.text) && !count && !found[0].container.id[0]);
}

static void test_texts_of_pythons(void **state)
{
	struct discovery_python pythons[PYBPF_MAX_RUNTIMES];
	struct error error;
	size_t count;

	(void)state;
	byte = 'x';
	discovery_ask_runtimes(getpid(), 0, false, pythons, PYBPF_MAX_RUNTIMES, &count, &error);
	for (size_t i = 0; i < PYBPF_MAX_RUNTIMES; i++)
		assert_true(IS_TEXT(pythons[i].comm) && IS_TEXT(pythons[i].version) && IS_TEXT(pythons[i].path) &&
			    IS_TEXT(pythons[i].build.origin) && IS_TEXT(pythons[i].version_source) &&
			    IS_TEXT(pythons[i].runtime_source));
	assert_true(IS_TEXT(error.text));
}

/* A size to which one byte more is none at all. */
static void test_size_of_a_source(void **state)
{
	const struct source_file file = {.pid = getpid(), .path = "/etc/passwd"};
	const struct pybpf_rights thread = {0};
	struct source_rights rights;
	struct source_identity identity;

	(void)state;
	byte = 0xff;
	assert_int_equal(source_file_look(&file, &thread, &rights, &identity), -EPROTO);
	byte = 0;
	assert_int_equal(source_file_look(&file, &thread, &rights, &identity), 0);
}

static int take_task(const struct task_read *task, void *arg)
{
	(void)task;
	(void)arg;
	return 0;
}

/* Memory that a helper lacks is no error of the run. */
static void test_full_helper(void **state)
{
	static const struct task_read_place place;
	struct task_read_counts counts = {0};

	(void)state;
	helper_err = -ENOMEM;
	assert_int_equal(discovery_ask_tasks(getpid(), &place, 1, 10, take_task, NULL, &counts), -ENOBUFS);
	helper_err = 0;
	byte = 0xff;
	assert_int_equal(discovery_ask_tasks(getpid(), &place, 1, 10, take_task, NULL, &counts), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts_of_a_container),
		cmocka_unit_test(test_texts_of_pythons),
		cmocka_unit_test(test_size_of_a_source),
		cmocka_unit_test(test_full_helper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
