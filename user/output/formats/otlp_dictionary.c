// SPDX-License-Identifier: Apache-2.0
/* Fills the dictionary of a request of OpenTelemetry's protocol. */
#include "output/formats/otlp_dictionary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "output/formats/otlp.pb-c.h"

/* Which language, or which part of the system, a frame is of; remarks in place of frames have no type. */
#define FRAME_TYPE "profile.frame.type"

/* Bytes that a new location, with its function, its mapping and its place in a stack, takes at most without its texts;
 * and those that a text takes beside its own. */
#define LOCATION_BYTES_MAX 128
#define TEXT_BYTES_MAX     8
/* text_printable() makes of a byte at most "\xNN". */
#define PRINTABLE_MAX 4

struct attribute {
	uint32_t key, text; /* indices of texts; text 0: the value is the number */
	int64_t number;
};

static void emit(struct otlp_dictionary *d, const Otlp__Dictionary *part)
{
	otlp__dictionary__pack_to_buffer(part, &d->bytes.base);
}

/* Takes the text over: it is of the table from then on, or freed. */
static int32_t add_text(struct otlp_dictionary *d, char *text)
{
	bool fresh = false;
	uint32_t i = text ? intern_add(&d->texts, &text, &fresh) : INTERN_NONE;

	if (fresh) {
		Otlp__Dictionary part = OTLP__DICTIONARY__INIT;

		part.string_table = &text;
		part.n_string_table = 1;
		emit(d, &part);
	} else {
		free(text);
	}
	if (i != INTERN_NONE)
		return (int32_t)i;
	d->no_memory = true;
	return 0;
}

int32_t otlp_dictionary_text(struct otlp_dictionary *d, const char *text)
{
	return add_text(d, text_printable(text));
}

static int32_t string_of(struct otlp_dictionary *d, uint32_t string)
{
	if (string && !d->of_string[string])
		d->of_string[string] = (uint32_t)otlp_dictionary_text(d, profile_string(d->profile, string));
	return (int32_t)d->of_string[string];
}

static int32_t add_attribute(struct otlp_dictionary *d, const char *key, int32_t text, int64_t number)
{
	struct attribute attribute = {(uint32_t)otlp_dictionary_text(d, key), (uint32_t)text, number};
	bool fresh = false;
	uint32_t i = intern_add(&d->attributes, &attribute, &fresh);

	if (i == INTERN_NONE) {
		d->no_memory = true;
		return 0;
	}
	if (fresh) {
		Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
		Otlp__Attribute added = OTLP__ATTRIBUTE__INIT, *one = &added;
		Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;

		value.value_case = text ? OTLP__ANY_VALUE__VALUE_STRING_VALUE : OTLP__ANY_VALUE__VALUE_INT_VALUE;
		if (text)
			value.string_value = *(char **)intern_item(&d->texts, (uint32_t)text);
		else
			value.int_value = number;
		added.key_strindex = (int32_t)attribute.key;
		added.value = &value;
		part.attribute_table = &one;
		part.n_attribute_table = 1;
		emit(d, &part);
	}
	return (int32_t)i;
}

int32_t otlp_dictionary_text_attribute(struct otlp_dictionary *d, const char *key, const char *value)
{
	return add_attribute(d, key, otlp_dictionary_text(d, value), 0);
}

int32_t otlp_dictionary_string_attribute(struct otlp_dictionary *d, const char *key, uint32_t string)
{
	return add_attribute(d, key, string_of(d, string), 0);
}

int32_t otlp_dictionary_number_attribute(struct otlp_dictionary *d, const char *key, int64_t value)
{
	return add_attribute(d, key, 0, value);
}

static int32_t mapping_of(struct otlp_dictionary *d, const struct profile_frame *frame)
{
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	Otlp__Mapping mapping = OTLP__MAPPING__INIT, *one = &mapping;

	if (frame->kind != PROFILE_NATIVE || !frame->file)
		return 0;
	if (!d->mapping_of_file[frame->file]) {
		mapping.filename_strindex = string_of(d, frame->file);
		part.mapping_table = &one;
		part.n_mapping_table = 1;
		emit(d, &part);
		d->mapping_of_file[frame->file] = d->mappings++;
	}
	return (int32_t)d->mapping_of_file[frame->file];
}

