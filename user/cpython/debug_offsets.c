// SPDX-License-Identifier: Apache-2.0
/* Reads a process's own _Py_DebugOffsets (3.13 and later): its head, its parts, and what follows from the version. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cpython/debug_offsets.h"
#include "cpython/facts.h"

/* The head that every _Py_DebugOffsets has: cookie, version, free_threaded. */
#define DEBUG_COOKIE           "xdebugpy"
#define DEBUG_AT_VERSION       8
#define DEBUG_AT_FREE_THREADED 16
#define DEBUG_HEAD             24

/* First minor version with tagged references in frames. */
#define MINOR_TAGGED 14
/* Py_TAG_BITS of the default build's pycore_stackref.h (3.14, 3.15). Free-threaded 3.14 uses the lowest bit
 * alone, and objects are aligned to 8 bytes at least, so that the mask is right there as well. */
#define STACKREF_TAG_MASK 3
/* From 3.12: FRAME_OWNED_BY_CSTACK (3.12, 3.13), FRAME_OWNED_BY_INTERPRETER (3.14+). */
#define FRAME_OWNER_NOT_PYTHON 3

bool layout_has_debug_offsets(const uint8_t *bytes, size_t len)
{
	return len >= strlen(DEBUG_COOKIE) && memcmp(bytes, DEBUG_COOKIE, strlen(DEBUG_COOKIE)) == 0;
}

static int debug_check_length(const struct debug_reader *reader)
{
	if (reader->len < reader->table->size)
		return refuse(reader, "they have %zu bytes, and %u were expected", reader->len, reader->table->size);
	return 0;
}

/* Grows a window so that it covers a field; PYBPF_NO_OFFSET needs no room. */
static void window_cover(uint16_t *window, uint16_t offset, unsigned int width)
{
	unsigned int end = (offset + width + 7) / 8 * 8;

	/* An end beyond 16 bits is above every limit, too. */
	if (offset != PYBPF_NO_OFFSET && end > *window)
		*window = end < UINT16_MAX ? end : UINT16_MAX;
}

static int debug_set_windows(const struct debug_reader *reader, struct pybpf_layout *layout)
{
	window_cover(&layout->tstate_window, layout->tstate_next, 8);
	window_cover(&layout->tstate_window, layout->tstate_interp, 8);
	window_cover(&layout->tstate_window, layout->tstate_thread_id, 8);
	window_cover(&layout->tstate_window, layout->tstate_frame, 8);
	window_cover(&layout->tstate_window, layout->tstate_status, 4);
	window_cover(&layout->tstate_window, layout->tstate_datastack_top, 16);
	if (layout->tstate_executor)
		window_cover(&layout->tstate_window, layout->tstate_executor, 8);
	window_cover(&layout->frame_window, layout->frame_code, 8);
	window_cover(&layout->frame_window, layout->frame_previous, 8);
	window_cover(&layout->frame_window, layout->frame_position, 8);
	window_cover(&layout->frame_window, layout->frame_owner, 1);
	window_cover(&layout->frame_window, layout->frame_tlbc_index, 4);
	window_cover(&layout->frame_window, layout->frame_mark, 8);
	window_cover(&layout->code_window, layout->code_type, 8);
	window_cover(&layout->code_window, layout->code_filename, 8);
	window_cover(&layout->code_window, layout->code_name, 8);
	window_cover(&layout->code_window, layout->code_qualname, 8);
	window_cover(&layout->code_window, layout->code_linetable, 8);
	window_cover(&layout->code_window, layout->code_firstlineno, 4);
	window_cover(&layout->code_window, layout->code_version, 4);
	if (!layout_windows_fit(layout))
		return refuse(reader,
			      "thread state, frame and code object need windows of %u, %u and %u bytes, "
			      "above the limits of %u, %u and %u",
			      layout->tstate_window, layout->frame_window, layout->code_window, PYBPF_TSTATE_WINDOW,
			      PYBPF_FRAME_WINDOW, PYBPF_CODE_WINDOW);
	return 0;
}

