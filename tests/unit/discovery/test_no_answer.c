// SPDX-License-Identifier: Apache-2.0
/* Helpers that give no answer, and services that fail: what those who ask make of it. Stands in for helper.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/remote.h"
#include "discovery/ask.h"
#include "discovery/list.h"
#include "helper/helper.h"
#include "pybpf.h"

/* All that helper_call() and helper_ask() return. */
static int call_err, ask_err;
static size_t answered; /* bytes of an answer, where there is one */

int helper_call(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double patience_s)
{
	(void)service;
	(void)subject;
	(void)question;
	(void)question_size;
	(void)patience_s;
	*size = answered < room ? answered : room;
	memset(answer, 0, *size);
	return call_err;
}

int helper_ask(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
	       void *answer, size_t room, size_t *size, double slice_s)
{
	(void)service;
	(void)subject;
	(void)question;
	(void)question_size;
	(void)answer;
	(void)room;
	(void)slice_s;
	*size = 0;
	return ask_err;
}

bool helper_is_interrupted(void)
{
	return false;
}

const char *helper_stuck_at(void)
{
	return "";
}

static const int no_answer[] = {-ETIMEDOUT, -ECONNRESET, -EPROTO, -EBUSY, -ENOTCONN, -EINTR};
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static int reset(void **state)
{
	(void)state;
	call_err = ask_err = 0;
	answered = 0;
	return 0;
}

/* -EFAULT is a fact: it says that nothing is mapped there, for which a Python's place is given to another one. */
static void test_memory(void **state)
{
	static const int facts[] = {-EPERM, -ESRCH, -ENOSYS, -EFAULT};
	uint64_t word;

	(void)state;
	discovery_ask_memory();
	for (size_t i = 0; i < COUNT(no_answer); i++) {
		call_err = no_answer[i];
		assert_int_equal(remote_read(getpid(), 4096, &word, sizeof(word)), no_answer[i]);
	}
	for (size_t i = 0; i < COUNT(facts); i++) {
		call_err = facts[i];
		assert_int_equal(remote_read(getpid(), 4096, &word, sizeof(word)), facts[i]);
	}
	call_err = -EINVAL;
	assert_int_equal(remote_read(getpid(), 4096, &word, sizeof(word)), -EFAULT);
	/* Less than was asked for: no answer that the service gives. */
	call_err = 0;
	answered = 4;
	assert_int_equal(remote_read(getpid(), 4096, &word, sizeof(word)), -EPROTO);
	answered = sizeof(word);
	assert_int_equal(remote_read(getpid(), 4096, &word, sizeof(word)), 0);
	remote_read_by(NULL);
}

static void test_arguments(void **state)
{
	char text[16];

	(void)state;
	for (size_t i = 0; i < COUNT(no_answer); i++) {
		call_err = no_answer[i];
		strcpy(text, "before");
		assert_int_equal(discovery_ask_cmdline(getpid(), text, sizeof(text)), no_answer[i]);
		assert_string_equal(text, "");
	}
	call_err = 0;
	assert_int_equal(discovery_ask_cmdline(getpid(), text, sizeof(text)), -EPROTO);
	/* A process without arguments is a fact. */
	answered = 1;
	assert_int_equal(discovery_ask_cmdline(getpid(), text, sizeof(text)), 0);
}

static void test_validation(void **state)
{
	const struct discovery_python python = {.pid = getpid(), .comm = "python3"};
	struct error error;

	(void)state;
	for (size_t i = 0; i < COUNT(no_answer); i++) {
		call_err = no_answer[i];
		assert_int_equal(discovery_ask_validate(&python, &error), -EIO);
		assert_non_null(strstr(error.text, helper_describe_error(no_answer[i])));
	}
}

/* Returns the list of this process alone. */
static struct ps_list list_self(struct discovery_filter *filter)
{
	struct ps_list list;

	assert_int_equal(discovery_numbers_add(&filter->pids, (uint32_t)getpid()), 0);
	assert_int_equal(ps_collect(filter, &list), 0);
	return list;
}

static char *table_of(const struct ps_list *list)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(ps_table(list, 0, out), 0);
	ps_json(list, out);
	fclose(out);
	return text;
}

/* It is listed, with a sentence, and never as a process without Python, in no container, or without arguments. */
static void test_list(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(no_answer); i++) {
		struct discovery_filter filter = {.all = false};
		struct ps_list list;
		char *text;

		call_err = ask_err = no_answer[i];
		list = list_self(&filter);
		assert_true(list.unread);
		assert_int_equal(list.count, 1);
		assert_false(list.rows[0].supported);
		assert_int_equal(list.rows[0].container_unread, no_answer[i]);
		assert_int_equal(list.rows[0].command_unread, no_answer[i]);
		text = table_of(&list);
		assert_non_null(strstr(text, " is left out: "));
		assert_non_null(strstr(text, "its container and arguments: "));
		assert_non_null(strstr(text, helper_describe_error(no_answer[i])));
		assert_non_null(strstr(text, "\"not_read\": \"container and arguments\""));
		free(text);
		ps_free(&list);
		discovery_filter_free(&filter);
	}
}

/* In no container, and gone: facts. */
static void test_facts_of_a_list(void **state)
{
	static const int facts[] = {-ENOENT, -ESRCH};

	(void)state;
	ask_err = -ECONNRESET;
	for (size_t i = 0; i < COUNT(facts); i++) {
		struct discovery_filter filter = {.all = false};
		struct ps_list list;
		char *text;

		call_err = facts[i];
		list = list_self(&filter);
		assert_int_equal(list.rows[0].container_unread, 0);
		assert_int_equal(list.rows[0].command_unread, 0);
		text = table_of(&list);
		assert_null(strstr(text, "Not read"));
		assert_null(strstr(text, "not_read"));
		free(text);
		ps_free(&list);
		discovery_filter_free(&filter);
	}
}

/* Nobody knows whether it is in the container that was excluded: it is not listed as if it were not. */
static void test_excluded_container(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(no_answer); i++) {
		struct discovery_filter filter = {.all = false};
		struct ps_list list;

		call_err = no_answer[i];
		ask_err = -ECONNRESET;
		assert_int_equal(discovery_texts_add(&filter.not_containers, "web"), 0);
		list = list_self(&filter);
		assert_int_equal(list.count, 0);
		assert_true(list.unread);
		ps_free(&list);
		discovery_filter_free(&filter);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_memory, reset),
		cmocka_unit_test_setup(test_arguments, reset),
		cmocka_unit_test_setup(test_validation, reset),
		cmocka_unit_test_setup(test_list, reset),
		cmocka_unit_test_setup(test_facts_of_a_list, reset),
		cmocka_unit_test_setup(test_excluded_container, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
