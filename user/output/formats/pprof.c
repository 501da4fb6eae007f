// SPDX-License-Identifier: Apache-2.0
/*
 * pprof's protobuf, compressed. A location is a frame (function, line and column), of compiled code with those that are
 * inlined into it; a function is identified by its first line and its file. An executable segment of a file of compiled
 * code is a mapping, as if the file was mapped where it is linked, with its build-id. A function without a symbol is a
 * location that has an address and no function, and then its mapping says that it has no functions: so readers look for
 * the symbols, where they have them. Process, thread and container are labels (`go tool
 * pprof -tagfocus`, `-tagroot`), which keep samples apart, and not frames. Values are samples, and also CPU time if the
 * CPU time per sample is known. Where values are time and have counts, there are three: CPU samples, waits, and the
 * time of both.
 *
 * The message is written in many parts, since a message of protobuf may be cut between any two of its fields. So only
 * one sample is held in memory, and a few numbers for each text.
 */
#include "output/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/intern.h"
#include "output/formats/path.h"
#include "output/formats/pprof.pb-c.h"
#include "output/type_name.h"
#include "profile/attributes.h"
#include "profile/groups.h"
#include "profile/mappings.h"
#include "base/gzip.h"
#include "base/proto_stream.h"
#include "base/text.h"
#include "base/text_stream.h"

/* The ID of the mapping that holds the locations of Python, the first one; go tool pprof takes it for the program. */
#define PYTHON_MAPPING 1
#define MAX_VALUES     4

/* Labels of a sample, left out where they are unknown. Names are texts, IDs are numbers. */
enum label {
	LABEL_PROCESS,
	LABEL_PID,
	LABEL_INNER_PID,
	LABEL_CONTAINER,
	LABEL_THREAD,
	LABEL_THREAD_ID,
	LABEL_STATE,
	LABEL_SERVICE,
	LABEL_ATTRIBUTES, /* the first of PROFILE_ATTRIBUTES */
	NR_LABELS = LABEL_ATTRIBUTES + PROFILE_ATTRIBUTES,
};

static const char *const label_keys[NR_LABELS] = {
	[LABEL_PROCESS] = "process",     [LABEL_PID] = "pid",         [LABEL_INNER_PID] = "inner_pid",
	[LABEL_CONTAINER] = "container", [LABEL_THREAD] = "thread",   [LABEL_THREAD_ID] = "thread_id",
	[LABEL_STATE] = "state",         [LABEL_SERVICE] = "service",
};

/* A file of compiled code, or the part of it that is known. */
struct mapping {
	struct mapping_key {
		uint32_t mapping; /* as in struct profile_frame */
		uint32_t file;    /* string, where that is 0 */
	} key;
	bool has_nameless, lacks_lines, has_inlined;
};

struct location {
	uint32_t frame;
	uint32_t outer; /* ID of the location that it is inlined into; 0: none */
};

struct writer {
	const struct profile *profile;
	struct proto_stream out;
	struct profile_groups functions;
	struct intern texts;     /* char *, owned: the string_table */
	int64_t *of_string;      /* index in texts by the profile's string; 0: not added yet */
	struct intern mappings;  /* struct mapping */
	struct intern locations; /* struct location */
	int64_t label_keys[NR_LABELS];
	const struct output_options *options;
	struct given_label {
		int64_t key, value;
	} given[OUTPUT_LABELS_MAX]; /* of the options */
	struct output_path path;
	uint64_t *stack;   /* IDs of locations, of one sample */
	size_t stack_room; /* in stack */
	struct profile_measure measure;
	bool counted, states; /* samples have counts, and states */
	bool no_memory;       /* memory ran out: the output is not valid */
};

/* Adds a text as UTF-8, which protobuf requires, and on one line, since `go tool pprof` prints it verbatim. Takes the
 * text over: frees it with the table, or here. Returns its index. */
static int64_t add_text(struct writer *w, char *text)
{
	bool fresh = false;
	uint32_t i = text ? intern_add(&w->texts, &text, &fresh) : INTERN_NONE;

	if (!fresh)
		free(text);
	if (i != INTERN_NONE)
		return i;
	w->no_memory = true;
	return 0;
}

static int64_t text_of(struct writer *w, const char *text)
{
	return add_text(w, text_printable(text));
}

