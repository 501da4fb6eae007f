// SPDX-License-Identifier: Apache-2.0
/* The terminal of `pybpf top`: keys in, lines out. Only this room's screen.c knows ncurses. */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include "base/error.h"
#include "top/view.h"

struct top_screen;

/*
 * Takes the terminal. To be called before rights are dropped: it reads the terminal's description. Returns NULL with
 * one sentence in *error where stdin or stdout is no terminal, or one that cannot move its cursor.
 */
struct top_screen *top_screen_open(struct error *error);
/* Gives the terminal back as it was. Accepts NULL. */
void top_screen_close(struct top_screen *screen);

/* Shows a table, as its key does. */
void top_screen_choose_table(struct top_screen *screen, enum top_table table);
/* Draws; frozen choices draw what they drew before. Returns 0 or -ENOMEM. */
int top_screen_draw(struct top_screen *screen, const struct top_model *m, const struct top_facts *facts);
enum top_wish {
	TOP_WISH_NONE,
	TOP_WISH_WRITE, /* a profile */
	TOP_WISH_STOP,  /* the program, as Ctrl-Z does */
	TOP_WISH_END,   /* of the program */
};

/* Handles the keys that were pressed, up to one that the caller has to fulfil. */
enum top_wish top_screen_keys(struct top_screen *screen, const struct top_model *m, const struct top_facts *facts);
/*
 * Gives the terminal back, and stops the process as Ctrl-Z does, until it is continued; the next drawing takes the
 * terminal again. Without a shell that could continue it, nothing stops.
 */
void top_screen_stop(void);
/* Shows a sentence until the next key. */
void top_screen_say(struct top_screen *screen, const char *text);
/* Returns the file whose source is to be shown, or NULL: none. */
const char *top_screen_source(const struct top_screen *screen, const struct top_model *m);
/* Returns whether intervals are not to be shown now. */
bool top_screen_is_frozen(const struct top_screen *screen);

#endif