/* Reads cookie, version and free_threaded, and chooses the table. */
static int debug_read_head(struct debug_reader *reader, struct layout_build *build)
{
	uint64_t version, free_threaded;

	if (reader->len < DEBUG_HEAD)
		return refuse(reader, "they have only %zu bytes", reader->len);
	if (!layout_has_debug_offsets(reader->bytes, reader->len))
		return refuse(reader, "they do not begin with " DEBUG_COOKIE);
	version = read_u64(reader->bytes + DEBUG_AT_VERSION);
	if (version >> 24 != 3)
		return refuse(reader, "their version is %#llx, which is no Python 3", (unsigned long long)version);
	snprintf(reader->version, sizeof(reader->version), "3.%u.%u", (unsigned int)(version >> 16 & 0xff),
		 (unsigned int)(version >> 8 & 0xff));
	/* The release level: alpha, beta, candidate or final. */
	if (!strchr("abcf", "0123456789abcdef"[version >> 4 & 0xf]))
		return refuse(reader, "their version is %#llx, which names no release", (unsigned long long)version);
	build->version_hex = version;
	build->layout.major = 3;
	build->layout.minor = version >> 16 & 0xff;
	reader->table = debug_table_find(build->layout.minor);
	if (!reader->table)
		return refuse(reader, "Python has them from 3.%u on", debug_table_first_minor());
	free_threaded = read_u64(reader->bytes + DEBUG_AT_FREE_THREADED);
	if (free_threaded > 1)
		return refuse(reader, "free_threaded is %llu, neither 0 nor 1", (unsigned long long)free_threaded);
	build->layout.free_threaded = free_threaded;
	return 0;
}

/* Sets the fields that follow from the version alone. */
static void debug_set_kinds(struct pybpf_layout *layout)
{
	layout->tstate_cframe = PYBPF_NO_OFFSET;
	layout->cframe_previous = PYBPF_NO_OFFSET;
	layout->cframe_frame = PYBPF_NO_OFFSET;
	layout->frame_entry = PYBPF_NO_OFFSET;
	layout->owner_not_python = FRAME_OWNER_NOT_PYTHON;
	layout->code_tag_mask = layout->minor >= MINOR_TAGGED ? STACKREF_TAG_MASK : 0;
	layout->position_kind = PYBPF_POS_INSTR_PTR;
	layout->string_kind = PYBPF_STR_UNICODE;
	layout->line_kind = PYBPF_LINES_PEP657;
	/* Free-threaded 3.14+ has a whole byte of `interned` before the kind, for atomic access (unicodeobject.h). */
	layout->str_kind_shift = layout->free_threaded && layout->minor >= MINOR_TLBC ? 8 : 2;
	/* debug_build stays 0: the offsets already are the debug build's own. */
}

static void debug_set_origin(const struct debug_reader *reader, struct layout_build *build)
{
	snprintf(build->origin, sizeof(build->origin), "_Py_DebugOffsets of Python %s%s%s", reader->version,
		 build->layout.free_threaded ? "t" : "",
		 build->layout.minor != reader->table->minor ? ", newer than those known" : "");
}

int layout_from_debug_offsets(const uint8_t *bytes, size_t len, struct layout_build *out, struct error *error)
{
	struct debug_reader reader = {.bytes = bytes, .len = len, .error = error, .version = "?"};
	struct layout_build build = {.runtime_tstate_current = LAYOUT_NONE};
	int err;

	err = debug_read_head(&reader, &build);
	if (!err)
		err = debug_check_length(&reader);
	if (!err)
		err = debug_check_sizes(&reader);
	if (!err)
		err = debug_read_offsets(&reader, &build.layout);
	if (!err)
		err = debug_check_overlaps(&reader, &build.layout);
	if (!err)
		err = debug_check_headers(&reader, &build.layout);
	if (!err)
		err = debug_read_strings(&reader, &build.layout);
	if (!err)
		err = debug_read_code_version(&reader, &build.layout);
	if (!err)
		err = debug_read_code_guard(&reader, &build.layout);
	if (!err)
		err = debug_read_gil(&reader, &build.layout);
	if (!err)
		err = debug_read_interpreter(&reader, &build.layout);
	if (!err)
		err = debug_read_exception(&reader, &build.layout);
	if (!err)
		err = debug_read_datastack(&reader, &build.layout);
	if (!err)
		err = debug_read_function(&reader, &build.layout);
	if (!err)
		err = debug_read_generator(&reader, &build.layout);
	if (!err)
		err = debug_check_relations(&reader, &build.layout);
	if (!err)
		err = debug_set_windows(&reader, &build.layout);
	if (!err)
		err = debug_read_interp_head(&reader, &build.runtime_interp_head);
	if (err)
		return err;
	debug_drop_doubtful(&reader, &build.layout);
	debug_set_kinds(&build.layout);
	cpython_fill_in(&build.layout);
	debug_set_origin(&reader, &build);
	*out = build;
	return 0;
}