static int64_t string_of(struct writer *w, uint32_t string)
{
	if (!w->of_string[string])
		w->of_string[string] = text_of(w, profile_string(w->profile, string));
	return w->of_string[string];
}

static void emit(struct writer *w, const Pprof__Profile *part)
{
	pprof__profile__pack_to_buffer(part, &w->out.base);
}

/* Returns value * factor, or the largest number of the format if that overflows. */
static int64_t times(uint64_t value, uint64_t factor)
{
	int64_t product;

	return __builtin_mul_overflow(value, factor, &product) ? INT64_MAX : product;
}

struct types {
	Pprof__ValueType types[MAX_VALUES], *pointers[MAX_VALUES];
	size_t count;
};

static Pprof__ValueType *add_type(struct writer *w, struct types *types, const char *type, const char *unit)
{
	Pprof__ValueType *added = &types->types[types->count];

	pprof__value_type__init(added);
	added->type = add_text(w, output_type_name(type));
	added->unit = text_of(w, unit);
	types->pointers[types->count++] = added;
	return added;
}

static void write_types(struct writer *w)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	struct types types = {.count = 0};
	const char *start = profile_find_fact(w->profile, PROFILE_FACT_START);
	const char *duration = profile_find_fact(w->profile, PROFILE_FACT_DURATION);

	if (w->counted) {
		add_type(w, &types, "samples", "count");
		add_type(w, &types, "waits", "count");
	}
	/* Parca 0.28 crashes where there is no type of a period (pkg/normalizer/validate.go, ValidatePprofProfile()).
	 */
	part.period_type = add_type(w, &types, w->measure.name, w->measure.unit);
	part.period = 1;
	if (w->measure.period_ns) {
		part.period_type = add_type(w, &types, "cpu", "nanoseconds");
		part.period = times(w->measure.period_ns, 1);
	}
	part.default_sample_type = part.period_type->type;
	part.sample_type = types.pointers;
	part.n_sample_type = types.count;
	if (start)
		part.time_nanos = strtoll(start, NULL, 10);
	if (duration) {
		double ns = strtod(duration, NULL) * 1e9;

		part.duration_nanos = ns >= 0 && ns < (double)INT64_MAX ? (int64_t)ns : 0;
	}
	emit(w, &part);
}

static void write_comment(struct writer *w, int64_t text)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;

	part.comment = &text;
	part.n_comment = 1;
	emit(w, &part);
}

/* Writes the facts, and the entries of the account that are not 0, as comments. */
static void write_comments(struct writer *w)
{
	size_t facts_count, account_count;
	const struct profile_fact *facts = profile_facts(w->profile, &facts_count);
	const struct profile_account *account = profile_account_entries(w->profile, &account_count);

	for (size_t i = 0; i < facts_count; i++) {
		char *text = NULL, *clean = NULL;

		if (asprintf(&text, "%s: %s", profile_string(w->profile, facts[i].key),
			     profile_string(w->profile, facts[i].value)) >= 0) {
			clean = text_printable(text);
			free(text);
		}
		write_comment(w, add_text(w, clean));
	}
	for (size_t i = 0; i < account_count; i++) {
		char *text = NULL;
		size_t size;
		FILE *out = account[i].value ? text_stream_open(&text, &size) : NULL;

		if (!account[i].value)
			continue;
		if (out) {
			output_account_entry(w->profile, &account[i], out);
			if (fclose(out)) {
				free(text);
				text = NULL;
			}
		}
		write_comment(w, add_text(w, text));
	}
	if (!profile_total(w->profile))
		write_comment(w, text_of(w, "No sample has Python frames."));
}

static void emit_mapping(struct writer *w, Pprof__Mapping *mapping)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;

	part.mapping = &mapping;
	part.n_mapping = 1;
	emit(w, &part);
}

static struct mapping_key key_of(const struct profile_frame *frame)
{
	return (struct mapping_key){frame->mapping, frame->mapping ? 0 : frame->file};
}

/* Returns the mapping of a frame's location; 0: code that is in no file. */
static uint32_t mapping_of(const struct writer *w, const struct profile_frame *frame)
{
	const struct mapping wanted = {.key = key_of(frame)};

	if (frame->kind != PROFILE_NATIVE)
		return PYTHON_MAPPING;
	if (!frame->mapping && !frame->file)
		return 0;
	return PYTHON_MAPPING + 1 + intern_find(&w->mappings, &wanted);
}

