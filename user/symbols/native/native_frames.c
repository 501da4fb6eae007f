// SPDX-License-Identifier: Apache-2.0
#include "symbols/native/native_frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "native/made.h"
#include "symbols/native/native_libraries.h"
#include "symbols/native/native_places.h"
#include "symbols/native/native_plumbing.h"
#include "symbols/native/native_roles.h"

/* Bytes of a frame's text: a name, or a file and an offset. */
#define TEXT_MAX 512

enum naming {
	NAMING_WANTED,
	NAMING_WANTS_LINES,
	NAMING_PUT_OFF, /* either of both is */
	NAMING_DONE,
};

/* An instruction, and what a frame with it is called. */
struct instruction {
	uint64_t frame; /* PYBPF_NATIVE_FRAME without marks */
	char *name;     /* NULL: not known */
	uint64_t start; /* first address of the function, as linked; 0: not known */
	uint32_t in_profile;
	uint32_t shown_pc; /* that stands for it, where it has no name */
	uint32_t place;    /* in places, with its lines; INTERN_NONE: none */
	uint8_t naming;    /* enum naming */
	uint8_t put_off;   /* what is, while naming is NAMING_PUT_OFF */
	bool is_plumbing;
	uint8_t role; /* enum native_role */
};

struct native_frames {
	struct native_frames_options options;
	struct native_places places;
	struct native_libraries libraries;
	struct intern instructions;
	uint32_t nr_wanted[NAMING_DONE]; /* by enum naming */
	native_frames_on_gap *on_gap;
	void *on_gap_arg;
};

struct native_frames *native_frames_new(const struct native_frames_options *options)
{
	struct native_frames *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->options = *options;
	native_places_init(&t->places, options->full_paths);
	intern_init(&t->instructions, sizeof(struct instruction), sizeof(uint64_t));
	return t;
}

void native_frames_free(struct native_frames *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->instructions.count; i++)
		free(((struct instruction *)intern_item(&t->instructions, i))->name);
	intern_free(&t->instructions);
	native_places_free(&t->places);
	native_libraries_free(&t->libraries);
	free(t);
}

uint32_t native_frames_add_file(struct native_frames *t, const char *path)
{
	return native_libraries_add(&t->libraries, path);
}

const char *native_frames_file_name(const struct native_frames *t, uint32_t file)
{
	const struct native_library *library = native_library_at(&t->libraries, file);

	return library ? library->name : "";
}

void native_frames_describe_file(struct native_frames *t, uint32_t file, const struct native_file *about)
{
	struct native_library *library = native_library_at(&t->libraries, file);

	if (library)
		native_library_describe(library, about);
}

static struct native_library *library_of(const struct native_frames *t, uint64_t frame)
{
	return native_library_at(&t->libraries, PYBPF_NATIVE_FRAME_FILE(frame));
}

static uint64_t without_marks(uint64_t frame)
{
	return PYBPF_NATIVE_FRAME((uint64_t)PYBPF_NATIVE_FRAME_FILE(frame), PYBPF_NATIVE_FRAME_PC(frame));
}

/* Returns the frame's instruction, which is added if need be, or NULL without memory. */
static struct instruction *find(struct native_frames *t, uint64_t frame)
{
	const struct instruction fresh = {.frame = without_marks(frame),
					  .in_profile = PROFILE_NONE,
					  .shown_pc = PYBPF_NATIVE_FRAME_PC(frame),
					  .place = INTERN_NONE};
	bool added = false;
	uint32_t i = intern_add(&t->instructions, &fresh, &added);
	struct instruction *found;

	if (i == INTERN_NONE)
		return NULL;
	found = intern_item(&t->instructions, i);
	if (!added)
		return found;
	if (library_of(t, frame))
		t->nr_wanted[NAMING_WANTED]++;
	else
		found->naming = NAMING_DONE;
	return found;
}

static int compare_pcs(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return one < other ? -1 : one > other;
}

