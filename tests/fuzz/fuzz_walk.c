// SPDX-License-Identifier: Apache-2.0
/*
 * The walk over arbitrary memory. An input that begins as a file of tests/data/memory is one, with its bytes changed;
 * any other is a byte for the layout, one for what the kernel remembers, five 64-bit numbers, then memory that repeats
 * itself over the whole address space. The highest bits of the byte for what the kernel remembers, or of the file's
 * debug_build, say how often the memory changes, and the last bytes of the input how.
 */
#include "fuzz.h"
#include "saved_memory.h"

#include "base/clock.h"
#include "symbols/code_content.h"

/* Time for a list, and for a walk by it: both can be endless. */
#define LISTED_NS 5000000

/* walk.h itself, for what walk_thread has no argument for: registers, and what an earlier sample remembered. */
struct walk;
static struct walk_memory source;

static int walk_read(struct walk *w, void *dst, uint32_t size, uint64_t addr);

#include "walk.h"

static bool is_inside(const void *at, size_t size, const void *place, size_t place_size)
{
	uintptr_t inside = (uintptr_t)at - (uintptr_t)place;

	return inside < place_size && size <= place_size - inside;
}

/* A sanitizer does not see it when one member of a struct runs over into the next. */
static int walk_read(struct walk *w, void *dst, uint32_t size, uint64_t addr)
{
	FUZZ_CHECK(is_inside(dst, size, w->chunk, sizeof(w->chunk)) ||
		   is_inside(dst, size, w->buffer, sizeof(w->buffer)) ||
		   is_inside(dst, size, w->read, sizeof(w->read)) ||
		   is_inside(dst, size, &w->proof.outer_frame, sizeof(w->proof.outer_frame)) ||
		   is_inside(dst, size, &w->next_interp, sizeof(w->next_interp)) ||
		   is_inside(dst, size, &w->guard_count, sizeof(w->guard_count)) ||
		   is_inside(dst, size, &w->proof.item, sizeof(w->proof.item)) || !is_inside(dst, 1, w, sizeof(*w)));
	return source.read(source.source, addr, dst, size);
}

#define NUMBERS 5

enum {
	NUMBER_INTERP_HEAD,
	NUMBER_TSTATE_CURRENT,
	NUMBER_CODE_TYPE,
	NUMBER_THREAD_ID,
	NUMBER_CACHED,
};

/* As the kernel does it: with what it remembers of the thread, and with registers. */
static void walk_as_kernel(const struct pybpf_layout *layout, const uint64_t numbers[NUMBERS], uint32_t registers)
{
	static struct walk w; /* the memo is kept from one walk to the next */
	struct walk_states states = {.tstate = {numbers[NUMBER_CACHED]}, .id = numbers[NUMBER_CODE_TYPE], .count = 1};
	uint64_t steps = 0, current = 0;
	struct walk_stack stack;

	w.thread_id = numbers[NUMBER_THREAD_ID];
	w.proc_id = 1;
	w.interp_head = numbers[NUMBER_INTERP_HEAD];
	w.code_type = numbers[NUMBER_CODE_TYPE];
	w.nr_candidates = registers % (WALK_CANDIDATES + 1);
	for (uint32_t i = 0; i < w.nr_candidates; i++)
		w.candidates[i] = numbers[i % NUMBERS] + (i / NUMBERS) * 8;
	if (numbers[NUMBER_TSTATE_CURRENT])
		walk_read(&w, &current, sizeof(current), numbers[NUMBER_TSTATE_CURRENT]);
	states.tstate[1] = numbers[NUMBER_INTERP_HEAD];
	states.count += registers & 1;
	w.stack_pointer = numbers[NUMBER_THREAD_ID] - numbers[NUMBER_CODE_TYPE] % (1 << 20);
	walk_start(&w, layout, current, &states);
	while (!walk_step(&w, layout)) {
		if (++steps == WALK_STEPS) {
			walk_no_stack(&w);
			break;
		}
	}
	if (w.result != WALK_OK)
		return;
	stack = (struct walk_stack){.frames = w.frames, .depth = w.stack.depth, .flags = w.stack.flags};
	fuzz_check_stack(&stack);
}

