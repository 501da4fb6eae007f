// SPDX-License-Identifier: Apache-2.0
/* What the walk relies on in a layout, whatever its origin. */
#ifndef TESTS_USABLE_LAYOUT_H
#define TESTS_USABLE_LAYOUT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cpython/layout.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define NO                PYBPF_NO_OFFSET

static inline void assert_window(uint16_t window, unsigned int limit, uint16_t offset, unsigned int width)
{
	assert_int_equal(window % 8, 0);
	assert_in_range(window, 8, limit);
	if (offset != NO)
		assert_in_range(offset + width, 1, window);
}

static inline void assert_usable(const struct layout_build *build)
{
	const struct pybpf_layout *l = &build->layout;
	unsigned int position = l->position_kind == PYBPF_POS_LASTI ? 4 : 8;

	assert_window(l->tstate_window, PYBPF_TSTATE_WINDOW, l->tstate_next, 8);
	assert_window(l->tstate_window, PYBPF_TSTATE_WINDOW, l->tstate_interp, 8);
	assert_window(l->tstate_window, PYBPF_TSTATE_WINDOW, l->tstate_thread_id, 8);
	assert_window(l->tstate_window, PYBPF_TSTATE_WINDOW, l->tstate_frame, 8);
	assert_window(l->frame_window, PYBPF_FRAME_WINDOW, l->frame_code, 8);
	assert_window(l->frame_window, PYBPF_FRAME_WINDOW, l->frame_previous, 8);
	assert_window(l->frame_window, PYBPF_FRAME_WINDOW, l->frame_position, position);
	assert_window(l->frame_window, PYBPF_FRAME_WINDOW, l->frame_owner, 1);
	assert_window(l->frame_window, PYBPF_FRAME_WINDOW, l->frame_tlbc_index, 4);
	assert_window(l->code_window, PYBPF_CODE_WINDOW, l->code_type, 8);
	assert_window(l->code_window, PYBPF_CODE_WINDOW, l->code_filename, 8);
	assert_window(l->code_window, PYBPF_CODE_WINDOW, l->code_name, 8);
	assert_window(l->code_window, PYBPF_CODE_WINDOW, l->code_qualname, 8);
	assert_window(l->code_window, PYBPF_CODE_WINDOW, l->code_linetable, 8);
	assert_window(l->code_window, PYBPF_CODE_WINDOW, l->code_firstlineno, 4);
	assert_window(l->code_window, PYBPF_CODE_WINDOW, l->code_version, 4);
	assert_int_not_equal(l->interp_threads_head, NO);
	assert_int_not_equal(l->tstate_thread_id, NO);
	assert_int_not_equal(l->frame_position, NO);
	assert_int_not_equal(l->code_linetable, NO);
	assert_in_range(l->position_kind, PYBPF_POS_LASTI, PYBPF_POS_INSTR_PTR);
	assert_in_range(l->string_kind, PYBPF_STR_BYTES, PYBPF_STR_UNICODE);
	assert_in_range(l->line_kind, PYBPF_LINES_LNOTAB_UNSIGNED, PYBPF_LINES_PEP657);
	assert_true(strlen(build->origin) > 0);
}

#endif
