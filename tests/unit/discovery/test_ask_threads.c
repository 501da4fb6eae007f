// SPDX-License-Identifier: Apache-2.0
/*
 * Questions about many threads, and what is taken from the answers of a helper that was made to say anything. Stands in
 * for helper.c and for the walk: the lists of played processes take some questions to read.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "discovery/ask_threads.h"
#include "helper/helper.h"
#include "symbols/code_content.h"
#include "symbols/walk/walk_user.h"

#define SLICE_S 60 /* longer than a busy machine keeps the test from a CPU */
/* Questions that it takes to read the list of a process. */
#define LIST_QUESTIONS 3
#define THREADS        4

struct walk_list {
	unsigned reads; /* since its start */
};

static struct {
	const void *bytes; /* the helper's answer; NULL: that of the service */
	size_t size;
	int err;         /* the helper's */
	unsigned begins; /* of lists */
	bool full;       /* the helper's memory: it has none for a list */
} played;

static int setup(void **state)
{
	(void)state;
	memset(&played, 0, sizeof(played));
	return 0;
}

int helper_call(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double patience_s)
{
	(void)subject;
	(void)patience_s;
	if (played.err)
		return played.err;
	if (!played.bytes)
		return service(NULL, question, question_size, answer, size);
	assert_in_range(played.size, 0, room);
	memcpy(answer, played.bytes, played.size);
	*size = played.size;
	return 0;
}

void walk_process_memory(struct walk_memory *memory, const pid_t *pid)
{
	*memory = (struct walk_memory){.source = (void *)pid};
}

struct walk_list *walk_list_new(void)
{
	return calloc(1, sizeof(struct walk_list));
}

void walk_list_free(struct walk_list *list)
{
	free(list);
}

void walk_list_begin(struct walk_list *list, const struct walk_memory *memory, const struct pybpf_layout *layout,
		     const struct pybpf_runtime *runtime)
{
	(void)memory;
	(void)layout;
	(void)runtime;
	list->reads = 0;
	played.begins++;
}

int walk_list_read(struct walk_list *list, uint64_t until_ns)
{
	(void)until_ns;
	if (played.full)
		return -ENOMEM;
	return ++list->reads < LIST_QUESTIONS ? -ETIMEDOUT : 0;
}

/* Each thread is in one function of its own. */
int walk_listed_thread(struct walk_list *list, uint64_t thread_id, uint64_t futex, uint64_t stack_pointer,
		       uint64_t until_ns, struct walk_stack *out)
{
	(void)list;
	(void)futex;
	(void)stack_pointer;
	(void)until_ns;
	*out = (struct walk_stack){.depth = 1, .frames = calloc(1, sizeof(*out->frames))};
	assert_non_null(out->frames);
	out->frames[0] = (struct pybpf_frame){.kind = PYBPF_FRAME_PYTHON, .code = thread_id};
	return 0;
}

size_t pysym_record_code(const struct walk_memory *memory, const struct pybpf_layout *layout,
			 const struct pybpf_frame *frame, void *out)
{
	const struct pybpf_code_event event = {.code = frame->code};

	(void)memory;
	(void)layout;
	memcpy(out, &event, sizeof(event));
	return sizeof(event);
}

/* What was taken. */
struct taken {
	unsigned codes, stacks;
	int polled;      /* sum of the descriptors */
	int code_err;    /* to be returned by the taker */
	unsigned spared; /* after so many code objects */
	bool tell_again; /* to be asked */
};

static int take_code(const struct pybpf_code_event *event, size_t size, void *arg)
{
	struct taken *taken = arg;

	assert_int_equal(event->event.size, size);
	if (taken->code_err && taken->codes >= taken->spared)
		return taken->code_err;
	taken->codes++;
	return 0;
}

static int take_stack(uint32_t thread, const struct ask_threads_stack *stack, void *arg)
{
	struct taken *taken = arg;

	assert_in_range(thread, 0, THREADS - 1);
	assert_true(stack->kept <= PYBPF_MAX_FRAMES);
	taken->stacks++;
	taken->polled += stack->polled;
	return 0;
}

/* Asks for the threads of the process. *taken: what was taken of the answer. */
static int ask(uint64_t life, uint32_t *done, struct taken *taken)
{
	static struct ask_threads asked;
	const struct ask_threads_taker taker = {.code = take_code, .stack = take_stack, .arg = taken};

	asked = (struct ask_threads){.life = life, .pid = (pid_t)life, .nr_runtimes = 1, .count = THREADS};
	asked.tell_again = taken->tell_again;
	asked.layouts[0].tstate_cframe = PYBPF_NO_OFFSET;
	for (uint32_t i = 0; i < THREADS; i++)
		asked.threads[i] = (struct ask_thread){.thread_id = life * THREADS + i, .tid = (int32_t)i + 1};
	return discovery_ask_threads(&asked, SLICE_S, &taker, done);
}