/* Returns whether a reader is to find out the function by its address. */
static bool is_nameless(const struct profile_frame *frame)
{
	return frame->marks & PROFILE_CODE_NAMELESS && frame->mapping && frame->address;
}

static int find_mappings(struct writer *w)
{
	for (uint32_t i = 0; i < profile_frame_count(w->profile); i++) {
		const struct profile_frame *frame = profile_frame_at(w->profile, i);
		const struct mapping fresh = {.key = key_of(frame)};
		struct mapping *mapping;
		uint32_t at;

		if (frame->kind != PROFILE_NATIVE || (!frame->mapping && !frame->file))
			continue;
		at = intern_add(&w->mappings, &fresh, &(bool){false});
		if (at == INTERN_NONE)
			return -ENOMEM;
		mapping = intern_item(&w->mappings, at);
		mapping->has_nameless |= is_nameless(frame);
		mapping->lacks_lines |= frame->line == PROFILE_NO_LINE;
		mapping->has_inlined |= (frame->marks & PROFILE_CODE_INLINED) != 0;
	}
	return 0;
}

static void write_mapping(struct writer *w, uint32_t id, const struct mapping *mapping)
{
	Pprof__Mapping out = PPROF__MAPPING__INIT;

	out.id = id;
	out.filename = string_of(w, mapping->key.file);
	if (mapping->key.mapping) {
		const struct profile_mapping *known = profile_mapping_at(w->profile, mapping->key.mapping - 1);

		out.filename = string_of(w, known->path ? known->path : known->file);
		out.build_id = string_of(w, known->build_id);
		out.memory_start = known->start;
		out.memory_limit = known->limit;
		out.file_offset = known->offset;
	}
	out.has_functions = !mapping->has_nameless;
	out.has_filenames = out.has_line_numbers = !mapping->has_nameless && !mapping->lacks_lines;
	out.has_inline_frames = mapping->has_inlined && out.has_functions;
	emit_mapping(w, &out);
}

static void write_mappings(struct writer *w)
{
	Pprof__Mapping python = PPROF__MAPPING__INIT;

	python.id = PYTHON_MAPPING;
	python.filename = profile_process_count(w->profile) == 1 ? string_of(w, profile_process_at(w->profile, 0)->name)
								 : text_of(w, "python");
	python.has_functions = python.has_filenames = python.has_line_numbers = true;
	emit_mapping(w, &python);
	for (uint32_t i = 0; i < w->mappings.count; i++)
		write_mapping(w, PYTHON_MAPPING + 1 + i, intern_item(&w->mappings, i));
}

static void write_functions(struct writer *w)
{
	for (uint32_t i = 0; i < w->functions.table.count; i++) {
		const struct profile_group *group = profile_group_at(&w->functions, i);
		Pprof__Profile part = PPROF__PROFILE__INIT;
		Pprof__Function function = PPROF__FUNCTION__INIT, *functions = &function;

		function.id = i + 1;
		function.name = string_of(w, group->name);
		function.filename = string_of(w, group->file);
		function.start_line = group->line == PROFILE_NO_LINE ? 0 : group->line;
		part.function = &functions;
		part.n_function = 1;
		emit(w, &part);
	}
}

static const struct location *location_at(const struct writer *w, uint32_t id)
{
	return intern_item(&w->locations, id - 1);
}

/* Writes the lines of a location, the innermost first. Returns 0 or -ENOMEM. */
static int write_location(struct writer *w, uint32_t id)
{
	const struct location *at = location_at(w, id);
	const struct profile_frame *frame = profile_frame_at(w->profile, at->frame);
	Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	size_t count = 1;
	Pprof__Line *lines, **pointers;

	for (uint32_t outer = at->outer; outer; outer = location_at(w, outer)->outer)
		count++;
	lines = calloc(count, sizeof(*lines));
	pointers = calloc(count, sizeof(*pointers));
	for (size_t i = 0; i < count && lines && pointers; i++) {
		const struct profile_frame *one = profile_frame_at(w->profile, at->frame);

		pprof__line__init(&lines[i]);
		lines[i].function_id = w->functions.of_frame[at->frame] + 1;
		lines[i].line = one->line == PROFILE_NO_LINE ? 0 : one->line;
		lines[i].column = one->end_line ? one->column + 1 : 0;
		pointers[i] = &lines[i];
		at = at->outer ? location_at(w, at->outer) : at;
	}
	location.id = id;
	location.mapping_id = mapping_of(w, frame);
	location.address = frame->address;
	location.line = pointers;
	location.n_line = is_nameless(frame) ? 0 : count;
	part.location = &locations;
	part.n_location = 1;
	if (lines && pointers)
		emit(w, &part);
	else
		w->no_memory = true;
	free(lines);
	free(pointers);
	return w->no_memory ? -ENOMEM : 0;
}

