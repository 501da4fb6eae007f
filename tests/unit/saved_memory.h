// SPDX-License-Identifier: Apache-2.0
/*
 * The memory that a walk of one thread reads, in a file of tests/data/memory: made by tools/save-memory from a live
 * process, walked again by tests without that process and without its Python.
 *
 * A file is, little-endian and without padding between its parts:
 *
 *	struct saved_header
 *	offsets_size bytes	the process's _Py_DebugOffsets (3.13+); none: the layout is the table's for major.minor
 *	said_size bytes		what the target says of itself: "NAME TAB FILE TAB LINE\n" for each frame, leaf first
 *	ranges times		struct saved_range, followed by its bytes; by address, none overlaps another
 *
 * Not struct pybpf_layout itself, but what it is made of: the files outlive a change of the struct.
 */
#ifndef SAVED_MEMORY_H
#define SAVED_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/layout.h"
#include "symbols/pysym.h"
#include "symbols/objects/string.h"
#include "symbols/walk/walk_user.h"

#define SAVED_MAGIC   "pybpfmem"
#define SAVED_VERSION 1
/* Names and lines are looked up by it; there is no process behind it. */
#define SAVED_PROC_ID 1
/* Longest line table that is taken from saved memory. */
#define SAVED_LINES_MAX (1u << 20)

struct saved_header {
	char magic[8];
	uint32_t version; /* SAVED_VERSION */
	uint16_t major, minor;
	uint32_t debug_build;
	uint32_t offsets_size;
	uint32_t said_size;
	uint32_t ranges;
	uint64_t interp_head, tstate_current, code_type; /* as in struct pybpf_runtime */
	uint64_t thread_id;
};
_Static_assert(sizeof(struct saved_header) == 64, "saved_header has no hidden padding");

struct saved_range {
	uint64_t addr;
	uint64_t size;
};

struct saved_piece {
	uint64_t addr, size;
	const uint8_t *bytes; /* in the file */
};

struct saved_memory {
	struct saved_header header;
	struct pybpf_layout layout;
	struct pybpf_runtime proc;
	const char *said; /* not terminated: header.said_size bytes */
	struct saved_piece *pieces;
	size_t missing; /* index of a piece that is taken to be unmapped, SIZE_MAX: none is */
};

/* Parses a file's bytes, which must outlive *out. Returns 0; -EBADMSG with one sentence in *error; -ENOMEM. */
static inline int saved_parse(const uint8_t *bytes, size_t size, struct saved_memory *out, struct error *error)
{
	const struct saved_header *header = &out->header;
	struct layout_build build;
	size_t at = sizeof(*header);
	int err;

	memset(out, 0, sizeof(*out));
	out->missing = SIZE_MAX;
	error_set(error, -EBADMSG, "it is no file of saved memory, or one of another version");
	if (size < at)
		return -EBADMSG;
	memcpy(&out->header, bytes, at);
	if (memcmp(header->magic, SAVED_MAGIC, sizeof(header->magic)) || header->version != SAVED_VERSION)
		return -EBADMSG;
	error_set(error, -EBADMSG, "it is cut off");
	if (header->offsets_size > size - at || header->said_size > size - at - header->offsets_size)
		return -EBADMSG;
	if (header->offsets_size)
		err = layout_from_debug_offsets(bytes + at, header->offsets_size, &build, error);
	else
		err = layout_from_table(header->major, header->minor, header->debug_build != 0, &build);
	if (err) {
		if (!header->offsets_size)
			error_set(error, -EBADMSG, "there is no layout of Python %u.%u", header->major, header->minor);
		return -EBADMSG;
	}
	at += header->offsets_size;
	out->said = (const char *)bytes + at;
	at += header->said_size;
	out->layout = build.layout;
	out->layout.debug_build = header->debug_build != 0;
	out->proc = (struct pybpf_runtime){
		.interp_head = header->interp_head,
		.tstate_current = header->tstate_current,
		.code_type = header->code_type,
	};
	if (header->ranges > (size - at) / sizeof(struct saved_range))
		return -EBADMSG;
	out->pieces = calloc(header->ranges + 1u, sizeof(*out->pieces));
	if (!out->pieces)
		return -ENOMEM;
	for (uint32_t i = 0; i < header->ranges; i++) {
		struct saved_range range;

		if (size - at < sizeof(range))
			goto bad;
		memcpy(&range, bytes + at, sizeof(range));
		at += sizeof(range);
		if (range.size > size - at || range.addr > UINT64_MAX - range.size)
			goto bad;
		if (i && range.addr < out->pieces[i - 1].addr + out->pieces[i - 1].size)
			goto bad;
		out->pieces[i] = (struct saved_piece){.addr = range.addr, .size = range.size, .bytes = bytes + at};
		at += range.size;
	}
	return 0;
bad:
	error_set(error, -EBADMSG, "it is cut off, or its ranges are not in order");
	free(out->pieces);
	out->pieces = NULL;
	return -EBADMSG;
}

