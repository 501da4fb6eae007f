// SPDX-License-Identifier: Apache-2.0
/* See min_btf.h. */
#include "kernel/min_btf.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "kernel/kernel_types.h"

struct cut {
	const struct kernel_types *kernel;
	uint32_t *ids;     /* by the kernel's type: its number among the copies, 0 if it is not there */
	uint32_t *offsets; /* by the copy: where it is in types */
	uint32_t count;    /* of the copies, with void */
	uint8_t *types;
	size_t types_size, types_room;
	char *strings;
	size_t strings_size, strings_room;
	char **names;
	size_t nr_names;
	bool initials[UINT8_MAX + 1][UINT8_MAX + 1]; /* the first two bytes of a name */
};

/* The kinds that libbpf looks for by name (bpf_core_find_cands(), tools/lib/bpf/libbpf.c). */
static bool is_candidate(const struct btf_type *type)
{
	return btf_is_composite(type) || btf_is_any_enum(type) || btf_is_typedef(type) || btf_is_int(type);
}

/* A type "name___flavor" of ours is the kernel's "name" (bpf_core_essential_name_len(), tools/lib/bpf/relo_core.c). */
static char *copy_name(const char *name)
{
	const char *flavor = strstr(name, "___");

	return strndup(name, flavor && flavor > name ? (size_t)(flavor - name) : strlen(name));
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns whether there is a name with these first bytes: most of the kernel's names have others. */
static bool *initials_of(struct cut *cut, const char *name)
{
	return &cut->initials[(uint8_t)name[0]][(uint8_t)name[1]];
}

static int collect_names(struct cut *cut, const struct btf *object)
{
	cut->names = calloc(btf__type_cnt(object), sizeof(*cut->names));
	if (!cut->names)
		return -ENOMEM;
	for (uint32_t id = 1; id < btf__type_cnt(object); id++) {
		const struct btf_type *type = btf__type_by_id(object, id);

		if (!is_candidate(type) || !type->name_off)
			continue;
		cut->names[cut->nr_names] = copy_name(btf__name_by_offset(object, type->name_off));
		if (!cut->names[cut->nr_names])
			return -ENOMEM;
		*initials_of(cut, cut->names[cut->nr_names++]) = true;
	}
	qsort(cut->names, cut->nr_names, sizeof(*cut->names), compare_names);
	return 0;
}

static bool is_wanted(struct cut *cut, const struct btf_type *type)
{
	const char *name;

	if (!is_candidate(type) || !type->name_off)
		return false;
	name = kernel_types_string(cut->kernel, type->name_off);
	return *name && *initials_of(cut, name) &&
	       bsearch(&name, cut->names, cut->nr_names, sizeof(*cut->names), compare_names);
}

/* Makes the offset of a string of the kernel's that of a copy. A name that several types have is copied for each. */
static int copy_string(struct cut *cut, uint32_t *offset)
{
	const char *string = kernel_types_string(cut->kernel, *offset);
	size_t size = strlen(string) + 1;

	*offset = 0;
	if (size == 1)
		return 0;
	if (array_reserve(&cut->strings, &cut->strings_room, cut->strings_size + size, 1))
		return -ENOMEM;
	*offset = (uint32_t)cut->strings_size;
	memcpy(cut->strings + cut->strings_size, string, size);
	cut->strings_size += size;
	return 0;
}

static struct btf_type *copy_of(const struct cut *cut, uint32_t copy)
{
	return (struct btf_type *)(cut->types + cut->offsets[copy]);
}

/* Copies a type, once. Returns its number among the copies, or negative errno. Functions are void: none is relocated.
 */
static int take(struct cut *cut, uint32_t id)
{
	const struct btf_type *type = id && id < cut->kernel->count ? kernel_types_get(cut->kernel, id) : NULL;
	size_t size;

	if (!type || cut->ids[id] || btf_is_func_proto(type))
		return type ? (int)cut->ids[id] : 0;
	size = kernel_type_size(type);
	if (array_reserve(&cut->types, &cut->types_room, cut->types_size + size, 1))
		return -ENOMEM;
	memcpy(cut->types + cut->types_size, type, size);
	cut->offsets[cut->count] = (uint32_t)cut->types_size;
	cut->types_size += size;
	cut->ids[id] = cut->count++;
	return (int)cut->ids[id];
}

/* Has a copy refer to a copy of what it referred to. The copies move when another is made. */
static int take_reference(struct cut *cut, uint32_t copy, size_t offset)
{
	uint32_t id;
	int taken;

	memcpy(&id, (uint8_t *)copy_of(cut, copy) + offset, sizeof(id));
	taken = take(cut, id);
	if (taken < 0)
		return taken;
	memcpy((uint8_t *)copy_of(cut, copy) + offset, &taken, sizeof(taken));
	return 0;
}

static int take_members(struct cut *cut, uint32_t copy)
{
	int err = 0;

	for (uint16_t i = 0; i < btf_vlen(copy_of(cut, copy)) && !err; i++) {
		err = copy_string(cut, &btf_members(copy_of(cut, copy))[i].name_off);
		err = err
			      ?: take_reference(cut, copy,
						sizeof(struct btf_type) + i * sizeof(struct btf_member) +
							offsetof(struct btf_member, type));
	}
	return err;
}

static int take_values(struct cut *cut, struct btf_type *copy)
{
	int err = 0;

	for (uint16_t i = 0; i < btf_vlen(copy) && !err; i++)
		err = copy_string(cut, btf_is_enum(copy) ? &btf_enum(copy)[i].name_off : &btf_enum64(copy)[i].name_off);
	return err;
}

/* Completes a copy: its names, and what it refers to. A relocation takes only the size of a pointer: one to void. */
static int complete(struct cut *cut, uint32_t copy)
{
	struct btf_type *type = copy_of(cut, copy);
	int err = copy_string(cut, &type->name_off);

	if (err)
		return err;
	if (btf_is_composite(type))
		return take_members(cut, copy);
	if (btf_is_any_enum(type))
		return take_values(cut, type);
	if (btf_is_array(type)) {
		err = take_reference(cut, copy, sizeof(*type) + offsetof(struct btf_array, type));
		return err ?: take_reference(cut, copy, sizeof(*type) + offsetof(struct btf_array, index_type));
	}
	if (btf_is_typedef(type) || btf_is_mod(type))
		return take_reference(cut, copy, offsetof(struct btf_type, type));
	if (btf_is_ptr(type))
		type->type = 0;
	return 0;
}

static int fill(struct cut *cut)
{
	uint32_t nr_types = cut->kernel->count;
	int err = array_reserve(&cut->strings, &cut->strings_room, 1, 1) ? -ENOMEM : 0;

	cut->ids = calloc(nr_types, sizeof(*cut->ids));
	cut->offsets = calloc(nr_types, sizeof(*cut->offsets));
	if (!cut->ids || !cut->offsets || err)
		return -ENOMEM;
	cut->strings[cut->strings_size++] = '\0';
	cut->count = 1;
	for (uint32_t id = 1; id < nr_types && err >= 0; id++) {
		if (is_wanted(cut, kernel_types_get(cut->kernel, id)))
			err = take(cut, id);
	}
	/* There are more copies meanwhile. */
	for (uint32_t copy = 1; copy < cut->count && err >= 0; copy++)
		err = complete(cut, copy);
	return err < 0 ? err : 0;
}

static int write_all(int fd, const void *bytes, size_t len)
{
	while (len) {
		ssize_t written = write(fd, bytes, len);

		if (written < 0)
			return -errno;
		bytes = (const char *)bytes + written;
		len -= (size_t)written;
	}
	return 0;
}

static int write_out(const struct cut *cut, int fd)
{
	const struct btf_header header = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(header),
		.type_len = (uint32_t)cut->types_size,
		.str_off = (uint32_t)cut->types_size,
		.str_len = (uint32_t)cut->strings_size,
	};
	int err = write_all(fd, &header, sizeof(header));

	err = err ?: write_all(fd, cut->types, cut->types_size);
	return err ?: write_all(fd, cut->strings, cut->strings_size);
}

static void free_cut(struct cut *cut)
{
	for (size_t i = 0; i < cut->nr_names; i++)
		free(cut->names[i]);
	free(cut->names);
	free(cut->ids);
	free(cut->offsets);
	free(cut->types);
	free(cut->strings);
	free(cut);
}

int kernel_write_min_btf(const struct kernel_types *kernel, const struct btf *object, int fd)
{
	struct cut *cut = calloc(1, sizeof(*cut));
	int err;

	if (!cut)
		return -ENOMEM;
	cut->kernel = kernel;
	err = collect_names(cut, object);
	err = err ?: fill(cut);
	err = err ?: write_out(cut, fd);
	free_cut(cut);
	return err;
}
