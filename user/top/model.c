// SPDX-License-Identifier: Apache-2.0
/* Counts the samples of intervals by function, line, expression, thread, process and container. */
#include "top/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "profile/application_frames.h"
#include "top/model_internal.h"

/* Distinct names and paths. */
#define TOP_TEXTS_MAX 262144

struct text {
	char *text;
};

struct top_model *top_model_new(void)
{
	struct top_model *m = calloc(1, sizeof(*m));
	struct text none = {.text = strdup("")};
	bool fresh;

	if (!m || !none.text) {
		free(none.text);
		free(m);
		return NULL;
	}
	intern_init(&m->texts, sizeof(struct text), INTERN_TEXT);
	for (int i = 0; i < TOP_TABLES; i++)
		intern_init(&m->tables[i], sizeof(struct top_row), sizeof(struct top_row_key));
	if (intern_add(&m->texts, &none, &fresh) != INTERN_NONE)
		return m;
	free(none.text);
	free(m);
	return NULL;
}

void top_model_free(struct top_model *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->texts.count; i++)
		free(((struct text *)intern_item(&m->texts, i))->text);
	intern_free(&m->texts);
	for (int i = 0; i < TOP_TABLES; i++)
		intern_free(&m->tables[i]);
	free(m);
}

void top_model_want_expressions(struct top_model *m)
{
	m->wants_expressions = true;
}

bool top_model_has_expressions(const struct top_model *m)
{
	return m->wants_expressions;
}

bool top_table_is_code(enum top_table table)
{
	return table == TOP_FUNCTIONS || table == TOP_LINES || table == TOP_EXPRESSIONS;
}

/* Returns INTERN_NONE without memory. */
static uint32_t add_text(struct top_model *m, const char *text)
{
	struct text item = {.text = (char *)text};
	uint32_t i = intern_find(&m->texts, &item);
	bool fresh;

	if (i != INTERN_NONE)
		return i;
	item.text = strdup(text);
	i = item.text ? intern_add(&m->texts, &item, &fresh) : INTERN_NONE;
	if (i == INTERN_NONE)
		free(item.text);
	return i;
}

const char *top_model_string(const struct top_model *m, uint32_t index)
{
	return ((const struct text *)intern_item(&m->texts, index))->text;
}

static struct top_row *add_row(struct top_model *m, enum top_table table, const struct top_row_key *key)
{
	const struct top_row row = {.key = *key, .title = key->name};
	bool fresh;
	uint32_t i = intern_add(&m->tables[table], &row, &fresh);

	return i == INTERN_NONE ? NULL : intern_item(&m->tables[table], i);
}

/* Counts a sample for a row, once however often it is met in the stack. */
static void count(const struct top_model *m, struct top_row *row, uint64_t value, bool leaf)
{
	if (leaf) {
		row->self += value;
		row->all_self += value;
	}
	if (row->met == m->met)
		return;
	row->met = m->met;
	row->total += value;
	row->all_total += value;
}

/*
 * Counts a sample for a caller of the row's function. One that is not among those that are kept takes the place, and
 * the count, of the one with the fewest samples: what has more than a quarter of the samples is among them.
 */
static void count_caller(struct top_row *row, const struct top_caller *caller, uint64_t value)
{
	struct top_caller *at = row->callers;

	for (int i = 0; i < TOP_CALLERS; i++) {
		struct top_caller *known = &row->callers[i];

		if (known->all_self && known->name == caller->name && known->file == caller->file) {
			known->all_self += value;
			return;
		}
		if (known->all_self < at->all_self)
			at = known;
	}
	*at = (struct top_caller){caller->name, caller->file, at->all_self + value};
}

/* A sample, and the function of the program's own in which it is; all_self 0: its leaf is that, or there is none. */
struct sample {
	uint64_t value;
	struct top_caller own;
};

/* Returns of a frame's place what the table tells apart. */
static struct profile_place place_in(enum top_table table, const struct profile_frame *frame)
{
	switch (table) {
	case TOP_EXPRESSIONS:
		return profile_place_of(frame);
	case TOP_LINES:
		return (struct profile_place){.line = frame->line, .first_line = frame->first_line};
	default:
		return (struct profile_place){.first_line = frame->first_line};
	}
}

static bool has_row(const struct top_model *m, enum top_table table, const struct profile_frame *frame)
{
	return table == TOP_FUNCTIONS ||
	       (frame->line != PROFILE_NO_LINE && (table == TOP_LINES || m->wants_expressions));
}

