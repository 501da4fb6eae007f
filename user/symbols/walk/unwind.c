// SPDX-License-Identifier: Apache-2.0
/* Walks stacks by tables, or has libdw walk them: tells it mappings, memory and registers. */
#include "symbols/walk/unwind.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/intern.h"
#include "base/procfs.h"
#include "base/text.h"
#include "base/remote.h"
#include "native/follow.h"
#include "native/mapped.h"
#include "symbols/native/native_roles.h"

/* DWARF's number of the register, or of the column, that has the return address. */
#if defined(__x86_64__)
#define RETURN_ADDRESS 16
#elif defined(__aarch64__)
#define RETURN_ADDRESS 30
#endif

/* Most frames that are found. */
#define FRAMES_MAX PYBPF_NATIVE_FRAMES

/* A file that is mapped, from its first mapping to the end of its last one. */
struct mapped {
	uint64_t start, end;
	uint64_t code_start, code_end; /* of its executable mappings; both 0: it has none */
	struct procfs_map map;         /* the first one; path is owned */
	int lack;                      /* -ENOMEM or -EMFILE: a part of it was not read for that; 0: none */
	bool lack_is_reported;
};

/* An address in a file, and the name of its function, which libdw has; NULL: it has none. */
struct known_name {
	uint64_t address;
	const char *name;
};

struct unwind {
	pid_t pid;
	Dwfl *dwfl;
	struct native_follower *follower; /* NULL: there is none */
	bool is_prepared;                 /* it was made, or cannot be */
	struct mapped *files;
	size_t count, room;
	struct intern names;
	uint64_t mapped_end; /* of the last mapping, of a file or not */
	const struct unwind_registers *registers;
	struct mapped *last; /* file of the last frame; NULL: none */
	uint64_t last_pc;    /* in the function of that */
	struct native_followed_frame frames[FRAMES_MAX];
	uint32_t nr_frames;
	enum unwind_end end;
};

struct unwind_registers unwind_registers_from(const struct user_regs_struct *regs)
{
	struct unwind_registers out = {.is_partial = false};
#if defined(__x86_64__)
	const uint64_t values[UNWIND_REGISTERS] = {
		regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi, regs->rbp, regs->rsp, regs->r8,
		regs->r9,  regs->r10, regs->r11, regs->r12, regs->r13, regs->r14, regs->r15, regs->rip,
	};

	memcpy(out.values, values, sizeof(values));
#elif defined(__aarch64__)
	memcpy(out.values, regs->regs, 31 * sizeof(uint64_t));
	out.values[31] = regs->sp;
	out.values[32] = regs->pc;
#endif
	return out;
}

bool unwind_registers_at(uint64_t stack_pointer, uint64_t pc, struct unwind_registers *out)
{
	*out = (struct unwind_registers){.is_partial = true};
	out->values[UNWIND_SP] = stack_pointer;
	out->values[UNWIND_REGISTERS - 1] = pc;
#if defined(__x86_64__)
	return stack_pointer && pc;
#else
	return false;
#endif
}

static void note_code(struct mapped *file, const struct procfs_map *map)
{
	if (!map->executable)
		return;
	if (!file->code_end)
		file->code_start = map->start;
	file->code_end = map->end;
}

/* Mappings of one file follow each other, but for what lies between its segments. */
static int collect(const struct procfs_map *map, void *arg)
{
	struct unwind *u = arg;
	struct mapped *last = u->count ? &u->files[u->count - 1] : NULL;

	u->mapped_end = map->end;
	if (!map->inode || map->path[0] != '/')
		return 0;
	if (last && last->map.inode == map->inode && last->map.dev_major == map->dev_major &&
	    last->map.dev_minor == map->dev_minor && map->offset) {
		last->end = map->end;
		note_code(last, map);
		return 0;
	}
	if (array_reserve(&u->files, &u->room, u->count + 1, sizeof(*u->files)))
		return -ENOMEM;
	u->files[u->count] = (struct mapped){.start = map->start, .end = map->end, .map = *map};
	note_code(&u->files[u->count], map);
	u->files[u->count].map.path = strdup(map->path);
	return u->files[u->count++].map.path ? 0 : -ENOMEM;
}

/* The module's file; its place among the files was given to it as its name. */
static struct mapped *file_of(const struct unwind *u, const char *name)
{
	size_t index = strtoul(name, NULL, 10);

	return index < u->count ? &u->files[index] : NULL;
}