/* Fills pcs with instructions of one file that want something. */
static uint32_t find_wanting(const struct native_frames *t, enum naming naming, uint32_t *file, uint32_t *pcs,
			     uint32_t max)
{
	uint32_t count = 0;

	*file = 0;
	for (uint32_t i = 0; t->nr_wanted[naming] && i < t->instructions.count && count < max; i++) {
		const struct instruction *one = intern_item(&t->instructions, i);
		uint32_t of = PYBPF_NATIVE_FRAME_FILE(one->frame);

		if (one->naming != naming || (*file && of != *file))
			continue;
		*file = of;
		pcs[count++] = PYBPF_NATIVE_FRAME_PC(one->frame);
	}
	qsort(pcs, count, sizeof(*pcs), compare_pcs);
	return count;
}

uint32_t native_frames_wanted(const struct native_frames *t, uint32_t *file, uint32_t *pcs, uint32_t max)
{
	return find_wanting(t, NAMING_WANTED, file, pcs, max);
}

uint32_t native_frames_want_lines(const struct native_frames *t, uint32_t *file, uint32_t *pcs, uint32_t max)
{
	return find_wanting(t, NAMING_WANTS_LINES, file, pcs, max);
}

uint32_t native_frames_count_without_lines(const struct native_frames *t)
{
	return t->nr_wanted[NAMING_WANTS_LINES];
}

static void turn_to(struct native_frames *t, struct instruction *one, enum naming naming)
{
	t->nr_wanted[one->naming]--;
	one->naming = naming;
	if (naming != NAMING_DONE)
		t->nr_wanted[naming]++;
}

/* Returns the instruction if it wants that, or NULL. */
static struct instruction *find_wanted(const struct native_frames *t, uint32_t file, uint32_t pc, enum naming naming)
{
	uint64_t frame = PYBPF_NATIVE_FRAME((uint64_t)file, pc);
	uint32_t i = intern_find(&t->instructions, &frame);
	struct instruction *one = i == INTERN_NONE ? NULL : intern_item(&t->instructions, i);

	return one && one->naming == naming ? one : NULL;
}

void native_frames_put_off(struct native_frames *t, uint32_t file, uint32_t pc)
{
	struct instruction *one =
		find_wanted(t, file, pc, NAMING_WANTED) ?: find_wanted(t, file, pc, NAMING_WANTS_LINES);

	if (!one)
		return;
	one->put_off = one->naming;
	turn_to(t, one, NAMING_PUT_OFF);
}

uint32_t native_frames_most_put_off(const struct native_frames *t, uint32_t *count)
{
	uint32_t *counts = t->nr_wanted[NAMING_PUT_OFF] ? calloc(t->libraries.count + 1u, sizeof(*counts)) : NULL;
	uint32_t most = 0;

	*count = 0;
	for (uint32_t i = 0; counts && i < t->instructions.count; i++) {
		const struct instruction *one = intern_item(&t->instructions, i);
		uint32_t file = PYBPF_NATIVE_FRAME_FILE(one->frame);

		if (one->naming == NAMING_PUT_OFF && ++counts[file] > *count) {
			*count = counts[file];
			most = file;
		}
	}
	free(counts);
	return most;
}

void native_frames_resume(struct native_frames *t, uint32_t file)
{
	for (uint32_t i = 0; i < t->instructions.count; i++) {
		struct instruction *one = intern_item(&t->instructions, i);

		if (one->naming == NAMING_PUT_OFF && PYBPF_NATIVE_FRAME_FILE(one->frame) == file)
			turn_to(t, one, one->put_off);
	}
}

static bool is_plumbing(const struct native_frames *t, uint32_t file, const char *name, bool is_demangled)
{
	const struct native_library *library = native_library_at(&t->libraries, file);

	/* The interpreter, and the begin of a program, are not of C++ or Rust, even where that has a main or clone. */
	return !is_demangled &&
	       (native_is_plumbing(name, library->about.is_interpreter) ||
		(library->is_made && !strncmp(name, NATIVE_MADE_TRAMPOLINE, strlen(NATIVE_MADE_TRAMPOLINE))));
}

