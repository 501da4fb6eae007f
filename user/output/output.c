// SPDX-License-Identifier: Apache-2.0
/* Functions that several formats share: escaping, labels of roots, frames. */
#include "output/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void output_escaped(const char *text, FILE *out)
{
	const char *from = text; /* start of the plain text that is not written yet */

	while (*text) {
		bool plain;
		size_t len = text_character(text, &plain);

		if (plain && *text != '\\' && *text != ';') {
			text += len;
			continue;
		}
		fwrite(from, 1, (size_t)(text - from), out);
		if (*text == '\\')
			fputs("\\\\", out);
		for (size_t i = 0; i < len && *text != '\\'; i++)
			fprintf(out, "\\x%02x", (unsigned char)text[i]);
		text += len;
		from = text;
	}
	fwrite(from, 1, (size_t)(text - from), out);
}

static char *label_of(const struct profile *p, const struct profile_process *process, bool ended)
{
	const char *name = profile_string(p, process->name), *end = ended ? ", ended" : "";
	char *label = NULL;
	int n;

	if (process->inner_pid)
		n = asprintf(&label, "%s (%d, %d inside%s)", name, process->pid, process->inner_pid, end);
	else if (process->pid)
		n = asprintf(&label, "%s (%d%s)", name, process->pid, end);
	else
		n = asprintf(&label, "%s", name);
	return n < 0 ? NULL : label;
}

char *output_process_label(const struct profile *p, uint32_t process)
{
	return label_of(p, profile_process_at(p, process), false);
}

char *output_parent_label(const struct profile *p, uint32_t parent)
{
	const struct profile_parent *at = profile_parents_at(profile_get_parents(p), parent);

	/* One that is sampled has one label. */
	return label_of(p, &at->process, at->ended && profile_find_process(p, &at->process) == PROFILE_NONE);
}

int output_roots(const struct profile *p, const struct profile_sample *sample, char *labels[OUTPUT_ROOTS])
{
	unsigned roots = profile_roots(p);
	uint32_t chain[PROFILE_PARENTS_MAX];
	size_t count;
	int n = 0;

	if (roots & PROFILE_ROOT_CONTAINER) {
		uint32_t container = profile_process_at(p, sample->process)->container;

		labels[n++] = strdup(container ? profile_string(p, container) : "[host]");
	}
	count = roots & PROFILE_ROOT_PARENTS ? profile_parents_chain(profile_get_parents(p), sample->process, chain)
					     : 0;
	for (size_t i = 0; i < count; i++)
		labels[n++] = output_parent_label(p, chain[i]);
	if (roots & PROFILE_ROOT_PROCESS)
		labels[n++] = output_process_label(p, sample->process);
	if (roots & PROFILE_ROOT_THREAD && sample->thread != PROFILE_NONE) {
		const struct profile_thread *thread = profile_thread_at(p, sample->thread);

		if (asprintf(&labels[n], "%s (%d)", profile_string(p, thread->name), thread->tid) < 0)
			labels[n] = NULL;
		n++;
	}
	for (int i = 0; i < n; i++) {
		if (labels[i])
			continue;
		for (i = 0; i < n; i++)
			free(labels[i]);
		return -ENOMEM;
	}
	return n;
}

const char *output_kind_name(const struct profile_frame *frame)
{
	switch ((enum profile_frame_kind)frame->kind) {
	case PROFILE_PYTHON:
		return "python";
	case PROFILE_KERNEL:
		return "kernel";
	case PROFILE_NATIVE:
		return "native";
	default:
		return "note";
	}
}

void output_position(const struct profile_place *place, char text[OUTPUT_POSITION_MAX])
{
	int at;

	*text = '\0';
	if (place->line == PROFILE_NO_LINE)
		return;
	at = snprintf(text, OUTPUT_POSITION_MAX, ":%d", place->line);
	if (!place->end_line)
		return;
	at += snprintf(text + at, OUTPUT_POSITION_MAX - (size_t)at, ":%d-", place->column + 1);
	if (place->end_line != place->line)
		at += snprintf(text + at, OUTPUT_POSITION_MAX - (size_t)at, "%d:", place->end_line);
	snprintf(text + at, OUTPUT_POSITION_MAX - (size_t)at, "%d", place->end_column);
}

void output_frame(const struct profile *p, uint32_t frame, FILE *out)
{
	const struct profile_frame *f = profile_frame_at(p, frame);
	const char *file = profile_string(p, f->file);
	const struct profile_place place = profile_place_of(f);
	char position[OUTPUT_POSITION_MAX];

	output_escaped(profile_string(p, f->name), out);
	if (!*file)
		return;
	fputs(" (", out);
	output_escaped(file, out);
	output_position(&place, position);
	fprintf(out, "%s)", position);
}

char *output_short_name(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = profile_frame_at(p, frame);
	const char *name = profile_string(p, f->name), *file = profile_string(p, f->file);
	char *both;

	if (!*file || strcmp(name, "<module>") != 0)
		return strdup(name);
	return asprintf(&both, "%s %s", name, file) < 0 ? NULL : both;
}

const char *output_row_noun(const struct output_options *options)
{
	if (options->by_expression)
		return "expression";
	return options->by_line ? "line" : "function";
}

size_t output_noun_length(const char *name, uint64_t n)
{
	size_t length = strlen(name);

	if (n != 1 || length < 2 || name[length - 1] != 's')
		return length;
	/* "switches" */
	return length > 4 && strncmp(name + length - 4, "ches", 4) == 0 ? length - 2 : length - 1;
}