/*
 * Called when a frame lies in the file, which most files never have. libdw closes the descriptor with the module. The
 * search is in a variable, since the callback is given the module only. libdw must not map the file: if its owner
 * truncates it, reading the mapping raises SIGBUS.
 */
static const struct unwind *searching;

static int open_file(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	struct mapped *file = file_of(searching, name);
	int fd = file ? procfs_open_map(searching->pid, &file->map) : -ENOENT;

	(void)module;
	(void)userdata;
	(void)base;
	*elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	*path = NULL;
	if (file && (fd == -EMFILE || fd == -ENOMEM))
		file->lack = fd;
	if (fd >= 0 && !*elf)
		close(fd);
	return *elf ? fd : -1;
}

/*
 * Call frame information and names are those of the file itself. debuginfo files are not searched: the path is the
 * target's, and may be on a slow file system.
 */
static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file,
			const char *link, GElf_Word crc, char **path)
{
	(void)module;
	(void)userdata;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)path;
	return -1;
}

static const Dwfl_Callbacks callbacks = {.find_elf = open_file, .find_debuginfo = no_debuginfo};

/* All questions are about one thread, whose number is that of the process. */
static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	const struct unwind *u = arg;

	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return u->pid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl;
	(void)tid;
	*thread_arg = arg;
	return true;
}

uint64_t unwind_strip_signature(uint64_t word, uint64_t mapped_end)
{
	return mapped_end ? word & (UINT64_MAX >> __builtin_clzll(mapped_end)) : word;
}

#if defined(__aarch64__)
static bool is_code(const struct unwind *u, uint64_t addr)
{
	for (size_t i = 0; i < u->count; i++) {
		if (addr >= u->files[i].code_start && addr < u->files[i].code_end)
			return true;
	}
	return false;
}

/*
 * Returns a register of a caller, as it was saved: a return address without its signature, which libdw before 0.192
 * takes for a part of the address. Without these bits, nothing else is an address of code.
 */
static uint64_t restore_register(const struct unwind *u, uint64_t word)
{
	uint64_t stripped = unwind_strip_signature(word, u->mapped_end);

	return is_code(u, stripped) ? stripped : word;
}
#else
static uint64_t restore_register(const struct unwind *u, uint64_t word)
{
	(void)u;
	return word;
}
#endif

static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *out, void *arg)
{
	const struct unwind *u = arg;

	(void)dwfl;
	if (remote_read(u->pid, addr, out, sizeof(*out)))
		return false;
	*out = restore_register(u, *out);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct unwind *u = arg;

#if defined(__aarch64__)
	uint64_t values[UNWIND_REGISTERS - 1];

	for (size_t i = 0; i < UNWIND_REGISTERS - 1; i++)
		values[i] = restore_register(u, u->registers->values[i]);
	dwfl_thread_state_register_pc(thread, u->registers->values[UNWIND_REGISTERS - 1]);
	return dwfl_thread_state_registers(thread, 0, UNWIND_REGISTERS - 1, values);
#else
	const uint64_t *values = u->registers->values;

	if (!u->registers->is_partial)
		return dwfl_thread_state_registers(thread, 0, UNWIND_REGISTERS, values);
	return dwfl_thread_state_registers(thread, UNWIND_SP, 1, values + UNWIND_SP) &&
	       dwfl_thread_state_registers(thread, UNWIND_REGISTERS - 1, 1, values + UNWIND_REGISTERS - 1);
#endif
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_word,
	.set_initial_registers = set_registers,
};

/* Returns 0 or negative errno. */
static int report_files(struct unwind *u)
{
	int err = procfs_each_map(u->pid, collect, u);

	for (size_t i = 0; i < u->count && !err; i++) {
		char name[24];

		snprintf(name, sizeof(name), "%zu", i);
		if (!dwfl_report_module(u->dwfl, name, u->files[i].start, u->files[i].end))
			err = -ENOMEM;
	}
	return err;
}

int unwind_new(pid_t pid, struct unwind **out)
{
	struct unwind *u = calloc(1, sizeof(*u));
	int err;

	*out = NULL;
	if (!u)
		return -ENOMEM;
	intern_init(&u->names, sizeof(struct known_name), sizeof(uint64_t));
	/* If the first thread has ended, only others show the mappings and the files. */
	u->pid = procfs_task(pid, NULL) ?: pid;
	searching = u;
	u->dwfl = dwfl_begin(&callbacks);
	err = u->dwfl ? report_files(u) : -ENOMEM;
	if (!err &&
	    (dwfl_report_end(u->dwfl, NULL, NULL) || !dwfl_attach_state(u->dwfl, NULL, u->pid, &thread_callbacks, u)))
		err = -ENOMEM;
	if (err)
		unwind_free(u);
	else
		*out = u;
	return err;
}