static int add_frame(struct top_model *m, const struct profile *p, const struct profile_frame *frame,
		     const struct sample *sample, bool leaf)
{
	struct top_row_key key = {
		.kind = frame->kind,
		.name = add_text(m, profile_string(p, frame->name)),
		.file = add_text(m, profile_string(p, frame->file)),
	};
	static const enum top_table tables[] = {TOP_FUNCTIONS, TOP_LINES, TOP_EXPRESSIONS};

	if (key.name == INTERN_NONE || key.file == INTERN_NONE)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && has_row(m, tables[i], frame); i++) {
		struct top_row *row;

		key.place = place_in(tables[i], frame);
		row = add_row(m, tables[i], &key);
		if (!row)
			return -ENOMEM;
		count(m, row, sample->value, leaf);
		if (leaf && sample->own.all_self)
			count_caller(row, &sample->own, sample->value);
	}
	return 0;
}

/* Finds the function of the program's own in which the sample is. Returns 0 or -ENOMEM. */
static int find_own(struct top_model *m, const struct profile *p, uint32_t stack, uint32_t own, struct sample *sample)
{
	const struct profile_frame *frame = profile_frame_at(p, profile_stack_at(p, own)->frame);

	if (own == stack || frame->kind != PROFILE_PYTHON || profile_origin_of(p, frame->file) != PROFILE_OWN)
		return 0;
	sample->own = (struct top_caller){add_text(m, profile_string(p, frame->name)),
					  add_text(m, profile_string(p, frame->file)), sample->value};
	return sample->own.name == INTERN_NONE || sample->own.file == INTERN_NONE ? -ENOMEM : 0;
}

/* Finds a thread's or a process's row, and gives it its name. */
static struct top_row *add_named(struct top_model *m, enum top_table table, const struct top_row_key *key,
				 const char *name, const char *container)
{
	struct top_row *row = add_row(m, table, key);
	uint32_t title = add_text(m, name), in = add_text(m, container);

	if (!row || title == INTERN_NONE || in == INTERN_NONE)
		return NULL;
	row->title = title ?: row->title;
	row->container = in ?: row->container;
	return row;
}

static int add_owners(struct top_model *m, const struct profile *p, const struct profile_sample *sample)
{
	const struct profile_process *process = profile_process_at(p, sample->process);
	const char *container = profile_string(p, process->container);
	struct top_row_key key = {.pid = process->pid};
	struct top_row *row = add_named(m, TOP_PROCESSES, &key, profile_string(p, process->name), container);

	if (!row)
		return -ENOMEM;
	count(m, row, sample->value, true);
	if (sample->thread != PROFILE_NONE) {
		const struct profile_thread *thread = profile_thread_at(p, sample->thread);

		key.tid = thread->tid;
		row = add_named(m, TOP_THREADS, &key, profile_string(p, thread->name), container);
		if (!row)
			return -ENOMEM;
		count(m, row, sample->value, true);
	}
	if (!container[0])
		return 0;
	key = (struct top_row_key){.name = add_text(m, container)};
	row = key.name == INTERN_NONE ? NULL : add_row(m, TOP_CONTAINERS, &key);
	if (!row)
		return -ENOMEM;
	count(m, row, sample->value, true);
	return 0;
}

/* Texts are not forgotten one by one: a program that makes ever new names has all begin anew. */
static int begin_anew(struct top_model *m)
{
	struct top_model *fresh = top_model_new(), old = *m;

	if (!fresh)
		return -ENOMEM;
	*m = *fresh;
	m->intervals = old.intervals;
	m->begun_anew = old.begun_anew + 1;
	m->wants_expressions = old.wants_expressions;
	*fresh = old;
	top_model_free(fresh);
	return 0;
}

int top_model_begin(struct top_model *m, double duration_s)
{
	int err = m->texts.count > TOP_TEXTS_MAX ? begin_anew(m) : 0;

	if (err)
		return err;
	for (int t = 0; t < TOP_TABLES; t++) {
		for (uint32_t i = 0; i < m->tables[t].count; i++) {
			struct top_row *row = intern_item(&m->tables[t], i);

			row->before_total = row->total;
			row->self = 0;
			row->total = 0;
			row->lives = false;
			row->states = (struct top_states){0};
			memmove(row->strip, row->strip + 1, sizeof(row->strip) - 1);
			row->strip[TOP_STRIP - 1] = TOP_MARK_NONE;
		}
	}
	m->before = m->last;
	m->last = (struct top_sums){.duration_s = duration_s};
	m->all.duration_s += duration_s;
	m->intervals++;
	return 0;
}

