// SPDX-License-Identifier: Apache-2.0
#include "output/formats/gecko_files.h"

#include <errno.h>

#include "base/json.h"

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
		json_string(j, "breakpadId", ""); /* its symbols are in the profile */
		json_null(j, "codeId");
		json_end_object(j);
	}
	json_end_array(j);
}

static void write_resources(const struct gecko_files *f, struct json *j)
{
	const uint32_t *files = f->libraries.items, count = f->libraries.count;

	json_begin_object(j, "resourceTable");
	json_uint(j, "length", count);
	json_begin_array(j, "lib");
	for (uint32_t i = 0; i < count; i++)
		json_uint(j, NULL, i);
	json_end_array(j);
	json_begin_array(j, "name");
	for (uint32_t i = 0; i < count; i++)
		json_uint(j, NULL, files[i]);
	json_end_array(j);
	json_begin_array(j, "host");
	for (uint32_t i = 0; i < count; i++)
		json_null(j, NULL);
	json_end_array(j);
	json_begin_array(j, "type");
	for (uint32_t i = 0; i < count; i++)
		json_int(j, NULL, RESOURCE_LIBRARY);
	json_end_array(j);
	json_end_object(j);
}

void gecko_files_write_tables(const struct gecko_files *f, struct json *j)
{
	const uint32_t *files = f->sources.items, count = f->sources.count;

	write_resources(f, j);
	json_begin_object(j, "sources");
	json_uint(j, "length", count);
	json_begin_array(j, "uuid");
	for (uint32_t i = 0; i < count; i++)
		json_null(j, NULL);
	json_end_array(j);
	json_begin_array(j, "filename");
	for (uint32_t i = 0; i < count; i++)
		json_uint(j, NULL, files[i]);
	json_end_array(j);
	json_end_object(j);
}
