// SPDX-License-Identifier: Apache-2.0
/*
 * What the kernel copies of a code object: a byte for the layout, one for options, four positions, then records of
 * struct pybpf_code_event, each behind its size (16 bits). No process is behind them (no process has PID 0).
 */
#include "fuzz.h"
#include "symbols/pysym.h"
#include "allocated.h"

#define PROC_ID   1
#define POSITIONS 4
#define RECORDS   4

static void check_frame(const struct pysym_frame *frame)
{
	FUZZ_CHECK(frame->name && frame->file);
	FUZZ_CHECK(fuzz_is_utf8(frame->name) && fuzz_is_utf8(frame->file));
	FUZZ_CHECK(frame->cookie);
}

static void add_record(struct pysym *names, struct fuzz_input *in, const int32_t *positions)
{
	struct pybpf_code_event *event;
	struct pysym_frame frame;
	uint16_t size;
	int err;

	fuzz_take(in, &size, sizeof(size));
	if (size > in->size)
		size = (uint16_t)in->size;
	event = malloc(size ? size : 1);
	FUZZ_CHECK(event);
	fuzz_take(in, event, size);
	err = pysym_add_code(names, event, size);
	FUZZ_CHECK(!err || err == -EBADMSG || err == -ENOENT);
	FUZZ_CHECK(err || size >= sizeof(*event));
	for (int i = 0; i < POSITIONS && size >= sizeof(*event); i++) {
		struct pybpf_frame at = {.code = event->code, .sig = event->sig, .position = positions[i]};
		int found = pysym_resolve(names, PROC_ID, 0, &at, &frame);

		FUZZ_CHECK(!found || found == -ENOENT);
		/* One of another process is refused. */
		FUZZ_CHECK(err || event->proc_id != PROC_ID || !found);
		if (!found)
			check_frame(&frame);
	}
	free(event);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	int32_t positions[POSITIONS];
	struct pybpf_layout layout;
	struct pysym *names;
	uint8_t options;
	size_t empty;

	fuzz_layout(fuzz_take_u8(&in), &layout);
	options = fuzz_take_u8(&in);
	fuzz_take(&in, positions, sizeof(positions));
	names = pysym_new((enum pysym_line_mode)(options % 3), !(options & 0x80));
	FUZZ_CHECK(names);
	empty = allocated_bytes();
	FUZZ_CHECK(!pysym_add_process(names, PROC_ID, 0, &layout));
	for (int i = 0; i < RECORDS && in.size; i++)
		add_record(names, &in, positions);
	FUZZ_CHECK(pysym_get_counters(names)->unnamed <= pysym_get_counters(names)->codes);
	pysym_remove_process(names, PROC_ID);
	FUZZ_CHECK(allocated_bytes() == empty);
	pysym_free(names);
	return 0;
}
