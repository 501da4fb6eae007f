// SPDX-License-Identifier: Apache-2.0
#include "output/formats/gecko_files.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "profile/mappings.h"

/* resourceTypes.library of Firefox Profiler's src/profile-logic/data-structures. */
#define RESOURCE_LIBRARY 1

void gecko_files_init(struct gecko_files *f, const struct profile *p)
{
	f->p = p;
	intern_init(&f->sources, sizeof(uint32_t), sizeof(uint32_t));
	intern_init(&f->libraries, sizeof(uint32_t), sizeof(uint32_t));
}

void gecko_files_free(struct gecko_files *f)
{
	intern_free(&f->sources);
	intern_free(&f->libraries);
}

static int add(struct intern *to, uint32_t file)
{
	return file && intern_add(to, &file, &(bool){false}) == INTERN_NONE ? -ENOMEM : 0;
}

int gecko_files_add(struct gecko_files *f, uint32_t library, uint32_t source)
{
	int err = add(&f->libraries, library);

	return err ? err : add(&f->sources, source);
}

void gecko_files_write_resource(const struct gecko_files *f, uint32_t library, struct json *j)
{
	/* A library's resource has its index. */
	json_int(j, NULL, library ? (int64_t)intern_find(&f->libraries, &library) : -1);
}

void gecko_files_write_source(const struct gecko_files *f, uint32_t library, uint32_t file, struct json *j)
{
	if (!file || file == library)
		json_null(j, NULL);
	else
		json_uint(j, NULL, intern_find(&f->sources, &file));
}

/*
 * Most bytes by which linkers move segments of a library against their place in the file. A program that is linked to a
 * fixed address begins further up, and the profiler counts addresses from there.
 */
#define MOVED_MAX ((uint64_t)1 << 20)

int64_t gecko_files_address(const struct gecko_files *f, const struct profile_frame *frame)
{
	const struct profile_mapping *mapping;

	if (frame->kind != PROFILE_NATIVE || !(frame->marks & PROFILE_CODE_NAMELESS) || !frame->address ||
	    !frame->mapping || frame->address > INT64_MAX)
		return -1;
	mapping = profile_mapping_at(f->p, frame->mapping - 1);
	if (!mapping->build_id || mapping->start - mapping->offset > MOVED_MAX)
		return -1;
	return (int64_t)frame->address;
}

/* Returns the build-id of a library in hexadecimal digits, "" without one. */
static const char *build_id_of(const struct gecko_files *f, uint32_t library)
{
	for (uint32_t i = 0; i < profile_mapping_count(f->p); i++) {
		const struct profile_mapping *mapping = profile_mapping_at(f->p, i);

		if (mapping->file == library && mapping->build_id)
			return profile_string(f->p, mapping->build_id);
	}
	return "";
}

/* Digits of a GUID, of which an identity of Breakpad has those of the build-id's first bytes, and an age. */
#define GUID_DIGITS 32

/*
 * Writes the identity by which symbol servers know a library: its build-id as the fields of a GUID, which are numbers
 * of 4, 2 and 2 bytes, the lowest first, and single bytes; and an age of 0.
 */
static void write_breakpad_id(const char *build_id, struct json *j)
{
	static const unsigned char order[GUID_DIGITS / 2] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	size_t length = strlen(build_id);
	char id[GUID_DIGITS + 2] = "";

	for (size_t i = 0; length && i < GUID_DIGITS; i++) {
		size_t digit = 2 * (size_t)order[i / 2] + i % 2;

		id[i] = digit < length ? (char)toupper((unsigned char)build_id[digit]) : '0';
	}
	if (length)
		id[GUID_DIGITS] = '0';
	json_string(j, "breakpadId", id);
}

static void write_code_id(const char *build_id, struct json *j)
{
	if (*build_id)
		json_string(j, "codeId", build_id);
	else
		json_null(j, "codeId");
}

void gecko_files_write_libs(const struct gecko_files *f, struct json *j)
{
	static const char *const named[] = {"name", "path", "debugName", "debugPath"};
	const uint32_t *files = f->libraries.items;

	json_begin_array(j, "libs");
	for (uint32_t i = 0; i < f->libraries.count; i++) {
		json_begin_object(j, NULL);
		json_string(j, "arch", profile_find_fact(f->p, PROFILE_FACT_ARCH) ?: "");
		for (size_t k = 0; k < sizeof(named) / sizeof(*named); k++)
			json_string(j, named[k], profile_string(f->p, files[i]));
		write_breakpad_id(build_id_of(f, files[i]), j);
		write_code_id(build_id_of(f, files[i]), j);
		json_end_object(j);
	}
	json_end_array(j);
}

/* Writes what each row of a table has in one column. */
static void write_column(const char *name, const struct intern *rows, void (*write)(uint32_t row, struct json *j),
			 struct json *j)
{
	json_begin_array(j, name);
	for (uint32_t i = 0; i < rows->count; i++)
		write(i, j);
	json_end_array(j);
}

static void write_index(uint32_t row, struct json *j)
{
	json_uint(j, NULL, row);
}

static void write_null(uint32_t row, struct json *j)
{
	(void)row;
	json_null(j, NULL);
}

static void write_type(uint32_t row, struct json *j)
{
	(void)row;
	json_int(j, NULL, RESOURCE_LIBRARY);
}

static void write_names(const char *name, const struct intern *rows, struct json *j)
{
	const uint32_t *files = rows->items;

	json_begin_array(j, name);
	for (uint32_t i = 0; i < rows->count; i++)
		json_uint(j, NULL, files[i]);
	json_end_array(j);
}

void gecko_files_write_tables(const struct gecko_files *f, struct json *j)
{
	json_begin_object(j, "resourceTable");
	json_uint(j, "length", f->libraries.count);
	write_column("lib", &f->libraries, write_index, j);
	write_names("name", &f->libraries, j);
	write_column("host", &f->libraries, write_null, j);
	write_column("type", &f->libraries, write_type, j);
	json_end_object(j);
	json_begin_object(j, "sources");
	json_uint(j, "length", f->sources.count);
	write_column("uuid", &f->sources, write_null, j);
	write_names("filename", &f->sources, j);
	json_end_object(j);
}
