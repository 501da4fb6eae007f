// SPDX-License-Identifier: Apache-2.0
/* Compiles the walk of bpf/walk.h for user space. */
#include "symbols/walk/walk_user.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/remote.h"
#include "symbols/tasks/current_tasks.h"

struct walk;
static int walk_read(struct walk *w, void *dst, uint32_t size, uint64_t addr);
#define WALK_NOTES_FRAMES
static void walk_note_frame(struct walk *w, uint32_t slot);

/* Tasks are looked for where the runtime says where they are. */
#define WALK_TASKS 1
static uint64_t current_task(struct walk *w, uint64_t tstate);
#define WALK_CURRENT_TASK(w, tstate) current_task(w, tstate)

/* A stack of coroutines has one for each function. */
#define WALK_HANDLED PYBPF_MAX_FRAMES

#include "walk.h"
#include "walk_gil.h"
#include "thread_activity.h"

struct user_walk {
	struct walk walk; /* first, so that walk_read finds the rest */
	const struct walk_memory *memory;
	const struct pybpf_layout *layout;
	uint32_t compiled;                    /* as walk.compiled when the last frame was noted */
	uint64_t addresses[PYBPF_MAX_FRAMES]; /* of the frames in walk.frames; 0: it has no variables of Python's */
};

/* Returns the task that a thread of Python 3.7 to 3.13 runs, or 0. */
static uint64_t current_task(struct walk *w, uint64_t tstate)
{
	const struct user_walk *u = (const struct user_walk *)w;
	uint64_t tasks = w->asyncio.current_tasks, loop = pysym_running_loop(u->memory, u->layout, tasks, tstate);

	return loop ? pysym_current_task(u->memory, u->layout, tasks, loop) : 0;
}

static void walk_note_frame(struct walk *w, uint32_t slot)
{
	struct user_walk *u = (struct user_walk *)w;

	u->addresses[slot] = w->compiled == u->compiled ? w->last_frame : 0;
	u->compiled = w->compiled;
}

static int walk_read(struct walk *w, void *dst, uint32_t size, uint64_t addr)
{
	const struct walk_memory *memory = ((struct user_walk *)w)->memory;

	return memory->read(memory->source, addr, dst, size);
}

static int read_process(void *source, uint64_t addr, void *dst, size_t size)
{
	return remote_read(*(const pid_t *)source, addr, dst, size);
}

static int read_process_parts(void *source, const struct walk_part *parts, size_t count, void *dst)
{
	struct iovec *remote = calloc(count + 1, sizeof(*remote));
	int err = -ENOMEM;

	for (size_t i = 0; remote && i < count; i++)
		remote[i] = (struct iovec){.iov_base = (void *)(uintptr_t)parts[i].addr, .iov_len = parts[i].size};
	if (remote)
		err = remote_read_parts(*(const pid_t *)source, remote, count, dst);
	free(remote);
	return err;
}

void walk_process_memory(struct walk_memory *memory, const pid_t *pid)
{
	*memory = (struct walk_memory){.read = read_process, .source = (void *)pid, .read_parts = read_process_parts};
}

int walk_read_parts(const struct walk_memory *memory, const struct walk_part *parts, size_t count, void *dst)
{
	uint8_t *to = dst;
	int err = 0;

	if (memory->read_parts)
		return memory->read_parts(memory->source, parts, count, dst);
	for (size_t i = 0; i < count && !err; to += parts[i++].size)
		err = memory->read(memory->source, parts[i].addr, to, parts[i].size);
	return err;
}

/* A walk has room for the deepest stack, and one is begun for each code object: the last one is kept for the next. */
static struct user_walk *spare;

/* Returns a walk that knows nothing but the memory; NULL without memory. */
static struct user_walk *new_walk(const struct walk_memory *memory)
{
	struct user_walk *u = spare ? spare : malloc(sizeof(*u));

	spare = NULL;
	if (!u)
		return NULL;
	/* Frames and their addresses are those that the walk itself has kept. */
	memset(u, 0, offsetof(struct user_walk, walk.frames));
	u->memory = memory;
	u->layout = NULL;
	u->compiled = 0;
	return u;
}

static void free_walk(struct user_walk *u)
{
	free(spare);
	spare = u;
}

