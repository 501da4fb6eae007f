// SPDX-License-Identifier: Apache-2.0
/* Copies a profile into another: to merge several profiles, to filter them, to anonymize names. */
#ifndef PROFILE_EDIT_H
#define PROFILE_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/profile.h"
#include "base/siphash.h"

/* The most regular expressions in focus: each has a bit. */
#define PROFILE_EDIT_FOCUS_MAX 64
/* The note in place of stacks that are added up. */
#define PROFILE_OTHER_STACKS "[other stacks]"

struct profile_edit_texts {
	const char **items; /* not owned */
	size_t count, room;
};

struct profile_edit_pids {
	int32_t *items;
	size_t count, room;
};

/*
 * The filters and changes of a copy; zeroed: everything is copied unchanged. A sample passes if it matches at least one
 * item of each list that is not empty, all items of focus, and none of ignore. Free it with profile_edit_free.
 */
struct profile_edit {
	const bool *others;                   /* by samples' index in the other profile: true: its stack becomes
						 PROFILE_OTHER_STACKS, of its state, and its process one without PID;
						 NULL: of none */
	const bool *processes;                /* by their index in the other profile: true: they pass; NULL: all do */
	struct profile_edit_pids pids;        /* in the host's PID namespace */
	struct profile_edit_texts threads;    /* TIDs, or globs of thread names */
	struct profile_edit_texts containers; /* globs of names, or beginnings of IDs */
	struct profile_edit_texts services;   /* globs of names */
	struct profile_edit_texts versions;   /* globs of the services' versions */
	const char *under;                    /* glob of a qualname or of its last parts: its frame nearest to the root
						 becomes the root */
	struct profile_edit_texts focus;      /* POSIX extended regular expressions: each must match a frame */
	struct profile_edit_texts ignore;     /* none may match; all match "qualname (file.py:LINE)" */
	struct profile_edit_texts hide;       /* frames that match are left out: their values are their callers' */
	struct profile_edit_texts
		own_paths;    /* folders and files, as files are shown, that are the program's own, too */
	bool own_only;        /* functions that are not the program's own are left out likewise */
	bool fold_idle;       /* waits for work lose their functions: their leaf is PROFILE_IDLE_NAME */
	bool fold_imports;    /* of functions of the import system that call each other the first one stays */
	bool merge_processes; /* those with the same name and container become one, without PID and attributes */
	bool no_sources;      /* no source text */
	bool no_native;       /* functions of compiled code, and notes about them, are left out likewise */
	bool no_columns;      /* frames on the same line of a function are one, without its expressions */
	bool no_account;      /* neither the account nor the facts of the run */
	bool anonymize;       /* names become hashes; attributes, facts other than numbers, and sources are dropped */
	uint8_t salt[SIPHASH_KEY]; /* key of these hashes: profile_edit_check draws it at random */
};

/* Returns 0 or -ENOMEM. */
int profile_edit_add_pid(struct profile_edit_pids *pids, int32_t pid);
int profile_edit_add_text(struct profile_edit_texts *texts, const char *text);
void profile_edit_free(struct profile_edit *edit);

/* Returns whether `under` names the function of a frame. */
bool profile_edit_is_under(const struct profile_edit *edit, const struct profile *p, uint32_t frame);

/*
 * To be called once, before profiles are added: compiles the regular expressions to find errors in them, and draws the
 * salt if names are to be hashed. Returns 0, or negative errno with one sentence in *error.
 */
int profile_edit_check(struct profile_edit *edit, struct error *error);

/*
 * Adds to a profile the part of another that passes the edit (NULL: everything). Nothing is copied of the rest: no
 * name, no source. Focus and ignore see the whole stack, also the frames that under cuts off and those that are hidden.
 * What a thread waits for is never hidden. A stack of which all is hidden becomes one note.
 *
 * An empty profile takes the other's measure and roots. To a profile that is not empty, roots are added, and a
 * different measure is refused with -EINVAL: samples of different rates cannot be added up. The sentence in *error
 * calls the profiles "one" and "the other": the caller says which. It also returns -ENOMEM and -EOVERFLOW.
 *
 * Account entries are added up, and the value of the samples left out becomes an entry. Facts that differ are joined
 * with a comma; the start is the earliest, durations are added up. Events are moved by the distance of the starts if
 * both are known, and else keep their times. The source of a file is copied if a frame that passed has the file.
 *
 * When anonymizing, a name gets the same hash in all profiles that are added with the same struct, and another hash
 * with another struct. The structure, lines, PIDs, TIDs, times and notes are kept, and in names the dots and slashes,
 * ".py", and the parts that Python itself gives (<module>, <locals>, <lambda>...).
 */
int profile_edit_add(struct profile *to, const struct profile *from, const struct profile_edit *edit,
		     struct error *error);

/*
 * Copies stacks without their samples: those that are wanted, by stack of the profile that they are from, and those
 * below them. Sets the others of *wanted, too, and the stack of the copy of each in *copied. Returns 0 or -ENOMEM.
 */
int profile_copy_stacks(struct profile *to, const struct profile *from, bool *wanted, uint32_t *copied);

#endif
