// SPDX-License-Identifier: Apache-2.0
/* The answer of a helper that was made to say anything about the stacks of threads: the input is the answer. */
#include "fuzz.h"

#include "discovery/ask_threads.h"
#include "helper/helper.h"
#include "symbols/pysym.h"

static const struct fuzz_input *answer_in;

int helper_call(helper_service *service, struct helper_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double patience_s)
{
	(void)service;
	(void)subject;
	(void)question;
	(void)question_size;
	(void)patience_s;
	*size = answer_in->size < room ? answer_in->size : room;
	if (*size)
		memcpy(answer, answer_in->data, *size);
	return 0;
}

#define LIFE 7

static unsigned visits;

static int take_code(const struct pybpf_code_event *event, size_t size, void *arg)
{
	struct pysym *names = arg;
	int err;

	FUZZ_CHECK(event->proc_id == LIFE && event->event.runtime < PYBPF_MAX_RUNTIMES && event->event.size == size);
	err = pysym_add_read_code(names, event, size);
	FUZZ_CHECK(!err || err == -EBADMSG);
	visits++;
	return err;
}

static int take_stack(uint32_t thread, const struct ask_threads_stack *stack, void *arg)
{
	uint64_t sum = 0;

	(void)arg;
	FUZZ_CHECK(thread < ASK_THREADS_MAX && stack->kept <= PYBPF_MAX_FRAMES && stack->runtime < PYBPF_MAX_RUNTIMES);
	FUZZ_CHECK((stack->outcome == ASK_THREADS_STACK) == (stack->kept > 0));
	/* A sanitizer sees where they end. */
	for (size_t i = 0; i < stack->kept; i++)
		sum += stack->frames[i].word;
	visits += (unsigned)sum & 1;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pybpf_layout layout;
	struct pysym *names = pysym_new(PYSYM_LINES_CURRENT, true);
	const struct fuzz_input in = {data, size};
	const struct ask_threads_taker taker = {.code = take_code, .stack = take_stack, .arg = names};
	static struct ask_threads asked = {.life = LIFE, .pid = 1, .nr_runtimes = 1, .count = ASK_THREADS_MAX};
	uint32_t done;
	int err;

	FUZZ_CHECK(names && !pysym_add_process(names, LIFE, 0, &layout));
	answer_in = &in;
	err = discovery_ask_threads(&asked, 0.005, &taker, &done);
	FUZZ_CHECK((!err || err == -EBADMSG) && done <= asked.count);
	pysym_free(names);
	return 0;
}