int walk_read_code(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr, bool texts,
		   struct walk_code *out)
{
	struct user_walk *u = new_walk(memory);
	int err = -EFAULT;

	if (!u)
		return -ENOMEM;
	if (walk_window(&u->walk, addr, layout->code_window, PYBPF_CODE_WINDOW))
		goto done;
	out->name = walk_u64(&u->walk,
			     layout->code_qualname != PYBPF_NO_OFFSET ? layout->code_qualname : layout->code_name);
	out->file = walk_u64(&u->walk, layout->code_filename);
	out->lines = walk_u64(&u->walk, layout->code_linetable);
	out->first_line = (int32_t)walk_u32(&u->walk, layout->code_firstlineno);
	u->walk.next_interp = texts;
	if (!walk_code_begin(&u->walk, layout)) {
		while (!walk_texts_more(&u->walk) && u->walk.steps <= PYBPF_MAX_WALK)
			;
	}
	out->sig = walk_code_end(&u->walk, addr);
	err = 0;
done:
	free_walk(u);
	return err;
}

uint64_t walk_gil_holder(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t gil)
{
	struct user_walk *u = new_walk(memory);
	struct gil_owner owner = {0};
	uint64_t holder = 0;

	if (!u)
		return 0;
	if (read_gil_owner(&u->walk, layout, gil, &owner))
		holder = owner.last_holder;
	free_walk(u);
	return holder;
}

/* Returns whose a collection is, also if the thread runs a finalizer in it. */
static enum pybpf_collection find_collection(struct user_walk *u, uint32_t kept)
{
	__u64 frame;
	enum pybpf_collection found = walk_find_collection(&u->walk, u->layout, &frame);

	for (uint32_t i = 0; found == PYBPF_COLLECTION_OTHERS && i < kept; i++) {
		if (u->addresses[i] == frame)
			return PYBPF_COLLECTION_OWN;
	}
	return found;
}

static void prepare(struct user_walk *u, const struct walk_memory *memory, const struct pybpf_layout *layout,
		    const struct pybpf_runtime *runtime, uint64_t thread_id, uint64_t stack_pointer)
{
	u->memory = memory;
	u->layout = layout;
	u->compiled = 0;
	u->walk.thread_id = thread_id;
	u->walk.stack_pointer = stack_pointer;
	u->walk.interp_head = runtime->interp_head;
	u->walk.code_type = runtime->code_type;
	u->walk.asyncio = runtime->asyncio;
}

static void start(struct user_walk *u, const struct pybpf_runtime *runtime)
{
	uint64_t current = 0;

	if (runtime->tstate_current)
		walk_read(&u->walk, &current, sizeof(current), runtime->tstate_current);
	walk_start(&u->walk, u->layout, current, NULL);
}

/* Copies the stack of a walk that is done, and what the thread does with the GIL. Returns as walk_thread(). */
static int keep_stack(struct user_walk *u, uint64_t futex, struct walk_stack *out)
{
	const struct pybpf_layout *layout = u->layout;
	uint32_t kept = pybpf_kept_frames(u->walk.stack.depth);
	struct gil_owner owner = {0};

	if (u->walk.result == WALK_UNREADABLE)
		return -EFAULT;
	if (u->walk.result != WALK_OK)
		return -ENOENT;
	out->frames = malloc((kept ? kept : 1) * (sizeof(*out->frames) + sizeof(*out->addresses)));
	if (!out->frames)
		return -ENOMEM;
	memcpy(out->frames, u->walk.frames, kept * sizeof(*out->frames));
	out->addresses = (uint64_t *)(out->frames + kept);
	memcpy(out->addresses, u->addresses, kept * sizeof(*out->addresses));
	out->depth = u->walk.stack.depth;
	out->flags = u->walk.stack.flags;
	out->tstate = u->walk.tstate;
	out->gil = walk_find_gil(&u->walk, layout);
	out->wants_gil = find_gil_futex(&u->walk, layout, out->gil, futex) != GIL_FUTEX_NONE;
	out->has_gil =
		out->gil && read_gil_owner(&u->walk, layout, out->gil, &owner) && owner.last_holder == u->walk.tstate;
	return 0;
}

