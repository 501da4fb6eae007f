// SPDX-License-Identifier: Apache-2.0
#include "native/flow_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "native/flow.h"
#include "native/x86.h"

#define SEGMENTS_MAX 16
/* Bytes of code that are searched at once. */
#define CHUNK (1u << 20)
/* Most bytes of a function whose instructions are taken one by one. */
#define FUNCTION_MAX (1u << 20)
/* Most bytes of all of them. */
#define FUNCTIONS_MAX (256u << 20)
/* R_X86_64_RELATIVE (System V ABI for x86-64, table 4.9). */
#define RELOCATION_RELATIVE 8
#define RELOCATIONS_MAX     (1u << 20)

/* Functions of C libraries that never return. */
static const char *const endless[] = {
	"exit",    "_exit",      "_Exit",        "quick_exit",       "abort",
	"longjmp", "siglongjmp", "pthread_exit", "__stack_chk_fail", "__assert_fail",
};

/* Returns the number of functions that begin at the address or before it. */
static size_t count_begun(const struct flow_code *c, uint64_t address)
{
	return array_count_up_to(c->covered, c->nr_covered, sizeof(*c->covered),
				 offsetof(struct eh_frame_function, start), address);
}

const struct eh_frame_function *flow_code_covered(const struct flow_code *c, uint64_t address)
{
	size_t begun = count_begun(c, address);

	return begun && address < c->covered[begun - 1].end ? &c->covered[begun - 1] : NULL;
}

const struct flow_gap *flow_code_gap(const struct flow_code *c, uint64_t address)
{
	size_t begun;

	if (!c->nr_gaps || address < c->gaps[0].start || address >= c->gaps[c->nr_gaps - 1].end)
		return NULL;
	begun = array_count_up_to(c->gaps, c->nr_gaps, sizeof(*c->gaps), offsetof(struct flow_gap, start), address);
	return begun && address < c->gaps[begun - 1].end ? &c->gaps[begun - 1] : NULL;
}

void flow_code_note(struct flow_code *c, uint64_t address, enum flow_begin how)
{
	const struct flow_gap *gap = flow_code_gap(c, address);
	uint8_t *begin = gap ? &gap->begins[address - gap->start] : NULL;

	if (!begin || *begin >= how)
		return;
	if (!*begin) {
		if (array_reserve(&c->starts, &c->starts_room, c->nr_starts + 1, sizeof(*c->starts))) {
			c->err = -ENOMEM;
			return;
		}
		c->starts[c->nr_starts++] = address;
	}
	*begin = (uint8_t)how;
}

enum flow_begin flow_code_begin_at(const struct flow_code *c, uint64_t address)
{
	const struct flow_gap *gap = flow_code_gap(c, address);

	return gap ? gap->begins[address - gap->start] : FLOW_BEGIN_NONE;
}

static void note_symbol(const char *name, const struct elf_symbol *symbol, void *arg)
{
	enum flow_begin begin = FLOW_BEGIN_FUNCTION;

	/* A part of a function that the compiler put elsewhere does not begin as functions do. */
	if (strstr(name, ".cold"))
		return;
	for (size_t i = 0; i < sizeof(endless) / sizeof(*endless); i++) {
		if (!strcmp(name, endless[i]))
			begin = FLOW_BEGIN_ENDLESS;
	}
	flow_code_note(arg, symbol->value, begin);
}

/* What tables of functions and of other addresses lead to. */
static void note_relocations(struct flow_code *c)
{
	struct elf_section section;
	struct {
		uint64_t offset, info, addend;
	} rows[512];
	ssize_t n = 0;

	if (elf_file_section(c->elf, ".rela.dyn", &section))
		return;
	for (uint64_t at = 0; at < RELOCATIONS_MAX * sizeof(*rows); at += (uint64_t)n) {
		n = elf_file_read_section(c->elf, &section, at, rows, sizeof(rows));
		n -= n > 0 ? n % (ssize_t)sizeof(*rows) : 0;
		if (n <= 0)
			return;
		for (size_t i = 0; i < (size_t)n / sizeof(*rows); i++) {
			if ((uint32_t)rows[i].info == RELOCATION_RELATIVE)
				flow_code_note(c, rows[i].addend, FLOW_BEGIN_PERHAPS);
		}
	}
}

/* Returns whether an instruction of a covered function begins at the address: each one's length tells the next one. */
static bool is_instruction(struct flow_code *c, uint64_t address)
{
	const struct eh_frame_function *function = flow_code_covered(c, address);
	size_t want = function ? (size_t)(address - function->start) : 0, at = 0;
	struct x86_instruction i;
	uint8_t *code;
	ssize_t n;

	if (!function || want > FUNCTION_MAX || want > c->left)
		return false;
	c->left -= want;
	code = malloc(want + 1);
	n = code ? elf_file_read(c->elf, function->start, code, want) : 0;
	while (n > 0 && at < want && x86_decode(code + at, (size_t)n - at, &i))
		at += i.length;
	free(code);
	return at == want;
}

/* Bytes that pass for an instruction with a distance of 4 bytes behind them, and lead to a gap. */
static void note_reference(struct flow_code *c, uint64_t address, const uint8_t *code, size_t length,
			   enum flow_begin how)
{
	int32_t distance;
	uint64_t target;

