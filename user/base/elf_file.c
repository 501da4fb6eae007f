// SPDX-License-Identifier: Apache-2.0
/*
 * Headers and segments of an ELF file. Everything is read with pread into buffers of bounded size: a file that another
 * process truncates under a mapping would kill the reader with SIGBUS, and a look-up must not cost the read of a 30 MB
 * libpython. libelf is not used, because it keeps whole tables in memory.
 */
#include "base/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_internal.h"
#include "base/io.h"

/* Far above what linkers produce (12 to 15 segments); limits the cost of a hostile header. */
#define ELF_MAX_SEGMENTS 256
#define ELF_MAX_DYNAMIC  2048

#if defined(__x86_64__)
#define ELF_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define ELF_MACHINE EM_AARCH64
#else
#error "pybpf knows x86-64 and arm64"
#endif

static ssize_t read_memory(void *arg, uint64_t offset, void *buf, size_t size)
{
	const char *bytes = arg;

	memcpy(buf, bytes + offset, size);
	return (ssize_t)size;
}

ssize_t elf_read_at(const struct elf_file *elf, uint64_t offset, void *buf, size_t size)
{
	if (offset > INT64_MAX - size)
		return 0;
	if (!elf->read)
		return io_read_at(elf->fd, buf, size, offset);
	if (offset >= elf->size)
		return 0;
	return elf->read(elf->arg, offset, buf, size < elf->size - offset ? size : elf->size - offset);
}

int elf_read_exactly(const struct elf_file *elf, uint64_t offset, void *buf, size_t size)
{
	ssize_t n = elf_read_at(elf, offset, buf, size);

	if (n < 0)
		return n;
	return (size_t)n == size ? 0 : -ENOENT;
}

int elf_vaddr_to_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *offset, uint64_t *available)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const Elf64_Phdr *ph = &elf->segments[i];
		uint64_t inside = vaddr - ph->p_vaddr;

		if (ph->p_type != PT_LOAD || vaddr < ph->p_vaddr || inside >= ph->p_filesz)
			continue;
		if (ph->p_offset >= elf->size || inside >= elf->size - ph->p_offset)
			continue;
		*offset = ph->p_offset + inside;
		*available = ph->p_filesz - inside;
		return 0;
	}
	return -ENOENT;
}

int elf_read_vaddr(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t size)
{
	uint64_t offset, available;
	int err = elf_vaddr_to_offset(elf, vaddr, &offset, &available);

	if (err)
		return err;
	if (available < size)
		return -ENOENT;
	return elf_read_exactly(elf, offset, buf, size);
}

