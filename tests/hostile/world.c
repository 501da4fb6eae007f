// SPDX-License-Identifier: Apache-2.0
/* The objects of the imitated Python, laid out as in the Python of this minor version. */
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pretender.h"

/*
 * Where struct walk_state has what it reads: a cframe inside the thread state is the outermost one, and lies beyond the
 * part of the thread state that is read.
 */
#define CFRAME      512
#define FRAME_SIZE  160 /* of each of many frames */
#define INTERP_SIZE 16384
#define PAGED_CODE  1024
#define PAGED_NAME  3072

struct world world;

const char *const name_texts[NAMES] = {"alpha", "bravo", "charlie", "delta",  "echo", "foxtrot",
				       "golf",  "hotel", "india",   "juliet", "kilo", "lima"};

/* Symbols that discovery looks for in the file and in memory. */
char _PyRuntime[1 << 20] = {0};
static const char code_type_name[] = "code";
uint64_t PyCode_Type[64];
void *PyInterpreterState_Head(void);
#if MINOR >= 11
extern const unsigned long Py_Version;
const unsigned long Py_Version = MAJOR << 24 | MINOR << 16 | 0xf0;
#else
extern const char *const version_marks[];
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
const char *const version_marks[] = {TEXT(MAJOR) "." TEXT(MINOR) ".1", "cpython-" TEXT(MAJOR) TEXT(MINOR)};
void Py_InitializeFromConfig(void);
void Py_InitializeFromConfig(void)
{
}
#endif

void *PyInterpreterState_Head(void)
{
	return world.interps;
}

void put_u64(uint8_t *object, uint16_t offset, uint64_t value)
{
	if (offset != PYBPF_NO_OFFSET)
		*(volatile uint64_t *)(object + offset) = value;
}

void put_u32(uint8_t *object, uint16_t offset, uint32_t value)
{
	if (offset != PYBPF_NO_OFFSET)
		*(volatile uint32_t *)(object + offset) = value;
}

void put_u8(uint8_t *object, uint16_t offset, uint8_t value)
{
	if (offset != PYBPF_NO_OFFSET)
		*(volatile uint8_t *)(object + offset) = value;
}

static uint64_t number(const void *pointer)
{
	return (uintptr_t)pointer;
}

uint8_t *interp_at(unsigned int i)
{
	return world.interps + (size_t)i * INTERP_SIZE;
}

uint8_t *code_at(unsigned int i)
{
	return world.codes + (size_t)i * CODE_SIZE;
}

uint8_t *name_at(unsigned int i)
{
	return world.names + (size_t)i * OBJECT;
}

uint8_t *file_at(unsigned int i)
{
	return world.files + (size_t)i * OBJECT;
}

uint8_t *frame_at(const struct worker *w, unsigned int i)
{
	return w->frames + (size_t)i * OBJECT;
}

uint8_t *deep_at(unsigned int i)
{
	return world.deep + (size_t)i * FRAME_SIZE;
}

static uint8_t *room(size_t size)
{
	uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		err(1, "mmap");
	return memory;
}

static void string_set_head(uint8_t *string, size_t length)
{
	/* kind 1, compact, ascii; and up to 3.11: ready. */
	uint32_t state = 1 << 2 | 1 << 5 | 1 << 6 | (MINOR <= 11 ? 1 << 7 : 0);

	put_u64(string, world.l.str_length, length);
	put_u32(string, world.l.str_state, state);
}

static void string_make(uint8_t *string, const char *text)
{
	memcpy(string + world.l.str_ascii_data, text, strlen(text));
	string_set_head(string, strlen(text));
}

static size_t table_size(void)
{
	return world.l.line_kind == PYBPF_LINES_PEP657 ? LINES * 3 : LINES * 2;
}

/* Makes a line table in which each code unit is one line after the previous one. */
static void table_make(uint8_t *table)
{
	static const uint8_t pep657[] = {1 << 7 | 11 << 3, 0, 0}, lnotab[] = {2, 1};
	bool is_pep657 = world.l.line_kind == PYBPF_LINES_PEP657;
	size_t entry = is_pep657 ? sizeof(pep657) : sizeof(lnotab);

	for (size_t i = 0; i < LINES; i++)
		memcpy(table + world.l.bytes_data + i * entry, is_pep657 ? pep657 : lnotab, entry);
	put_u64(table, world.l.bytes_size, table_size());
}