	memcpy(&distance, code + length - sizeof(distance), sizeof(distance));
	target = address + length + (uint64_t)(int64_t)distance;
	if (flow_code_gap(c, target) && flow_code_begin_at(c, target) < how && is_instruction(c, address))
		flow_code_note(c, target, how);
}

/* Calls, and lea behind REX and before a ModRM of the instruction pointer. */
static void note_references(struct flow_code *c, const uint8_t *code, size_t size, uint64_t address)
{
	const uint8_t *end = code + size;

	for (const uint8_t *at = code; (at = memchr(at, 0xe8, (size_t)(end - at))) && end - at >= 5; at++)
		note_reference(c, address + (uint64_t)(at - code), at, 5, FLOW_BEGIN_FUNCTION);
	for (const uint8_t *at = code; (at = memchr(at, 0x8d, (size_t)(end - at))) && end - at >= 6; at++) {
		if (at > code && (at[-1] & 0xf8) == 0x48 && (at[1] & 0xc7) == 5)
			note_reference(c, address + (uint64_t)(at - 1 - code), at - 1, 7, FLOW_BEGIN_PERHAPS);
	}
}

/*
 * What covered functions call, or take the address of. Only bytes that lead to a gap are looked at closely: decoding
 * all instructions would take ten times as long as the rest of a table.
 */
static void search(struct flow_code *c, const struct elf_segment *segment)
{
	uint8_t *chunk = malloc(CHUNK);
	ssize_t n = CHUNK;

	if (!chunk)
		c->err = -ENOMEM;
	/* The longest that is looked for lies in one of two chunks. */
	for (uint64_t at = 0; at < segment->size && n == CHUNK && !c->err; at += CHUNK - 8) {
		n = elf_file_read(c->elf, segment->vaddr + at, chunk, CHUNK);
		if (n > 0)
			note_references(c, chunk, (size_t)n, segment->vaddr + at);
	}
	free(chunk);
}

static void add_gap(struct flow_code *c, uint64_t start, uint64_t end)
{
	struct flow_gap *gap;
	ssize_t n;

	if (end < start + FLOW_PADDING_MAX)
		return;
	if (array_reserve(&c->gaps, &c->gaps_room, c->nr_gaps + 1, sizeof(*c->gaps))) {
		c->err = -ENOMEM;
		return;
	}
	gap = &c->gaps[c->nr_gaps++];
	*gap = (struct flow_gap){start, end, malloc(end - start), calloc(end - start, 1)};
	n = gap->code ? elf_file_read(c->elf, start, gap->code, end - start) : 0;
	c->err = gap->code && gap->begins ? c->err : -ENOMEM;
	gap->end = start + (n > 0 ? (uint64_t)n : 0);
}

/* Calls visit for each range of a segment that no function covers. */
static void each_gap(struct flow_code *c, const struct elf_segment *segment,
		     void (*visit)(struct flow_code *c, uint64_t start, uint64_t end))
{
	uint64_t at = segment->vaddr, end = at + segment->size;

	for (size_t i = count_begun(c, at); i < c->nr_covered && c->covered[i].start < end && !c->err; i++) {
		if (c->covered[i].start > at)
			visit(c, at, c->covered[i].start);
		if (c->covered[i].end > at)
			at = c->covered[i].end;
	}
	if (at < end && !c->err)
		visit(c, at, end);
}

static int compare_segments(const void *a, const void *b)
{
	const struct elf_segment *one = a, *other = b;

	return one->vaddr < other->vaddr ? -1 : one->vaddr > other->vaddr;
}

void flow_code_open(struct flow_code *c, struct elf_file *elf, const struct eh_frame_function *covered, size_t count)
{
	struct elf_segment segments[SEGMENTS_MAX];
	size_t nr_segments = elf_file_code_segments(elf, segments, SEGMENTS_MAX);
	uint64_t all = 0;

	memset(c, 0, sizeof(*c));
	c->elf = elf;
	c->covered = covered;
	c->nr_covered = count;
	c->left = FUNCTIONS_MAX;
	qsort(segments, nr_segments, sizeof(*segments), compare_segments);
	for (size_t i = 0; i < nr_segments && !c->err; i++) {
		all += segments[i].size;
		if (segments[i].size > FLOW_CODE_MAX || all > FLOW_CODE_MAX)
			return;
		each_gap(c, &segments[i], add_gap);
	}
}

void flow_code_close(struct flow_code *c)
{
	for (size_t i = 0; i < c->nr_gaps; i++) {
		free(c->gaps[i].code);
		free(c->gaps[i].begins);
	}
	free(c->gaps);
	free(c->starts);
}

void flow_code_find_starts(struct flow_code *c)
{
	struct elf_segment segments[SEGMENTS_MAX];
	size_t nr_segments = c->nr_covered ? elf_file_code_segments(c->elf, segments, SEGMENTS_MAX) : 0;

	/* Linkers write the start of the code into libraries, which is any part of a function. */
	flow_code_note(c, elf_file_entry(c->elf), FLOW_BEGIN_PERHAPS);
	elf_file_functions(c->elf, note_symbol, c);
	note_relocations(c);
	for (size_t i = 0; i < nr_segments && !c->err; i++)
		search(c, &segments[i]);
}