static int read_segments(struct elf_file *elf)
{
	size_t count = elf->header.e_phnum;
	int err;

	if (!count)
		return 0;
	if (elf->header.e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	if (count > ELF_MAX_SEGMENTS)
		count = ELF_MAX_SEGMENTS;
	elf->segments = calloc(count, sizeof(*elf->segments));
	if (!elf->segments)
		return -ENOMEM;
	err = elf_read_exactly(elf, elf->header.e_phoff, elf->segments, count * sizeof(*elf->segments));
	if (err)
		return err == -ENOENT ? -ENOEXEC : err;
	elf->segment_count = count;
	return 0;
}

static void read_dynamic(struct elf_file *elf)
{
	struct elf_dynamic *dynamic = &elf->dynamic;
	const Elf64_Phdr *ph = NULL;
	Elf64_Dyn entries[64];
	size_t total, at = 0;

	for (size_t i = 0; i < elf->segment_count && !ph; i++)
		if (elf->segments[i].p_type == PT_DYNAMIC)
			ph = &elf->segments[i];
	if (!ph)
		return;
	total = ph->p_filesz / sizeof(entries[0]);
	if (total > ELF_MAX_DYNAMIC)
		total = ELF_MAX_DYNAMIC;
	while (at < total) {
		size_t count = total - at < 64 ? total - at : 64;
		ssize_t n =
			elf_read_at(elf, ph->p_offset + at * sizeof(entries[0]), entries, count * sizeof(entries[0]));

		count = n > 0 ? n / sizeof(entries[0]) : 0;
		if (!count)
			return;
		for (size_t i = 0; i < count; i++) {
			uint64_t value = entries[i].d_un.d_val;

			switch (entries[i].d_tag) {
			case DT_NULL:
				return;
			case DT_GNU_HASH:
				dynamic->gnu_hash = value;
				break;
			case DT_HASH:
				dynamic->hash = value;
				break;
			case DT_SYMTAB:
				dynamic->symbols = value;
				break;
			case DT_STRTAB:
				dynamic->strings = value;
				break;
			case DT_STRSZ:
				dynamic->strings_size = value;
				break;
			case DT_SONAME:
				dynamic->soname = value;
				break;
			case DT_NEEDED:
				if (dynamic->nr_needed < ELF_MAX_NEEDED)
					dynamic->needed[dynamic->nr_needed++] = value;
				break;
			}
		}
		dynamic->present = true;
		at += count;
	}
}

/* Reads what all else is found by. The file is freed when that fails. */
static int open_file(struct elf_file *elf, struct elf_file **out)
{
	const unsigned char *ident = elf->header.e_ident;
	/* The 32-bit header is shorter: a tiny 32-bit file is foreign, not malformed. */
	int err = elf_read_exactly(elf, 0, &elf->header, EI_NIDENT);

	if (!err && memcmp(ident, ELFMAG, SELFMAG))
		err = -ENOENT;
	if (!err && (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB))
		err = -ENOTSUP;
	if (!err)
		err = elf_read_exactly(elf, 0, &elf->header, sizeof(elf->header));
	if (!err && elf->header.e_machine != ELF_MACHINE)
		err = -ENOTSUP;
	if (!err)
		err = read_segments(elf);
	if (err) {
		elf_file_free(elf);
		return err == -ENOENT ? -ENOEXEC : err;
	}
	read_dynamic(elf);
	*out = elf;
	return 0;
}

int elf_file_open(int fd, struct elf_file **out)
{
	struct elf_file *elf;
	struct stat st;
	int err;

	*out = NULL;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	elf = calloc(1, sizeof(*elf));
	if (!elf)
		return -ENOMEM;
	elf->size = st.st_size;
	elf->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (elf->fd >= 0)
		return open_file(elf, out);
	err = -errno;
	elf_file_free(elf);
	return err;
}

int elf_file_open_memory(const void *bytes, size_t size, struct elf_file **out)
{
	return elf_file_open_by(read_memory, (void *)(uintptr_t)bytes, size, out);
}

int elf_file_open_by(elf_file_reader *read, void *arg, uint64_t size, struct elf_file **out)
{
	struct elf_file *elf = calloc(1, sizeof(*elf));

	*out = NULL;
	if (!elf)
		return -ENOMEM;
	elf->fd = -1;
	elf->read = read;
	elf->arg = arg;
	elf->size = size;
	return open_file(elf, out);
}

int elf_file_dup(const struct elf_file *elf)
{
	int fd = elf->fd < 0 ? -1 : fcntl(elf->fd, F_DUPFD_CLOEXEC, 0);

	return fd >= 0 ? fd : elf->fd < 0 ? -ENOENT : -errno;
}

void elf_file_free(struct elf_file *elf)
{
	if (!elf)
		return;
	if (elf->fd >= 0)
		close(elf->fd);
	free(elf->segments);
	free(elf->sections);
	free(elf->section_names);
	free(elf);
}

size_t elf_file_code_segments(struct elf_file *elf, struct elf_segment *out, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < elf->segment_count && count < max; i++) {
		const Elf64_Phdr *ph = &elf->segments[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X))
			out[count++] = (struct elf_segment){
				.vaddr = ph->p_vaddr, .offset = ph->p_offset, .size = ph->p_filesz};
	}
	return count;
}

ssize_t elf_file_read(struct elf_file *elf, uint64_t vaddr, void *buf, size_t size)
{
	uint64_t offset, available;
	int err = elf_vaddr_to_offset(elf, vaddr, &offset, &available);

	if (err)
		return err;
	return elf_read_at(elf, offset, buf, size < available ? size : available);
}

uint64_t elf_file_entry(const struct elf_file *elf)
{
	return elf->header.e_entry;
}

bool elf_file_is_fixed(struct elf_file *elf)
{
	return elf->header.e_type == ET_EXEC;
}

const char *elf_file_soname(struct elf_file *elf)
{
	const struct elf_dynamic *dynamic = &elf->dynamic;

	if (!elf->soname_read) {
		elf->soname_read = true;
		if (dynamic->soname && dynamic->strings && dynamic->soname < dynamic->strings_size &&
		    elf_file_read(elf, dynamic->strings + dynamic->soname, elf->soname, sizeof(elf->soname) - 1) < 0)
			elf->soname[0] = '\0';
	}
	return elf->soname[0] ? elf->soname : NULL;
}

size_t elf_file_libraries(struct elf_file *elf)
{
	static const char of_musl[] = "libc.so", of_alpine[] = "libc.musl-", of_glibc[] = "ld-linux";
	const struct elf_dynamic *dynamic = &elf->dynamic;
	size_t count = 0;

	for (size_t i = 0; i < dynamic->nr_needed; i++) {
		char name[16] = {0};

		if (!dynamic->strings || dynamic->needed[i] >= dynamic->strings_size ||
		    elf_file_read(elf, dynamic->strings + dynamic->needed[i], name, sizeof(name) - 1) < 0)
			continue;
		count += strcmp(name, of_musl) && strncmp(name, of_alpine, sizeof(of_alpine) - 1) &&
			 strncmp(name, of_glibc, sizeof(of_glibc) - 1);
	}
	return count;
}
