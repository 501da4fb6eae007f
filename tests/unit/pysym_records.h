// SPDX-License-Identifier: Apache-2.0
/* Records of code objects as the kernel writes them, made by hand. */
#ifndef PYSYM_RECORDS_H
#define PYSYM_RECORDS_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cpython/layout.h"
#include "symbols/pysym.h"
#include "symbols/walk/walk_user.h"

#define PROC     0x300000007ULL /* a number of 64 bits */
#define CODE     0x7f0000001000ULL
#define SIG      0xabcdef01u
#define TOO_MUCH 0x7fffffff

static inline struct pybpf_layout layout_of(int minor)
{
	struct layout_build build;

	assert_int_equal(layout_from_table(3, minor, false, &build), 0);
	return build.layout;
}

/* A PID that no process has: that of a child which is gone. */
static inline pid_t gone_pid(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static inline struct pysym *symbols(enum pysym_line_mode mode, bool full, int minor, pid_t pid)
{
	struct pysym *s = pysym_new(mode, full);
	struct pybpf_layout layout = layout_of(minor);

	assert_non_null(s);
	assert_int_equal(pysym_add_process(s, PROC, pid, &layout), 0);
	return s;
}

/* A record as the kernel writes it, on the heap so that the sanitizer guards its end. */
struct record {
	struct pybpf_code_event *event;
	size_t size;
};

static inline struct record new_record(int first_line)
{
	struct record r = {calloc(1, sizeof(*r.event)), sizeof(*r.event)};

	assert_non_null(r.event);
	r.event->event.type = PYBPF_EVENT_CODE;
	r.event->code = CODE;
	r.event->sig = SIG;
	r.event->proc_id = PROC;
	r.event->first_line = first_line;
	for (int i = 0; i < PYBPF_CODE_PARTS; i++) {
		r.event->part_addr[i] = 0x1000 + (uint64_t)i * 0x100;
		r.event->part_size[i] = PYBPF_SIZE_UNKNOWN;
	}
	return r;
}

/* Appends a part; size is what a whole copy would have. */
static inline void append(struct record *r, enum pybpf_code_part part, const void *bytes, size_t copied, size_t size)
{
	r->event = realloc(r->event, r->size + copied);
	assert_non_null(r->event);
	if (copied)
		memcpy((char *)r->event + r->size, bytes, copied);
	r->size += copied;
	r->event->part_copied[part] = (uint32_t)copied;
	r->event->part_size[part] = (uint32_t)size;
	r->event->event.size = (uint32_t)r->size;
}

/* A compact ASCII string object; returns its size. */
static inline size_t ascii(const struct pybpf_layout *l, const char *text, uint8_t *object, size_t room)
{
	uint64_t length = strlen(text);
	uint32_t state = (1u | 7u << 3) << l->str_kind_shift; /* kind 1, compact, ascii, ready */

	assert_true(l->str_ascii_data + length <= room);
	memset(object, 0, l->str_ascii_data);
	memcpy(object + l->str_length, &length, 8);
	memcpy(object + l->str_state, &state, 4);
	memcpy(object + l->str_ascii_data, text, length);
	return l->str_ascii_data + length;
}

static inline void append_text(struct record *r, const struct pybpf_layout *l, enum pybpf_code_part part,
			       const char *text)
{
	uint8_t object[512];
	size_t size = ascii(l, text, object, sizeof(object));

	append(r, part, object, size, size);
}

/* 3.8's co_lnotab: 4 bytes of code on each of the lines first, first + 1, first + 2. */
static const uint8_t lnotab[] = {4, 1, 4, 1};

static inline struct record whole_record(int first_line, const char *name, const char *file)
{
	struct pybpf_layout l = layout_of(8);
	struct record r = new_record(first_line);

	append_text(&r, &l, PYBPF_CODE_NAME, name);
	append_text(&r, &l, PYBPF_CODE_FILE, file);
	append(&r, PYBPF_CODE_LINES, lnotab, sizeof(lnotab), sizeof(lnotab));
	return r;
}

static inline void add(struct pysym *s, struct record r)
{
	assert_int_equal(pysym_add_code(s, r.event, r.size), 0);
	free(r.event);
}

static inline struct pysym_frame resolved(struct pysym *s, int position)
{
	struct pybpf_frame frame = {.code = CODE, .sig = SIG, .position = position};
	struct pysym_frame out;

	assert_int_equal(pysym_resolve(s, PROC, 0, &frame, &out), 0);
	return out;
}

#endif