static void code_set(uint8_t *code, unsigned int i, const uint8_t *name)
{
	put_u64(code, world.l.code_type, number(PyCode_Type));
	put_u64(code, world.l.code_name, number(name));
	put_u64(code, world.l.code_qualname, number(name));
	put_u64(code, world.l.code_filename, number(file_at(i)));
	put_u64(code, world.l.code_linetable, number(world.table));
	put_u32(code, world.l.code_firstlineno, 100 * (i + 1));
	put_u32(code, world.l.code_version, i + 1);
}

void frame_set_position(uint8_t *frame, const uint8_t *code, unsigned int offset)
{
	if (world.l.position_kind == PYBPF_POS_LASTI)
		put_u32(frame, world.l.frame_position, offset);
	else
		put_u64(frame, world.l.frame_position, number(code) + world.l.code_adaptive + offset);
}

static void frame_set_code(uint8_t *frame, const uint8_t *code, const uint8_t *caller, unsigned int line)
{
	put_u64(frame, world.l.frame_code, number(code) | (world.l.code_tag_mask & 1));
	put_u64(frame, world.l.frame_previous, number(caller));
	frame_set_position(frame, code, 2 * line);
	put_u8(frame, world.l.frame_owner, 0);
	put_u8(frame, world.l.frame_entry, 0);
}

void frame_set(uint8_t *frame, unsigned int code, const uint8_t *caller, unsigned int line)
{
	frame_set_code(frame, code_at(code % NAMES), caller, line);
	if (caller)
		return;
	/* The first of its run of the evaluation loop: 3.11 marks it, 3.12 and later have one more frame there. */
	put_u8(frame, world.l.frame_entry, 1);
	put_u8(frame, world.l.frame_owner, world.l.owner_not_python);
}

void world_set_right(struct worker *w)
{
	uint8_t *leaf = frame_at(w, CHAIN - 1), *cframe = w->tstate + CFRAME;
	char *runtime = _PyRuntime;

	for (unsigned int i = 0; i < NAMES; i++) {
		string_set_head(name_at(i), strlen(name_texts[i]));
		string_set_head(file_at(i), strlen("/pretender/.py") + strlen(name_texts[i]));
		code_set(code_at(i), i, name_at(i));
	}
	put_u64(world.table, world.l.bytes_size, table_size());
	for (unsigned int i = 0; i < CHAIN; i++)
		frame_set(frame_at(w, i), i, i ? frame_at(w, i - 1) : NULL, i % LINES);
	if (world.l.cframe_frame != PYBPF_NO_OFFSET) {
		put_u64(cframe, world.l.cframe_frame, number(leaf));
		put_u64(cframe, world.l.cframe_frame + sizeof(uint64_t), 0);
		leaf = cframe;
	}
	put_u64(w->tstate, world.l.tstate_frame, number(leaf));
	put_u64(w->tstate, world.l.tstate_thread_id, w->thread);
	put_u64(w->tstate, world.l.tstate_interp, number(world.interps));
	put_u64(w->tstate, world.l.tstate_next, number(w == world.workers ? world.workers[1].tstate : NULL));
	if (world.l.tstate_status)
		put_u32(w->tstate, world.l.tstate_status, PYBPF_TSTATE_BOUND | PYBPF_TSTATE_GILSTATE);
	for (unsigned int i = 0; i < INTERPS; i++) {
		put_u64(interp_at(i), world.l.interp_next, 0);
		put_u64(interp_at(i), world.l.interp_threads_head, i ? 0 : number(world.workers[0].tstate));
	}
	*(volatile uint64_t *)(runtime + world.build.runtime_interp_head) = number(world.interps);
	if (world.build.runtime_tstate_current != LAYOUT_NONE)
		*(volatile uint64_t *)(runtime + world.build.runtime_tstate_current) = 0;
}

