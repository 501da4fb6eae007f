// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the stacks of many threads. The helper keeps the lists of some processes' thread states from one question to
 * the next, and which code objects it has sent. An answer is a row of records.
 */
#include "discovery/ask_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/intern.h"
#include "base/procfs.h"
#include "base/remote.h"
#include "helper/helper.h"
#include "symbols/code_content.h"
#include "symbols/walk/walk_user.h"

/* Longest wait for an answer: it comes when the slice is over, unless the process's memory is slow to read. */
#define PATIENCE_S 0.25
/* Longest walk of one thread: 65,536 frames take some 30 ms. */
#define WALK_NS 50000000u
/* Attempts to read the list of thread states while its end changes. */
#define LIST_TRIES 3
/* Most code objects of an answer: whoever takes them may have to look at the path of each. */
#define CODES_MAX 256
/*
 * Processes of which a helper keeps what it has read. They are asked for in turn, and each list would be read anew. A
 * list of 65,536 thread states takes 2 MiB.
 */
#define SERVINGS 8

struct answer_head {
	uint32_t done; /* threads */
	uint32_t records;
};

/* Head of a record. A code object's record follows it, or the frames of a stack. */
struct record {
	uint32_t size; /* with this head; a multiple of 8 */
	uint32_t is_code;
	uint32_t thread, outcome;
	uint32_t wants_gil, has_gil;
	uint32_t runtime, depth;
	uint32_t flags, bytes; /* bytes: that follow, without padding */
	int32_t polled;
	uint32_t pad;
};

#define PADDED(size) (((size) + 7) & ~(size_t)7)

/* What a helper keeps of a process. */
struct serving {
	uint64_t life;
	uint64_t question; /* number of the last one about the process; 0: there is no process */
	pid_t pid;
	uint32_t nr_lists;
	unsigned tries;
	struct walk_list *lists[PYBPF_MAX_RUNTIMES];
	struct walk_memory memory;
	struct intern reported; /* struct reported_code */
};

struct reported_code {
	uint64_t code;
	uint32_t sig, runtime;
};

struct writing {
	char *answer;
	size_t used;
	struct answer_head head;
	unsigned codes;
};

static int begin_serving(struct serving *s, const struct ask_threads *q)
{
	s->life = q->life;
	s->pid = q->pid;
	s->tries = 0;
	s->nr_lists = 0;
	intern_free(&s->reported);
	intern_init(&s->reported, sizeof(struct reported_code), sizeof(struct reported_code));
	walk_process_memory(&s->memory, &s->pid);
	for (uint32_t i = 0; i < q->nr_runtimes; i++) {
		s->lists[i] = s->lists[i] ?: walk_list_new();
		if (!s->lists[i])
			return -ENOMEM;
		walk_list_begin(s->lists[i], &s->memory, &q->layouts[i], &q->runtimes[i]);
		s->nr_lists++;
	}
	return 0;
}

/* The helper's own. */
static struct serving servings[SERVINGS];

static bool is_of(const struct serving *s, const struct ask_threads *q)
{
	return s->question && s->life == q->life && s->pid == q->pid;
}

/* Returns what is kept of the process, or the place that was used least recently. */
static struct serving *choose_serving(const struct ask_threads *q)
{
	static uint64_t questions;
	struct serving *chosen = &servings[0];

	for (size_t i = 0; i < SERVINGS && !is_of(chosen, q); i++) {
		if (is_of(&servings[i], q) || servings[i].question < chosen->question)
			chosen = &servings[i];
	}
	if (!is_of(chosen, q))
		chosen->nr_lists = 0;
	chosen->question = ++questions;
	return chosen;
}

/* Frees what is kept of other processes. Returns whether there was anything. */
static bool forget_others(const struct serving *s)
{
	bool any = false;

	for (size_t i = 0; i < SERVINGS; i++) {
		struct serving *other = &servings[i];

		if (other == s || !other->question)
			continue;
		for (size_t j = 0; j < PYBPF_MAX_RUNTIMES; j++)
			walk_list_free(other->lists[j]);
		intern_free(&other->reported);
		memset(other, 0, sizeof(*other));
		any = true;
	}
	return any;
}

/* Reads the lists. Returns 0, -ETIMEDOUT when there is more to read, or -ENOMEM. */
static int read_lists(struct serving *s, const struct ask_threads *q, uint64_t until_ns)
{
	int err = 0;

	for (uint32_t i = 0; i < s->nr_lists && !err; i++) {
		err = walk_list_read(s->lists[i], until_ns);
		while (err == -EAGAIN && s->tries < LIST_TRIES) {
			s->tries++;
			walk_list_begin(s->lists[i], &s->memory, &q->layouts[i], &q->runtimes[i]);
			err = walk_list_read(s->lists[i], until_ns);
		}
		err = err == -EAGAIN ? 0 : err;
	}
	return err;
}

