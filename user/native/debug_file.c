// SPDX-License-Identifier: Apache-2.0
/* Debuggers look in the same places: GDB's manual, "Debugging Information in Separate Files". */
#include "native/debug_file.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/procfs.h"
#include "native/debug_data.h"

#define FOLDER "/usr/lib/debug"

/* Any tool's: SHA-1 has 20 bytes. */
#define ID_MAX 64
/* Most bytes of a file whose sum is made, in a quarter of a second; those of files without a build-id are small. */
#define SUMMED_MAX ((off_t)256 << 20)

/* .gnu_debuglink: a name, padded to 4 bytes, and the CRC32 of the whole file of that name. */
struct link {
	char name[NAME_MAX + 1];
	uint32_t crc;
};

/* What tells a debug file from that of another file. */
struct wanted {
	uint8_t id[ID_MAX];
	size_t id_size; /* 0: the file has none */
	bool has_link;
	struct link link;
	bool is_shared; /* it has what other files for debuggers have in common, and no symbols */
};

/* Returns whether the file has a link to one in a folder that is to be searched. */
static bool read_link(struct elf_file *elf, struct link *out)
{
	char bytes[sizeof(out->name) + sizeof(out->crc)] = "";
	struct elf_section section;
	size_t length, at;
	ssize_t n;

	if (elf_file_section(elf, ".gnu_debuglink", &section))
		return false;
	n = elf_file_read_section(elf, &section, 0, bytes, sizeof(bytes));
	length = n < 0 ? 0 : strnlen(bytes, (size_t)n);
	at = (length + 4) & ~(size_t)3;
	if (!length || length > NAME_MAX || at + sizeof(out->crc) > (size_t)n || memchr(bytes, '/', length))
		return false;
	memcpy(out->name, bytes, length + 1);
	memcpy(&out->crc, bytes + at, sizeof(out->crc));
	return true;
}

static int sum(int fd, uint32_t *crc)
{
	unsigned char bytes[64 * 1024];
	uLong made = crc32(0, NULL, 0);
	off_t done = 0;
	ssize_t n;

	while ((n = pread(fd, bytes, sizeof(bytes), done)) > 0 && done < SUMMED_MAX) {
		made = crc32(made, bytes, (uInt)n);
		done += n;
	}
	*crc = (uint32_t)made;
	return n ? -EFBIG : 0;
}

/* A build-id is made of the whole file: where there is one, the sum would say no more. */
static bool is_wanted(int fd, struct elf_file *elf, const struct wanted *wanted)
{
	uint8_t id[ID_MAX];
	uint32_t crc;

	if (wanted->id_size)
		return elf_file_build_id(elf, id, sizeof(id)) == wanted->id_size &&
		       memcmp(id, wanted->id, wanted->id_size) == 0;
	return wanted->has_link && !sum(fd, &crc) && crc == wanted->link.crc;
}

static int open_below(int root, const char *path, const struct wanted *wanted, struct elf_file **out)
{
	struct timespec placed;
	struct stat st;
	int fd = procfs_open_below(root, path, &st, &placed);
	int err = fd < 0 ? fd : 0;

	*out = NULL;
	/* Files of the kernel, whose first read may wait for something, have no size. */
	if (!err && st.st_size < (off_t)sizeof(Elf64_Ehdr))
		err = -ENOEXEC;
	if (!err)
		err = elf_file_open(fd, out);
	if (!err && ((!wanted->is_shared && !elf_file_has_symtab(*out)) || !is_wanted(fd, *out, wanted))) {
		elf_file_free(*out);
		*out = NULL;
		err = -ENOENT;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

static int open_by_id(int root, const struct wanted *wanted, struct elf_file **out)
{
	static const char digits[] = "0123456789abcdef";
	char path[sizeof(FOLDER "/.build-id//.debug") + 2 * (size_t)ID_MAX];
	char *end = stpcpy(path, FOLDER "/.build-id/");

	if (wanted->id_size < 2)
		return -ENOENT;
	for (size_t i = 0; i < wanted->id_size; i++) {
		if (i == 1)
			*end++ = '/';
		*end++ = digits[wanted->id[i] >> 4];
		*end++ = digits[wanted->id[i] & 0xf];
	}
	memcpy(end, ".debug", sizeof(".debug"));
	return open_below(root, path, wanted, out);
}

/* file: the path of the mapped file. */
static int open_by_link(int root, const char *file, const struct wanted *wanted, struct elf_file **out)
{
	const char *const places[][2] = {{"", ""}, {"", ".debug/"}, {FOLDER, ""}};
	const char *slash = strrchr(file, '/');
	int err = -ENOENT;

	if (!wanted->has_link || *file != '/')
		return -ENOENT;
	for (size_t i = 0; err && i < sizeof(places) / sizeof(*places); i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s%.*s/%s%s", places[i][0], (int)(slash - file), file, places[i][1],
			     wanted->link.name) < (int)sizeof(path))
			err = open_below(root, path, wanted, out);
	}
	return err;
}

