// SPDX-License-Identifier: Apache-2.0
/* Reads the message of a saved profile: checks its rows, and adds them to a profile. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "profile/mappings.h"
#include "profile/parents.h"
#include "profile/saved_internal.h"
#include "profile/saved.pb-c.h"

/* Bytes that protobuf-c may allocate per unpacked byte (its widest column makes eight of one), and a fixed amount. */
#define MEMORY_RATIO  10
#define MEMORY_ALWAYS ((size_t)1 << 16)
/* Limits that saved.proto states. */
#define STACK_FRAMES_MAX 32768
#define ENTRIES_MAX      4096
#define ROOTS_KNOWN                                                                                                    \
	(PROFILE_ROOT_PROCESS | PROFILE_ROOT_CONTAINER | PROFILE_ROOT_THREAD | PROFILE_ROOT_BY_COUNT |                 \
	 PROFILE_ROOT_PARENTS)

struct reader {
	const Pybpf__SavedProfile *m;
	struct profile *p;
	uint32_t *texts; /* the profile's index, by the file's index */
	size_t nr_texts;
	struct saved_error *error;
};

/* Returns whether every column is as long as the first one. */
static bool same_length(size_t first, const size_t *others, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (others[i] != first)
			return false;
	}
	return true;
}

#define SAME_LENGTH(first, ...)                                                                                        \
	same_length(first, (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static const char *text(const struct reader *r, uint32_t number)
{
	return profile_string(r->p, r->texts[number]);
}

static int read_texts(struct reader *r)
{
	const ProtobufCBinaryData *bytes = &r->m->texts;
	const char *at = (const char *)bytes->data;

	if (bytes->len && bytes->data[bytes->len - 1])
		return saved_damaged(r->error, "its last text has no end");
	r->nr_texts = 1;
	for (size_t i = 0; i < bytes->len; i++)
		r->nr_texts += !bytes->data[i];
	r->texts = calloc(r->nr_texts, sizeof(*r->texts));
	if (!r->texts)
		return saved_no_memory(r->error);
	for (size_t i = 1; i < r->nr_texts; i++, at += strlen(at) + 1) {
		r->texts[i] = profile_add_string(r->p, at);
		if (r->texts[i] == PROFILE_NONE)
			return saved_no_memory(r->error);
	}
	return 0;
}

static int read_measure(struct reader *r)
{
	const struct profile_measure measure = {r->m->measure_name, r->m->measure_unit, r->m->period_ns};

	if (!*measure.name || !*measure.unit)
		return saved_damaged(r->error, "it does not say what its values are");
	profile_set_roots(r->p, r->m->roots & ROOTS_KNOWN);
	return profile_set_measure(r->p, &measure) ? saved_no_memory(r->error) : 0;
}

/* Checks that a row's index in the profile is its number: a row that occurs twice gets the index of the first one. */
static int placed(struct reader *r, uint32_t place, size_t number, const char *twice)
{
	if (place == PROFILE_NONE)
		return saved_no_memory(r->error);
	return place == number ? 0 : saved_damaged(r->error, twice);
}

/* Returns whether a frame that has a state is the leaf of a wait, which has a text and nothing else. */
static bool is_wait(const struct reader *r, size_t i)
{
	const Pybpf__SavedProfile *m = r->m;

	return m->frame_state[i] < r->nr_texts && m->frame_kind[i] == PROFILE_NOTE && !*text(r, m->frame_file[i]) &&
	       m->frame_line[i] == PROFILE_NO_LINE && m->frame_first_line[i] == PROFILE_NO_LINE &&
	       *text(r, m->frame_state[i]);
}

static uint32_t waker_of(const Pybpf__SavedProfile *m, size_t i)
{
	return m->n_frame_waker ? m->frame_waker[i] : 0;
}

/* Returns whether the i-th frame of a file with columns may have its expression. */
static bool may_have_expression(const Pybpf__SavedProfile *m, size_t i)
{
	uint32_t lines = m->frame_lines[i], column = m->frame_column[i], end_column = m->frame_end_column[i];

	if (!lines)
		return !column && !end_column;
	return m->frame_kind[i] == PROFILE_PYTHON && m->frame_line[i] > 0 &&
	       lines <= (uint32_t)(INT32_MAX - m->frame_line[i]) + 1 && column <= INT32_MAX &&
	       end_column <= INT32_MAX && (lines > 1 || column < end_column);
}

static int read_mappings(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;
	int err = 0;

	if (!SAME_LENGTH(m->n_mapping_file, m->n_mapping_build_id, m->n_mapping_path, m->n_mapping_start,
			 m->n_mapping_limit, m->n_mapping_offset))
		return saved_damaged(r->error, "the columns of its mappings differ in length");
	for (size_t i = 0; i < m->n_mapping_file && !err; i++) {
		struct profile_mapping_info info = {
			.start = m->mapping_start[i], .limit = m->mapping_limit[i], .offset = m->mapping_offset[i]};

		if (m->mapping_file[i] >= r->nr_texts || m->mapping_build_id[i] >= r->nr_texts ||
		    m->mapping_path[i] >= r->nr_texts)
			return saved_damaged(r->error, "a mapping's text does not exist");
		if (info.limit < info.start)
			return saved_damaged(r->error, "a mapping ends before it begins");
		info.file = text(r, m->mapping_file[i]);
		info.build_id = text(r, m->mapping_build_id[i]);
		info.path = text(r, m->mapping_path[i]);
		err = placed(r, profile_add_mapping(r->p, &info), i, "a mapping occurs twice");
	}
	return err;
}

static bool has_code(const Pybpf__SavedProfile *m, size_t i)
{
	return m->n_frame_mapping && (m->frame_mapping[i] || m->frame_address[i] || m->frame_marks[i]);
}

/* Returns whether the i-th frame of a file with mappings may have what it has of compiled code. */
static bool may_have_code(const Pybpf__SavedProfile *m, size_t i)
{
	uint32_t mapping;
	uint64_t address;

	if (!has_code(m, i))
		return true;
	mapping = m->frame_mapping[i];
	address = m->frame_address[i];
	if (m->frame_kind[i] != PROFILE_NATIVE || m->frame_first_line[i] != PROFILE_NO_LINE ||
	    mapping > m->n_mapping_file)
		return false;
	return !address ||
	       (mapping && address >= m->mapping_start[mapping - 1] && address < m->mapping_limit[mapping - 1]);
}

static uint32_t add_frame(struct reader *r, size_t i)
{
	const Pybpf__SavedProfile *m = r->m;
	const char *name = text(r, m->frame_name[i]);
	struct profile_place place = {m->frame_line[i], m->frame_first_line[i], 0, 0, 0};

	if (m->n_frame_state && m->frame_state[i])
		return profile_add_wait(r->p, text(r, m->frame_state[i]), name, (int32_t)waker_of(m, i));
	if (has_code(m, i)) {
		const struct profile_code code = {.mapping = m->frame_mapping[i] - 1, /* 0 - 1 is PROFILE_NONE */
						  .marks = m->frame_marks[i],
						  .address = m->frame_address[i],
						  .line = m->frame_line[i]};

		return profile_add_code(r->p, name, text(r, m->frame_file[i]), &code);
	}
	if (m->n_frame_lines && m->frame_lines[i]) {
		place.end_line = m->frame_line[i] + (int32_t)(m->frame_lines[i] - 1);
		place.column = (int32_t)m->frame_column[i];
		place.end_column = (int32_t)m->frame_end_column[i];
		return profile_add_python(r->p, name, text(r, m->frame_file[i]), &place);
	}
	return profile_add_frame(r->p, (enum profile_frame_kind)m->frame_kind[i], name, text(r, m->frame_file[i]),
				 m->frame_line[i], m->frame_first_line[i]);
}

static int read_frames(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;
	int err = 0;

	if (!SAME_LENGTH(m->n_frame_name, m->n_frame_file, m->n_frame_line, m->n_frame_first_line, m->n_frame_kind) ||
	    (m->n_frame_state && m->n_frame_state != m->n_frame_name) ||
	    (m->n_frame_waker && m->n_frame_waker != m->n_frame_name) ||
	    !SAME_LENGTH(m->n_frame_lines, m->n_frame_column, m->n_frame_end_column) ||
	    (m->n_frame_lines && m->n_frame_lines != m->n_frame_name) ||
	    !SAME_LENGTH(m->n_frame_mapping, m->n_frame_address, m->n_frame_marks) ||
	    (m->n_frame_mapping && m->n_frame_mapping != m->n_frame_name))
		return saved_damaged(r->error, "the columns of its frames differ in length");
	for (size_t i = 0; i < m->n_frame_name && !err; i++) {
		if (m->frame_name[i] >= r->nr_texts || m->frame_file[i] >= r->nr_texts)
			return saved_damaged(r->error, "a frame's text does not exist");
		if (m->frame_line[i] < PROFILE_NO_LINE || m->frame_first_line[i] < PROFILE_NO_LINE ||
		    m->frame_kind[i] >= PROFILE_FRAME_KINDS)
			return saved_damaged(r->error, "a frame has an invalid line or kind");
		if (m->n_frame_state && m->frame_state[i] && !is_wait(r, i))
			return saved_damaged(r->error, "a frame has an invalid state");
		if (waker_of(m, i) > INT32_MAX || (waker_of(m, i) && !(m->n_frame_state && m->frame_state[i])))
			return saved_damaged(r->error, "a frame has an invalid waker");
		if (m->n_frame_lines && !may_have_expression(m, i))
			return saved_damaged(r->error, "a frame has an invalid expression");
		if (!may_have_code(m, i))
			return saved_damaged(r->error, "a frame of compiled code has an invalid place");
		err = placed(r, add_frame(r, i), i, "a frame occurs twice");
	}
	return err;
}

static int read_stacks(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;
	size_t count = m->n_stack_down + 1;
	uint16_t *depths;
	int64_t frame = 0;
	int err = 0;

	_Static_assert(STACK_FRAMES_MAX <= UINT16_MAX, "depths are 16 bits wide");
	if (m->n_stack_frame != m->n_stack_down)
		return saved_damaged(r->error, "the columns of its stacks differ in length");
	depths = calloc(count, sizeof(*depths));
	if (!depths)
		return saved_no_memory(r->error);
	for (size_t i = 1; i < count && !err; i++) {
		uint32_t down = m->stack_down[i - 1];

		frame += m->stack_frame[i - 1];
		if (!down || down > i)
			err = saved_damaged(r->error, "a stack's caller is not before it");
		else if (frame < 0 || frame >= (int64_t)m->n_frame_name)
			err = saved_damaged(r->error, "a stack's frame does not exist");
		else if (depths[i - down] == STACK_FRAMES_MAX)
			err = saved_damaged(r->error, "a stack is too deep");
		if (err)
			break;
		depths[i] = depths[i - down] + 1;
		err = placed(r, profile_add_stack(r->p, (uint32_t)(i - down), (uint32_t)frame), i,
			     "a stack occurs twice");
	}
	free(depths);
	return err;
}

static int read_processes(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;
	int err = 0;

	if (!SAME_LENGTH(m->n_process_pid, m->n_process_inner_pid, m->n_process_name, m->n_process_container) ||
	    (m->n_process_service && m->n_process_service != m->n_process_pid) ||
	    (m->n_process_attributes && m->n_process_attributes != m->n_process_pid))
		return saved_damaged(r->error, "the columns of its processes differ in length");
	for (size_t i = 0; i < m->n_process_pid && !err; i++) {
		struct profile_process_info info = {
			.pid = (int32_t)m->process_pid[i],
			.inner_pid = (int32_t)m->process_inner_pid[i],
		};

		if (m->process_name[i] >= r->nr_texts || m->process_container[i] >= r->nr_texts ||
		    (m->n_process_service && m->process_service[i] >= r->nr_texts) ||
		    (m->n_process_attributes && m->process_attributes[i] >= r->nr_texts))
			return saved_damaged(r->error, "a process's text does not exist");
		if (info.pid < 0 || info.inner_pid < 0)
			return saved_damaged(r->error, "a process has an invalid PID");
		info.name = text(r, m->process_name[i]);
		info.container = text(r, m->process_container[i]);
		if (m->n_process_service)
			info.service = text(r, m->process_service[i]);
		if (m->n_process_attributes)
			info.attributes = text(r, m->process_attributes[i]);
		err = placed(r, profile_add_process(r->p, &info), i, "a process occurs twice");
	}
	return err;
}

/* length: of the chain up to each parent. */
static int read_parent(struct reader *r, size_t i, uint8_t *length)
{
	const Pybpf__SavedProfile *m = r->m;
	struct profile_process_info info = {
		.pid = (int32_t)m->parent_pid[i],
		.inner_pid = (int32_t)m->parent_inner_pid[i],
	};
	uint32_t above = m->parent_above[i];

	if (m->parent_name[i] >= r->nr_texts || m->parent_container[i] >= r->nr_texts)
		return saved_damaged(r->error, "a parent's text does not exist");
	if (info.pid < 0 || info.inner_pid < 0)
		return saved_damaged(r->error, "a parent has an invalid PID");
	if (above > i || m->parent_ended[i] > 1)
		return saved_damaged(r->error, "a parent has an invalid parent or end");
	length[i] = (uint8_t)(above ? length[above - 1] + 1 : 1);
	if (length[i] > PROFILE_PARENTS_MAX)
		return saved_damaged(r->error, "a chain of parents is too long");
	info.name = text(r, m->parent_name[i]);
	info.container = text(r, m->parent_container[i]);
	return placed(r, profile_add_parent(r->p, above - 1, &info, m->parent_ended[i]), i, "a parent occurs twice");
}

static int read_parents(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;
	uint8_t *length;
	int err = 0;

	if (!m->n_process_parent)
		return 0;
	if (!SAME_LENGTH(m->n_process_pid, m->n_process_parent) ||
	    !SAME_LENGTH(m->n_parent_above, m->n_parent_pid, m->n_parent_inner_pid, m->n_parent_name,
			 m->n_parent_container, m->n_parent_ended))
		return saved_damaged(r->error, "the columns of its parents differ in length");
	length = calloc(m->n_parent_above + 1, sizeof(*length));
	if (!length)
		return saved_no_memory(r->error);
	for (size_t i = 0; i < m->n_parent_above && !err; i++)
		err = read_parent(r, i, length);
	for (size_t i = 0; i < m->n_process_parent && !err; i++) {
		if (m->process_parent[i] > m->n_parent_above)
			err = saved_damaged(r->error, "a process's parent does not exist");
		else if (m->process_parent[i] && profile_set_parent(r->p, (uint32_t)i, m->process_parent[i] - 1))
			err = saved_no_memory(r->error);
	}
	free(length);
	return err;
}

static int read_threads(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;
	int err = 0;

	if (!SAME_LENGTH(m->n_thread_process, m->n_thread_tid, m->n_thread_name))
		return saved_damaged(r->error, "the columns of its threads differ in length");
	for (size_t i = 0; i < m->n_thread_process && !err; i++) {
		if (m->thread_process[i] >= m->n_process_pid || m->thread_name[i] >= r->nr_texts ||
		    (int32_t)m->thread_tid[i] < 0)
			return saved_damaged(r->error, "a thread has an invalid process, name or TID");
		err = placed(r,
			     profile_add_thread(r->p, m->thread_process[i], (int32_t)m->thread_tid[i],
						text(r, m->thread_name[i])),
			     i, "a thread occurs twice");
	}
	return err;
}

static int read_samples(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;
	uint64_t total = 0, counted = 0, time;
	int64_t stack = 0;

	if (!SAME_LENGTH(m->n_sample_stack, m->n_sample_process, m->n_sample_thread, m->n_sample_value) ||
	    (m->n_sample_count && m->n_sample_count != m->n_sample_stack))
		return saved_damaged(r->error, "the columns of its samples differ in length");
	for (size_t i = 0; i < m->n_sample_stack; i++) {
		uint32_t process = m->sample_process[i], thread = m->sample_thread[i] - 1;
		uint64_t times = m->n_sample_count ? m->sample_count[i] : 0;
		size_t count;

		stack += m->sample_stack[i];
		if (stack < 0 || stack > (int64_t)m->n_stack_down)
			return saved_damaged(r->error, "a sample's stack does not exist");
		if (process >= m->n_process_pid)
			return saved_damaged(r->error, "a sample's process does not exist");
		if (thread != PROFILE_NONE && (thread >= m->n_thread_process || m->thread_process[thread] != process))
			return saved_damaged(r->error, "a sample has a thread that its process has not");
		if (__builtin_add_overflow(total, m->sample_value[i], &total) ||
		    __builtin_add_overflow(counted, times, &counted))
			return saved_damaged(r->error, "it has too many samples");
		if (profile_add_time(r->p, (uint32_t)stack, process, thread, m->sample_value[i], times))
			return saved_no_memory(r->error);
		profile_samples(r->p, &count);
		if (count != i + 1)
			return saved_damaged(r->error, "a sample occurs twice");
	}
	if (total > INT64_MAX || counted > INT64_MAX ||
	    (m->period_ns && __builtin_mul_overflow(total, m->period_ns, &time)) || (m->period_ns && time > INT64_MAX))
		return saved_damaged(r->error, "it has too many samples");
	return 0;
}

static int read_events(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;
	uint64_t *left;
	int64_t time = 0;
	int err = 0;

	if (m->n_event_sample != m->n_event_time || (m->n_event_value && m->n_event_value != m->n_event_time))
		return saved_damaged(r->error, "the columns of its events differ in length");
	left = calloc(m->n_sample_value + 1, sizeof(*left));
	if (!left)
		return saved_no_memory(r->error);
	if (m->n_sample_value)
		memcpy(left, m->sample_value, m->n_sample_value * sizeof(*left));
	for (size_t i = 0; i < m->n_event_time && !err; i++) {
		uint32_t sample = m->event_sample[i], value = m->n_event_value ? m->event_value[i] : 1;

		if (__builtin_add_overflow(time, m->event_time[i], &time) || time < 0)
			err = saved_damaged(r->error, "an event has an invalid time");
		else if (sample >= m->n_sample_value || value > left[sample])
			err = saved_damaged(r->error, "an event is of no sample that is there");
		else if (profile_add_event(r->p, (uint64_t)time, sample, value))
			err = saved_no_memory(r->error);
		else
			left[sample] -= value;
	}
	free(left);
	return err;
}

static int read_account(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;

	if (!SAME_LENGTH(m->n_account_group, m->n_account_key, m->n_account_text, m->n_account_value))
		return saved_damaged(r->error, "the columns of its account differ in length");
	if (m->n_account_group > ENTRIES_MAX || m->n_fact_key > ENTRIES_MAX)
		return saved_damaged(r->error, "it has too many facts or lines of its account");
	for (size_t i = 0; i < m->n_account_group; i++) {
		size_t count;

		if (m->account_group[i] >= r->nr_texts || m->account_key[i] >= r->nr_texts ||
		    m->account_text[i] >= r->nr_texts || m->account_value[i] > INT64_MAX)
			return saved_damaged(r->error, "its account has an invalid text or number");
		if (profile_add_account(r->p, text(r, m->account_group[i]), text(r, m->account_key[i]),
					text(r, m->account_text[i]), m->account_value[i]))
			return saved_no_memory(r->error);
		profile_account_entries(r->p, &count);
		if (count != i + 1)
			return saved_damaged(r->error, "its account tells something twice");
	}
	return 0;
}

static int read_facts(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;
	size_t count;

	if (m->n_fact_value != m->n_fact_key || m->n_source_text != m->n_source_file)
		return saved_damaged(r->error, "the columns of its facts or sources differ in length");
	for (size_t i = 0; i < m->n_fact_key; i++) {
		if (m->fact_key[i] >= r->nr_texts || m->fact_value[i] >= r->nr_texts)
			return saved_damaged(r->error, "a fact's text does not exist");
		if (profile_set_fact(r->p, text(r, m->fact_key[i]), text(r, m->fact_value[i])))
			return saved_no_memory(r->error);
		profile_facts(r->p, &count);
		if (count != i + 1)
			return saved_damaged(r->error, "a fact occurs twice");
	}
	for (size_t i = 0; i < m->n_source_file; i++) {
		if (m->source_file[i] >= r->nr_texts || m->source_text[i] >= r->nr_texts)
			return saved_damaged(r->error, "a source's text does not exist");
		if (profile_set_source(r->p, text(r, m->source_file[i]), text(r, m->source_text[i])))
			return saved_no_memory(r->error);
		profile_sources(r->p, &count);
		if (count != i + 1)
			return saved_damaged(r->error, "the source of a file occurs twice");
	}
	return 0;
}

static int read_origins(struct reader *r)
{
	const Pybpf__SavedProfile *m = r->m;

	if (m->n_origin != m->n_origin_file)
		return saved_damaged(r->error, "the columns of its files' origins differ in length");
	for (size_t i = 0; i < m->n_origin; i++) {
		if (m->origin_file[i] >= r->nr_texts)
			return saved_damaged(r->error, "the text of a file's origin does not exist");
		if (m->origin[i] < PROFILE_ORIGINS &&
		    profile_set_origin(r->p, text(r, m->origin_file[i]), (enum profile_origin)m->origin[i]))
			return saved_no_memory(r->error);
	}
	return 0;
}

/* An allocator for protobuf-c with a limit: a few bytes of a message can become a large allocation. */
struct budget {
	ProtobufCAllocator base;
	size_t left;
	bool exceeded, exhausted; /* exceeded: over the budget; exhausted: out of memory */
};

static void *budget_alloc(void *data, size_t size)
{
	struct budget *budget = data;
	void *block;

	if (size > budget->left) {
		budget->exceeded = true;
		return NULL;
	}
	budget->left -= size;
	block = malloc(size ? size : 1);
	budget->exhausted |= !block;
	return block;
}

static void budget_free(void *data, void *block)
{
	(void)data;
	free(block);
}

static int read_all(struct reader *r)
{
	int err = read_texts(r) ?: read_measure(r) ?: read_mappings(r) ?: read_frames(r) ?: read_stacks(r);

	err = err ?: read_processes(r) ?: read_parents(r);
	return err ?: read_threads(r) ?: read_samples(r) ?: read_events(r) ?: read_account(r) ?: read_facts(r) ?:
	       read_origins(r);
}

int saved_load_bytes(const void *bytes, size_t size, struct profile **p, struct saved_error *error)
{
	struct budget budget = {.left = MEMORY_ALWAYS + MEMORY_RATIO * size};
	struct reader r = {.p = profile_new(), .error = error};
	Pybpf__SavedProfile *m;
	int err;

	budget.base = (ProtobufCAllocator){budget_alloc, budget_free, &budget};
	if (!r.p)
		return saved_no_memory(error);
	m = pybpf__saved_profile__unpack(&budget.base, size, bytes);
	r.m = m;
	if (!m && budget.exceeded)
		err = saved_too_large(error);
	else if (!m)
		err = budget.exhausted ? saved_no_memory(error) : saved_damaged(error, "its message is not whole");
	else
		err = read_all(&r);
	free(r.texts);
	if (m)
		pybpf__saved_profile__free_unpacked(m, &budget.base);
	if (err)
		profile_free(r.p);
	else
		*p = r.p;
	return err;
}
