// SPDX-License-Identifier: Apache-2.0
/* Unwinds threads in a helper, and lays their frames between those of Python. */
#include "dump/native.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dump/dump.h"
#include "dump/print.h"
#include "helper/helper.h"

/*
 * Longest wait for an answer: tables of call frames are searched, some 50 ms for the first stack of a process. Files
 * that were made to be slow are not charged to the process, whose other questions are to have their answers.
 */
#define PATIENCE_S 2.0

enum step {
	READ,    /* frames and their names */
	FIND,    /* frames, while the thread stands */
	PREPARE, /* what was missing for that */
	NAME,    /* those that were found */
};

struct question {
	pid_t pid;
	enum step step;
	uint64_t moment;
	struct unwind_registers registers; /* of READ and FIND */
	char eval_loop[32];
};

struct answer {
	uint32_t count;
	bool is_whole;
	bool is_late; /* FIND: something is missing, and nothing was found */
	struct dump_native_frame frames[DUMP_NATIVE_MAX];
};
_Static_assert(sizeof(struct answer) <= HELPER_ANSWER_MAX, "an answer holds all frames");

/* Compilers split functions and put what they made behind a dot. */
static bool is_loop(const char *name, const char *wanted)
{
	size_t len = strlen(wanted);

	return len && !strncmp(name, wanted, len) && (!name[len] || name[len] == '.');
}

struct taker {
	struct answer *answer;
	const char *eval_loop;
};

static bool take(void *arg, const struct unwind_frame *frame)
{
	struct taker *t = arg;
	struct dump_native_frame *out = &t->answer->frames[t->answer->count++];

	*out = (struct dump_native_frame){.pc = frame->pc, .after = DUMP_NO_FRAME};
	if (frame->name)
		native_demangle(frame->name, out->name, sizeof(out->name));
	snprintf(out->file, sizeof(out->file), "%s", frame->file ? frame->file : "");
	out->is_loop = frame->is_loop || (frame->name && is_loop(frame->name, t->eval_loop));
	return t->answer->count < DUMP_NATIVE_MAX;
}

static void tell_lacks(struct unwind *unwind)
{
	const char *file;
	int err;

	while ((file = unwind_next_lack(unwind, &err))) {
		if (err == -ENOMEM)
			log_warn("some C functions of %s have no names: its symbols take more memory than a helper "
				 "process "
				 "may have",
				 file);
		else
			log_warn("C functions of %s, and those that called them, are missing: a helper process may "
				 "have no more files open",
				 file);
	}
}

static int name_frames(struct unwind *unwind, const struct question *q, struct answer *out)
{
	struct taker taker = {.answer = out, .eval_loop = q->eval_loop};
	enum unwind_end end = unwind_take(unwind, take, &taker);

	tell_lacks(unwind);
	out->is_whole = end == UNWIND_WHOLE;
	return end == UNWIND_NO_MEMORY ? -ENOMEM : 0;
}

static int do_step(struct unwind *unwind, const struct question *q, struct answer *out)
{
	switch (q->step) {
	case FIND:
		out->is_late = !unwind_find(unwind, &q->registers, true);
		return 0;
	case PREPARE:
		unwind_prepare(unwind);
		return 0;
	case READ:
		unwind_find(unwind, &q->registers, false);
		return name_frames(unwind, q, out);
	case NAME:
		return name_frames(unwind, q, out);
	}
	return -EINVAL;
}

int dump_serve_native(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	/* Kept from one thread to the next one of the same process. */
	static struct unwind *unwind;
	static uint64_t moment;
	const struct question *q = question;
	struct answer *out = answer;
	int err = 0;

	(void)state;
	if (question_size != sizeof(*q))
		return -EINVAL;
	/* The helper that found them has ended. */
	if (q->step == NAME && moment != q->moment)
		return -ESTALE;
	memset(out, 0, offsetof(struct answer, frames));
	out->is_late = q->step == FIND && moment != q->moment;
	if (moment != q->moment && !out->is_late) {
		unwind_free(unwind);
		unwind = NULL;
		err = q->moment ? unwind_new(q->pid, &unwind) : 0;
		moment = unwind ? q->moment : 0;
	}
	if (unwind && !out->is_late)
		err = do_step(unwind, q, out);
	*size = offsetof(struct answer, frames) + out->count * sizeof(out->frames[0]);
	return err;
}

static bool is_sound(struct answer *answer, size_t size)
{
	if (size < offsetof(struct answer, frames) || answer->count > DUMP_NATIVE_MAX ||
	    size != offsetof(struct answer, frames) + answer->count * sizeof(answer->frames[0]))
		return false;
	for (uint32_t i = 0; i < answer->count; i++) {
		struct dump_native_frame *frame = &answer->frames[i];

		frame->name[sizeof(frame->name) - 1] = '\0';
		frame->file[sizeof(frame->file) - 1] = '\0';
		frame->after = DUMP_NO_FRAME;
	}
	return true;
}

/* Asks the helper. Returns 0 or negative errno. */
static int ask(const struct question *q, struct answer *answer)
{
	size_t size = 0;
	int err = helper_call(dump_serve_native, (struct helper_subject){.pid = 0}, q, sizeof(*q), answer,
			      sizeof(*answer), &size, PATIENCE_S);

	return !err && !is_sound(answer, size) ? -EPROTO : err;
}