static int write_locations(struct writer *w)
{
	int err = 0;

	for (uint32_t i = 0; i < w->locations.count && !err; i++)
		err = write_location(w, i + 1);
	return err;
}

/* Returns whether a function is inlined into the one below it in a stack: both are at one instruction. */
static bool is_inlined_into(const struct profile_frame *frame, const struct profile_frame *below)
{
	return frame->marks & PROFILE_CODE_INLINED && below->kind == PROFILE_NATIVE &&
	       frame->mapping == below->mapping && frame->address == below->address;
}

/* Puts the stack's locations, leaf first, into w->stack. Returns their number, or -ENOMEM. */
static ssize_t locations_of(struct writer *w, uint32_t stack)
{
	int err = output_path_read(w->profile, stack, &w->path);
	const uint32_t *frames = w->path.frames;
	size_t count = w->path.count, first;

	err = err ?: array_reserve(&w->stack, &w->stack_room, count, sizeof(*w->stack));
	if (err)
		return err;
	first = count;
	for (size_t i = 0; i < count; i++) {
		struct location location = {.frame = frames[i]};
		uint32_t at;

		if (i && is_inlined_into(profile_frame_at(w->profile, frames[i]),
					 profile_frame_at(w->profile, frames[i - 1])))
			location.outer = (uint32_t)w->stack[first++];
		at = intern_add(&w->locations, &location, &(bool){false});
		if (at == INTERN_NONE)
			return -ENOMEM;
		w->stack[--first] = at + 1;
	}
	memmove(w->stack, w->stack + first, (count - first) * sizeof(*w->stack));
	return (ssize_t)(count - first);
}

struct labels {
	Pprof__Label labels[NR_LABELS + OUTPUT_LABELS_MAX], *pointers[NR_LABELS + OUTPUT_LABELS_MAX];
	size_t count;
};

/* key, text: indices of texts; text 0: the value is the number, and where that is 0, too, there is no label. */
static void add_keyed(struct labels *to, int64_t key, int64_t text, int64_t number)
{
	Pprof__Label *label = &to->labels[to->count];

	if (!text && !number)
		return;
	pprof__label__init(label);
	label->key = key;
	label->str = text;
	label->num = number;
	to->pointers[to->count++] = label;
}

static void add_label(const struct writer *w, struct labels *to, enum label key, int64_t text, int64_t number)
{
	add_keyed(to, w->label_keys[key], text, number);
}

static void labels_of(struct writer *w, const struct profile_sample *sample, struct labels *labels)
{
	const struct profile_process *process = profile_process_at(w->profile, sample->process);
	char value[PROFILE_ATTRIBUTE_MAX];

	labels->count = 0;
	add_label(w, labels, LABEL_PROCESS, string_of(w, process->name), 0);
	add_label(w, labels, LABEL_PID, 0, process->pid);
	add_label(w, labels, LABEL_INNER_PID, 0, process->inner_pid);
	add_label(w, labels, LABEL_CONTAINER, string_of(w, process->container), 0);
	add_label(w, labels, LABEL_SERVICE, string_of(w, process->service), 0);
	for (int i = 0; i < PROFILE_ATTRIBUTES; i++) {
		profile_attribute_find(profile_string(w->profile, process->attributes), i, value);
		add_label(w, labels, LABEL_ATTRIBUTES + i, *value ? text_of(w, value) : 0, 0);
	}
	if (sample->thread != PROFILE_NONE) {
		const struct profile_thread *thread = profile_thread_at(w->profile, sample->thread);

		add_label(w, labels, LABEL_THREAD, string_of(w, thread->name), 0);
		add_label(w, labels, LABEL_THREAD_ID, 0, thread->tid);
	}
	if (w->states) {
		uint32_t state = profile_state_of(w->profile, sample->stack);

		add_label(w, labels, LABEL_STATE, state ? string_of(w, state) : text_of(w, PROFILE_STATE_RUNNING), 0);
	}
	for (size_t i = 0; i < w->options->nr_labels; i++)
		add_keyed(labels, w->given[i].key, w->given[i].value, 0);
}