void top_model_count(struct top_model *m, uint64_t asked, uint64_t lost)
{
	m->last.asked += asked;
	m->last.lost += lost;
	m->all.asked += asked;
	m->all.lost += lost;
}

/* own: by stack. Returns 0 or -ENOMEM. */
static int add_sample(struct top_model *m, const struct profile *p, const uint32_t *own,
		      const struct profile_sample *taken)
{
	struct sample sample = {.value = taken->value};
	uint32_t stack = taken->stack;
	int err;

	m->met++;
	m->last.samples += taken->value;
	m->all.samples += taken->value;
	err = add_owners(m, p, taken) ?: find_own(m, p, stack, own[stack], &sample);
	for (bool leaf = true; stack != PROFILE_ROOT && !err; leaf = false) {
		const struct profile_stack *at = profile_stack_at(p, stack);

		err = add_frame(m, p, profile_frame_at(p, at->frame), &sample, leaf);
		stack = at->parent;
	}
	return err;
}

int top_model_add(struct top_model *m, const struct profile *profile)
{
	uint32_t *own = profile_nearest_own(profile);
	size_t nr_samples;
	const struct profile_sample *samples = profile_samples(profile, &nr_samples);
	int err = own ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr_samples && !err; i++) {
		if (samples[i].stack != PROFILE_ROOT && samples[i].value)
			err = add_sample(m, profile, own, &samples[i]);
	}
	free(own);
	return err;
}

static void add_states(struct top_states *sum, const struct top_states *states)
{
	for (int i = 0; i < TOP_NR_STATES; i++)
		sum->ns[i] += states->ns[i];
}

int top_model_add_thread(struct top_model *m, int32_t pid, int32_t tid, const char *name,
			 const struct top_states *states)
{
	const struct top_row_key key = {.pid = pid, .tid = tid};
	struct top_row *row = add_row(m, TOP_THREADS, &key);

	/* Samples know its name as it is by now. */
	if (row && !row->total && name[0])
		row = add_named(m, TOP_THREADS, &key, name, "");
	if (!row)
		return -ENOMEM;
	row->lives = true;
	row->states = *states;
	row->strip[TOP_STRIP - 1] = top_mark_most(states);
	add_states(&m->last.states, states);
	add_states(&m->all.states, states);
	m->last.threads++;
	m->all.threads = m->last.threads;
	return 0;
}

int top_model_add_ended(struct top_model *m, const struct top_states *states)
{
	add_states(&m->last.states, states);
	add_states(&m->all.states, states);
	return 0;
}

struct cold {
	uint32_t index;
	uint64_t value;
};

static int compare_cold(const void *a, const void *b)
{
	const struct cold *one = a, *other = b;

	return (one->value > other->value) - (one->value < other->value);
}

static int compare_index(const void *a, const void *b)
{
	const struct cold *one = a, *other = b;

	return (one->index < other->index) - (one->index > other->index);
}

/* Leaves three quarters of the most rows: forgets those with the fewest samples that had none lately. */
static int forget_coldest(struct top_model *m, enum top_table table)
{
	struct intern *rows = &m->tables[table];
	struct cold *cold = calloc(rows->count, sizeof(*cold));
	size_t found = 0, most = rows->count - TOP_ROWS_MAX / 4 * 3;

	if (!cold)
		return -ENOMEM;
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct top_row *row = intern_item(rows, i);

		if (!row->total && !row->before_total && !row->lives)
			cold[found++] = (struct cold){i, row->all_total};
	}
	qsort(cold, found, sizeof(*cold), compare_cold);
	if (found > most)
		found = most;
	/* The last row takes the place of one that is removed: from the last to the first. */
	qsort(cold, found, sizeof(*cold), compare_index);
	for (size_t i = 0; i < found; i++)
		intern_remove(rows, cold[i].index);
	m->forgotten[table] += found;
	free(cold);
	return 0;
}

int top_model_end(struct top_model *m)
{
	int err = 0;

	for (int t = 0; t < TOP_TABLES && !err; t++) {
		if (m->tables[t].count > TOP_ROWS_MAX)
			err = forget_coldest(m, (enum top_table)t);
	}
	return err;
}

uint32_t top_model_intervals(const struct top_model *m)
{
	return m->intervals;
}

const struct top_sums *top_model_last(const struct top_model *m)
{
	return &m->last;
}

const struct top_sums *top_model_all(const struct top_model *m)
{
	return &m->all;
}

uint32_t top_model_begun_anew(const struct top_model *m)
{
	return m->begun_anew;
}

uint64_t top_model_forgotten(const struct top_model *m, enum top_table table)
{
	return m->forgotten[table];
}
