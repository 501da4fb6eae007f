// SPDX-License-Identifier: Apache-2.0
/* Files of one build-id that stand for the same table, such as those of containers of one image. */
#ifndef SESSION_NATIVE_SHARED_TABLES_H
#define SESSION_NATIVE_SHARED_TABLES_H

#include "session/native/files.h"

/* Returns a file of the same build-id that has a table already, or NULL. */
struct native_known_file *native_sharing_find(const struct native_files *f, const struct native_known_file *file);
/* The file stands for the other one's table, too. */
void native_sharing_begin(struct native_known_file *file, struct native_known_file *same);
/* Returns whether another file stands for the same table. */
bool native_sharing_has_others(const struct native_files *f, const struct native_known_file *file);
/* Returns how many of the files that share the table are mapped by processes. */
uint32_t native_sharing_count_used(const struct native_files *f, const struct native_known_file *file);
/* The file alone stands for its table from now on: the others have theirs made again when a process maps them. */
void native_sharing_end(const struct native_files *f, struct native_known_file *file);
/* Returns whether another file, which once stood for the same table, has samples by the file's number. */
bool native_sharing_has_number(const struct native_files *f, const struct native_known_file *file);

#endif