void native_frames_set_name(struct native_frames *t, uint32_t file, uint32_t pc, const struct native_name *name)
{
	struct instruction *one = find_wanted(t, file, pc, NAMING_WANTED);

	if (!one)
		return;
	one->role = native_role_of(name ? name->text : "", native_library_at(&t->libraries, file)->name);
	if (name && *name->text) {
		one->name = strdup(name->text);
		one->start = name->start;
		/* Stacks of processes that have ended may have it without. */
		one->in_profile = PROFILE_NONE;
		one->is_plumbing = one->name && is_plumbing(t, file, one->name, name->is_demangled);
		one->is_plumbing |= one->role == NATIVE_ROLE_GREENLET || one->role == NATIVE_ROLE_OLD_GREENLET;
	}
	turn_to(t, one, t->options.lines && (t->options.all || !one->is_plumbing) ? NAMING_WANTS_LINES : NAMING_DONE);
}

uint32_t native_frames_named(const struct native_frames *t, uint32_t file, uint32_t skip, uint32_t *pcs, uint32_t max)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < t->instructions.count && count < max; i++) {
		const struct instruction *one = intern_item(&t->instructions, i);

		if (PYBPF_NATIVE_FRAME_FILE(one->frame) != file || !one->name)
			continue;
		if (skip)
			skip--;
		else
			pcs[count++] = PYBPF_NATIVE_FRAME_PC(one->frame);
	}
	qsort(pcs, count, sizeof(*pcs), compare_pcs);
	return count;
}

bool native_frames_has_name(const struct native_frames *t, uint32_t file, uint32_t pc, const struct native_name *name)
{
	uint64_t frame = PYBPF_NATIVE_FRAME((uint64_t)file, pc);
	uint32_t i = intern_find(&t->instructions, &frame);
	const struct instruction *one = i == INTERN_NONE ? NULL : intern_item(&t->instructions, i);

	return one && one->name && one->start == name->start && !strcmp(one->name, name->text);
}

void native_frames_set_row(struct native_frames *t, uint32_t file, uint32_t pc, uint32_t row)
{
	uint64_t frame = PYBPF_NATIVE_FRAME((uint64_t)file, pc);
	uint32_t i = intern_find(&t->instructions, &frame);

	if (i != INTERN_NONE)
		((struct instruction *)intern_item(&t->instructions, i))->shown_pc = row;
}

int native_frames_set_lines(struct native_frames *t, uint32_t file, uint32_t pc, const struct native_line *lines,
			    uint32_t count)
{
	struct instruction *one = find_wanted(t, file, pc, NAMING_WANTS_LINES);
	struct native_line *shown = one && count ? calloc(count, sizeof(*shown)) : NULL;
	uint32_t nr_shown = 0;

	if (one)
		turn_to(t, one, NAMING_DONE);
	if (!one || !count)
		return 0;
	if (!shown)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && nr_shown < NATIVE_INLINED_MAX; i++) {
		if (i && !t->options.all && is_plumbing(t, file, lines[i].function, lines[i].is_demangled))
			continue;
		shown[nr_shown++] = lines[i];
	}
	/* The function is called as it is without lines. */
	if (one->name)
		snprintf(shown[0].function, sizeof(shown[0].function), "%s", one->name);
	else if (*shown[0].function)
		one->name = strdup(shown[0].function);
	if (one->name)
		one->place = native_places_add(
			&t->places, file, native_library_at(&t->libraries, file)->about.base + pc, shown, nr_shown);
	free(shown);
	return one->name && one->place == INTERN_NONE ? -ENOMEM : 0;
}

void native_frames_set_on_gap(struct native_frames *t, native_frames_on_gap *on_gap, void *arg)
{
	t->on_gap = on_gap;
	t->on_gap_arg = arg;
}