/* Reads what the thread does beside its stack. */
static void read_facts(struct user_walk *u, struct walk_stack *out)
{
	const struct pybpf_layout *layout = u->layout;
	enum walk_answer answer;
	__u64 exception;

	out->task = u->walk.task;
	out->contexts = u->walk.contexts;
	out->task_depth = u->walk.stack.task_depth;
	walk_read(&u->walk, &out->interp, sizeof(out->interp), walk_innermost_tstate(&u->walk) + layout->tstate_interp);
	answer = walk_find_exception(&u->walk, layout, &exception);
	out->exception_known = answer != WALK_UNKNOWN;
	out->exception = answer == WALK_YES ? exception : 0;
	out->collection = find_collection(u, pybpf_kept_frames(u->walk.stack.depth));
}

/*
 * Takes the known states as if a search had come to them. Returns whether the thread can have no others: one that it
 * attached since would be the last one, which 3.12+ tell, and so would be a second interpreter before.
 */
static bool take_states(struct user_walk *u, const struct walk_known_states *known)
{
	struct walk *w = &u->walk;

	if (!known || !known->count || known->count > WALK_STATES ||
	    (!known->exact && walk_may_have_swapped(w, u->layout)))
		return false;
	for (uint32_t i = 0; i < known->count; i++) {
		enum walk_owner owner = walk_read_tstate(w, u->layout, known->tstates[i]);

		w->tstate = known->tstates[i];
		if (owner != WALK_NOT_OURS)
			walk_keep_state(w, u->layout, owner);
	}
	if (known->exact || (w->states.count && (w->last || !u->layout->tstate_status)))
		return true;
	walk_look_for_states(w);
	return false;
}

int walk_thread(const struct walk_memory *memory, const struct pybpf_layout *layout,
		const struct pybpf_runtime *runtime, uint64_t thread_id, uint64_t futex, uint64_t stack_pointer,
		struct walk_stack *out)
{
	return walk_known_thread(memory, layout, runtime, thread_id, NULL, futex, stack_pointer, out);
}

int walk_known_thread(const struct walk_memory *memory, const struct pybpf_layout *layout,
		      const struct pybpf_runtime *runtime, uint64_t thread_id, const struct walk_known_states *known,
		      uint64_t futex, uint64_t stack_pointer, struct walk_stack *out)
{
	struct user_walk *u = new_walk(memory);
	uint32_t steps = 0;
	int err, done = 0;

	memset(out, 0, sizeof(*out));
	if (!u)
		return -ENOMEM;
	prepare(u, memory, layout, runtime, thread_id, stack_pointer);
	start(u, runtime);
	if (take_states(u, known)) {
		u->walk.result = WALK_NO_THREAD_STATE;
		done = walk_end_of_lists(&u->walk, layout);
	}
	for (; !done && steps < WALK_STEPS; steps++) {
		if (u->walk.task_due)
			walk_find_task(&u->walk, layout);
		done = walk_step(&u->walk, layout);
	}
	if (!done)
		walk_no_stack(&u->walk);
	err = keep_stack(u, futex, out);
	if (!err)
		read_facts(u, out);
	free_walk(u);
	return err;
}

/* A thread state in the lists. */
struct listed {
	uint64_t thread_id, tstate;
	size_t place;
};

struct walk_list {
	struct user_walk u;
	struct walk_memory memory;
	struct pybpf_layout layout;
	struct pybpf_runtime runtime;
	uint64_t interp, tstate; /* where the reading is; tstate: 0 at the end of an interpreter's list */
	uint32_t visited;        /* interpreters and thread states */
	uint64_t first_number;   /* walk.number as each walk begins: they are walks of one moment */
	uint64_t last_number;    /* the greatest that a walk has left */
	bool read, torn;
	struct listed *items; /* by thread and place, once all are read */
	size_t count, room;
};

/* Interpreters and thread states beyond are left out: a process can make a list that has no end. */
#define LIST_MAX 65536
/* Reads between looks at the clock. */
#define LIST_READS 64
/* Steps of a walk between looks at the clock: some 0.3 ms. */
#define CLOCK_STEPS 256

struct walk_list *walk_list_new(void)
{
	return calloc(1, sizeof(struct walk_list));
}