static int open_in_root_of(pid_t pid, const char *file, const struct wanted *wanted, struct elf_file **out)
{
	int root = procfs_open_root(pid, &file), err;

	if (root < 0)
		return root;
	err = open_by_id(root, wanted, out);
	err = err ? open_by_link(root, file, wanted, out) : 0;
	close(root);
	return err;
}

/* Where packages put such files. dwz is told that path, or one that leads there from where the other file is. */
#define SHARED_FOLDER "/.dwz/"

/* .gnu_debugaltlink: a name, and the build-id up to the section's end. Returns whether the file has one. */
static bool read_shared(struct elf_file *debug, char name[PATH_MAX], struct wanted *wanted)
{
	char bytes[PATH_MAX + ID_MAX];
	struct elf_section section;
	size_t length;
	ssize_t n;

	if (elf_file_section(debug, ".gnu_debugaltlink", &section) || section.size > sizeof(bytes))
		return false;
	n = elf_file_read_section(debug, &section, 0, bytes, sizeof(bytes));
	length = n < 0 ? 0 : strnlen(bytes, (size_t)n);
	if (!length || length >= PATH_MAX || (ssize_t)length + 1 >= n || (size_t)n - length - 1 > ID_MAX)
		return false;
	memcpy(name, bytes, length + 1);
	wanted->id_size = (size_t)n - length - 1;
	memcpy(wanted->id, bytes + length + 1, wanted->id_size);
	return true;
}

/* Only names below that folder are looked for: what a file names otherwise could be anything. */
static int open_shared_below(int root, const char *name, const struct wanted *wanted, struct elf_file **out)
{
	const char *below = strstr(name, SHARED_FOLDER);
	int err = open_by_id(root, wanted, out);
	char path[PATH_MAX];

	if (!err || !below || strstr(below, "/../") ||
	    snprintf(path, sizeof(path), "%s%s", FOLDER, below) >= (int)sizeof(path))
		return err;
	return open_below(root, path, wanted, out);
}

static int open_shared_in_root_of(pid_t pid, const char *file, const char *name, const struct wanted *wanted,
				  struct elf_file **out)
{
	int root = procfs_open_root(pid, &file), err;

	if (root < 0)
		return root;
	err = open_shared_below(root, name, wanted, out);
	close(root);
	return err;
}

int native_debug_open_shared(struct elf_file *debug, pid_t pid, const char *path, struct elf_file **out)
{
	struct wanted wanted = {.is_shared = true};
	char name[PATH_MAX];
	int err = -ENOENT;

	*out = NULL;
	if (!read_shared(debug, name, &wanted))
		return -ENOENT;
	if (pid)
		err = open_shared_in_root_of(pid, path, name, &wanted, out);
	return err ? open_shared_in_root_of(getpid(), path, name, &wanted, out) : 0;
}

static int unpack(struct elf_file *elf, struct native_debug *out)
{
	int err = native_debug_data_unpack(elf, &out->bytes, &out->size);

	err = err ? err : elf_file_open_memory(out->bytes, out->size, &out->elf);
	if (err)
		native_debug_close(out);
	return err;
}

int native_debug_open(struct elf_file *elf, pid_t pid, const char *path, struct native_debug *out)
{
	struct wanted wanted = {.id_size = 0};
	int err = -ENOENT;

	wanted.id_size = elf_file_build_id(elf, wanted.id, sizeof(wanted.id));
	wanted.has_link = read_link(elf, &wanted.link);
	*out = (struct native_debug){.elf = NULL};
	if (pid)
		err = open_in_root_of(pid, path, &wanted, &out->elf);
	if (err)
		err = open_in_root_of(getpid(), path, &wanted, &out->elf);
	return err ? unpack(elf, out) : 0;
}

void native_debug_close(struct native_debug *debug)
{
	elf_file_free(debug->elf);
	free(debug->bytes);
	*debug = (struct native_debug){.elf = NULL};
}