void unwind_free(struct unwind *u)
{
	if (!u)
		return;
	native_follower_free(u->follower);
	intern_free(&u->names);
	if (u->dwfl)
		dwfl_end(u->dwfl);
	for (size_t i = 0; i < u->count; i++)
		free((char *)u->files[i].map.path);
	free(u->files);
	free(u);
}

/* Returns the name of the function that has the address within its size: what merely lies before it is another one. */
static const char *find_name(struct mapped *file, Dwfl_Module *module, uint64_t addr)
{
	GElf_Off offset;
	GElf_Sym symbol;
	const char *name;

	/* Where one table of symbols is too large, libdw takes a smaller one, and says nothing of it. */
	errno = 0;
	dwfl_module_getsymtab(module);
	if (errno == ENOMEM)
		file->lack = -ENOMEM;
	name = dwfl_module_addrinfo(module, addr, &offset, &symbol, NULL, NULL, NULL);
	return name && offset < symbol.st_size ? name : NULL;
}

/* libdw goes through all symbols of a file for each address. */
static const char *name_of(struct unwind *u, struct mapped *file, Dwfl_Module *module, uint64_t addr)
{
	const struct known_name fresh = {.address = addr};
	bool is_fresh = false;
	uint32_t i = intern_add(&u->names, &fresh, &is_fresh);

	if (i == INTERN_NONE)
		return find_name(file, module, addr);
	if (is_fresh)
		((struct known_name *)intern_item(&u->names, i))->name = find_name(file, module, addr);
	return ((const struct known_name *)intern_item(&u->names, i))->name;
}

/* Returns the mapped file that has code at the address, and its module, or NULL. */
static struct mapped *code_at(const struct unwind *u, uint64_t address, Dwfl_Module **module)
{
	struct mapped *file;

	*module = dwfl_addrmodule(u->dwfl, address);
	if (!*module)
		return NULL;
	file = file_of(u, dwfl_module_info(*module, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
	/* libdw takes what lies right behind a file, and between its mappings, for a part of it. */
	return file && address >= file->code_start && address < file->code_end ? file : NULL;
}

static int take_frame(Dwfl_Frame *state, void *arg)
{
	struct unwind *u = arg;
	Dwfl_Module *module;
	bool is_innermost;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(state, &pc, &is_innermost))
		return -1;
	if (u->nr_frames == FRAMES_MAX) {
		u->end = UNWIND_LIMIT;
		return DWARF_CB_ABORT;
	}
	u->frames[u->nr_frames++] = (struct native_followed_frame){.pc = pc, .is_exact = is_innermost};
	/* A call can be the last instruction of its function. */
	u->last_pc = pc - !is_innermost;
	u->last = code_at(u, u->last_pc, &module);
	/* Without call frame information libdw would follow frame pointers, which are anything. */
	if (!u->last) {
		u->end = UNWIND_BROKEN;
		return DWARF_CB_ABORT;
	}
	errno = 0;
	return DWARF_CB_OK;
}

/* Returns whether the last frame's function has no caller, as its call frame information says. */
static bool is_outermost(const struct unwind *u)
{
	Dwarf_Addr bias = 0, pc = u->last_pc;
	Dwfl_Module *module = dwfl_addrmodule(u->dwfl, pc);
	Dwarf_CFI *cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *ops, memory[3];
	size_t count;
	bool undefined;

	if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame))
		return false;
	undefined = !dwarf_frame_register(frame, RETURN_ADDRESS, memory, &ops, &count) && ops == memory && !count;
	free(frame);
	return undefined;
}

void unwind_find_by_libdw(struct unwind *u, const struct unwind_registers *registers)
{
	u->registers = registers;
	u->last = NULL;
	u->nr_frames = 0;
	u->end = UNWIND_WHOLE;
	searching = u;
	errno = 0;
	if (dwfl_getthread_frames(u->dwfl, u->pid, take_frame, u) >= 0) {
		/* A register that is not known ends the search like a function that has no caller. */
		if (u->end == UNWIND_WHOLE && registers->is_partial && !is_outermost(u))
			u->end = UNWIND_BROKEN;
		return;
	}
	u->end = errno == ENOMEM && !u->last ? UNWIND_NO_MEMORY : UNWIND_BROKEN;
	/* Its call frame information was not read. */
	if (errno == ENOMEM && u->last)
		u->last->lack = -ENOMEM;
}

