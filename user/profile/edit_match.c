// SPDX-License-Identifier: Apache-2.0
/* Finds the stacks that have frames which match the filters. */
#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/edit_internal.h"
#include "profile/imports.h"
#include "profile/application_frames.h"

struct patterns {
	regex_t *regexes; /* those of focus, of ignore, of hide */
	size_t count;
};

static void free_patterns(struct patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		regfree(&patterns->regexes[i]);
	free(patterns->regexes);
}

static int no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, "out of memory");
}

static int compile(struct patterns *patterns, const char *option, const char *text, struct error *error)
{
	char wrong[128];
	int err = regcomp(&patterns->regexes[patterns->count], text, REG_EXTENDED | REG_NOSUB);

	if (!err) {
		patterns->count++;
		return 0;
	}
	regerror(err, &patterns->regexes[patterns->count], wrong, sizeof(wrong));
	return error_set(error, err == REG_ESPACE ? -ENOMEM : -EINVAL,
			 "%s %s: not a POSIX extended regular expression: %s", option, text, wrong);
}

static int compile_all(struct patterns *patterns, const struct profile_edit *edit, struct error *error)
{
	size_t most = edit->focus.count + edit->ignore.count + edit->hide.count;
	int err = 0;

	*patterns = (struct patterns){.regexes = calloc(most ? most : 1, sizeof(regex_t))};
	if (!patterns->regexes)
		return no_memory(error);
	if (edit->focus.count > PROFILE_EDIT_FOCUS_MAX)
		return error_set(error, -EINVAL, "--focus is given %zu times, and can be %d times", edit->focus.count,
				 PROFILE_EDIT_FOCUS_MAX);
	for (size_t i = 0; i < edit->focus.count && !err; i++)
		err = compile(patterns, "--focus", edit->focus.items[i], error);
	for (size_t i = 0; i < edit->ignore.count && !err; i++)
		err = compile(patterns, "--ignore", edit->ignore.items[i], error);
	for (size_t i = 0; i < edit->hide.count && !err; i++)
		err = compile(patterns, "--hide", edit->hide.items[i], error);
	return err;
}

int edit_check_patterns(const struct profile_edit *edit, struct error *error)
{
	struct patterns patterns;
	int err = compile_all(&patterns, edit, error);

	free_patterns(&patterns);
	return err;
}

/* Returns "qualname (file.py:LINE)", which the caller frees. NULL: no memory. */
static char *label_frame(const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = profile_frame_at(p, frame);
	const char *name = profile_string(p, f->name), *file = profile_string(p, f->file);
	char *label = NULL;
	int n;

	if (!*file)
		n = asprintf(&label, "%s", name);
	else if (f->line == PROFILE_NO_LINE)
		n = asprintf(&label, "%s (%s)", name, file);
	else
		n = asprintf(&label, "%s (%s:%d)", name, file, f->line);
	return n < 0 ? NULL : label;
}

bool profile_edit_is_under(const struct profile_edit *edit, const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = profile_frame_at(p, frame);
	const char *name = profile_string(p, f->name);

	if (!fnmatch(edit->under, name, 0))
		return true;
	for (const char *dot = strchr(name, '.'); dot && f->kind == PROFILE_PYTHON; dot = strchr(dot + 1, '.')) {
		if (!fnmatch(edit->under, dot + 1, 0))
			return true;
	}
	return false;
}

enum profile_origin edit_origin_of(const struct profile *p, const struct profile_frame *frame,
				   const struct profile_edit *edit)
{
	return profile_is_in(&edit->own_paths, profile_string(p, frame->file)) ? PROFILE_OWN
									       : profile_origin_of(p, frame->file);
}

/* Returns whether the frame is a function, and not the program's own. */
static bool is_foreign(const struct profile *p, const struct profile_frame *frame, const struct profile_edit *edit)
{
	return frame->kind == PROFILE_KERNEL || frame->kind == PROFILE_NATIVE ||
	       (frame->kind == PROFILE_PYTHON && edit_origin_of(p, frame, edit) != PROFILE_OWN);
}

/* Returns whether a stack's leaf is a function of the import system that another one calls. */
static bool is_within_import(const struct profile *p, const struct profile_stack *stack)
{
	return stack->parent != PROFILE_ROOT && profile_is_importlib(p, stack->frame) &&
	       profile_is_importlib(p, profile_stack_at(p, stack->parent)->frame);
}

static bool is_native(const struct profile *p, const struct profile_frame *frame)
{
	return frame->kind == PROFILE_NATIVE ||
	       (frame->kind == PROFILE_NOTE && !strcmp(profile_string(p, frame->name), PROFILE_NATIVE_INCOMPLETE));
}

static int match_frame(const struct profile *p, uint32_t frame, const struct profile_edit *edit,
		       const struct patterns *patterns, struct edit_match *match)
{
	char *label;

	if (edit->under)
		match->under = profile_edit_is_under(edit, p, frame);
	match->hide = (edit->own_only && is_foreign(p, profile_frame_at(p, frame), edit)) ||
		      (edit->no_native && is_native(p, profile_frame_at(p, frame)));
	if (!patterns->count)
		return 0;
	label = label_frame(p, frame);
	if (!label)
		return -ENOMEM;
	for (size_t i = 0; i < patterns->count; i++) {
		if (regexec(&patterns->regexes[i], label, 0, NULL, 0))
			continue;
		if (i < edit->focus.count)
			match->focus |= 1ull << i;
		else if (i < edit->focus.count + edit->ignore.count)
			match->ignore = true;
		else
			match->hide |= !profile_frame_at(p, frame)->state;
	}
	free(label);
	return 0;
}

int edit_match_stacks(const struct profile *p, const struct profile_edit *edit, struct edit_match **matches,
		      struct error *error)
{
	uint32_t frames = profile_frame_count(p), stacks = profile_stack_count(p);
	struct edit_match *of_frames = calloc(frames ? frames : 1, sizeof(*of_frames));
	struct edit_match *of_stacks = calloc(stacks, sizeof(*of_stacks));
	struct patterns patterns;
	int err = compile_all(&patterns, edit, error);

	if (!err && (!of_frames || !of_stacks))
		err = no_memory(error);
	for (uint32_t i = 0; i < frames && !err; i++) {
		if (match_frame(p, i, edit, &patterns, &of_frames[i]))
			err = no_memory(error);
	}
	for (uint32_t i = 1; i < stacks && !err; i++) {
		const struct profile_stack *stack = profile_stack_at(p, i);
		const struct edit_match *below = &of_stacks[stack->parent], *own = &of_frames[stack->frame];

		of_stacks[i] = (struct edit_match){
			.focus = below->focus | own->focus,
			.ignore = below->ignore || own->ignore,
			.under = below->under || own->under,
			.hide = own->hide || (edit->fold_imports && is_within_import(p, stack)),
		};
	}
	free_patterns(&patterns);
	free(of_frames);
	if (!err && (edit->focus.count || edit->ignore.count) && edit_match_tasks(p, of_stacks))
		err = no_memory(error);
	if (err) {
		free(of_stacks);
		of_stacks = NULL;
	}
	*matches = of_stacks;
	return err;
}