/* Adds the code object of a frame, unless it was sent before. Returns 0, -ENOSPC when the answer is full, -ENOMEM. */
static int write_code(struct serving *s, const struct ask_threads *q, uint32_t runtime, const struct pybpf_frame *frame,
		      struct writing *out)
{
	const struct reported_code code = {.code = frame->code, .sig = frame->sig, .runtime = runtime};
	struct record record = {.is_code = 1, .runtime = runtime};
	size_t room = HELPER_ANSWER_MAX - out->used, size;
	bool fresh;

	if (frame->kind != PYBPF_FRAME_PYTHON || intern_find(&s->reported, &code) != INTERN_NONE)
		return 0;
	if (out->codes == CODES_MAX || room < sizeof(record) + PYSYM_RECORD_MAX)
		return -ENOSPC;
	size = pysym_record_code(&s->memory, &q->layouts[runtime], frame, out->answer + out->used + sizeof(record));
	record.bytes = (uint32_t)size;
	record.size = (uint32_t)PADDED(sizeof(record) + size);
	memcpy(out->answer + out->used, &record, sizeof(record));
	out->used += record.size;
	out->codes++;
	out->head.records++;
	return intern_add(&s->reported, &code, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

static int write_stack(struct writing *out, struct record record, const struct walk_stack *stack)
{
	size_t kept = pybpf_kept_frames(stack->depth);

	record.bytes = (uint32_t)(kept * sizeof(*stack->frames));
	record.size = (uint32_t)(sizeof(record) + record.bytes);
	if (HELPER_ANSWER_MAX - out->used < record.size)
		return -ENOSPC;
	memcpy(out->answer + out->used, &record, sizeof(record));
	if (record.bytes)
		memcpy(out->answer + out->used + sizeof(record), stack->frames, record.bytes);
	out->used += record.size;
	out->head.records++;
	return 0;
}

/* Walks the thread in that runtime. Returns as walk_listed_thread(). */
static int walk(struct serving *s, const struct ask_threads *q, uint32_t runtime, const struct ask_thread *thread,
		struct walk_stack *stack)
{
	struct procfs_call call = {.stack_pointer = 0};

	/* Only these have states of a thread that the C stack tells apart. */
	if (q->layouts[runtime].tstate_cframe != PYBPF_NO_OFFSET && procfs_read_call(q->pid, thread->tid, &call))
		call.stack_pointer = 0;
	return walk_listed_thread(s->lists[runtime], thread->thread_id, thread->futex, call.stack_pointer,
				  clock_ns(CLOCK_MONOTONIC) + WALK_NS, stack);
}

/* err: of walk(). */
static bool has_no_stack(int err)
{
	return err == -ENOENT || err == -EFAULT;
}

/* Returns the descriptor that the thread polls, or -1. */
static int32_t read_polled(const struct serving *s, const struct ask_thread *thread)
{
	int32_t fd;

	/* struct pollfd begins with the descriptor. */
	return thread->polled && !remote_read(s->pid, thread->polled, &fd, sizeof(fd)) && fd >= 0 ? fd : -1;
}

static int answer_thread(struct serving *s, const struct ask_threads *q, uint32_t at, struct writing *out)
{
	struct record record = {
		.thread = at, .outcome = ASK_THREADS_NO_STACK, .polled = read_polled(s, &q->threads[at])};
	struct walk_stack stack = {.depth = 0};
	int err = -ENOENT;

	for (uint32_t i = 0; i < s->nr_lists && (has_no_stack(err) || (!err && !stack.depth)); i++) {
		free(stack.frames);
		stack = (struct walk_stack){.depth = 0};
		if (!q->runtimes[i].refused)
			err = walk(s, q, i, &q->threads[at], &stack);
		record.runtime = i;
	}
	if (err == -ETIMEDOUT)
		record.outcome = ASK_THREADS_TOO_LONG;
	if (!err && stack.depth) {
		record.outcome = ASK_THREADS_STACK;
		record.depth = stack.depth;
		record.flags = stack.flags;
		record.wants_gil = stack.wants_gil;
		record.has_gil = stack.has_gil;
	}
	err = has_no_stack(err) || err == -ETIMEDOUT ? 0 : err;
	for (uint32_t i = 0; i < pybpf_kept_frames(stack.depth) && !err; i++)
		err = write_code(s, q, record.runtime, &stack.frames[i], out);
	err = err ?: write_stack(out, record, &stack);
	free(stack.frames);
	return err;
}

struct question {
	uint32_t slice_us;
	uint32_t pad;
	struct ask_threads asked;
};
_Static_assert(sizeof(struct question) <= HELPER_QUESTION_MAX, "a question holds its threads");

static bool is_sound_question(const struct question *q, size_t size)
{
	return size == sizeof(*q) && q->asked.nr_runtimes <= PYBPF_MAX_RUNTIMES && q->asked.count <= ASK_THREADS_MAX;
}

int discovery_serve_threads(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct question *q = question;
	struct writing out = {.answer = answer, .used = sizeof(struct answer_head)};
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC);
	struct serving *serving;
	int err = 0;

	(void)state;
	if (!is_sound_question(q, question_size))
		return -EINVAL;
	until_ns += (uint64_t)q->slice_us * 1000;
	serving = choose_serving(&q->asked);
	if (!serving->nr_lists || serving->nr_lists != q->asked.nr_runtimes)
		err = begin_serving(serving, &q->asked);
	if (q->asked.tell_again)
		intern_free(&serving->reported);
	err = err ?: read_lists(serving, &q->asked, until_ns);
	while (!err && out.head.done < q->asked.count) {
		err = answer_thread(serving, &q->asked, out.head.done, &out);
		out.head.done += !err;
		if (!err && clock_ns(CLOCK_MONOTONIC) > until_ns)
			break;
	}
	/* The next question has the room of the others. A list whose reading failed lacks a thread state. */
	if (err == -ENOMEM && forget_others(serving)) {
		serving->nr_lists = 0;
		err = 0;
	}
	memcpy(answer, &out.head, sizeof(out.head));
	*size = out.used;
	return err == -ETIMEDOUT || err == -ENOSPC ? 0 : err;
}

/* Returns the record at that place of an answer, or NULL where there is no sound one. */
static const struct record *record_at(const char *answer, size_t size, size_t at)
{
	const struct record *record = (const void *)(answer + at);

	if (size - at < sizeof(*record) || record->size > size - at || record->size < sizeof(*record) ||
	    record->size % 8 || record->bytes > record->size - sizeof(*record) ||
	    record->runtime >= PYBPF_MAX_RUNTIMES || record->outcome > ASK_THREADS_TOO_LONG)
		return NULL;
	return record;
}

static int take_code(const struct record *record, uint64_t life, const struct ask_threads_taker *taker)
{
	struct pybpf_code_event *event = (void *)(record + 1);

	if (record->bytes < sizeof(*event))
		return -EBADMSG;
	event->event = (struct pybpf_event){
		.type = PYBPF_EVENT_CODE, .runtime = (uint8_t)record->runtime, .size = record->bytes};
	event->proc_id = life;
	return taker->code(event, record->bytes, taker->arg);
}

static int take_stack(const struct record *record, uint32_t threads, const struct ask_threads_taker *taker)
{
	const struct ask_threads_stack stack = {
		.outcome = (enum ask_threads_outcome)record->outcome,
		.wants_gil = record->wants_gil,
		.has_gil = record->has_gil,
		.polled = record->polled,
		.runtime = record->runtime,
		.depth = record->depth,
		.flags = record->flags,
		.kept = pybpf_kept_frames(record->depth),
		.frames = (const void *)(record + 1),
	};

	if (record->thread >= threads || record->bytes != stack.kept * sizeof(*stack.frames) ||
	    (stack.outcome == ASK_THREADS_STACK) != (stack.kept > 0))
		return -EBADMSG;
	return taker->stack(record->thread, &stack, taker->arg);
}

static int take_answer(const char *answer, size_t size, const struct ask_threads *asked,
		       const struct ask_threads_taker *taker, uint32_t *done)
{
	size_t at = sizeof(struct answer_head);
	struct answer_head head;
	int err = 0;

	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, answer, sizeof(head));
	if (head.done > asked->count)
		return -EBADMSG;
	for (uint32_t i = 0; i < head.records; i++) {
		const struct record *record = record_at(answer, size, at);

		if (!record)
			return -EBADMSG;
		if (record->is_code)
			err = take_code(record, asked->life, taker);
		else
			err = take_stack(record, head.done, taker);
		if (err)
			return err;
		if (!record->is_code)
			*done = record->thread + 1;
		at += record->size;
	}
	*done = head.done;
	return 0;
}

int discovery_ask_threads(const struct ask_threads *asked, double slice_s, const struct ask_threads_taker *taker,
			  uint32_t *done)
{
	struct question question = {.slice_us = (uint32_t)(slice_s * 1e6), .asked = *asked};
	char *answer = malloc(HELPER_ANSWER_MAX);
	int err = answer ? 0 : -ENOMEM;
	size_t size;

	*done = 0;
	err = err
		      ?: helper_call(discovery_serve_threads,
				     (struct helper_subject){.pid = asked->pid, .life = asked->life}, &question,
				     sizeof(question), answer, HELPER_ANSWER_MAX, &size, PATIENCE_S);
	/* The helper's memory is full, because of this process: it is no error of the run. */
	err = answer && err == -ENOMEM ? -ENOBUFS : err;
	err = err ?: take_answer(answer, size, asked, taker, done);
	free(answer);
	return err;
}