void native_frames_forget_profile(struct native_frames *t)
{
	native_places_forget_profile(&t->places);
	native_libraries_forget_profile(&t->libraries);
	for (uint32_t i = 0; i < t->instructions.count; i++)
		((struct instruction *)intern_item(&t->instructions, i))->in_profile = PROFILE_NONE;
}

static uint32_t count_runs(const struct native_stack *native)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < native->count; i++)
		count += (native->frames[i] & PYBPF_NATIVE_FRAME_EVAL) != 0;
	return count;
}

/* Returns the number of frames from the leaf to the first run of the evaluation loop, without that. */
static uint32_t count_called(const struct native_stack *native)
{
	uint32_t i = 0;

	while (i < native->count && !(native->frames[i] & PYBPF_NATIVE_FRAME_EVAL))
		i++;
	return i;
}

static int want_names(struct native_frames *t, const struct native_stack *native, bool last)
{
	int err = 0;

	for (uint32_t i = 0; i < native->count; i++) {
		struct instruction *one = find(t, native->frames[i]);

		if (!one)
			return -ENOMEM;
		if (one->naming != NAMING_DONE && !last)
			err = -ENOENT;
	}
	return err;
}

static bool is_gap(enum pybpf_native_end end)
{
	return end == PYBPF_NATIVE_END_NO_MAPPINGS || end == PYBPF_NATIVE_END_NO_MAPPING ||
	       end == PYBPF_NATIVE_END_NO_TABLE;
}

static void tell_gap(const struct native_frames *t, const struct pybpf_stack_event *event,
		     const struct native_stack *native)
{
	bool has_no_row = event->native_end == PYBPF_NATIVE_END_NO_ROW && native->count;
	struct native_gap gap = {.file = 0};

	if (!t->on_gap)
		return;
	if (has_no_row) {
		gap.file = PYBPF_NATIVE_FRAME_FILE(native->frames[native->count - 1]);
		gap.pc = PYBPF_NATIVE_FRAME_PC(native->frames[native->count - 1]);
		gap.is_innermost = native->count == 1;
	}
	if (has_no_row || is_gap(event->native_end))
		t->on_gap(t->on_gap_arg, event->proc_id, &gap);
}

/* Returns whether an unwinder, at this place from the leaf on, may be restoring registers: uw_install_context_1() does.
 */
static bool is_restoring(const struct instruction *leaf, uint32_t at)
{
	return !at || (at == 1 && (!leaf->name || !strncmp(leaf->name, "uw_install_context", 18)));
}

/* Returns whether the frames from here on outwards may be others' than those that were searched for. */
static bool changes_stack(const struct instruction *leaf, const struct instruction *one, uint32_t at)
{
	return one->role == NATIVE_ROLE_SWITCH || one->role == NATIVE_ROLE_OF_GREENLET ||
	       (one->role == NATIVE_ROLE_UNWINDER && is_restoring(leaf, at));
}

static bool fit(uint32_t runs, uint32_t entries)
{
	return runs == entries || runs == entries + 1;
}

/* Returns whether a greenlet begins here, above which so many runs of the evaluation loop are. */
static bool begins_greenlet(const struct native_stack *native, const struct instruction *one, uint32_t runs,
			    uint32_t entries)
{
	if (one->role != NATIVE_ROLE_OLD_GREENLET && one->role != NATIVE_ROLE_OF_GREENLET)
		return one->role == NATIVE_ROLE_GREENLET;
	/* It may be another function: Python's frames must fit what is above it, and not the whole stack. */
	return runs && fit(runs, entries) &&
	       !(native->end == PYBPF_NATIVE_END_WHOLE && fit(count_runs(native), entries));
}

