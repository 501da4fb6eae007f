// SPDX-License-Identifier: Apache-2.0
/* The texts and places of native frames, which are put between those of Python. */
#include "symbols/native/native_frames_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a frame's text: a name, or a file and an offset. */
#define TEXT_MAX 512

struct native_frames *native_frames_new(const struct native_frames_options *options)
{
	struct native_frames *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->options = *options;
	native_libraries_init(&t->libraries);
	native_places_init(&t->places, options->full_paths);
	intern_init(&t->instructions, sizeof(struct native_instruction), sizeof(uint64_t));
	return t;
}

void native_frames_free(struct native_frames *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->instructions.count; i++)
		free(((struct native_instruction *)intern_item(&t->instructions, i))->name);
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

void native_frames_set_on_gap(struct native_frames *t, native_frames_on_gap *on_gap, void *arg)
{
	t->on_gap = on_gap;
	t->on_gap_arg = arg;
}

void native_frames_keep_file(struct native_frames *t, uint32_t file)
{
	struct native_library *library = native_library_at(&t->libraries, file);

	if (library)
		library->is_used = true;
}

void native_frames_forget_profile(struct native_frames *t)
{
	native_places_forget_profile(&t->places);
	native_instructions_forget_profile(t);
	native_libraries_forget_profile(&t->libraries);
}

/* Returns the address of an instruction, as linked. */
static uint64_t address_of(const struct native_library *file, const struct native_instruction *one)
{
	return file->about.base + one->shown_pc;
}

static void write_text(const struct native_frames *t, const struct native_instruction *one, char text[TEXT_MAX])
{
	const struct native_library *file = native_frames_library(t, one->frame);

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
static int place(struct native_library *file, const struct native_instruction *one, struct profile *profile,
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
static uint32_t add_to_profile(const struct native_frames *t, struct native_instruction *one, struct profile *profile)
{
	struct native_library *file = native_frames_library(t, one->frame);
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
		uint32_t found = intern_find(&t->instructions, &(uint64_t){native_frames_without_marks(frame)});
		const struct native_instruction *one =
			found == INTERN_NONE ? NULL : intern_item(&t->instructions, found);
		const struct native_library *file = native_frames_library(t, frame);

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
static bool is_hidden(const struct native_frames *t, const struct native_stack *native,
		      const struct native_instruction *one)
{
	const struct native_library *file = native_frames_library(t, one->frame);

	if (t->options.all)
		return false;
	return one->is_plumbing || native->frames[native->left] & PYBPF_NATIVE_FRAME_EVAL ||
	       is_interpreters_jit(t, native) ||
	       (native->end == PYBPF_NATIVE_END_WHOLE && native->left + BEGINNING >= native->count && !one->name &&
		file && file->is_c_library);
}

static int push_place(struct native_frames *t, const struct native_instruction *one, struct profile *profile,
		      uint32_t *stack)
{
	struct native_library *file = native_frames_library(t, one->frame);
	uint32_t mapping = PROFILE_NONE;

	if (native_library_map(file, native_places_address(&t->places, one->place), profile, &mapping) == -ENOMEM)
		return -ENOMEM;
	return native_places_push(&t->places, one->place, file->name, mapping, profile, stack);
}

/* Puts the next frame from the root on top of *stack, unless it is hidden. */
static int push(struct native_frames *t, struct native_stack *native, struct profile *profile, uint32_t *stack)
{
	uint64_t frame = native->frames[--native->left];
	struct native_instruction *one = native_frames_find(t, frame);
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