void walk_list_free(struct walk_list *list)
{
	if (!list)
		return;
	free(list->items);
	free(list);
}

void walk_list_begin(struct walk_list *list, const struct walk_memory *memory, const struct pybpf_layout *layout,
		     const struct pybpf_runtime *runtime)
{
	list->memory = *memory;
	list->layout = *layout;
	list->runtime = *runtime;
	/* Nobody asks for tasks here, and to find them takes longer than the walk. */
	list->runtime.asyncio = (struct pybpf_asyncio){.loaded = false};
	list->interp = list->tstate = 0;
	list->read = list->torn = false;
	list->visited = 0;
	list->first_number = ++list->last_number;
	list->count = 0;
	prepare(&list->u, &list->memory, &list->layout, &list->runtime, 0, 0);
}

static int compare_listed(const void *a, const void *b)
{
	const struct listed *one = a, *other = b;

	if (one->thread_id != other->thread_id)
		return one->thread_id < other->thread_id ? -1 : 1;
	return one->place < other->place ? -1 : one->place > other->place;
}

static void end_list(struct walk_list *list, bool torn)
{
	list->read = true;
	list->torn = torn;
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare_listed);
}

static void read_interpreter(struct walk_list *list)
{
	uint64_t next = 0, addr = list->interp ? list->interp + list->layout.interp_next : list->runtime.interp_head;
	int err = walk_read(&list->u.walk, &next, sizeof(next), addr);

	if (err || !next || ++list->visited > LIST_MAX) {
		end_list(list, next || (err && list->interp));
		return;
	}
	list->interp = next;
	list->tstate = next + list->layout.interp_threads_head - list->layout.tstate_next;
}

/* Returns 0 or -ENOMEM. */
static int read_state(struct walk_list *list)
{
	const struct pybpf_layout *l = &list->layout;
	struct walk *w = &list->u.walk;
	uint64_t next = 0;

	if (walk_read(w, &next, sizeof(next), list->tstate + l->tstate_next)) {
		end_list(list, true);
		return 0;
	}
	list->tstate = next;
	if (!next)
		return 0;
	/* One that was freed meanwhile has no next. */
	if (++list->visited > LIST_MAX || walk_window(w, next, l->tstate_window, PYBPF_TSTATE_WINDOW) ||
	    walk_u64(w, l->tstate_interp) != list->interp) {
		end_list(list, true);
		return 0;
	}
	if (array_reserve(&list->items, &list->room, list->count + 1, sizeof(*list->items)))
		return -ENOMEM;
	list->items[list->count] =
		(struct listed){.thread_id = walk_u64(w, l->tstate_thread_id), .tstate = next, .place = list->count};
	list->count++;
	return 0;
}

int walk_list_read(struct walk_list *list, uint64_t until_ns)
{
	int err = 0;

	for (uint32_t reads = 1; !list->read && !err; reads++) {
		if (list->tstate)
			err = read_state(list);
		else
			read_interpreter(list);
		if (!err && !list->read && reads % LIST_READS == 0 && clock_ns(CLOCK_MONOTONIC) > until_ns)
			err = -ETIMEDOUT;
	}
	return err ?: list->torn ? -EAGAIN : 0;
}