/* The memory from here on, which changes at so many of FUZZ_ODDS reads. */
static struct fuzz_changing changing;

static void change_memory(uint32_t odds, const uint8_t *data, size_t size)
{
	changing = (struct fuzz_changing){.below = source, .odds = odds};
	memcpy(&changing.seed, data + size - sizeof(changing.seed), sizeof(changing.seed));
	source = (struct walk_memory){.read = fuzz_read_changing, .source = &changing};
}

/* By a list of the thread states, and with the records of the code objects that are met. */
static void walk_listed(const struct pybpf_layout *layout, const struct pybpf_runtime *proc, uint64_t thread_id)
{
	static struct walk_list *list;
	static uint8_t record[PYSYM_RECORD_MAX];
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + LISTED_NS;
	struct walk_stack stack;

	list = list ?: walk_list_new();
	FUZZ_CHECK(list);
	walk_list_begin(list, &source, layout, proc);
	if (walk_list_read(list, until_ns) == -ETIMEDOUT ||
	    walk_listed_thread(list, thread_id, 0, 0, until_ns + LISTED_NS, &stack))
		return;
	fuzz_check_stack(&stack);
	for (uint32_t i = 0; i < stack.depth && i < 16; i++)
		FUZZ_CHECK(pysym_record_code(&source, layout, &stack.frames[i], record) <= sizeof(record));
	free(stack.frames);
}

static void walk_all(const struct pybpf_layout *layout, const uint64_t numbers[NUMBERS], uint32_t registers)
{
	const struct pybpf_runtime proc = {
		.interp_head = numbers[NUMBER_INTERP_HEAD],
		.tstate_current = numbers[NUMBER_TSTATE_CURRENT],
		.code_type = numbers[NUMBER_CODE_TYPE],
	};
	struct walk_stack stack;
	char *text = NULL;
	size_t size;
	FILE *out;
	int err;

	walk_as_kernel(layout, numbers, registers);
	walk_listed(layout, &proc, numbers[NUMBER_THREAD_ID]);
	if (walk_thread(&source, layout, &proc, numbers[NUMBER_THREAD_ID], 0, 0, &stack))
		return;
	fuzz_check_stack(&stack);
	free(stack.frames);
	/* Names are much more work than frames. */
	if (stack.depth > 64)
		return;
	out = open_memstream(&text, &size);
	FUZZ_CHECK(out);
	/* It walks the thread anew, of which there may be nothing any more. */
	err = saved_print(&source, layout, &proc, numbers[NUMBER_THREAD_ID], out);
	FUZZ_CHECK(!err || (err == -ENOENT && changing.odds));
	fclose(out);
	FUZZ_CHECK(fuzz_is_utf8(text));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t odds[] = {0, 1, 8, FUZZ_ODDS / 2};
	struct fuzz_input in = {data, size};
	struct saved_memory saved;
	uint64_t numbers[NUMBERS];
	struct pybpf_layout layout;
	uint8_t options;
	struct error error;

	if (!saved_parse(data, size, &saved, &error)) {
		uint64_t tstate = 0;

		source = (struct walk_memory){.read = saved_read, .source = &saved};
		if (saved.header.ranges)
			tstate = saved.pieces[0].addr;
		memcpy(numbers,
		       (uint64_t[NUMBERS]){saved.header.interp_head, saved.header.tstate_current,
					   saved.header.code_type, saved.header.thread_id, tstate},
		       sizeof(numbers));
		change_memory(saved.header.debug_build >> 26, data, size);
		walk_all(&saved.layout, numbers, saved.header.debug_build >> 2);
		saved_free(&saved);
		return 0;
	}
	fuzz_layout(fuzz_take_u8(&in), &layout);
	options = fuzz_take_u8(&in);
	fuzz_take(&in, numbers, sizeof(numbers));
	if (in.size < sizeof(changing.seed))
		return 0;
	source = (struct walk_memory){
		.read = fuzz_read,
		.source = &(struct fuzz_memory){.data = in.data, .size = in.size},
	};
	change_memory(odds[options >> 6], data, size);
	walk_all(&layout, numbers, options & 0x3f);
	return 0;
}
