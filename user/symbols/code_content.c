// SPDX-License-Identifier: Apache-2.0
/* Decodes code objects: from the kernel's record, and from the process's memory. */
#include "symbols/code_content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/objects/string_read.h"
#include "symbols/walk/walk_user.h"

void pysym_code_content_free(struct pysym_code_content *content)
{
	free(content->name);
	free(content->file);
	free(content->lines);
	memset(content, 0, sizeof(*content));
}

/* Decodes a string object from its first `have` bytes; NULL when these are not all of it. */
static char *decode_copy(const struct pybpf_layout *layout, const uint8_t *object, size_t have)
{
	uint8_t header[PYSYM_STRING_HEADER] = {0};
	struct pysym_string_shape shape;

	memcpy(header, object, have < sizeof(header) ? have : sizeof(header));
	if (pysym_string_read_shape(layout, header, &shape) || (uint64_t)shape.data_offset + shape.data_size > have)
		return NULL;
	return pysym_string_decode(&shape, object + shape.data_offset, shape.data_size);
}

int pysym_code_content_copy(struct pysym_code_content *content, const struct pybpf_layout *layout,
			    const struct pybpf_code_event *event, size_t size, size_t lines_room)
{
	const uint8_t *part[PYBPF_CODE_PARTS];
	const uint32_t *copied = event->part_copied;
	uint64_t at = sizeof(*event);

	memset(content, 0, sizeof(*content));
	if (size < sizeof(*event))
		return -EBADMSG;
	for (int i = 0; i < PYBPF_CODE_PARTS; i++) {
		part[i] = (const uint8_t *)event + at;
		at += copied[i];
		if (at > size)
			return -EBADMSG;
	}
	content->first_line = event->first_line;
	/* 3.12+: _Py_InitCleanup, pushed below an inlined __init__, has one object for all its names and no line. */
	content->hidden =
		event->part_addr[PYBPF_CODE_NAME] == event->part_addr[PYBPF_CODE_FILE] && event->first_line == 0;
	content->name = decode_copy(layout, part[PYBPF_CODE_NAME], copied[PYBPF_CODE_NAME]);
	content->file = decode_copy(layout, part[PYBPF_CODE_FILE], copied[PYBPF_CODE_FILE]);
	if (copied[PYBPF_CODE_LINES] == event->part_size[PYBPF_CODE_LINES] && copied[PYBPF_CODE_LINES] <= lines_room) {
		content->lines_size = copied[PYBPF_CODE_LINES];
		content->lines = malloc(content->lines_size + 1u);
		if (content->lines)
			memcpy(content->lines, part[PYBPF_CODE_LINES], content->lines_size);
	}
	return 0;
}

static uint8_t *read_lines(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr,
			   size_t room, uint32_t *size_read)
{
	uint64_t size;
	uint8_t *lines;

	if (memory->read(memory->source, addr + layout->bytes_size, &size, sizeof(size)) || size > room)
		return NULL;
	lines = malloc(size + 1);
	if (lines && memory->read(memory->source, addr + layout->bytes_data, lines, size)) {
		free(lines);
		return NULL;
	}
	*size_read = (uint32_t)size;
	return lines;
}

void pysym_code_content_read(struct pysym_code_content *content, const struct pybpf_layout *layout, pid_t pid,
			     uint64_t code, uint32_t sig, size_t lines_room)
{
	struct pysym_code_content fresh = {0};
	struct walk_code before, after;
	struct walk_memory memory;

	walk_process_memory(&memory, &pid);
	if (walk_read_code(&memory, layout, code, sig & PYBPF_SIG_TEXTS, &before) || before.sig != sig)
		return;
	if (!content->name)
		fresh.name = pysym_read_string(&memory, layout, before.name);
	if (!content->file)
		fresh.file = pysym_read_string(&memory, layout, before.file);
	if (!content->lines)
		fresh.lines = read_lines(&memory, layout, before.lines, lines_room, &fresh.lines_size);
	if (walk_read_code(&memory, layout, code, sig & PYBPF_SIG_TEXTS, &after) || after.sig != sig) {
		pysym_code_content_free(&fresh);
		return;
	}
	if (!content->name) {
		content->name = fresh.name;
		content->first_line = before.first_line;
		content->hidden = before.name == before.file && before.first_line == 0;
	}
	if (!content->file)
		content->file = fresh.file;
	if (!content->lines) {
		content->lines = fresh.lines;
		content->lines_size = fresh.lines_size;
	}
}

/* Copies a string object, as much of it as is decoded. Returns its bytes, 0 if it cannot be read. */
static uint32_t copy_string(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr,
			    uint8_t *out)
{
	struct pysym_string_shape shape;

	if (pysym_read_string_header(memory, layout, addr, out) || pysym_string_read_shape(layout, out, &shape) ||
	    shape.data_offset > PYSYM_RECORD_HEADER ||
	    memory->read(memory->source, addr, out, shape.data_offset + shape.data_size))
		return 0;
	return shape.data_offset + shape.data_size;
}

/* Returns the bytes of the line table, or PYBPF_SIZE_UNKNOWN if it cannot be read or is too long. */
static uint32_t copy_lines(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr,
			   uint8_t *out)
{
	uint64_t size;

	if (memory->read(memory->source, addr + layout->bytes_size, &size, sizeof(size)) || size > PYSYM_RECORD_LINES ||
	    memory->read(memory->source, addr + layout->bytes_data, out, size))
		return PYBPF_SIZE_UNKNOWN;
	return (uint32_t)size;
}

size_t pysym_record_code(const struct walk_memory *memory, const struct pybpf_layout *layout,
			 const struct pybpf_frame *frame, void *out)
{
	struct pybpf_code_event event = {.code = frame->code, .sig = frame->sig, .first_line = -1};
	const struct pybpf_code_event none = event;
	struct walk_code before, after;
	uint8_t *at = (uint8_t *)out + sizeof(event);
	uint32_t *copied = event.part_copied, *sizes = event.part_size;
	bool texts = frame->sig & PYBPF_SIG_TEXTS;

	if (walk_read_code(memory, layout, frame->code, texts, &before) || before.sig != frame->sig)
		goto unreadable;
	event.first_line = before.first_line;
	event.part_addr[PYBPF_CODE_NAME] = before.name;
	event.part_addr[PYBPF_CODE_FILE] = before.file;
	sizes[PYBPF_CODE_NAME] = copied[PYBPF_CODE_NAME] = copy_string(memory, layout, before.name, at);
	at += copied[PYBPF_CODE_NAME];
	sizes[PYBPF_CODE_FILE] = copied[PYBPF_CODE_FILE] = copy_string(memory, layout, before.file, at);
	at += copied[PYBPF_CODE_FILE];
	sizes[PYBPF_CODE_LINES] = copy_lines(memory, layout, before.lines, at);
	copied[PYBPF_CODE_LINES] = sizes[PYBPF_CODE_LINES] == PYBPF_SIZE_UNKNOWN ? 0 : sizes[PYBPF_CODE_LINES];
	at += copied[PYBPF_CODE_LINES];
	if (walk_read_code(memory, layout, frame->code, texts, &after) || after.sig != frame->sig)
		goto unreadable;
	memcpy(out, &event, sizeof(event));
	return (size_t)(at - (uint8_t *)out);
unreadable:
	event = none;
	sizes[PYBPF_CODE_LINES] = PYBPF_SIZE_UNKNOWN;
	memcpy(out, &event, sizeof(event));
	return sizeof(event);
}