/* Makes the pages in a file, so that a page that is mapped again has its former contents at once. */
static void make_pages(void)
{
	int fd = memfd_create("pretender", MFD_CLOEXEC);

	world.page = (size_t)sysconf(_SC_PAGESIZE);
	if (fd < 0 || ftruncate(fd, (off_t)(PAGED * world.page)))
		err(1, "memfd_create");
	world.paged = mmap(NULL, PAGED * world.page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (world.paged == MAP_FAILED)
		err(1, "mmap");
	for (unsigned int i = 0; i < PAGED; i++) {
		uint8_t *page = world.paged + i * world.page;

		string_make(page + PAGED_NAME, name_texts[i % NAMES]);
		code_set(page + PAGED_CODE, i % NAMES, page + PAGED_NAME);
		if (i + 1 < PAGED)
			frame_set_code(page, page + PAGED_CODE, page + world.page, 0);
		else
			frame_set(page, 0, NULL, 0);
	}
	world.paged_fd = fd;
}

static void make_many(void)
{
	size_t window = PYBPF_TSTATE_WINDOW;
	uint8_t *codes;

	world.deep = room((size_t)DEEP * FRAME_SIZE);
	for (unsigned int i = 0; i < DEEP; i++)
		frame_set(world.deep + (size_t)i * FRAME_SIZE, i,
			  i + 1 < DEEP ? world.deep + (i + 1ULL) * FRAME_SIZE : NULL, 0);
	code_set(code_at(ROOT), 0, name_at(0));
	frame_set_code(deep_at(DEEP - 2), code_at(ROOT), deep_at(DEEP - 1), 0);
	world.long_table = room(LONG_TABLE + 4096);
	world.costly = room((size_t)DEEP * FRAME_SIZE);
	codes = room((size_t)DEEP * OBJECT);
	for (unsigned int i = 0; i < DEEP; i++) {
		uint8_t *code = codes + (size_t)i * OBJECT;

		code_set(code, i % NAMES, (uint8_t *)(0x100000000000 + i * 4096ULL));
		put_u64(code, world.l.code_filename, 0x200000000000 + i * 4096ULL);
		put_u64(code, world.l.code_linetable, number(world.long_table));
		frame_set_code(world.costly + (size_t)i * FRAME_SIZE, code,
			       i + 1 < DEEP ? world.costly + (i + 1ULL) * FRAME_SIZE : NULL, 0);
	}
	world.circle = room((size_t)CIRCLE * FRAME_SIZE);
	for (unsigned int i = 0; i < CIRCLE; i++)
		frame_set(world.circle + (size_t)i * FRAME_SIZE, i, world.circle + (i + 1ULL) % CIRCLE * FRAME_SIZE, 0);
	world.crowd = room(CROWD * window);
	for (unsigned int i = 0; i + 1 < CROWD; i++)
		put_u64(world.crowd + i * window, world.l.tstate_next, number(world.crowd + (i + 1) * window));
	world.ring = room(CIRCLE * window);
	for (unsigned int i = 0; i < CIRCLE; i++)
		put_u64(world.ring + i * window, world.l.tstate_next, number(world.ring + (i + 1) % CIRCLE * window));
}

void world_make(void)
{
	world.interps = room((size_t)INTERPS * INTERP_SIZE);
	world.codes = room((NAMES + 1ULL) * CODE_SIZE);
	world.names = room((size_t)NAMES * OBJECT);
	world.files = room((size_t)NAMES * OBJECT);
	/* A table that claims to be longer continues with zeros. */
	world.table = room(4 * PYBPF_COPY_LINES);
	table_make(world.table);
	for (unsigned int i = 0; i < NAMES; i++) {
		char file[64];

		snprintf(file, sizeof(file), "/pretender/%s.py", name_texts[i]);
		string_make(name_at(i), name_texts[i]);
		string_make(file_at(i), file);
	}
	/* tp_name */
	put_u64((uint8_t *)PyCode_Type, world.l.code_type + 16, number(code_type_name));
	for (unsigned int i = 0; i < WORKERS; i++) {
		world.workers[i].tstate = room(TSTATE_SIZE);
		world.workers[i].frames = room((size_t)CHAIN * OBJECT);
		world.workers[i].random = 0x9e3779b97f4a7c15ULL * (i + 1);
	}
	make_pages();
	make_many();
}
