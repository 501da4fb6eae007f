// SPDX-License-Identifier: Apache-2.0
/* Opens the file that is mapped, and no other one. */
#include "native/mapped.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/procfs.h"

/* A mapping begins at the page in which its segment does. */
#define PAGE_BYTES 4096

static struct procfs_map map_of(const struct native_mapped *mapped)
{
	return (struct procfs_map){
		.start = mapped->start,
		.end = mapped->end,
		.offset = mapped->offset,
		.inode = mapped->file.inode,
		.dev_major = mapped->file.dev_major,
		.dev_minor = mapped->file.dev_minor,
		.executable = true,
		.path = mapped->path,
	};
}

static int note_vdso(const struct procfs_map *map, void *arg)
{
	struct procfs_map *out = arg;

	if (strcmp(map->path, NATIVE_VDSO) != 0)
		return 0;
	*out = *map;
	return 1;
}

/* The kernel's code is the same in all 64-bit processes: it is read in this one's memory. */
static int open_vdso(struct elf_file **out)
{
	const void *own = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct procfs_map map;

	if (!own || procfs_each_map(getpid(), note_vdso, &map) != 1)
		return -ENOENT;
	return elf_file_open_memory(own, map.end - map.start, out);
}

bool native_is_vdso(const struct native_mapped *mapped)
{
	return !mapped->file.inode && !mapped->file.mtime_ns;
}

bool native_is_made(const struct native_mapped *mapped)
{
	return !mapped->file.inode && mapped->file.mtime_ns;
}

void native_identify(const struct stat *st, struct native_identity *out)
{
	out->size = (uint64_t)st->st_size;
	out->mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
}

/* Whether the file at the path is the one that was mapped, the identity tells. */
static int open_path(const struct native_mapped *mapped)
{
	const char *path = mapped->path;
	struct timespec placed;
	struct stat st;
	int root, fd;

	if (*path != '/')
		return -ENOENT;
	root = procfs_open_root(getpid(), &path);
	if (root < 0)
		return root;
	fd = procfs_open_below(root, path, &st, &placed);
	close(root);
	if (fd >= 0 && (st.st_ino != mapped->file.inode || major(st.st_dev) != mapped->file.dev_major ||
			minor(st.st_dev) != mapped->file.dev_minor)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

int native_open_mapped(pid_t pid, const struct native_mapped *mapped, struct elf_file **out)
{
	struct native_identity now = mapped->file;
	struct procfs_map map = map_of(mapped);
	int fd, err = -ESTALE;
	struct stat st;

	*out = NULL;
	if (native_is_vdso(mapped))
		return open_vdso(out);
	if (native_is_made(mapped))
		return -ENOEXEC;
	fd = pid ? procfs_open_map(procfs_task(pid, NULL) ?: pid, &map) : open_path(mapped);
	if (fd < 0)
		return fd;
	if (!fstat(fd, &st))
		native_identify(&st, &now);
	if (!memcmp(&now, &mapped->file, sizeof(now)))
		err = elf_file_open(fd, out);
	close(fd);
	return err;
}

void native_describe_file(struct elf_file *elf, const struct native_table *table, struct native_file *out)
{
	struct elf_segment segments[NATIVE_SEGMENTS_MAX];

	memset(out, 0, sizeof(*out));
	out->build_id_size = (uint32_t)elf_file_build_id(elf, out->build_id, sizeof(out->build_id));
	out->nr_segments = (uint32_t)elf_file_code_segments(elf, segments, NATIVE_SEGMENTS_MAX);
	out->is_interpreter = table->has_loops;
	out->has_flow = table->has_flow;
	out->base = table->base;
	out->nr_rows = table->count;
	for (uint32_t i = 0; i < out->nr_segments; i++) {
		out->segments[i] = (struct native_segment){
			.offset = segments[i].offset,
			.size = segments[i].size,
			.delta = segments[i].offset - segments[i].vaddr + table->base,
		};
	}
}

enum native_fit native_fit_segment(uint64_t offset, uint64_t size, uint64_t mapped)
{
	if ((offset & ~(uint64_t)(PAGE_BYTES - 1)) == mapped)
		return NATIVE_FIT_BEGINS;
	return mapped + PAGE_BYTES > offset && mapped < offset + size ? NATIVE_FIT_IN : NATIVE_FIT_NONE;
}

bool native_find_bias(const struct native_file *file, uint64_t offset, struct pybpf_native_mapping *m)
{
	enum native_fit best = NATIVE_FIT_NONE;

	for (uint32_t i = 0; i < file->nr_segments; i++) {
		const struct native_segment *segment = &file->segments[i];
		enum native_fit fit = native_fit_segment(segment->offset, segment->size, offset);

		if (fit <= best)
			continue;
		best = fit;
		m->bias = m->start - offset + segment->delta;
	}
	return best != NATIVE_FIT_NONE;
}
