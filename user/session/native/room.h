// SPDX-License-Identifier: Apache-2.0
/* Room for the tables of files: which give way to others, and when those that found none are tried again. */
#ifndef SESSION_NATIVE_ROOM_H
#define SESSION_NATIVE_ROOM_H

#include "session/native/files.h"

/* Until pages that were given back can be used, in seconds. */
#define NATIVE_ROOM_RETRY_S 1.1

/* now: CLOCK_MONOTONIC seconds, here and below. */
void native_room_give_pages(struct native_files *f, struct native_known_file *file, double now);
/* Programs do not use the file's table any more. */
void native_room_hide_table(struct native_files *f, struct native_known_file *file);

/* Takes tables that no process uses away. Returns whether there were any. */
bool native_room_make(struct native_files *f, double now);
/*
 * Returns the index of a file that processes map and whose table was taken away, each once, or INTERN_NONE. They are to
 * learn of that at once, as another table is there a second later.
 */
uint32_t native_room_next_taken_away(struct native_files *f);

/* The file found no room: it is tried again later. */
void native_room_put_off(struct native_known_file *file, double now);
/* A stack has ended in a file that found no room. */
void native_room_want(struct native_known_file *file, double now);
/* Returns whether there is such a file. */
bool native_room_is_wanted(const struct native_files *f);
/* Has the table of a file that processes map made when there is room for it, or makes some. */
void native_room_retry(struct native_files *f, struct native_known_file *file, double now);

#endif