/* Sets the values of a sample, in the order of the types. Returns their number. */
static size_t values_of(const struct writer *w, const struct profile_sample *sample, int64_t values[MAX_VALUES])
{
	size_t n = 0;

	if (w->counted) {
		const bool waits = profile_state_of(w->profile, sample->stack) != 0;

		values[n++] = waits ? 0 : times(sample->count, 1);
		values[n++] = waits ? times(sample->count, 1) : 0;
	}
	values[n++] = times(sample->value, 1);
	if (w->measure.period_ns)
		values[n++] = times(sample->value, w->measure.period_ns);
	return n;
}

static void add_label_texts(struct writer *w)
{
	for (int i = 0; i < NR_LABELS; i++)
		w->label_keys[i] = text_of(w, label_keys[i] ?: profile_attribute_column(i - LABEL_ATTRIBUTES));
	for (size_t i = 0; i < w->options->nr_labels; i++) {
		w->given[i].key = text_of(w, w->options->labels[i].key);
		w->given[i].value = text_of(w, w->options->labels[i].value);
	}
}

static int write_samples(struct writer *w)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(w->profile, &count);
	const size_t first = w->options->first_sample, most = w->options->nr_samples ?: count;

	add_label_texts(w);
	for (size_t i = first; i < count && i - first < most; i++) {
		Pprof__Profile part = PPROF__PROFILE__INIT;
		Pprof__Sample sample = PPROF__SAMPLE__INIT, *one = &sample;
		int64_t values[MAX_VALUES];
		struct labels labels;
		ssize_t nr_locations;

		if (samples[i].stack == PROFILE_ROOT)
			continue;
		nr_locations = locations_of(w, samples[i].stack);
		if (nr_locations < 0)
			return (int)nr_locations;
		labels_of(w, &samples[i], &labels);
		sample.location_id = w->stack;
		sample.n_location_id = (size_t)nr_locations;
		sample.value = values;
		sample.n_value = values_of(w, &samples[i], values);
		sample.label = labels.pointers;
		sample.n_label = labels.count;
		part.sample = &one;
		part.n_sample = 1;
		emit(w, &part);
	}
	return 0;
}

static void write_strings(struct writer *w)
{
	for (uint32_t i = 0; i < w->texts.count; i++) {
		Pprof__Profile part = PPROF__PROFILE__INIT;

		part.string_table = intern_item(&w->texts, i);
		part.n_string_table = 1;
		emit(w, &part);
	}
}

int output_pprof(const struct profile *p, const struct output_options *options, FILE *out)
{
	struct writer w = {
		.profile = p,
		.options = options,
		.of_string = calloc(profile_string_count(p), sizeof(*w.of_string)),
		.measure = profile_get_measure(p),
		/* Also without any wait: profiles of different types are not merged. */
		.counted = profile_has_counts(p) || !strcmp(profile_get_measure(p).unit, PROFILE_UNIT_TIME),
		.states = profile_has_states(p),
	};
	FILE *gzip = gzip_open(out);
	int err = profile_groups_make(&w.functions, p, PROFILE_BY_DEFINITION), written = 0;

	intern_init(&w.texts, sizeof(char *), INTERN_TEXT);
	intern_init(&w.mappings, sizeof(struct mapping), sizeof(struct mapping_key));
	intern_init(&w.locations, sizeof(struct location), sizeof(struct location));
	if (!err && (!w.of_string || !gzip))
		err = -ENOMEM;
	err = err ?: find_mappings(&w);
	if (!err) {
		w.out = proto_stream(gzip);
		text_of(&w, ""); /* the first entry of string_table must be "" */
		write_types(&w);
		write_comments(&w);
		write_mappings(&w);
		err = write_samples(&w) ?: write_locations(&w);
		write_functions(&w);
		write_strings(&w);
	}
	if (gzip && fclose(gzip))
		written = errno ? -errno : -EIO;
	if (w.no_memory)
		err = -ENOMEM;
	for (uint32_t i = 0; i < w.texts.count; i++)
		free(*(char **)intern_item(&w.texts, i));
	intern_free(&w.texts);
	profile_groups_free(&w.functions);
	free(w.of_string);
	intern_free(&w.mappings);
	intern_free(&w.locations);
	free(w.stack);
	output_path_free(&w.path);
	return err ?: written;
}