/* Both have long lists; they are asked for in turn. */
static void test_two_processes_in_turn(void **state)
{
	uint32_t done[2] = {0, 0};
	struct taken taken = {0};

	(void)state;
	for (unsigned i = 0; i < LIST_QUESTIONS; i++) {
		assert_int_equal(ask(1, &done[0], &taken), 0);
		assert_int_equal(ask(2, &done[1], &taken), 0);
	}
	assert_in_range(done[0], 1, THREADS);
	assert_in_range(done[1], 1, THREADS);
	assert_int_equal(played.begins, 2);
}

/* A helper does not keep the lists of all processes of a machine: that of the least recent question is given up. */
static void test_lists_are_bounded(void **state)
{
	const uint64_t first = 100, last = 140;
	struct taken taken = {0};
	uint32_t done;

	(void)state;
	for (uint64_t life = first; life < last; life++)
		assert_int_equal(ask(life, &done, &taken), 0);
	assert_int_equal(played.begins, last - first);
	assert_int_equal(ask(last - 1, &done, &taken), 0);
	assert_int_equal(ask(last - 2, &done, &taken), 0);
	assert_int_equal(played.begins, last - first);
	assert_int_equal(ask(first, &done, &taken), 0);
	assert_int_equal(played.begins, last - first + 1);
}

/* Processes with long lists take the helper's memory: those of others are given up. */
static void test_full_helper_forgets_others(void **state)
{
	struct taken taken = {0};
	uint32_t done;

	(void)state;
	assert_int_equal(ask(201, &done, &taken), 0);
	played.full = true;
	assert_int_equal(ask(202, &done, &taken), 0);
	assert_int_equal(done, 0);
	/* There are no others now. */
	assert_int_equal(ask(202, &done, &taken), -ENOBUFS);
	played = (typeof(played)){.begins = 0};
	assert_int_equal(ask(201, &done, &taken), 0);
	assert_int_equal(played.begins, 1);
}

/* A process whose threads do not fit into a helper's memory does not end the run, as an error of its own memory would.
 */
static void test_full_helper_is_no_error_of_the_run(void **state)
{
	struct taken taken = {0};
	uint32_t done = 1;

	(void)state;
	played.err = -ENOMEM;
	assert_int_equal(ask(301, &done, &taken), -ENOBUFS);
	assert_int_equal(done, 0);
	/* The taker's own is one. */
	played.err = 0;
	taken.code_err = -ENOMEM;
	for (unsigned i = 0; i < LIST_QUESTIONS - 1; i++)
		assert_int_equal(ask(302, &done, &taken), 0);
	assert_int_equal(ask(302, &done, &taken), -ENOMEM);
}

/* What a taker has refused comes again. */
static void test_refused_codes_are_told_again(void **state)
{
	struct taken taken = {.code_err = -ETIME, .spared = 2}, rest = {.tell_again = true}, again = {0};
	uint32_t done;

	(void)state;
	for (unsigned i = 0; i < LIST_QUESTIONS - 1; i++)
		assert_int_equal(ask(401, &done, &taken), 0);
	assert_int_equal(ask(401, &done, &taken), -ETIME);
	assert_int_equal(taken.codes, taken.spared);
	assert_int_equal(taken.stacks, done);
	assert_in_range(done, 1, THREADS - 1);
	assert_int_equal(ask(401, &done, &rest), 0);
	assert_int_equal(rest.codes, THREADS);
	assert_int_equal(done, THREADS);
	assert_int_equal(ask(401, &done, &again), 0);
	assert_int_equal(again.codes, 0);
	assert_int_equal(again.stacks, THREADS);
}

/* An answer as a helper writes it: a code object, a stack of one frame, and a thread without a stack. */
struct said {
	uint32_t done, records;
	struct said_record {
		uint32_t size, is_code, thread, outcome, wants_gil, has_gil, runtime, depth, flags, bytes;
		int32_t polled;
		uint32_t pad;
	} code;
	struct pybpf_code_event event;
	struct said_record stack;
	struct pybpf_frame frame;
	struct said_record none;
};
_Static_assert(sizeof(struct said_record) % 8 == 0 && sizeof(struct pybpf_code_event) % 8 == 0, "records are padded");