/* Asks for frames with names. */
static int ask_frames(struct question *q, const char *eval_loop, struct dump_native *out)
{
	struct answer *answer = malloc(sizeof(*answer));
	int err = -ENOMEM;

	*out = (struct dump_native){.count = 0};
	snprintf(q->eval_loop, sizeof(q->eval_loop), "%s", eval_loop);
	if (answer)
		err = ask(q, answer);
	if (!err) {
		out->frames = malloc((answer->count + 1u) * sizeof(*out->frames));
		err = out->frames ? 0 : -ENOMEM;
	}
	if (!err) {
		memcpy(out->frames, answer->frames, answer->count * sizeof(*out->frames));
		out->count = answer->count;
		out->is_whole = answer->is_whole;
	}
	free(answer);
	return err;
}

/* Asks for a step that has no frames for an answer. */
static int ask_step(const struct question *q, bool *is_late)
{
	struct answer *answer = malloc(sizeof(*answer));
	int err = answer ? ask(q, answer) : -ENOMEM;

	*is_late = !err && answer->is_late;
	free(answer);
	return err;
}

int dump_read_native(pid_t pid, uint64_t moment, const struct unwind_registers *registers, const char *eval_loop,
		     struct dump_native *out)
{
	struct question q = {.pid = pid, .step = READ, .moment = moment, .registers = *registers};

	return ask_frames(&q, eval_loop, out);
}

int dump_find_native(pid_t pid, uint64_t moment, const struct unwind_registers *registers, bool *is_late)
{
	const struct question q = {.pid = pid, .step = FIND, .moment = moment, .registers = *registers};

	return ask_step(&q, is_late);
}

int dump_prepare_native(pid_t pid, uint64_t moment)
{
	const struct question q = {.pid = pid, .step = PREPARE, .moment = moment};

	return ask_step(&q, &(bool){false});
}

int dump_name_native(pid_t pid, uint64_t moment, const char *eval_loop, struct dump_native *out)
{
	struct question q = {.pid = pid, .step = NAME, .moment = moment};

	return ask_frames(&q, eval_loop, out);
}

void dump_end_native(void)
{
	const struct question q = {.moment = 0};

	/* A helper that gives no answer has ended, or does so now, and its memory is free. */
	ask_step(&q, &(bool){false});
}

void dump_native_free(struct dump_native *native)
{
	free(native->frames);
	*native = (struct dump_native){.count = 0};
}

/* Mappings may have paths from outside of the process's root, whose end is the path inside. */
static bool is_file(const char *mapped, const char *inside)
{
	size_t len = strlen(mapped), end = strlen(inside);

	return end && len >= end && !strcmp(mapped + len - end, inside);
}

bool dump_is_interpreter(const struct dump_process *process, const struct dump_native_frame *frame)
{
	const struct ps_row *row = process->row;
	bool found = is_file(frame->file, row->python.path);

	for (size_t i = 0; i < row->nr_more && !found; i++)
		found = is_file(frame->file, row->more[i].path);
	return found;
}

/* Returns the frame of dump_frames() that is the walked one, or the first one further out that is any. */
static uint32_t position_of(const struct dump_thread *thread, uint32_t walked)
{
	uint32_t best = DUMP_NO_FRAME;

	for (size_t i = 0; i < thread->nr_numbers; i++) {
		if (thread->numbers[i] != DUMP_NO_FRAME && thread->numbers[i] >= walked)
			best = (uint32_t)i;
	}
	return best;
}

static uint32_t count_runs(const struct dump_native *native)
{
	uint32_t count = 0;

	for (size_t i = 0; i < native->count; i++)
		count += native->frames[i].is_loop;
	return count;
}

/* Returns how many runs of the loop the functions of Python need. */
static uint32_t count_needed(const struct dump_thread *thread)
{
	uint32_t count = thread->nr_walked && !thread->walked[thread->nr_walked - 1].entry;

	for (uint32_t i = 0; i < thread->nr_walked; i++)
		count += thread->walked[i].entry;
	return count;
}

void dump_native_merge(struct dump_thread *thread)
{
	struct dump_native *native = &thread->native;
	uint32_t walked = 0;
	bool has_one_more = count_runs(native) == count_needed(thread) + 1, fits = native->is_whole;

	for (size_t i = 0; i < native->count && fits; i++) {
		struct dump_native_frame *frame = &native->frames[i];
		bool begins = false;

		/* As in profiles (native_join.c), the innermost run may have no function yet, or none any more. */
		if (!frame->is_loop || has_one_more) {
			frame->after = position_of(thread, walked);
			has_one_more = has_one_more && !frame->is_loop;
			continue;
		}
		/* A run of the loop has the functions up to the one that C code called. */
		fits = walked < thread->nr_walked;
		while (walked < thread->nr_walked && !begins) {
			fits = fits && thread->walked[walked].kind != PYBPF_FRAME_MARKER;
			begins = thread->walked[walked++].entry;
		}
	}
	native->fits = fits && walked == thread->nr_walked;
}