#if defined(__x86_64__)
/* Returns the registers in the order of NATIVE_WALKER_REGISTERS. */
static struct native_thread thread_with(const struct unwind_registers *registers, uint64_t all[])
{
	/* By DWARF's numbers. */
	static const uint8_t order[NATIVE_WALKER_REGISTERS] = {15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5};
	const uint64_t *values = registers->values;

	for (size_t i = 0; i < NATIVE_WALKER_REGISTERS; i++)
		all[i] = values[order[i]];
	return (struct native_thread){.pc = values[RETURN_ADDRESS],
				      .sp = values[UNWIND_SP],
				      .bp = values[6],
				      .all = registers->is_partial ? NULL : all};
}

/* Returns whether the tables know no way on, and libdw may. */
static bool is_for_libdw(enum pybpf_native_end end)
{
	return end == PYBPF_NATIVE_END_NO_TABLE || end == PYBPF_NATIVE_END_EXPRESSION ||
	       end == PYBPF_NATIVE_END_REGISTER;
}

void unwind_prepare(struct unwind *u)
{
	/* Without memory libdw, which takes less of it, is asked. */
	if (!u->is_prepared)
		native_follower_new(u->pid, &u->follower);
	else if (u->follower)
		native_follower_prepare(u->follower);
	u->is_prepared = true;
}

bool unwind_find(struct unwind *u, const struct unwind_registers *registers, bool is_quick)
{
	uint64_t all[NATIVE_WALKER_REGISTERS];
	const struct native_thread thread = thread_with(registers, all);
	struct native_followed followed;

	if (!u->is_prepared && is_quick)
		return false;
	if (!u->is_prepared)
		unwind_prepare(u);
	if (u->follower && !native_follow(u->follower, &thread, is_quick, &followed))
		return false;
	if (!u->follower || is_for_libdw(followed.end)) {
		unwind_find_by_libdw(u, registers);
		return true;
	}
	memcpy(u->frames, followed.frames, followed.count * sizeof(u->frames[0]));
	u->nr_frames = followed.count;
	u->end = followed.end == PYBPF_NATIVE_END_WHOLE   ? UNWIND_WHOLE
		 : followed.end == PYBPF_NATIVE_END_LIMIT ? UNWIND_LIMIT
							  : UNWIND_BROKEN;
	return true;
}

static void name_made(struct unwind *u)
{
	if (u->follower)
		native_follower_name(u->follower, u->frames, u->nr_frames);
}
#else
bool unwind_find(struct unwind *u, const struct unwind_registers *registers, bool is_quick)
{
	(void)is_quick;
	unwind_find_by_libdw(u, registers);
	return true;
}

void unwind_prepare(struct unwind *u)
{
	(void)u;
}

static void name_made(struct unwind *u)
{
	(void)u;
}
#endif

/* Fills in a frame. Returns the role of its function. */
static enum native_role describe(struct unwind *u, const struct native_followed_frame *found, struct unwind_frame *out)
{
	uint64_t inside = found->pc - !found->is_exact;
	Dwfl_Module *module;
	struct mapped *file = code_at(u, inside, &module);

	*out = (struct unwind_frame){.pc = found->pc, .is_loop = found->is_loop, .name = found->name};
	if (found->is_vdso)
		out->file = NATIVE_VDSO;
	if (file) {
		out->file = file->map.path;
		out->name = name_of(u, file, module, inside);
	}
	return native_role_of(out->name ?: "", file ? text_base_name(file->map.path) : "");
}

enum unwind_end unwind_take(struct unwind *u, bool (*take)(void *arg, const struct unwind_frame *frame), void *arg)
{
	searching = u;
	name_made(u);
	for (uint32_t i = 0; i < u->nr_frames; i++) {
		struct unwind_frame frame;
		enum native_role role = describe(u, &u->frames[i], &frame);

		if (!take(arg, &frame))
			return UNWIND_LIMIT;
		if (role == NATIVE_ROLE_GREENLET)
			return UNWIND_WHOLE;
		if (role == NATIVE_ROLE_SWITCH)
			return UNWIND_BROKEN;
	}
	return u->end;
}

const char *unwind_next_lack(struct unwind *u, int *err)
{
	for (size_t i = 0; i < u->count; i++) {
		struct mapped *file = &u->files[i];

		if (!file->lack || file->lack_is_reported)
			continue;
		file->lack_is_reported = true;
		*err = file->lack;
		return file->map.path;
	}
	return NULL;
}
