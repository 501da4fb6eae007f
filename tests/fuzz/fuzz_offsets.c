// SPDX-License-Identifier: Apache-2.0
/* _Py_DebugOffsets: the input is the table. With one that is taken, the walk goes over the input as memory. */
#include "fuzz.h"

#define WINDOW_CHECK(field, size, window) FUZZ_CHECK((field) == PYBPF_NO_OFFSET || (field) + (size) <= (window))

static void check_layout(const struct pybpf_layout *l)
{
	FUZZ_CHECK(l->tstate_window <= PYBPF_TSTATE_WINDOW);
	FUZZ_CHECK(l->frame_window <= PYBPF_FRAME_WINDOW);
	FUZZ_CHECK(l->code_window <= PYBPF_CODE_WINDOW);
	WINDOW_CHECK(l->tstate_next, 8, l->tstate_window);
	WINDOW_CHECK(l->tstate_interp, 8, l->tstate_window);
	WINDOW_CHECK(l->tstate_thread_id, 8, l->tstate_window);
	WINDOW_CHECK(l->tstate_frame, 8, l->tstate_window);
	WINDOW_CHECK(l->tstate_status, 4, l->tstate_window);
	WINDOW_CHECK(l->tstate_datastack_top, l->tstate_datastack_top ? 16 : 0, l->tstate_window);
	WINDOW_CHECK(l->frame_code, 8, l->frame_window);
	WINDOW_CHECK(l->frame_previous, 8, l->frame_window);
	WINDOW_CHECK(l->frame_position, 8, l->frame_window);
	WINDOW_CHECK(l->frame_owner, 1, l->frame_window);
	WINDOW_CHECK(l->frame_tlbc_index, 4, l->frame_window);
	WINDOW_CHECK(l->code_type, 8, l->code_window);
	WINDOW_CHECK(l->code_filename, 8, l->code_window);
	WINDOW_CHECK(l->code_name, 8, l->code_window);
	WINDOW_CHECK(l->code_qualname, 8, l->code_window);
	WINDOW_CHECK(l->code_linetable, 8, l->code_window);
	WINDOW_CHECK(l->code_firstlineno, 4, l->code_window);
	WINDOW_CHECK(l->code_version, 4, l->code_window);
	FUZZ_CHECK(!(l->frame_code % 8) && !(l->frame_previous % 8) && !(l->frame_position % 8));
	FUZZ_CHECK(!(l->tstate_next % 8) && !(l->tstate_thread_id % 8) && !(l->tstate_frame % 8));
	FUZZ_CHECK(!(l->code_name % 8) && !(l->code_filename % 8) && !(l->code_linetable % 8));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_memory bytes = {.data = data, .size = size};
	const struct walk_memory memory = {.read = fuzz_read, .source = &bytes};
	const struct pybpf_runtime proc = {.interp_head = 8};
	struct layout_build build = {0};
	struct walk_stack stack;
	struct error error = {0};
	int err = layout_from_debug_offsets(data, size, &build, &error);

	FUZZ_CHECK(!err || err == -EINVAL);
	FUZZ_CHECK(memchr(error.text, '\0', sizeof(error.text)));
	FUZZ_CHECK(!!err == !!error.text[0]);
	FUZZ_CHECK(err || layout_has_debug_offsets(data, size));
	if (err)
		return 0;
	check_layout(&build.layout);
	if (!walk_thread(&memory, &build.layout, &proc, 0, 0, 0, &stack)) {
		fuzz_check_stack(&stack);
		free(stack.frames);
	}
	return 0;
}