static struct said sound_answer(void)
{
	return (struct said){
		.done = 2,
		.records = 3,
		.code = {.size = sizeof(struct said_record) + sizeof(struct pybpf_code_event),
			 .is_code = 1,
			 .bytes = sizeof(struct pybpf_code_event)},
		.stack = {.size = sizeof(struct said_record) + sizeof(struct pybpf_frame),
			  .outcome = ASK_THREADS_STACK,
			  .depth = 1,
			  .bytes = sizeof(struct pybpf_frame),
			  .polled = 7},
		.none = {.size = sizeof(struct said_record),
			 .thread = 1,
			 .outcome = ASK_THREADS_NO_STACK,
			 .polled = -1},
	};
}

static int ask_liar(const struct said *said, size_t size, uint32_t *done, struct taken *taken)
{
	*taken = (struct taken){0};
	played.bytes = said;
	played.size = size;
	return ask(501, done, taken);
}

static void test_sound_answer_is_taken(void **state)
{
	struct said said = sound_answer();
	struct taken taken;
	uint32_t done;

	(void)state;
	assert_int_equal(ask_liar(&said, sizeof(said), &done, &taken), 0);
	assert_int_equal(done, 2);
	assert_int_equal(taken.codes, 1);
	assert_int_equal(taken.stacks, 2);
	assert_int_equal(taken.polled, 7 - 1);
}

static void test_cut_answers_are_refused(void **state)
{
	struct said said = sound_answer();
	struct taken taken;
	uint32_t done;

	(void)state;
	for (size_t size = 0; size < sizeof(said); size++) {
		/* An end that a sanitizer sees. */
		struct said *cut = malloc(size + 1);

		assert_non_null(cut);
		memcpy(cut, &said, size);
		assert_int_equal(ask_liar(cut, size, &done, &taken), -EBADMSG);
		assert_in_range(done, 0, 1);
		free(cut);
	}
}

#define LIE(field, value)                                                                                              \
	{                                                                                                              \
		offsetof(struct said, field), value                                                                    \
	}

/* One number of a sound answer is another. */
static void test_lies_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
	} lies[] = {
		LIE(done, THREADS + 1),
		LIE(done, UINT32_MAX),
		LIE(records, 4),
		LIE(records, UINT32_MAX),
		LIE(code.size, 0),
		LIE(code.size, sizeof(struct said_record) - 8),
		LIE(code.size, sizeof(struct said_record) + sizeof(struct pybpf_code_event) + 4),
		LIE(code.size, UINT32_MAX),
		LIE(code.bytes, sizeof(struct pybpf_code_event) - 1),
		LIE(code.bytes, sizeof(struct pybpf_code_event) + 1),
		LIE(code.bytes, UINT32_MAX),
		LIE(code.runtime, PYBPF_MAX_RUNTIMES),
		LIE(code.is_code, 0),
		LIE(stack.is_code, 1),
		LIE(stack.thread, 2),
		LIE(stack.thread, UINT32_MAX),
		LIE(stack.outcome, ASK_THREADS_NO_STACK),
		LIE(stack.outcome, ASK_THREADS_TOO_LONG + 1),
		LIE(stack.depth, 0),
		LIE(stack.depth, 2),
		LIE(stack.depth, UINT32_MAX),
		LIE(stack.bytes, 0),
		LIE(stack.bytes, UINT32_MAX),
		LIE(stack.runtime, UINT32_MAX),
		LIE(none.outcome, ASK_THREADS_STACK),
		LIE(none.depth, 1),
		LIE(none.bytes, 8),
	};
	struct taken taken;
	uint32_t done;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct said said = sound_answer();

		memcpy((char *)&said + lies[i].at, &lies[i].value, sizeof(lies[i].value));
		if (ask_liar(&said, sizeof(said), &done, &taken) != -EBADMSG)
			fail_msg("lie %zu was taken", i);
		/* Threads without an answer are asked for again. */
		assert_in_range(done, 0, taken.stacks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_two_processes_in_turn, setup),
		cmocka_unit_test_setup(test_lists_are_bounded, setup),
		cmocka_unit_test_setup(test_full_helper_forgets_others, setup),
		cmocka_unit_test_setup(test_full_helper_is_no_error_of_the_run, setup),
		cmocka_unit_test_setup(test_refused_codes_are_told_again, setup),
		cmocka_unit_test_setup(test_sound_answer_is_taken, setup),
		cmocka_unit_test_setup(test_cut_answers_are_refused, setup),
		cmocka_unit_test_setup(test_lies_are_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
