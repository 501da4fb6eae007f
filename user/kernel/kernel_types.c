// SPDX-License-Identifier: Apache-2.0
/* See kernel_types.h. */
#include "kernel/kernel_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

/* Since Linux 6.16 (a539e2a6d51d) the file can be mapped; before, it is read, a page at a time. */
static const void *map_file(int fd, size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	size_t have = 0;
	ssize_t n = 1;

	if (bytes != MAP_FAILED)
		return bytes;
	/* cppcheck-suppress invalidFunctionArg; -1 is what MAP_ANONYMOUS goes with. */
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bytes == MAP_FAILED)
		return NULL;
	while (have < size && n > 0) {
		n = read(fd, (char *)bytes + have, size - have);
		have += n > 0 ? (size_t)n : 0;
	}
	if (have == size)
		return bytes;
	munmap(bytes, size);
	errno = EIO;
	return NULL;
}

int kernel_types_open(struct kernel_types *types)
{
	int fd = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC), err;
	const void *bytes = NULL;
	struct stat file;

	*types = (struct kernel_types){0};
	if (fd >= 0 && fstat(fd, &file) == 0)
		bytes = map_file(fd, (size_t)file.st_size);
	err = bytes ? kernel_types_take(types, bytes, (size_t)file.st_size) : -errno;
	if (fd >= 0)
		close(fd);
	if (bytes && err)
		munmap((void *)bytes, (size_t)file.st_size);
	else
		types->mapped = bytes;
	return err;
}

size_t kernel_type_size(const struct btf_type *type)
{
	/* include/uapi/linux/btf.h: what follows the type, once, and for each member, value or parameter. */
	static const struct {
		bool known;
		uint8_t once, each;
	} kinds[] = {
		[BTF_KIND_INT] = {true, sizeof(uint32_t), 0},
		[BTF_KIND_PTR] = {true, 0, 0},
		[BTF_KIND_ARRAY] = {true, sizeof(struct btf_array), 0},
		[BTF_KIND_STRUCT] = {true, 0, sizeof(struct btf_member)},
		[BTF_KIND_UNION] = {true, 0, sizeof(struct btf_member)},
		[BTF_KIND_ENUM] = {true, 0, sizeof(struct btf_enum)},
		[BTF_KIND_FWD] = {true, 0, 0},
		[BTF_KIND_TYPEDEF] = {true, 0, 0},
		[BTF_KIND_VOLATILE] = {true, 0, 0},
		[BTF_KIND_CONST] = {true, 0, 0},
		[BTF_KIND_RESTRICT] = {true, 0, 0},
		[BTF_KIND_FUNC] = {true, 0, 0},
		[BTF_KIND_FUNC_PROTO] = {true, 0, sizeof(struct btf_param)},
		[BTF_KIND_VAR] = {true, sizeof(struct btf_var), 0},
		[BTF_KIND_DATASEC] = {true, 0, sizeof(struct btf_var_secinfo)},
		[BTF_KIND_FLOAT] = {true, 0, 0},
		[BTF_KIND_DECL_TAG] = {true, sizeof(struct btf_decl_tag), 0},
		[BTF_KIND_TYPE_TAG] = {true, 0, 0},
		[BTF_KIND_ENUM64] = {true, 0, sizeof(struct btf_enum64)},
	};
	uint32_t kind = BTF_INFO_KIND(type->info);

	if (kind >= sizeof(kinds) / sizeof(*kinds) || !kinds[kind].known)
		return 0;
	return sizeof(*type) + kinds[kind].once + (size_t)kinds[kind].each * BTF_INFO_VLEN(type->info);
}

/* Notes where each type begins. */
static int index_types(struct kernel_types *types, size_t size)
{
	uint32_t room = (uint32_t)(size / sizeof(struct btf_type)) + 1;
	size_t at = 0;

	types->offsets = malloc(room * sizeof(*types->offsets));
	if (!types->offsets)
		return -ENOMEM;
	for (types->count = 1; at < size; types->count++) {
		size_t bytes = size - at < sizeof(struct btf_type)
				       ? 0
				       : kernel_type_size((const struct btf_type *)(types->types + at));

		if (!bytes || bytes > size - at)
			return -EINVAL;
		types->offsets[types->count] = (uint32_t)at;
		at += bytes;
	}
	return 0;
}

int kernel_types_take(struct kernel_types *types, const void *bytes, size_t size)
{
	const struct btf_header *header = bytes;
	size_t left = size;
	int err;

	*types = (struct kernel_types){.size = size};
	if (size < sizeof(*header) || header->magic != BTF_MAGIC || header->version != BTF_VERSION ||
	    header->hdr_len > size)
		return -EINVAL;
	left -= header->hdr_len;
	if (header->type_off > left || header->type_len > left - header->type_off || header->str_off > left ||
	    header->str_len > left - header->str_off || !header->str_len)
		return -EINVAL;
	types->types = (const uint8_t *)bytes + header->hdr_len + header->type_off;
	types->strings = (const char *)bytes + header->hdr_len + header->str_off;
	types->strings_size = header->str_len;
	err = types->strings[types->strings_size - 1] ? -EINVAL : index_types(types, header->type_len);
	if (err)
		kernel_types_close(types);
	return err;
}

void kernel_types_close(struct kernel_types *types)
{
	free(types->offsets);
	if (types->mapped)
		munmap((void *)types->mapped, types->size);
	*types = (struct kernel_types){0};
}

const struct btf_type *kernel_types_get(const struct kernel_types *types, uint32_t id)
{
	return (const struct btf_type *)(types->types + types->offsets[id]);
}

const char *kernel_types_string(const struct kernel_types *types, uint32_t offset)
{
	return offset < types->strings_size ? types->strings + offset : "";
}

uint32_t kernel_types_find(const struct kernel_types *types, uint32_t kind, const char *name)
{
	for (uint32_t id = 1; id < types->count; id++) {
		const struct btf_type *type = kernel_types_get(types, id);

		if (BTF_INFO_KIND(type->info) == kind && strcmp(kernel_types_string(types, type->name_off), name) == 0)
			return id;
	}
	return 0;
}
