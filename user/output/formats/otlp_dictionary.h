// SPDX-License-Identifier: Apache-2.0
/*
 * The dictionary of a request of OpenTelemetry's protocol: the tables that its profiles share. What a sample needs is
 * added to them at its first use, packed at once, and found by its index from then on.
 */
#ifndef OUTPUT_OTLP_DICTIONARY_H
#define OUTPUT_OTLP_DICTIONARY_H

#include "base/intern.h"
#include "base/proto_bytes.h"
#include "output/formats/path.h"
#include "profile/groups.h"
#include "profile/profile.h"

struct otlp_dictionary {
	const struct profile *profile;
	struct profile_groups functions;
	struct proto_bytes bytes;        /* the dictionary, packed */
	struct intern texts, attributes; /* char *, owned; struct attribute of otlp_dictionary.c */
	/* Indices in the tables, by the profile's own; 0: not added yet. */
	uint32_t *of_string, *of_function, *of_frame, *of_stack, *mapping_of_file;
	uint32_t mappings, locations, function_count, stacks; /* elements of the tables */
	struct output_path path;
	int32_t *indices; /* of one stack's locations */
	size_t indices_room;
	bool no_memory; /* memory ran out: the dictionary is not valid */
};

/* Returns 0 or -ENOMEM; the dictionary is to be freed in both cases. */
int otlp_dictionary_init(struct otlp_dictionary *d, const struct profile *p);
void otlp_dictionary_free(struct otlp_dictionary *d);
/* Empties all tables but for their elements 0: a new request begins. */
void otlp_dictionary_begin(struct otlp_dictionary *d);

/* Return the index of what they add, or find added. Without memory they return 0 and set no_memory. */
int32_t otlp_dictionary_text(struct otlp_dictionary *d, const char *text);
int32_t otlp_dictionary_stack(struct otlp_dictionary *d, uint32_t stack);
/* The value of an attribute is a text, a string of the profile, or a number. */
int32_t otlp_dictionary_text_attribute(struct otlp_dictionary *d, const char *key, const char *value);
int32_t otlp_dictionary_string_attribute(struct otlp_dictionary *d, const char *key, uint32_t string);
int32_t otlp_dictionary_number_attribute(struct otlp_dictionary *d, const char *key, int64_t value);

/* Returns the most bytes by which the dictionary grows if the stack is added. */
size_t otlp_dictionary_growth(struct otlp_dictionary *d, uint32_t stack);

#endif