static int32_t function_of(struct otlp_dictionary *d, uint32_t frame)
{
	const uint32_t i = d->functions.of_frame[frame];
	const struct profile_group *group = profile_group_at(&d->functions, i);
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	Otlp__Function function = OTLP__FUNCTION__INIT, *one = &function;

	if (!d->of_function[i]) {
		function.name_strindex = string_of(d, group->name);
		function.filename_strindex = string_of(d, group->file);
		function.start_line = group->line == PROFILE_NO_LINE ? 0 : group->line;
		part.function_table = &one;
		part.n_function_table = 1;
		emit(d, &part);
		d->of_function[i] = d->function_count++;
	}
	return (int32_t)d->of_function[i];
}

/* Returns what the semantic conventions call the frame's kind, or NULL. */
static const char *type_of(const struct profile_frame *frame)
{
	switch ((enum profile_frame_kind)frame->kind) {
	case PROFILE_PYTHON:
		return "cpython";
	case PROFILE_NATIVE:
		return "native";
	case PROFILE_KERNEL:
		return "kernel";
	default:
		return NULL;
	}
}

static int32_t location_of(struct otlp_dictionary *d, uint32_t i)
{
	const struct profile_frame *frame = profile_frame_at(d->profile, i);
	const char *type = type_of(frame);
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	Otlp__Location location = OTLP__LOCATION__INIT, *one = &location;
	Otlp__Line line = OTLP__LINE__INIT, *lines = &line;
	int32_t attribute;

	if (d->of_frame[i])
		return (int32_t)d->of_frame[i];
	line.function_index = function_of(d, i);
	line.line = frame->line == PROFILE_NO_LINE ? 0 : frame->line;
	line.column = frame->end_line ? frame->column + 1 : 0;
	location.mapping_index = mapping_of(d, frame);
	location.lines = &lines;
	location.n_lines = 1;
	if (type) {
		attribute = otlp_dictionary_text_attribute(d, FRAME_TYPE, type);
		location.attribute_indices = &attribute;
		location.n_attribute_indices = 1;
	}
	part.location_table = &one;
	part.n_location_table = 1;
	emit(d, &part);
	d->of_frame[i] = d->locations++;
	return (int32_t)d->of_frame[i];
}

/* Reads the frames of a stack, root first, and makes room for as many locations. */
static int read_path(struct otlp_dictionary *d, uint32_t stack)
{
	int err = output_path_read(d->profile, stack, &d->path);

	err = err ?: array_reserve(&d->indices, &d->indices_room, d->path.count, sizeof(*d->indices));
	d->no_memory |= err != 0;
	return err;
}

int32_t otlp_dictionary_stack(struct otlp_dictionary *d, uint32_t stack)
{
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	Otlp__Stack added = OTLP__STACK__INIT, *one = &added;

	if (d->of_stack[stack] || read_path(d, stack))
		return (int32_t)d->of_stack[stack];
	for (size_t i = 0; i < d->path.count; i++)
		d->indices[i] = location_of(d, d->path.frames[d->path.count - 1 - i]);
	added.location_indices = d->indices;
	added.n_location_indices = d->path.count;
	part.stack_table = &one;
	part.n_stack_table = 1;
	emit(d, &part);
	d->of_stack[stack] = d->stacks++;
	return (int32_t)d->of_stack[stack];
}

static size_t growth_by_string(const struct otlp_dictionary *d, uint32_t string)
{
	return d->of_string[string] ? 0 : TEXT_BYTES_MAX + PRINTABLE_MAX * strlen(profile_string(d->profile, string));
}

