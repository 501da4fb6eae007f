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

/* libbpf's BTF is written by its functions alone; references between its types have to be changed in place. */
static struct btf_type *writable(const struct btf *btf, uint32_t id)
{
	return (struct btf_type *)btf__type_by_id(btf, id);
}

struct cut {
	const struct btf *kernel;
	struct btf *out;
	uint32_t *ids;     /* by the kernel's type: its number in out, 0 if it is not there */
	uint32_t *origins; /* by the type of out: the kernel's */
	char **names;
	size_t nr_names;
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
		if (!cut->names[cut->nr_names++])
			return -ENOMEM;
	}
	qsort(cut->names, cut->nr_names, sizeof(*cut->names), compare_names);
	return 0;
}

static bool is_wanted(const struct cut *cut, const struct btf_type *type)
{
	const char *name;

	if (!is_candidate(type) || !type->name_off)
		return false;
	name = btf__name_by_offset(cut->kernel, type->name_off);
	return bsearch(&name, cut->names, cut->nr_names, sizeof(*cut->names), compare_names);
}

/* Copies a type, once. Returns its number in out, or negative errno. Functions are void: none is relocated. */
static int take(struct cut *cut, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(cut->kernel, id);
	int copy;

	if (cut->ids[id] || btf_is_void(type) || btf_is_func_proto(type))
		return (int)cut->ids[id];
	copy = btf__add_type(cut->out, cut->kernel, type);
	if (copy > 0) {
		cut->ids[id] = (uint32_t)copy;
		cut->origins[copy] = id;
	}
	return copy;
}

static int take_members(struct cut *cut, uint32_t copy, const struct btf_type *origin)
{
	for (uint16_t i = 0; i < btf_vlen(origin); i++) {
		int id = take(cut, btf_members(origin)[i].type);

		if (id < 0)
			return id;
		btf_members(writable(cut->out, copy))[i].type = (uint32_t)id;
	}
	return 0;
}

static int take_array(struct cut *cut, uint32_t copy, const struct btf_type *origin)
{
	int element = take(cut, btf_array(origin)->type), index = take(cut, btf_array(origin)->index_type);

	if (element < 0 || index < 0)
		return element < 0 ? element : index;
	btf_array(writable(cut->out, copy))->type = (uint32_t)element;
	btf_array(writable(cut->out, copy))->index_type = (uint32_t)index;
	return 0;
}

/* Lets a copy refer to copies. A relocation takes only the size of a pointer, which becomes one to void. */
static int take_references(struct cut *cut, uint32_t copy)
{
	const struct btf_type *origin = btf__type_by_id(cut->kernel, cut->origins[copy]);
	int id = 0;

	if (btf_is_composite(origin))
		return take_members(cut, copy, origin);
	if (btf_is_array(origin))
		return take_array(cut, copy, origin);
	if (btf_is_typedef(origin) || btf_is_mod(origin))
		id = take(cut, origin->type);
	else if (!btf_is_ptr(origin))
		return 0;
	if (id < 0)
		return id;
	writable(cut->out, copy)->type = (uint32_t)id;
	return 0;
}

static int fill(struct cut *cut)
{
	uint32_t nr_types = btf__type_cnt(cut->kernel);
	int err = 0;

	cut->ids = calloc(nr_types, sizeof(*cut->ids));
	cut->origins = calloc(nr_types, sizeof(*cut->origins));
	if (!cut->ids || !cut->origins)
		return -ENOMEM;
	for (uint32_t id = 1; id < nr_types && err >= 0; id++) {
		if (is_wanted(cut, btf__type_by_id(cut->kernel, id)))
			err = take(cut, id);
	}
	/* The copies grow meanwhile. */
	for (uint32_t copy = 1; copy < btf__type_cnt(cut->out) && err >= 0; copy++)
		err = take_references(cut, copy);
	return err < 0 ? err : 0;
}

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t written = write(fd, bytes, len);

		if (written < 0)
			return -errno;
		bytes += written;
		len -= (size_t)written;
	}
	return 0;
}

static int write_out(const struct cut *cut, int fd)
{
	uint32_t size;
	const void *bytes = btf__raw_data(cut->out, &size);

	return bytes ? write_all(fd, bytes, size) : -ENOMEM;
}

static void free_names(struct cut *cut)
{
	for (size_t i = 0; i < cut->nr_names; i++)
		free(cut->names[i]);
	free(cut->names);
}

int kernel_write_min_btf(const struct btf *kernel, const struct btf *object, int fd)
{
	struct cut cut = {.kernel = kernel, .out = btf__new_empty()};
	int err = cut.out ? collect_names(&cut, object) : -ENOMEM;

	err = err ?: fill(&cut);
	err = err ?: write_out(&cut, fd);
	free_names(&cut);
	free(cut.ids);
	free(cut.origins);
	btf__free(cut.out);
	return err;
}