/* Leaves out what is on the stack, but has not called what is above it. */
static void trim(struct native_frames *t, struct native_stack *native, uint32_t entries)
{
	const struct instruction *leaf = native->count ? find(t, native->frames[0]) : NULL;
	uint32_t runs = 0;

	for (uint32_t i = 0; i < native->count && leaf; i++) {
		const struct instruction *one = find(t, native->frames[i]);
		bool is_end = one && begins_greenlet(native, one, runs, entries);

		if (is_end || (one && !runs && changes_stack(leaf, one, i))) {
			native->count = i + 1;
			native->end = is_end ? PYBPF_NATIVE_END_WHOLE : PYBPF_NATIVE_END_SWITCH;
		}
		runs += (native->frames[i] & PYBPF_NATIVE_FRAME_EVAL) != 0;
	}
}

int native_frames_begin(struct native_frames *t, const struct pybpf_stack_event *event, const uint64_t *frames,
			uint32_t entries, bool last, struct native_stack *out)
{
	uint32_t runs;
	int err;

	*out = (struct native_stack){.frames = frames, .count = event->nr_native, .end = event->native_end};
	tell_gap(t, event, out);
	err = want_names(t, out, last);
	if (err)
		return err;
	trim(t, out, entries);
	out->left = out->count;
	runs = count_runs(out);
	if (out->end != PYBPF_NATIVE_END_WHOLE)
		out->join = NATIVE_JOIN_NONE;
	else if (runs == entries)
		out->join = NATIVE_JOIN_EXACT;
	else
		out->join = runs == entries + 1 ? NATIVE_JOIN_PLUS_ONE : NATIVE_JOIN_OTHER;
	/* Which frame of Python's a run has is certain only of whole stacks; what the last one called is in any case.
	 */
	if (entries && out->join != NATIVE_JOIN_EXACT && out->join != NATIVE_JOIN_PLUS_ONE)
		out->left = count_called(out);
	return 0;
}

/* Returns the address of an instruction, as linked. */
static uint64_t address_of(const struct native_library *file, const struct instruction *one)
{
	return file->about.base + one->shown_pc;
}

static void write_text(const struct native_frames *t, const struct instruction *one, char text[TEXT_MAX])
{
	const struct native_library *file = library_of(t, one->frame);

	if (one->name)
		snprintf(text, TEXT_MAX, "%s", one->name);
	else if (!file)
		snprintf(text, TEXT_MAX, "[unknown code]");
	else if (file->about.is_interpreter)
		snprintf(text, TEXT_MAX, "[CPython]");
	else if (file->is_no_file)
		snprintf(text, TEXT_MAX, "%s", file->name);
	else
		snprintf(text, TEXT_MAX, "[%s+0x%" PRIx64 "]", file->name, address_of(file, one));
}

/*
 * Says where the function is: at its first address, since instructions of one function are one frame. Without a symbol,
 * where its name says. The interpreter's functions are one frame then, which is at no address.
 */
static int place(struct native_library *file, const struct instruction *one, struct profile *profile,
		 struct profile_code *code)
{
	uint64_t address = one->name ? one->start : address_of(file, one);
	int err = native_library_map(file, address, profile, &code->mapping);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (one->name || !file->about.is_interpreter)
		code->address = address;
	return 0;
}

/* Returns the frame in the profile, or PROFILE_NONE. */
static uint32_t add_to_profile(const struct native_frames *t, struct instruction *one, struct profile *profile)
{
	struct native_library *file = library_of(t, one->frame);
	struct profile_code code = {.mapping = PROFILE_NONE, .line = PROFILE_NO_LINE};
	char text[TEXT_MAX];

	if (one->in_profile != PROFILE_NONE)
		return one->in_profile;
	if (file && place(file, one, profile, &code))
		return PROFILE_NONE;
	code.marks = one->name ? 0 : PROFILE_CODE_NAMELESS;
	write_text(t, one, text);
	one->in_profile = profile_add_code(profile, text, file && !file->is_no_file ? file->name : "", &code);
	return one->in_profile;
}

/* Functions of the C library that begin a program or a thread, which are often nameless. */
#define BEGINNING 3

/*
 * Returns whether a frame is of CPython's own JIT: code in no file, which the evaluation loop, or what stands in its
 * place, has called. Other JITs' code is called by functions of C.
 */