size_t otlp_dictionary_growth(struct otlp_dictionary *d, uint32_t stack)
{
	size_t bytes = 0;

	if (d->of_stack[stack] || read_path(d, stack))
		return 0;
	for (size_t i = 0; i < d->path.count; i++) {
		const struct profile_frame *frame = profile_frame_at(d->profile, d->path.frames[i]);

		bytes += TEXT_BYTES_MAX;
		if (!d->of_frame[d->path.frames[i]])
			bytes += LOCATION_BYTES_MAX + growth_by_string(d, frame->name) +
				 growth_by_string(d, frame->file);
	}
	return bytes + TEXT_BYTES_MAX;
}

static void free_texts(struct otlp_dictionary *d)
{
	for (uint32_t i = 0; i < d->texts.count; i++)
		free(*(char **)intern_item(&d->texts, i));
	intern_free(&d->texts);
	intern_free(&d->attributes);
}

static void clear(uint32_t *array, uint32_t count)
{
	memset(array, 0, count * sizeof(*array));
}

void otlp_dictionary_begin(struct otlp_dictionary *d)
{
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	Otlp__Mapping mapping = OTLP__MAPPING__INIT, *mappings = &mapping;
	Otlp__Location location = OTLP__LOCATION__INIT, *locations = &location;
	Otlp__Function function = OTLP__FUNCTION__INIT, *functions = &function;
	Otlp__Link link = OTLP__LINK__INIT, *links = &link;
	Otlp__Attribute attribute = OTLP__ATTRIBUTE__INIT, *attributes = &attribute;
	Otlp__Stack stack = OTLP__STACK__INIT, *stacks = &stack;

	free_texts(d);
	intern_init(&d->texts, sizeof(char *), INTERN_TEXT);
	intern_init(&d->attributes, sizeof(struct attribute), sizeof(struct attribute));
	clear(d->of_string, profile_string_count(d->profile));
	clear(d->mapping_of_file, profile_string_count(d->profile));
	clear(d->of_function, d->functions.table.count);
	clear(d->of_frame, profile_frame_count(d->profile));
	clear(d->of_stack, profile_stack_count(d->profile));
	d->mappings = d->locations = d->function_count = d->stacks = 1;
	proto_bytes_clear(&d->bytes);
	part.mapping_table = &mappings;
	part.location_table = &locations;
	part.function_table = &functions;
	part.link_table = &links;
	part.attribute_table = &attributes;
	part.stack_table = &stacks;
	part.n_mapping_table = part.n_location_table = part.n_function_table = part.n_link_table = 1;
	part.n_attribute_table = part.n_stack_table = 1;
	emit(d, &part);
	otlp_dictionary_text(d, "");
	if (intern_add(&d->attributes, &(struct attribute){0}, &(bool){false}) == INTERN_NONE)
		d->no_memory = true;
}

int otlp_dictionary_init(struct otlp_dictionary *d, const struct profile *p)
{
	const size_t size = sizeof(uint32_t);
	int err;

	*d = (struct otlp_dictionary){
		.profile = p,
		.bytes = proto_bytes(),
		.of_string = calloc(profile_string_count(p), size),
		.mapping_of_file = calloc(profile_string_count(p), size),
		.of_frame = calloc(profile_frame_count(p) + 1, size),
		.of_stack = calloc(profile_stack_count(p), size),
	};
	intern_init(&d->texts, sizeof(char *), INTERN_TEXT);
	intern_init(&d->attributes, sizeof(struct attribute), sizeof(struct attribute));
	err = profile_groups_make(&d->functions, p, PROFILE_BY_DEFINITION);
	d->of_function = calloc(d->functions.table.count + 1, size);
	if (!d->of_string || !d->mapping_of_file || !d->of_frame || !d->of_stack || !d->of_function)
		return -ENOMEM;
	return err;
}

void otlp_dictionary_free(struct otlp_dictionary *d)
{
	free_texts(d);
	proto_bytes_free(&d->bytes);
	profile_groups_free(&d->functions);
	output_path_free(&d->path);
	free(d->of_string);
	free(d->mapping_of_file);
	free(d->of_function);
	free(d->of_frame);
	free(d->of_stack);
	free(d->indices);
}
