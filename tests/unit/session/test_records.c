// SPDX-License-Identifier: Apache-2.0
/* Records of the kernel's ring buffer, of which some are broken: these are counted, and the others are taken. */
#include "profiles.h"
#include "pysym_records.h"
#include "base/log.h"
#include "session/internal.h"
#include "symbols/stacks.h"

#define FIRST  71
#define SECOND 72

static unsigned warnings;

static void hear(enum log_level level, const char *text)
{
	assert_int_equal(level, LOG_WARN);
	assert_non_null(strstr(text, "the run goes on"));
	warnings++;
}

static int setup(void **state)
{
	struct session *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->pysym = symbols(PYSYM_LINES_CURRENT, false, 8, gone_pid());
	s->profile = new_profile();
	s->stacks = stacks_new(s->pysym, s->profile);
	assert_non_null(s->stacks);
	s->consume_until_ns = UINT64_MAX;
	s->options.max_memory = 1 << 30;
	session_measures_init(s);
	warnings = 0;
	log_set_sink(hear);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct session *s = *state;

	log_set_sink(NULL);
	session_measures_free(s);
	stacks_free(s->stacks);
	profile_free(s->profile);
	pysym_free(s->pysym);
	free(s);
	return 0;
}

/* Sends a copy of so many bytes, whose end the sanitizer guards. */
static void send(struct session *s, const void *record, size_t size)
{
	void *copy = malloc(size);

	assert_non_null(copy);
	memcpy(copy, record, size);
	assert_int_equal(session_on_record(s, copy, size), 0);
	free(copy);
}

static void send_code(struct session *s)
{
	struct record r = whole_record(10, "work", "/a/b.py");

	send(s, r.event, r.size);
	free(r.event);
}

struct one_frame {
	struct pybpf_stack_event event;
	struct pybpf_frame frame;
};

static struct one_frame stack_of(uint64_t id)
{
	struct one_frame stack = {.event = {.event = {.type = PYBPF_EVENT_STACK, .size = sizeof(stack)},
					    .stack_id = id,
					    .proc_id = PROC,
					    .depth = 1},
				  .frame = {.code = CODE, .sig = SIG}};

	return stack;
}

static void send_stack(struct session *s, uint64_t id)
{
	const struct one_frame stack = stack_of(id);

	send(s, &stack, sizeof(stack));
}

/* What the run knows in the end: both stacks, each of the function that the code object names. */
static void assert_both_known(struct session *s)
{
	assert_int_equal(s->error, 0);
	assert_int_equal(stacks_finish(s->stacks), 0);
	assert_int_equal(stacks_count(s->stacks), 2);
	assert_true(stacks_find(s->stacks, FIRST) != PROFILE_NONE);
	assert_int_equal(stacks_find(s->stacks, SECOND), stacks_find(s->stacks, FIRST));
	assert_int_equal(pysym_get_counters(s->pysym)->unnamed, 0);
}

/* A record of each type ends behind its head. */
static void test_broken_ones_in_the_middle(void **state)
{
	struct session *s = *state;

	send_code(s);
	send_stack(s, FIRST);
	for (uint32_t type = PYBPF_EVENT_STACK; type <= PYBPF_EVENT_MEMORY; type++) {
		const struct pybpf_event broken = {.type = type, .size = sizeof(broken)};

		send(s, &broken, sizeof(broken));
		assert_int_equal(s->lost_records, type);
	}
	assert_int_equal(warnings, 1);
	assert_int_equal(s->counters[PYBPF_COUNT_UNTIMED], 1);
	send_stack(s, SECOND);
	assert_both_known(s);
	assert_int_equal(s->lost_records, PYBPF_EVENT_MEMORY);
}

/* Sizes that the ring buffer contradicts, and too many frames. */
static void test_lying_ones_in_the_middle(void **state)
{
	struct session *s = *state;
	struct one_frame lie = stack_of(SECOND);

	send_stack(s, FIRST);
	send(s, &lie, sizeof(lie) - 1);
	send(s, &lie, sizeof(lie.event.event) - 1);
	lie.event.depth = 2;
	send(s, &lie, sizeof(lie));
	lie.event.depth = 1;
	lie.event.nr_kernel = PYBPF_KERNEL_FRAMES + 1;
	send(s, &lie, sizeof(lie));
	assert_int_equal(s->lost_records, 4);
	assert_true(stacks_find(s->stacks, SECOND) == PROFILE_NONE);
	send_code(s);
	send_stack(s, SECOND);
	assert_both_known(s);
	assert_int_equal(s->lost_records, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_broken_ones_in_the_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lying_ones_in_the_middle, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
