// SPDX-License-Identifier: Apache-2.0
/*
 * asyncio's tasks: the layout, a byte for what is read and how often the memory changes, where the module has its
 * fields (struct pybpf_asyncio), then all memory, which begins with the address of the first interpreter. Its last
 * bytes say how it changes.
 */
#include "fuzz.h"
#include "symbols/tasks/task_awaits.h"
#include "symbols/tasks/task_read.h"
#include "symbols/tasks/tasks.h"

#define BASE 0x7f0000000000u
/* The process ends then: reads take longer than anything else. */
#define MOST_READS (1u << 13)
/* Tasks of one input that are read. */
#define TASKS 64

static void check_name(const struct pybpf_task_name *task)
{
	char *name = tasks_name(task);

	FUZZ_CHECK(!name || fuzz_is_utf8(name));
	free(name);
}

/* The task as it comes to the process that asked for it. */
static void check_packed(const struct task_read *task)
{
	static struct task_read back;
	size_t size = task_read_packed_size(task);
	void *packed = malloc(size);

	FUZZ_CHECK(packed && size <= sizeof(back));
	task_read_pack(task, packed);
	FUZZ_CHECK(task_read_unpack(packed, size, &back) == size && back.address == task->address);
	FUZZ_CHECK(!task_read_unpack(packed, size - 1, &back));
	free(packed);
}

static void check_task(const struct task_read *task)
{
	char *awaits;

	FUZZ_CHECK(task->nr_tasks <= PYBPF_TASKS && task->nr_frames <= TASK_READ_FRAMES);
	FUZZ_CHECK(task->nr_awaiters <= TASK_READ_AWAITERS && task->awaits < TASK_AWAITS_KINDS);
	FUZZ_CHECK(memchr(task->type, '\0', sizeof(task->type)));
	for (uint32_t i = 0; i < task->nr_tasks; i++)
		check_name(&task->tasks[i]);
	check_name(&task->awaited);
	awaits = task_awaits_name(task);
	FUZZ_CHECK(awaits);
	free(awaits);
	check_packed(task);
}

static void read_all(struct task_reader *reader, const struct walk_memory *memory, const struct task_read_place *place)
{
	struct task_read_counts counts = {0};
	const struct task_read *task;
	uint64_t count = 0;
	int got;

	FUZZ_CHECK(!task_reader_find(reader, memory, place, &counts));
	for (; count < TASKS && (got = task_reader_next(reader, &task, &counts)) >= 0; count++) {
		if (got)
			check_task(task);
	}
	FUZZ_CHECK(counts.suspended + counts.running + counts.ended + counts.moving == count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct task_read_place place = {.runtime = {.interp_head = BASE}, .proc_id = 1};
	struct fuzz_memory bytes;
	struct fuzz_changing changing = {.below = {.read = fuzz_read, .source = &bytes}, .most = MOST_READS};
	const struct walk_memory memory = {.read = fuzz_read_changing, .source = &changing};
	struct task_reader *reader;
	uint8_t options;

	if (!fuzz_take_layout(&in, &place.layout))
		return 0;
	options = fuzz_take_u8(&in);
	fuzz_take(&in, &place.runtime.asyncio, sizeof(place.runtime.asyncio));
	fuzz_take_end(&in, &changing.seed, sizeof(changing.seed));
	/* Whoever asks has seen that there are tasks in this version. */
	if (place.layout.major < 3 || place.layout.minor < 7)
		return 0;
	changing.odds = options >> 2;
	place.whole_tree = options & 1;
	bytes = (struct fuzz_memory){.data = in.data, .size = in.size, .base = BASE};
	reader = task_reader_new();
	FUZZ_CHECK(reader);
	read_all(reader, &memory, &place);
	task_reader_free(reader);
	return 0;
}