static bool is_interpreters_jit(const struct native_frames *t, const struct native_stack *native)
{
	for (uint32_t i = native->left; i < native->count; i++) {
		uint64_t frame = native->frames[i];
		uint32_t found = intern_find(&t->instructions, &(uint64_t){without_marks(frame)});
		const struct instruction *one = found == INTERN_NONE ? NULL : intern_item(&t->instructions, found);
		const struct native_library *file = library_of(t, frame);

		if (!one || !file)
			return false;
		if (!file->is_made || one->name)
			return i > native->left &&
			       (frame & PYBPF_NATIVE_FRAME_EVAL || (file->about.is_interpreter && one->is_plumbing));
	}
	return false;
}

/*
 * Returns whether a frame is part of how the interpreter runs Python's functions, or of how the thread began, and is
 * left out for that.
 */
static bool is_hidden(const struct native_frames *t, const struct native_stack *native, const struct instruction *one)
{
	const struct native_library *file = library_of(t, one->frame);

	if (t->options.all)
		return false;
	return one->is_plumbing || native->frames[native->left] & PYBPF_NATIVE_FRAME_EVAL ||
	       is_interpreters_jit(t, native) ||
	       (native->end == PYBPF_NATIVE_END_WHOLE && native->left + BEGINNING >= native->count && !one->name &&
		file && file->is_c_library);
}

static int push_place(struct native_frames *t, const struct instruction *one, struct profile *profile, uint32_t *stack)
{
	struct native_library *file = library_of(t, one->frame);
	uint32_t mapping = PROFILE_NONE;

	if (native_library_map(file, native_places_address(&t->places, one->place), profile, &mapping) == -ENOMEM)
		return -ENOMEM;
	return native_places_push(&t->places, one->place, file->name, mapping, profile, stack);
}

/* Puts the next frame from the root on top of *stack, unless it is hidden. */
static int push(struct native_frames *t, struct native_stack *native, struct profile *profile, uint32_t *stack)
{
	uint64_t frame = native->frames[--native->left];
	struct instruction *one = find(t, frame);
	uint32_t added;

	if (!one)
		return -ENOMEM;
	if (is_hidden(t, native, one))
		return 0;
	if (one->place != INTERN_NONE)
		return push_place(t, one, profile, stack);
	added = add_to_profile(t, one, profile);
	if (added == PROFILE_NONE)
		return -ENOMEM;
	/* An interpreter without names is one frame, however many of its functions call each other. */
	if (!one->name && *stack != PROFILE_ROOT && profile_stack_at(profile, *stack)->frame == added)
		return 0;
	*stack = profile_add_stack(profile, *stack, added);
	return *stack == PROFILE_NONE ? -ENOMEM : 0;
}

static bool is_joined(const struct native_stack *native)
{
	return native->join == NATIVE_JOIN_EXACT || native->join == NATIVE_JOIN_PLUS_ONE;
}

int native_frames_push_run(struct native_frames *t, struct native_stack *native, struct profile *profile,
			   uint32_t *stack)
{
	bool met = false;
	int err = 0;

	while (is_joined(native) && native->left && !met && !err) {
		met = native->frames[native->left - 1] & PYBPF_NATIVE_FRAME_EVAL;
		err = push(t, native, profile, stack);
	}
	return err;
}

int native_frames_push_rest(struct native_frames *t, struct native_stack *native, struct profile *profile,
			    uint32_t *stack)
{
	int err = 0;

	if (!is_joined(native)) {
		uint32_t mark = profile_add_frame(profile, PROFILE_NOTE, PROFILE_NATIVE_INCOMPLETE, "", PROFILE_NO_LINE,
						  PROFILE_NO_LINE);

		*stack = mark == PROFILE_NONE ? PROFILE_NONE : profile_add_stack(profile, *stack, mark);
		if (*stack == PROFILE_NONE)
			return -ENOMEM;
	}
	while (native->left && !err)
		err = push(t, native, profile, stack);
	return err;
}
