// SPDX-License-Identifier: Apache-2.0
/* Parses the headers and notes of a core file. */
#include "base/core_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define ARCH    "x86-64"
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define ARCH    "arm64"
#endif

/* Most segments and bytes of notes that are looked at: a process may have 65,530 mappings by default, and many threads.
 */
#define SEGMENTS_MAX 1000000u
#define NOTES_MAX    (256u << 20)

/* struct elf_prstatus (include/linux/elfcore.h, the same on both): pr_cursig, pr_pid, pr_reg. */
#define STATUS_SIGNAL 12
#define STATUS_PID    32
#define STATUS_REGS   112
/* struct elf_prpsinfo, likewise: pr_pid, pr_fname, pr_psargs. */
#define INFO_PID     24
#define INFO_NAME    40
#define INFO_COMMAND 56
#define INFO_SIZE    136
/* siginfo_t: si_signo, si_code, si_addr. */
#define SIGINFO_CODE    8
#define SIGINFO_ADDRESS 16

/* Registers as they are numbered in pr_reg: user_regs_struct of x86-64, user_pt_regs of arm64. */
#if defined(__x86_64__)
enum {
	REG_COUNT = 27,
	REG_CALL = 15,   /* orig_rax */
	REG_THREAD = 21, /* fs_base */
};
static const uint8_t argument_regs[6] = {14, 13, 12, 7, 9, 8}; /* rdi rsi rdx r10 r8 r9 */
#else
enum {
	REG_COUNT = 34,
	REG_CALL = 8,
};
static const uint8_t argument_regs[6] = {0, 1, 2, 3, 4, 5};
#endif

_Static_assert(REG_COUNT * sizeof(uint64_t) == sizeof(struct user_regs_struct), "a core has what ptrace(2) has");

struct parser {
	struct core_file *out;
	const char *name;
	struct error *error;
	size_t maps_room, threads_room;
	size_t nr_listed; /* mappings, with those that only the note of files has */
	/* The note of files. */
	const char *files;
	size_t files_size;
};

static int refuse(struct parser *p, const char *why)
{
	return error_set(p->error, -EINVAL, "%s is no core file that pybpf can read: %s", p->name, why);
}

/* Returns whether the file has these bytes: it may be made shorter at any time. */
static bool read_file(const struct core_file *core, uint64_t at, void *dst, size_t size)
{
	return io_read_at(core->fd, dst, size, at) == (ssize_t)size;
}

