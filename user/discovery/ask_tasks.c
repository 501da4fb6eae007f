// SPDX-License-Identifier: Apache-2.0
/* Asks for a process's tasks in parts: an answer holds some thousands of them. The helper keeps its place meanwhile. */
#include "discovery/ask_tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "discovery/task_sockets.h"
#include "helper/helper.h"

/* Seconds after which the helper answers with what it has. */
#define ANSWER_S 0.1
/* Most answers for one process. */
#define MAX_ANSWERS 64

struct tasks_question {
	pid_t pid;
	uint32_t part;
	uint64_t number; /* of the snapshot */
	struct task_read_place place;
};

struct tasks_answer {
	struct task_read_counts counts;
	uint32_t more; /* there is another part */
	uint32_t count;
};

/* The helper's own. */
struct serving {
	struct task_reader *reader;
	uint64_t number;
	uint32_t part; /* the next one */
	pid_t pid;
	struct task_read_place place;
	struct walk_memory memory;
	struct task_sockets sockets;
};

static int begin_serving(struct serving *s, const struct tasks_question *q, struct task_read_counts *counts)
{
	if (!s->reader)
		s->reader = task_reader_new();
	if (!s->reader)
		return -ENOMEM;
	s->number = q->number;
	s->pid = q->pid;
	s->place = q->place;
	walk_process_memory(&s->memory, &s->pid);
	task_sockets_begin(&s->sockets, q->pid);
	return task_reader_find(s->reader, &s->memory, &s->place, counts);
}

int discovery_serve_tasks(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	static struct serving serving;
	const struct tasks_question *q = question;
	struct tasks_answer a = {.more = 1};
	struct pybpf_wait peer;
	const double until = clock_s(CLOCK_MONOTONIC) + ANSWER_S;
	const struct task_read *task;
	size_t used = sizeof(a);
	int err = 0, got = 0;

	(void)state;
	if (question_size != sizeof(*q))
		return -EINVAL;
	if (!q->part)
		err = begin_serving(&serving, q, &a.counts);
	/* Another helper has answered the part before. */
	else if (!serving.reader || serving.number != q->number || serving.part != q->part)
		err = -ESTALE;
	if (err)
		return err;
	while (used + sizeof(*task) <= HELPER_ANSWER_MAX && got >= 0 && clock_s(CLOCK_MONOTONIC) < until) {
		got = task_reader_next(serving.reader, &task, &a.counts);
		if (got != 1)
			continue;
		task_read_pack(task, (char *)answer + used);
		if (task->fd >= 0 && task_sockets_find(&serving.sockets, task->fd, &peer))
			memcpy((char *)answer + used + offsetof(struct task_read, peer), &peer, sizeof(peer));
		used += task_read_packed_size(task);
		a.count++;
	}
	a.more = got >= 0;
	serving.part = q->part + 1;
	memcpy(answer, &a, sizeof(a));
	*size = used;
	return 0;
}

static void add_counts(struct task_read_counts *to, const struct task_read_counts *from)
{
	to->suspended += from->suspended;
	to->running += from->running;
	to->ended += from->ended;
	to->moving += from->moving;
	to->torn += from->torn;
	to->beyond += from->beyond;
}

static int take_answer(const char *answer, size_t size, int (*visit)(const struct task_read *task, void *arg),
		       void *arg, struct tasks_answer *a)
{
	struct task_read task;
	size_t at = sizeof(*a);
	int err = 0;

	if (size < sizeof(*a))
		return -EBADMSG;
	memcpy(a, answer, sizeof(*a));
	for (uint32_t i = 0; i < a->count && !err; i++) {
		size_t packed = task_read_unpack(answer + at, size - at, &task);

		if (!packed)
			return -EBADMSG;
		err = visit(&task, arg);
		at += packed;
	}
	return err;
}

/* Returns the CPU time in seconds that pybpf and its helpers have taken. */
static double used_s(void)
{
	return clock_s(CLOCK_PROCESS_CPUTIME_ID) + helper_cpu_s();
}

int discovery_ask_tasks(pid_t pid, const struct task_read_place *place, double patience_s, double cpu_s,
			int (*visit)(const struct task_read *task, void *arg), void *arg,
			struct task_read_counts *counts)
{
	static uint64_t number;
	struct tasks_question question = {.pid = pid, .number = number, .place = *place};
	struct tasks_answer a = {.more = 1};
	char *answer = malloc(HELPER_ANSWER_MAX);
	int err = answer ? 0 : -ENOMEM;
	const double until = used_s() + cpu_s;
	size_t size;

	number++;
	for (; a.more && !err && question.part < MAX_ANSWERS; question.part++) {
		err = used_s() < until ? 0 : -ETIMEDOUT;
		err = err
			      ?: helper_call(discovery_serve_tasks, (struct helper_subject){.pid = pid}, &question,
					     sizeof(question), answer, HELPER_ANSWER_MAX, &size, patience_s);
		/* The helper's memory is full, because of this process: it is no error of the run. */
		err = err == -ENOMEM ? -ENOBUFS : err;
		err = err ?: take_answer(answer, size, visit, arg, &a);
		if (!err)
			add_counts(counts, &a.counts);
	}
	counts->beyond += !err && a.more;
	free(answer);
	return err;
}