/* Returns the place of the thread's first state in the list, or of what comes after it. */
static size_t find_listed(const struct walk_list *list, uint64_t thread_id)
{
	size_t first = 0, end = list->count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (list->items[middle].thread_id < thread_id)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* Does what walk_step() does until it has found the thread's states. Returns 1 when the walk is done. */
static int find_states(struct walk_list *list, uint64_t thread_id, uint64_t until_ns)
{
	const struct pybpf_layout *l = &list->layout;
	struct walk *w = &list->u.walk;

	w->result = list->interp ? WALK_NO_THREAD_STATE : WALK_NO_INTERPRETER;
	w->unreadable = list->torn;
	for (size_t i = find_listed(list, thread_id); i < list->count && list->items[i].thread_id == thread_id; i++) {
		enum walk_owner owner;

		w->tstate = list->items[i].tstate;
		owner = walk_read_tstate(w, l, w->tstate);
		if (owner != WALK_NOT_OURS)
			walk_keep_state(w, l, owner);
		if (i % LIST_READS == 0 && clock_ns(CLOCK_MONOTONIC) > until_ns)
			break;
	}
	return walk_end_of_lists(w, l);
}

int walk_listed_thread(struct walk_list *list, uint64_t thread_id, uint64_t futex, uint64_t stack_pointer,
		       uint64_t until_ns, struct walk_stack *out)
{
	struct user_walk *u = &list->u;
	uint32_t steps = 0;
	bool late = false;
	int done;

	memset(out, 0, sizeof(*out));
	prepare(u, &list->memory, &list->layout, &list->runtime, thread_id, stack_pointer);
	/* The thread's frames have kept its code objects alive since: what earlier walks know of them is true. */
	u->walk.number = list->first_number;
	start(u, &list->runtime);
	done = find_states(list, thread_id, until_ns);
	while (!done && !late) {
		done = walk_step(&u->walk, &list->layout);
		late = ++steps % CLOCK_STEPS == 0 && clock_ns(CLOCK_MONOTONIC) > until_ns;
	}
	if (u->walk.number > list->last_number)
		list->last_number = u->walk.number;
	if (!done)
		return -ETIMEDOUT;
	return keep_stack(u, futex, out);
}

struct pybpf_stack_event *walk_stack_event(const struct pybpf_frame *frames, uint32_t depth, uint32_t flags,
					   uint64_t proc_id, uint32_t runtime)
{
	size_t kept = pybpf_kept_frames(depth);
	size_t size = sizeof(struct pybpf_stack_event) + kept * sizeof(*frames);
	struct pybpf_stack_event *event = kept ? calloc(1, size) : NULL;

	if (!event)
		return NULL;
	event->event =
		(struct pybpf_event){.type = PYBPF_EVENT_STACK, .runtime = (uint8_t)runtime, .size = (uint32_t)size};
	event->proc_id = proc_id;
	event->depth = depth;
	event->flags = flags;
	memcpy(event + 1, frames, kept * sizeof(*frames));
	return event;
}

struct walk_frames {
	struct user_walk u;
	const struct pybpf_layout *layout;
};

struct walk_frames *walk_frames_new(void)
{
	return calloc(1, sizeof(struct walk_frames));
}

void walk_frames_free(struct walk_frames *frames)
{
	free(frames);
}

void walk_frames_begin(struct walk_frames *frames, const struct walk_memory *memory, const struct pybpf_layout *layout,
		       const struct pybpf_runtime *runtime, uint64_t proc_id, uint64_t interp)
{
	struct walk *w = &frames->u.walk;

	frames->u.memory = memory;
	frames->layout = layout;
	w->code_type = runtime->code_type;
	w->proc_id = proc_id;
	w->tstate_interp = interp;
	walk_trust_codes(w, layout);
}

int walk_frames_read(struct walk_frames *frames, uint64_t addr, struct pybpf_frame *out)
{
	const struct pybpf_layout *layout = frames->layout;
	struct walk *w = &frames->u.walk;
	uint32_t sig, flag;
	uint64_t code;

	w->steps = 0;
	w->stack.depth = 1; /* it is not the frame that runs */
	if (layout->frame_window > PYBPF_FRAME_WINDOW || walk_read(w, w->chunk, layout->frame_window, addr))
		return -EFAULT;
	/* Frames of 3.11 have an owner, too, which its layout leaves out. */
	if (layout->frame_owner != PYBPF_NO_OFFSET &&
	    walk_frame_u8(w, 0, layout->frame_owner) != WALK_OWNED_BY_GENERATOR)
		return -EFAULT;
	code = walk_frame_u64(w, 0, layout->frame_code) & ~(uint64_t)layout->code_tag_mask;
	flag = walk_code(w, layout, code, &sig);
	if (flag == WALK_CODE_GOES_ON) {
		while (!walk_texts_more(w)) {
			if (w->steps > PYBPF_MAX_WALK)
				return -EFAULT;
		}
		sig = walk_code_end(w, code);
	} else if (flag) {
		return -EFAULT;
	}
	out->word = code;
	out->sig = sig;
	out->position = walk_position(w, layout, code, addr, 0, walk_tlbc_index(w, layout, 0));
	return 0;
}
