// SPDX-License-Identifier: Apache-2.0
/* Writes a profile as a saved profile, .pybpf. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/saved.h"
#include "base/gzip.h"
#include "base/proto_stream.h"
#include "profile/mappings.h"
#include "profile/parents.h"
#include "profile/saved.pb-c.h"

static int write_message(const Pybpf__SavedProfile *m, FILE *out)
{
	FILE *gzip = gzip_open(out);
	struct proto_stream stream = proto_stream(gzip);

	if (!gzip)
		return -ENOMEM;
	pybpf__saved_profile__pack_to_buffer(m, &stream.base);
	if (!fclose(gzip))
		return 0;
	return errno ? -errno : -EIO;
}

/* Allocates a column of the message for count rows; NULL without memory. */
#define COLUMN(m, name, count)                                                                                         \
	((m)->name = calloc((count) ? (count) : 1, sizeof(*(m)->name)), (m)->n_##name = (count), (m)->name)

static int take_measure(const struct profile *p, Pybpf__SavedProfile *m)
{
	struct profile_measure measure = profile_get_measure(p);

	m->measure_name = strdup(measure.name);
	m->measure_unit = strdup(measure.unit);
	m->period_ns = measure.period_ns;
	return m->measure_name && m->measure_unit ? 0 : -ENOMEM;
}

static int take_texts(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint32_t count = profile_string_count(p);
	size_t at = 0;

	for (uint32_t i = 1; i < count; i++)
		at += strlen(profile_string(p, i)) + 1;
	m->texts.data = malloc(at ? at : 1);
	if (!m->texts.data)
		return -ENOMEM;
	for (uint32_t i = 1; i < count; i++) {
		size_t size = strlen(profile_string(p, i)) + 1;

		memcpy(m->texts.data + m->texts.len, profile_string(p, i), size);
		m->texts.len += size;
	}
	return 0;
}

static int take_columns(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint32_t count = profile_frame_count(p);

	if (!profile_has_columns(p))
		return 0;
	if (!COLUMN(m, frame_lines, count) || !COLUMN(m, frame_column, count) || !COLUMN(m, frame_end_column, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_frame *frame = profile_frame_at(p, i);

		m->frame_lines[i] = frame->end_line ? (uint32_t)(frame->end_line - frame->line + 1) : 0;
		m->frame_column[i] = (uint32_t)frame->column;
		m->frame_end_column[i] = (uint32_t)frame->end_column;
	}
	return 0;
}

static int take_mappings(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint32_t count = profile_mapping_count(p);

	if (!COLUMN(m, mapping_file, count) || !COLUMN(m, mapping_build_id, count) || !COLUMN(m, mapping_path, count) ||
	    !COLUMN(m, mapping_start, count) || !COLUMN(m, mapping_limit, count) || !COLUMN(m, mapping_offset, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_mapping *mapping = profile_mapping_at(p, i);

		m->mapping_file[i] = mapping->file;
		m->mapping_build_id[i] = mapping->build_id;
		m->mapping_path[i] = mapping->path;
		m->mapping_start[i] = mapping->start;
		m->mapping_limit[i] = mapping->limit;
		m->mapping_offset[i] = mapping->offset;
	}
	return 0;
}

static int take_code(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint32_t count = profile_frame_count(p);

	if (!profile_has_code_places(p))
		return 0;
	if (!COLUMN(m, frame_mapping, count) || !COLUMN(m, frame_address, count) || !COLUMN(m, frame_marks, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_frame *frame = profile_frame_at(p, i);

		m->frame_mapping[i] = frame->mapping;
		m->frame_address[i] = frame->address;
		m->frame_marks[i] = frame->marks;
	}
	return 0;
}

static int take_frames(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint32_t count = profile_frame_count(p);

	if (!COLUMN(m, frame_name, count) || !COLUMN(m, frame_file, count) || !COLUMN(m, frame_line, count) ||
	    !COLUMN(m, frame_first_line, count) || !COLUMN(m, frame_kind, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_frame *frame = profile_frame_at(p, i);

		m->frame_name[i] = frame->name;
		m->frame_file[i] = frame->file;
		m->frame_line[i] = frame->line;
		m->frame_first_line[i] = frame->first_line;
		m->frame_kind[i] = frame->kind;
	}
	if (!profile_has_states(p))
		return 0;
	if (!COLUMN(m, frame_state, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		m->frame_state[i] = profile_frame_at(p, i)->state;
	if (!profile_has_wakers(p))
		return 0;
	if (!COLUMN(m, frame_waker, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		m->frame_waker[i] = (uint32_t)profile_frame_at(p, i)->waker;
	return 0;
}

static int take_stacks(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint32_t count = profile_stack_count(p), before = 0;

	if (!COLUMN(m, stack_down, count - 1) || !COLUMN(m, stack_frame, count - 1))
		return -ENOMEM;
	for (uint32_t i = 1; i < count; i++) {
		const struct profile_stack *stack = profile_stack_at(p, i);

		m->stack_down[i - 1] = i - stack->parent;
		m->stack_frame[i - 1] = (int32_t)(stack->frame - before);
		before = stack->frame;
	}
	return 0;
}

static int take_processes(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint32_t processes = profile_process_count(p), threads = profile_thread_count(p);

	if (!COLUMN(m, process_pid, processes) || !COLUMN(m, process_inner_pid, processes) ||
	    !COLUMN(m, process_name, processes) || !COLUMN(m, process_container, processes) ||
	    !COLUMN(m, thread_process, threads) || !COLUMN(m, thread_tid, threads) || !COLUMN(m, thread_name, threads))
		return -ENOMEM;
	for (uint32_t i = 0; i < processes; i++) {
		const struct profile_process *process = profile_process_at(p, i);

		m->process_pid[i] = (uint32_t)process->pid;
		m->process_inner_pid[i] = (uint32_t)process->inner_pid;
		m->process_name[i] = process->name;
		m->process_container[i] = process->container;
	}
	for (uint32_t i = 0; i < threads; i++) {
		const struct profile_thread *thread = profile_thread_at(p, i);

		m->thread_process[i] = thread->process;
		m->thread_tid[i] = (uint32_t)thread->tid;
		m->thread_name[i] = thread->name;
	}
	return 0;
}

/* Columns that are left out where no process has such a text. */
static int take_services(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint32_t count = profile_process_count(p);
	bool services = false, attributes = false;

	for (uint32_t i = 0; i < count; i++) {
		services |= profile_process_at(p, i)->service != 0;
		attributes |= profile_process_at(p, i)->attributes != 0;
	}
	if ((services && !COLUMN(m, process_service, count)) || (attributes && !COLUMN(m, process_attributes, count)))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (services)
			m->process_service[i] = profile_process_at(p, i)->service;
		if (attributes)
			m->process_attributes[i] = profile_process_at(p, i)->attributes;
	}
	return 0;
}

static int take_parents(const struct profile *p, Pybpf__SavedProfile *m)
{
	const struct profile_parents *all = profile_get_parents(p);
	uint32_t count = all->list.count, processes = profile_process_count(p);

	if (!count)
		return 0;
	if (!COLUMN(m, process_parent, processes) || !COLUMN(m, parent_above, count) || !COLUMN(m, parent_pid, count) ||
	    !COLUMN(m, parent_inner_pid, count) || !COLUMN(m, parent_name, count) ||
	    !COLUMN(m, parent_container, count) || !COLUMN(m, parent_ended, count))
		return -ENOMEM;
	for (uint32_t i = 0; i < processes; i++)
		m->process_parent[i] = profile_parents_of(all, i) + 1; /* PROFILE_NONE + 1 is 0 */
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_parent *parent = profile_parents_at(all, i);

		m->parent_above[i] = parent->above + 1;
		m->parent_pid[i] = (uint32_t)parent->process.pid;
		m->parent_inner_pid[i] = (uint32_t)parent->process.inner_pid;
		m->parent_name[i] = parent->process.name;
		m->parent_container[i] = parent->process.container;
		m->parent_ended[i] = parent->ended;
	}
	return 0;
}

static int take_samples(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint32_t before = 0;
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);

	if (!COLUMN(m, sample_stack, count) || !COLUMN(m, sample_process, count) || !COLUMN(m, sample_thread, count) ||
	    !COLUMN(m, sample_value, count))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		m->sample_stack[i] = (int32_t)(samples[i].stack - before);
		before = samples[i].stack;
		m->sample_process[i] = samples[i].process;
		m->sample_thread[i] = samples[i].thread + 1; /* PROFILE_NONE + 1 is 0 */
		m->sample_value[i] = samples[i].value;
	}
	if (!profile_has_counts(p))
		return 0;
	if (!COLUMN(m, sample_count, count))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		m->sample_count[i] = samples[i].count;
	return 0;
}

static int take_events(const struct profile *p, Pybpf__SavedProfile *m)
{
	uint64_t before = 0;
	bool ones = true;
	size_t count;
	const struct profile_event *events = profile_events(p, &count);

	if (!COLUMN(m, event_time, count) || !COLUMN(m, event_sample, count))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		m->event_time[i] = (int64_t)(events[i].time_ns - before);
		before = events[i].time_ns;
		m->event_sample[i] = events[i].sample;
		ones &= events[i].value == 1;
	}
	if (ones)
		return 0;
	if (!COLUMN(m, event_value, count))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		m->event_value[i] = events[i].value;
	return 0;
}

static int take_run(const struct profile *p, Pybpf__SavedProfile *m)
{
	size_t entries, facts, sources;
	const struct profile_account *account = profile_account_entries(p, &entries);
	const struct profile_fact *fact = profile_facts(p, &facts);
	const struct profile_source *source = profile_sources(p, &sources);

	if (!COLUMN(m, account_group, entries) || !COLUMN(m, account_key, entries) ||
	    !COLUMN(m, account_text, entries) || !COLUMN(m, account_value, entries) || !COLUMN(m, fact_key, facts) ||
	    !COLUMN(m, fact_value, facts) || !COLUMN(m, source_file, sources) || !COLUMN(m, source_text, sources))
		return -ENOMEM;
	for (size_t i = 0; i < entries; i++) {
		m->account_group[i] = account[i].group;
		m->account_key[i] = account[i].key;
		m->account_text[i] = account[i].text;
		m->account_value[i] = account[i].value;
	}
	for (size_t i = 0; i < facts; i++) {
		m->fact_key[i] = fact[i].key;
		m->fact_value[i] = fact[i].value;
	}
	for (size_t i = 0; i < sources; i++) {
		m->source_file[i] = source[i].file;
		m->source_text[i] = source[i].text;
	}
	return 0;
}

static int take_origins(const struct profile *p, Pybpf__SavedProfile *m)
{
	const uint32_t count = profile_string_count(p);
	size_t foreign = 0;

	for (uint32_t i = 0; i < count; i++)
		foreign += profile_origin_of(p, i) != PROFILE_OWN;
	if (!COLUMN(m, origin_file, foreign) || !COLUMN(m, origin, foreign))
		return -ENOMEM;
	foreign = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (profile_origin_of(p, i) == PROFILE_OWN)
			continue;
		m->origin_file[foreign] = i;
		m->origin[foreign++] = profile_origin_of(p, i);
	}
	return 0;
}

int profile_save(const struct profile *p, FILE *out)
{
	Pybpf__SavedProfile *m = malloc(sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	pybpf__saved_profile__init(m);
	m->roots = profile_wanted_roots(p);
	err = take_measure(p, m) ?: take_texts(p, m) ?: take_frames(p, m) ?: take_columns(p, m) ?: take_code(p, m);
	err = err ?: take_mappings(p, m) ?: take_stacks(p, m) ?: take_processes(p, m) ?: take_services(p, m);
	err = err ?: take_parents(p, m);
	err = err ?: take_samples(p, m) ?: take_events(p, m) ?: take_run(p, m) ?: take_origins(p, m);
	if (!err) {
		fprintf(out, "%s%d\n", PROFILE_SAVED_MAGIC, PROFILE_SAVED_FORMAT);
		err = write_message(m, out);
	}
	pybpf__saved_profile__free_unpacked(m, NULL);
	return err; /* protobuf-c has freed it. NOLINT(clang-analyzer-unix.Malloc) */
}
