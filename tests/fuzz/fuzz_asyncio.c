// SPDX-License-Identifier: Apache-2.0
/*
 * From an interpreter through sys.modules to asyncio, threading and os.environ: the layout, a byte for how often the
 * memory changes, then all memory, which begins with the address of the first interpreter. Its last bytes say how it
 * changes.
 */
#include "fuzz.h"
#include "symbols/tasks/current_tasks.h"
#include "symbols/objects/environ.h"
#include "symbols/objects/thread_name.h"

#define BASE 0x7f0000000000u
/* The process ends then: reads take longer than anything else. */
#define MOST_READS (1u << 13)
/* Threads of one input that are looked at. */
#define THREADS 4

static void look_at_thread(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t tasks,
			   uint64_t threads, uint64_t tstate)
{
	uint64_t loop = pysym_running_loop(memory, layout, tasks, tstate), id = 0;
	struct pysym_thread thread;

	if (loop)
		pysym_current_task(memory, layout, tasks, loop);
	memory->read(memory->source, tstate + layout->tstate_thread_id, &id, sizeof(id));
	pysym_read_thread(memory, layout, threads, id, &thread);
	FUZZ_CHECK(!thread.name || (strlen(thread.name) <= PYSYM_THREAD_NAME_MAX && fuzz_is_utf8(thread.name)));
	free(thread.name);
}

/* Whatever the memory says, each variable has its name and a NUL. */
static void look_at_environ(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t interp)
{
	static const char *const names[] = {"A", "threading"};
	char text[256];
	size_t size =
		pysym_read_environ(memory, layout, interp, names, sizeof(names) / sizeof(*names), text, sizeof(text));

	FUZZ_CHECK(size <= sizeof(text) && (!size || (memchr(text, '=', size) && !text[size - 1])));
}

static void look(const struct walk_memory *memory, const struct pybpf_layout *layout)
{
	uint64_t interp = pysym_main_interpreter(memory, layout, BASE), tstate = 0, sets[PYSYM_TASK_SETS];
	uint64_t threads = pysym_find_threads(memory, layout, interp);
	struct pybpf_asyncio asyncio = {0};
	struct pysym_modules seen = {0};

	if (layout->major == 3 && layout->minor >= 7 && layout->minor <= 13) {
		FUZZ_CHECK(pysym_find_all_tasks(memory, layout, interp, sets) <= PYSYM_TASK_SETS);
		if (pysym_find_tasks(memory, layout, interp, &seen, &asyncio))
			FUZZ_CHECK(asyncio.current_tasks && asyncio.task_coro);
	}
	look_at_environ(memory, layout, interp);
	memory->read(memory->source, interp + layout->interp_threads_head, &tstate, sizeof(tstate));
	for (int i = 0; i < THREADS && tstate; i++) {
		look_at_thread(memory, layout, asyncio.current_tasks, threads, tstate);
		if (memory->read(memory->source, tstate + layout->tstate_next, &tstate, sizeof(tstate)))
			break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct pybpf_layout layout;
	struct fuzz_memory bytes;
	struct fuzz_changing changing = {.below = {.read = fuzz_read, .source = &bytes}, .most = MOST_READS};
	const struct walk_memory memory = {.read = fuzz_read_changing, .source = &changing};

	if (!fuzz_take_layout(&in, &layout))
		return 0;
	changing.odds = fuzz_take_u8(&in);
	fuzz_take_end(&in, &changing.seed, sizeof(changing.seed));
	bytes = (struct fuzz_memory){.data = in.data, .size = in.size, .base = BASE};
	look(&memory, &layout);
	return 0;
}