static inline void saved_free(struct saved_memory *saved)
{
	free(saved->pieces);
	saved->pieces = NULL;
}

/* Index of the first piece that ends beyond addr. */
static inline size_t saved_first_beyond(const struct saved_memory *saved, uint64_t addr)
{
	size_t low = 0, high = saved->header.ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (saved->pieces[middle].addr + saved->pieces[middle].size > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Memory is mapped by pages: in a page of which a part was saved, all other bytes are garbage. */
#define SAVED_PAGE    4096
#define SAVED_GARBAGE 0xa5

/* struct walk_memory's read; source is a struct saved_memory. */
static inline int saved_read(void *source, uint64_t addr, void *dst, size_t size)
{
	const struct saved_memory *saved = (const struct saved_memory *)source;

	if (addr > UINT64_MAX - size - SAVED_PAGE)
		return -EFAULT;
	memset(dst, SAVED_GARBAGE, size);
	for (uint64_t page = addr - addr % SAVED_PAGE; page < addr + size; page += SAVED_PAGE) {
		size_t first = saved_first_beyond(saved, page), i = first;

		for (; i < saved->header.ranges && saved->pieces[i].addr < page + SAVED_PAGE; i++) {
			const struct saved_piece *piece = &saved->pieces[i];
			uint64_t end = piece->addr + piece->size, begin = piece->addr > addr ? piece->addr : addr;

			if (end > addr + size)
				end = addr + size;
			if (begin >= end)
				continue;
			if (i == saved->missing)
				return -EFAULT;
			memcpy((uint8_t *)dst + (begin - addr), piece->bytes + (begin - piece->addr), end - begin);
		}
		if (i == first)
			return -EFAULT;
	}
	return 0;
}

/* Reads a string object whole into a new buffer: NULL where that can't be done. */
static inline uint8_t *saved_string(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr,
				    uint32_t *size)
{
	size_t need = layout->string_kind == PYBPF_STR_BYTES ? layout->str_ascii_data : layout->str_state + 4u;
	uint8_t header[PYSYM_STRING_HEADER] = {0}, *object;
	struct pysym_string_shape shape;

	if (memory->read(memory->source, addr, header, sizeof(header)) &&
	    (need > sizeof(header) || memory->read(memory->source, addr, header, need)))
		return NULL;
	if (pysym_string_read_shape(layout, header, &shape))
		return NULL;
	*size = shape.data_offset + shape.data_size;
	object = malloc(*size + 1u);
	if (object && memory->read(memory->source, addr, object, *size)) {
		free(object);
		object = NULL;
	}
	return object;
}

static inline uint8_t *saved_lines(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr,
				   uint32_t *size)
{
	uint64_t length;
	uint8_t *lines;

	if (memory->read(memory->source, addr + layout->bytes_size, &length, sizeof(length)) ||
	    length > SAVED_LINES_MAX)
		return NULL;
	lines = malloc(length + 1);
	/* What has no bytes is in no piece of memory. */
	if (lines && length && memory->read(memory->source, addr + layout->bytes_data, lines, length)) {
		free(lines);
		return NULL;
	}
	*size = (uint32_t)length;
	return lines;
}

/*
 * Tells pysym of a frame's code object as the kernel does: with a copy of its parts, here whole ones. Names, files and
 * lines then come out of pysym_resolve. Returns 0, -EFAULT when the code object can't be read or is another one,
 * -ENOMEM.
 */
static inline int saved_announce(struct pysym *names, const struct walk_memory *memory,
				 const struct pybpf_layout *layout, const struct pybpf_frame *frame)
{
	uint8_t *part[PYBPF_CODE_PARTS] = {NULL};
	struct pybpf_code_event *event = NULL;
	struct pybpf_code_event head = {
		.event.type = PYBPF_EVENT_CODE, .code = frame->code, .sig = frame->sig, .proc_id = SAVED_PROC_ID};
	struct walk_code code;
	size_t size = sizeof(head);
	int err;

	err = walk_read_code(memory, layout, frame->code, frame->sig & PYBPF_SIG_TEXTS, &code);
	if (!err && code.sig != frame->sig)
		err = -EFAULT;
	if (err)
		return err;
	head.first_line = code.first_line;
	head.part_addr[PYBPF_CODE_NAME] = code.name;
	head.part_addr[PYBPF_CODE_FILE] = code.file;
	head.part_addr[PYBPF_CODE_LINES] = code.lines;
	part[PYBPF_CODE_NAME] = saved_string(memory, layout, code.name, &head.part_size[PYBPF_CODE_NAME]);
	part[PYBPF_CODE_FILE] = saved_string(memory, layout, code.file, &head.part_size[PYBPF_CODE_FILE]);
	part[PYBPF_CODE_LINES] = saved_lines(memory, layout, code.lines, &head.part_size[PYBPF_CODE_LINES]);
	for (int i = 0; i < PYBPF_CODE_PARTS; i++) {
		if (!part[i])
			head.part_size[i] = PYBPF_SIZE_UNKNOWN;
		else
			head.part_copied[i] = head.part_size[i];
		size += head.part_copied[i];
	}
	head.event.size = (uint32_t)size;
	err = -ENOMEM;
	event = malloc(size);
	if (event) {
		uint8_t *at = (uint8_t *)(event + 1);

		memcpy(event, &head, sizeof(head));
		for (int i = 0; i < PYBPF_CODE_PARTS; i++) {
			if (part[i])
				memcpy(at, part[i], head.part_copied[i]);
			at += head.part_copied[i];
		}
		err = pysym_add_code(names, event, size);
	}
	for (int i = 0; i < PYBPF_CODE_PARTS; i++)
		free(part[i]);
	free(event);
	return err;
}

/*
 * Walks the thread and writes its frames as the target does: "NAME TAB FILE TAB LINE\n", leaf first. What is not whole
 * says so in a line of its own. Returns 0, or what walk_thread returns.
 */
static inline int saved_print(const struct walk_memory *memory, const struct pybpf_layout *layout,
			      const struct pybpf_runtime *proc, uint64_t thread_id, FILE *out)
{
	struct pysym *names = NULL;
	struct walk_stack stack;
	uint32_t kept;
	int err = walk_thread(memory, layout, proc, thread_id, 0, 0, &stack);

	if (err)
		return err;
	names = pysym_new(PYSYM_LINES_CURRENT, true);
	/* No process has PID 0: what the saved memory does not have is not looked for elsewhere. */
	err = names ? pysym_add_process(names, SAVED_PROC_ID, 0, layout) : -ENOMEM;
	kept = pybpf_kept_frames(stack.depth);
	for (uint32_t i = 0; i < kept && !err; i++) {
		struct pysym_frame frame = {0};

		err = saved_announce(names, memory, layout, &stack.frames[i]);
		if (!err)
			err = pysym_resolve(names, SAVED_PROC_ID, 0, &stack.frames[i], &frame);
		if (err && err != -ENOMEM) {
			fprintf(out, "[no code object at %#llx]\n", (unsigned long long)stack.frames[i].code);
			err = 0;
		} else if (!err && !frame.hidden) {
			fprintf(out, "%s\t%s\t%d\n", frame.name, frame.file, frame.line);
		}
	}
	if (stack.flags)
		fprintf(out, "[flags %#x]\n", stack.flags);
	pysym_free(names);
	free(stack.frames);
	return err;
}

#endif