static uint64_t word_at(const char *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static int32_t int_at(const char *bytes, size_t offset)
{
	int32_t number;

	memcpy(&number, bytes + offset, sizeof(number));
	return number;
}

static int add_thread(struct parser *p, const char *status, size_t size)
{
	struct core_file *out = p->out;
	struct core_thread *thread;
	int16_t signal;

	if (size < STATUS_REGS + REG_COUNT * sizeof(uint64_t))
		return refuse(p, "a thread's registers are cut off");
	if (array_reserve(&out->threads, &p->threads_room, out->nr_threads + 1, sizeof(*out->threads)))
		return -ENOMEM;
	thread = &out->threads[out->nr_threads++];
	memcpy(&signal, status + STATUS_SIGNAL, sizeof(signal));
	*thread = (struct core_thread){
		.tid = int_at(status, STATUS_PID),
		.call = (int64_t)word_at(status, STATUS_REGS + 8 * REG_CALL),
		.signal = signal,
	};
	memcpy(&thread->registers, status + STATUS_REGS, sizeof(thread->registers));
	for (size_t i = 0; i < sizeof(argument_regs); i++)
		thread->args[i] = word_at(status, STATUS_REGS + 8u * argument_regs[i]);
#if defined(__x86_64__)
	thread->thread_pointer = word_at(status, STATUS_REGS + 8 * REG_THREAD);
#endif
	return 0;
}

static void copy_name(char *to, size_t room, const char *from, size_t size)
{
	size_t len = strnlen(from, size < room - 1 ? size : room - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

/* The kernel ends each argument by a blank. */
static void cut_blanks(char *text)
{
	for (size_t len = strlen(text); len && text[len - 1] == ' '; len--)
		text[len - 1] = '\0';
}

/* Signals for which si_addr is the address of an access, or of an instruction. */
static bool tells_address(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGTRAP;
}

static int take_note(struct parser *p, uint32_t type, const char *bytes, size_t size)
{
	struct core_file *out = p->out;

	if (type == NT_PRSTATUS)
		return add_thread(p, bytes, size);
	if (type == NT_PRPSINFO && size >= INFO_SIZE) {
		out->pid = int_at(bytes, INFO_PID);
		copy_name(out->comm, sizeof(out->comm), bytes + INFO_NAME, 16);
		copy_name(out->command, sizeof(out->command), bytes + INFO_COMMAND, 80);
		cut_blanks(out->command);
	} else if (type == NT_SIGINFO && size >= SIGINFO_ADDRESS + 8 && !out->signal) {
		out->signal = int_at(bytes, 0);
		/* Others were sent by a process, whose PID is in this place (SI_FROMUSER, include/linux/signal.h). */
		out->has_address = int_at(bytes, SIGINFO_CODE) > 0 && tells_address(out->signal);
		out->address = word_at(bytes, SIGINFO_ADDRESS);
	} else if (type == NT_AUXV) {
		for (size_t at = 0; size - at >= 16; at += 16)
			out->entry = word_at(bytes, at) == AT_ENTRY ? word_at(bytes, at + 8) : out->entry;
	} else if (type == NT_FILE) {
		p->files = bytes;
		p->files_size = size;
	} else if (type == NT_ARM_TLS && size >= 8 && out->nr_threads) {
		out->threads[out->nr_threads - 1].thread_pointer = word_at(bytes, 0);
	}
	return 0;
}

static size_t round_up(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

static int take_notes(struct parser *p, const char *bytes, size_t size)
{
	size_t at = 0;
	int err = 0;

	while (!err && size - at >= sizeof(Elf64_Nhdr)) {
		size_t name_size, content_size;
		Elf64_Nhdr head;

		memcpy(&head, bytes + at, sizeof(head));
		at += sizeof(head);
		name_size = round_up(head.n_namesz);
		content_size = round_up(head.n_descsz);
		if (name_size > size - at || head.n_descsz > size - at - name_size)
			return refuse(p, "its notes are cut off");
		err = take_note(p, head.n_type, bytes + at + name_size, head.n_descsz);
		at += name_size;
		at += content_size > size - at ? size - at : content_size;
	}
	return err;
}

static int add_map(struct parser *p, const Elf64_Phdr *segment)
{
	struct core_file *out = p->out;
	uint64_t file_bytes = segment->p_filesz, kept, there;

	if (!segment->p_memsz || segment->p_vaddr + segment->p_memsz < segment->p_vaddr)
		return 0;
	if (file_bytes > segment->p_memsz)
		file_bytes = segment->p_memsz;
	kept = file_bytes;
	if (array_reserve(&out->maps, &p->maps_room, out->nr_maps + 1, sizeof(*out->maps)))
		return -ENOMEM;
	there = segment->p_offset < out->size ? out->size - segment->p_offset : 0;
	if (kept > there) {
		out->missing += kept - there;
		kept = there;
	}
	out->maps[out->nr_maps++] = (struct core_map){
		.start = segment->p_vaddr,
		.end = segment->p_vaddr + segment->p_memsz,
		.file_bytes = file_bytes,
		.kept = kept,
		.at = segment->p_offset,
		.path = "",
		.readable = segment->p_flags & PF_R,
		.writable = segment->p_flags & PF_W,
		.executable = segment->p_flags & PF_X,
	};
	return 0;
}

static int compare_maps(const void *a, const void *b)
{
	const struct core_map *one = a, *other = b;

	return (one->start > other->start) - (one->start < other->start);
}

static void sort_maps(struct core_file *core)
{
	if (core->nr_maps)
		qsort(core->maps, core->nr_maps, sizeof(*core->maps), compare_maps);
}

static struct core_map *find_map(const struct core_file *core, uint64_t addr)
{
	size_t passed =
		array_count_up_to(core->maps, core->nr_maps, sizeof(*core->maps), offsetof(struct core_map, end), addr);

	return passed < core->nr_maps && core->maps[passed].start <= addr ? &core->maps[passed] : NULL;
}

/* Adds a mapping behind those that are searched now. */
static int add_listed(struct parser *p, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
	struct core_file *out = p->out;

	if (start >= end)
		return 0;
	if (array_reserve(&out->maps, &p->maps_room, p->nr_listed + 1, sizeof(*out->maps)))
		return -ENOMEM;
	out->maps[p->nr_listed++] = (struct core_map){
		.start = start,
		.end = end,
		.offset = offset,
		.path = path,
		.listed = true,
	};
	return 0;
}

/*
 * Gives mappings their files. The note: the number of mappings, the size of a page, for each of them its start, its end
 * and its offset in pages, then their paths.
 */
static int name_maps(struct parser *p)
{
	struct core_file *out = p->out;
	uint64_t count, page;
	const char *path, *end;

	if (!p->files)
		return 0;
	end = p->files + p->files_size;
	if (p->files_size < 16)
		return refuse(p, "its list of files is cut off");
	count = word_at(p->files, 0);
	page = word_at(p->files, 8);
	if (count > (p->files_size - 16) / 24)
		return refuse(p, "its list of files is cut off");
	path = p->files + 16 + 24 * count;
	p->nr_listed = out->nr_maps;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t start = word_at(p->files, 16 + 24 * i), offset = word_at(p->files, 32 + 24 * i) * page;
		size_t len = strnlen(path, (size_t)(end - path));
		struct core_map *map = find_map(p->out, start);

		if (path + len == end)
			return refuse(p, "its list of files is cut off");
		if (map) {
			map->path = path;
			map->offset = offset - (start - map->start);
		} else if (add_listed(p, start, word_at(p->files, 24 + 24 * i), offset, path)) {
			return -ENOMEM;
		}
		path += len + 1;
	}
	out->nr_maps = p->nr_listed;
	sort_maps(out);
	return 0;
}

static int read_segments(struct parser *p, const Elf64_Ehdr *head)
{
	struct core_file *out = p->out;
	uint64_t count = head->e_phnum, notes_size = 0;
	Elf64_Phdr segment;
	Elf64_Shdr section;
	int err = 0;

	/* More than the field can hold. */
	if (count == PN_XNUM) {
		if (!read_file(p->out, head->e_shoff, &section, sizeof(section)))
			return refuse(p, "it is cut off before the number of its segments");
		count = section.sh_info;
	}
	if (head->e_phentsize != sizeof(segment) || count > SEGMENTS_MAX)
		return refuse(p, "its headers are not those of a core file");
	for (uint64_t i = 0; i < count && !err; i++) {
		if (!read_file(p->out, head->e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
			return refuse(p, "it is cut off within its headers");
		if (segment.p_type == PT_LOAD)
			err = add_map(p, &segment);
		if (segment.p_type != PT_NOTE || out->notes)
			continue;
		notes_size = segment.p_filesz;
		if (notes_size > NOTES_MAX)
			return refuse(p, "its notes are larger than any that are known");
		if (notes_size > out->size)
			return refuse(p, "it is cut off before the registers of its threads");
		out->notes = malloc(notes_size + 1);
		if (!out->notes)
			return -ENOMEM;
		if (!read_file(p->out, segment.p_offset, out->notes, notes_size))
			return refuse(p, "it is cut off before the registers of its threads");
	}
	if (err)
		return err;
	if (!out->notes)
		return refuse(p, "it has no notes, and so no threads");
	sort_maps(out);
	return take_notes(p, out->notes, notes_size) ?: name_maps(p);
}

static int check_head(struct parser *p, const Elf64_Ehdr *head)
{
	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
		return refuse(p, "it is no ELF file");
	if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB)
		return refuse(p, "it is of a program of 32 bits, or of another byte order");
	if (head->e_type != ET_CORE)
		return refuse(p, "it is a program or a library, and no core");
	if (head->e_machine != MACHINE)
		return refuse(p, "it is of another architecture than " ARCH);
	return 0;
}

int core_file_open(int fd, const char *name, struct core_file *out, struct error *error)
{
	struct parser p = {.out = out, .name = name, .error = error};
	Elf64_Ehdr head;
	struct stat st;
	int err;

	*out = (struct core_file){.fd = 0};
	if (fstat(fd, &st))
		return error_set(error, -errno, "cannot read %s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(&p, "it is no regular file");
	/* Never one of the standard streams: 0 stands for no descriptor. */
	out->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (out->fd < 0) {
		out->fd = 0;
		return error_set(error, -errno, "cannot read %s: %s", name, strerror(errno));
	}
	out->size = (uint64_t)st.st_size;
	out->modified = st.st_mtim;
	if (!read_file(out, 0, &head, sizeof(head)))
		return refuse(&p, "it is shorter than the header of one");
	err = check_head(&p, &head) ?: read_segments(&p, &head);
	if (err == -ENOMEM)
		return error_set(error, err, "cannot read %s: %s", name, strerror(-err));
	if (err)
		return err;
	if (!out->nr_threads)
		return refuse(&p, "it has no threads");
	if (!out->pid)
		out->pid = out->threads[0].tid;
	if (!out->signal)
		out->signal = out->threads[0].signal;
	/* It ends no process: a debugger stopped this one. */
	if (out->signal == SIGSTOP)
		out->signal = 0;
	return 0;
}

void core_file_close(struct core_file *core)
{
	if (core->fd)
		close(core->fd);
	free(core->maps);
	free(core->threads);
	free(core->notes);
	*core = (struct core_file){0};
}

bool core_file_is_changed(const struct core_file *core)
{
	struct stat st;

	return fstat(core->fd, &st) || (uint64_t)st.st_size != core->size ||
	       st.st_mtim.tv_sec != core->modified.tv_sec || st.st_mtim.tv_nsec != core->modified.tv_nsec;
}

int core_file_read(const struct core_file *core, uint64_t addr, void *dst, size_t size, const struct core_map **map,
		   size_t *done)
{
	*done = 0;
	*map = NULL;
	while (*done < size) {
		const struct core_map *at = find_map(core, addr + *done);
		uint64_t offset, part = size - *done;

		if (!at)
			return -EFAULT;
		offset = addr + *done - at->start;
		if (offset >= at->file_bytes) {
			*map = at;
			return -ENODATA;
		}
		if (offset >= at->kept)
			return -EFAULT;
		if (part > at->kept - offset)
			part = at->kept - offset;
		if (!read_file(core, at->at + offset, (char *)dst + *done, part))
			return -EFAULT;
		*done += part;
	}
	return 0;
}
