// SPDX-License-Identifier: Apache-2.0
/* The instructions of native frames: which want a name or lines, and those that they have got. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/made.h"
#include "symbols/native/native_frames_internal.h"
#include "cpython/plumbing.h"

struct native_library *native_frames_library(const struct native_frames *t, uint64_t frame)
{
	return native_library_at(&t->libraries, PYBPF_NATIVE_FRAME_FILE(frame));
}

uint64_t native_frames_without_marks(uint64_t frame)
{
	return PYBPF_NATIVE_FRAME((uint64_t)PYBPF_NATIVE_FRAME_FILE(frame), PYBPF_NATIVE_FRAME_PC(frame));
}

struct native_instruction *native_frames_find(struct native_frames *t, uint64_t frame)
{
	const struct native_instruction fresh = {.frame = native_frames_without_marks(frame),
						 .in_profile = PROFILE_NONE,
						 .shown_pc = PYBPF_NATIVE_FRAME_PC(frame),
						 .place = INTERN_NONE};
	bool added = false;
	uint32_t i = intern_add(&t->instructions, &fresh, &added);
	struct native_instruction *found;

	if (i == INTERN_NONE)
		return NULL;
	found = intern_item(&t->instructions, i);
	found->is_used = true;
	if (!added)
		return found;
	if (native_frames_library(t, frame))
		t->nr_wanted[NAMING_WANTED]++;
	else
		found->naming = NAMING_DONE;
	return found;
}

void native_frames_note_met(struct native_frames *t)
{
	for (uint32_t i = 0; i < t->libraries.items.count; i++)
		((struct native_library *)intern_item(&t->libraries.items, i))->is_met = false;
	for (uint32_t i = 0; i < t->instructions.count; i++) {
		const struct native_instruction *one = intern_item(&t->instructions, i);
		struct native_library *library = native_frames_library(t, one->frame);

		if (library)
			library->is_met = true;
	}
}

bool native_frames_was_met(const struct native_frames *t, uint32_t file)
{
	const struct native_library *library = native_library_at(&t->libraries, file);

	return library && library->is_met;
}

static void remove_instruction(struct native_frames *t, uint32_t index)
{
	const struct native_instruction *one = intern_item(&t->instructions, index);

	if (one->naming != NAMING_DONE)
		t->nr_wanted[one->naming]--;
	free(one->name);
	intern_remove(&t->instructions, index);
}

void native_instructions_forget_profile(struct native_frames *t)
{
	for (uint32_t i = t->instructions.count; i-- > 0;) {
		struct native_instruction *one = intern_item(&t->instructions, i);
		struct native_library *library = native_frames_library(t, one->frame);

		if (!one->is_used) {
			remove_instruction(t, i);
			continue;
		}
		one->is_used = false;
		one->in_profile = PROFILE_NONE;
		if (library)
			library->is_used = true;
	}
}

static int compare_pcs(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

	return one < other ? -1 : one > other;
}

/* Fills pcs with instructions of one file that want something. */
static uint32_t find_wanting(const struct native_frames *t, enum native_naming naming, uint32_t *file, uint32_t *pcs,
			     uint32_t max)
{
	uint32_t count = 0;

	*file = 0;
	for (uint32_t i = 0; t->nr_wanted[naming] && i < t->instructions.count && count < max; i++) {
		const struct native_instruction *one = intern_item(&t->instructions, i);
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

static void turn_to(struct native_frames *t, struct native_instruction *one, enum native_naming naming)
{
	t->nr_wanted[one->naming]--;
	one->naming = naming;
	if (naming != NAMING_DONE)
		t->nr_wanted[naming]++;
}

/* Returns the instruction if it wants that, or NULL. */
static struct native_instruction *find_wanted(const struct native_frames *t, uint32_t file, uint32_t pc,
					      enum native_naming naming)
{
	uint64_t frame = PYBPF_NATIVE_FRAME((uint64_t)file, pc);
	uint32_t i = intern_find(&t->instructions, &frame);
	struct native_instruction *one = i == INTERN_NONE ? NULL : intern_item(&t->instructions, i);

	return one && one->naming == naming ? one : NULL;
}

void native_frames_put_off(struct native_frames *t, uint32_t file, uint32_t pc)
{
	struct native_instruction *one =
		find_wanted(t, file, pc, NAMING_WANTED) ?: find_wanted(t, file, pc, NAMING_WANTS_LINES);

	if (!one)
		return;
	one->put_off = one->naming;
	turn_to(t, one, NAMING_PUT_OFF);
}

uint32_t native_frames_most_put_off(const struct native_frames *t, uint32_t *count)
{
	const struct intern *files = &t->libraries.items;
	uint32_t *counts = t->nr_wanted[NAMING_PUT_OFF] ? calloc(files->count + 1u, sizeof(*counts)) : NULL;
	uint32_t most = 0;

	*count = 0;
	for (uint32_t i = 0; counts && i < t->instructions.count; i++) {
		const struct native_instruction *one = intern_item(&t->instructions, i);
		uint32_t file = PYBPF_NATIVE_FRAME_FILE(one->frame), index = intern_find(files, &file);

		if (one->naming == NAMING_PUT_OFF && index != INTERN_NONE && ++counts[index] > *count) {
			*count = counts[index];
			most = file;
		}
	}
	free(counts);
	return most;
}

void native_frames_resume(struct native_frames *t, uint32_t file)
{
	for (uint32_t i = 0; i < t->instructions.count; i++) {
		struct native_instruction *one = intern_item(&t->instructions, i);

		if (one->naming == NAMING_PUT_OFF && PYBPF_NATIVE_FRAME_FILE(one->frame) == file)
			turn_to(t, one, one->put_off);
	}
}

static bool is_plumbing(const struct native_frames *t, uint32_t file, const char *name, bool is_demangled)
{
	const struct native_library *library = native_library_at(&t->libraries, file);

	/* The interpreter, and the start of a program, are not of C++ or Rust, even where that has a main or clone. */
	return !is_demangled &&
	       (cpython_is_plumbing(name, library->about.is_interpreter) ||
		(library->is_made && !strncmp(name, NATIVE_MADE_TRAMPOLINE, strlen(NATIVE_MADE_TRAMPOLINE))));
}

void native_frames_set_name(struct native_frames *t, uint32_t file, uint32_t pc, const struct native_name *name)
{
	struct native_instruction *one = find_wanted(t, file, pc, NAMING_WANTED);

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
		const struct native_instruction *one = intern_item(&t->instructions, i);

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
	const struct native_instruction *one = i == INTERN_NONE ? NULL : intern_item(&t->instructions, i);

	/* What has no name, perhaps since it was forgotten meanwhile, says nothing against it. */
	return !one || !one->name || (one->start == name->start && !strcmp(one->name, name->text));
}

void native_frames_set_row(struct native_frames *t, uint32_t file, uint32_t pc, uint32_t row)
{
	uint64_t frame = PYBPF_NATIVE_FRAME((uint64_t)file, pc);
	uint32_t i = intern_find(&t->instructions, &frame);

	if (i != INTERN_NONE)
		((struct native_instruction *)intern_item(&t->instructions, i))->shown_pc = row;
}

int native_frames_set_lines(struct native_frames *t, uint32_t file, uint32_t pc, const struct native_line *lines,
			    uint32_t count)
{
	struct native_instruction *one = find_wanted(t, file, pc, NAMING_WANTS_LINES);
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
