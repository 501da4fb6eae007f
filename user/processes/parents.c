// SPDX-License-Identifier: Apache-2.0
/* Who started the processes of a run: read while it can be read, and told to the profile at its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/intern.h"
#include "base/procfs.h"
#include "discovery/ask.h"
#include "processes/internal.h"
#include "profile/parents.h"
#include "profile/profile.h"

/* A process that has samples, or that started others; of those that came and went nothing is kept. */
struct known {
	uint64_t start; /* as in struct processes_record */
	uint32_t pid;
	uint32_t above; /* not a part of the key, as all that follows: who started it; INTERN_NONE: nobody to be told */
	pid_t inner_pid;
	uint32_t in_profile; /* its index in the profile; PROFILE_NONE: it is not there */
	bool top;            /* it was chosen by its PID */
	char comm[16];
	char *cmdline; /* NULL unless the options ask for it */
};

/* A process of the profile. */
struct placed {
	uint32_t in_profile, known;
};

struct processes_parents {
	struct intern list;    /* struct known */
	struct intern profile; /* struct placed */
};

struct processes_parents *processes_parents_new(void)
{
	struct processes_parents *parents = calloc(1, sizeof(*parents));

	if (!parents)
		return NULL;
	intern_init(&parents->list, sizeof(struct known), offsetof(struct known, above));
	intern_init(&parents->profile, sizeof(struct placed), offsetof(struct placed, known));
	return parents;
}

static struct known *known_at(const struct processes_parents *parents, uint32_t i)
{
	return intern_item(&parents->list, i);
}

void processes_parents_free(struct processes_parents *parents)
{
	if (!parents)
		return;
	for (uint32_t i = 0; i < parents->list.count; i++)
		free(known_at(parents, i)->cmdline);
	intern_free(&parents->list);
	intern_free(&parents->profile);
	free(parents);
}

/* Returns the index, or INTERN_NONE without memory. *fresh: nothing but the key is known yet. */
static uint32_t number(struct processes_parents *parents, pid_t pid, uint64_t start, bool *fresh)
{
	const struct known one = {
		.start = start, .pid = (uint32_t)pid, .above = INTERN_NONE, .in_profile = PROFILE_NONE};

	return intern_add(&parents->list, &one, fresh);
}

static void describe(const struct processes *p, struct known *one, const struct procfs_stat *stat,
		     const struct procfs_status *status)
{
	char cmdline[PROCESSES_CMDLINE_MAX];

	one->inner_pid = status->inside;
	snprintf(one->comm, sizeof(one->comm), "%.15s", stat->comm);
	if (p->options.cmdline && !discovery_ask_cmdline((pid_t)one->pid, cmdline, sizeof(cmdline)) && *cmdline)
		one->cmdline = strdup(cmdline);
}

/*
 * Adds the process that started another one, whose PIDs are given, as procfs_read_parent() reads it. Returns its index,
 * or INTERN_NONE at the chain's end.
 */
static uint32_t add_above(const struct processes *p, pid_t child, pid_t inner_child, struct procfs_stat *stat,
			  bool *fresh)
{
	struct procfs_status status;
	pid_t pid = procfs_read_parent(child, inner_child, stat, &status);
	uint32_t at;

	if (!pid)
		return INTERN_NONE;
	at = number(p->parents, pid, stat->start_time, fresh);
	if (at != INTERN_NONE && *fresh)
		describe(p, known_at(p->parents, at), stat, &status);
	return at;
}

/*
 * Reads who started a process, who started that one, and so on, up to one that is known already. Returns the index of
 * the first, or INTERN_NONE.
 */
static uint32_t read_above(const struct processes *p, pid_t pid, pid_t inner_pid, uint64_t start)
{
	uint32_t first = INTERN_NONE, below = INTERN_NONE;
	struct procfs_stat stat;
	bool fresh = true;

	if (procfs_read_stat(pid, &stat) || stat.start_time != start)
		return INTERN_NONE;
	for (int i = 0; i < PROFILE_PARENTS_MAX && fresh; i++) {
		uint32_t at = add_above(p, pid, inner_pid, &stat, &fresh);

		if (below == INTERN_NONE)
			first = at;
		else
			known_at(p->parents, below)->above = at;
		if (at == INTERN_NONE)
			break;
		below = at;
		pid = (pid_t)known_at(p->parents, at)->pid;
		inner_pid = known_at(p->parents, at)->inner_pid;
	}
	return first;
}

/* Returns the index of a record's process, or INTERN_NONE without memory. */
static uint32_t number_record(const struct processes *p, const struct processes_record *process)
{
	bool fresh;
	uint32_t at = number(p->parents, process->pid, process->start, &fresh);
	struct known *one;

	if (at == INTERN_NONE || !fresh)
		return at;
	one = known_at(p->parents, at);
	one->above = process->above - 1;
	one->inner_pid = process->inner_pid;
	memcpy(one->comm, process->comm, sizeof(one->comm));
	return at;
}

void processes_note_parents(const struct processes *p, struct processes_record *process,
			    const struct processes_record *other)
{
	if (!p->parents)
		return;
	/* INTERN_NONE + 1 is 0. */
	if (!other)
		process->above = read_above(p, process->pid, process->inner_pid, process->start) + 1;
	else if (other->pid == process->pid)
		process->above = other->above;
	else
		process->above = number_record(p, other) + 1;
}

void processes_begin_parents(const struct processes *p, const uint32_t *pids, size_t count)
{
	for (size_t i = 0; i < count && p->parents; i++) {
		struct procfs_status status;
		struct procfs_stat stat;
		struct known *one;
		uint32_t at, above;
		bool fresh;

		if (procfs_read_stat((pid_t)pids[i], &stat) || procfs_read_status((pid_t)pids[i], &status))
			continue;
		at = number(p->parents, (pid_t)pids[i], stat.start_time, &fresh);
		if (at == INTERN_NONE)
			continue;
		one = known_at(p->parents, at);
		one->top = true;
		if (!fresh)
			continue;
		describe(p, one, &stat, &status);
		above = read_above(p, (pid_t)pids[i], status.inside, stat.start_time);
		known_at(p->parents, at)->above = above;
	}
}

int processes_tell_place(const struct processes *p, const struct processes_record *process, uint32_t in_profile)
{
	struct placed placed = {.in_profile = in_profile};
	bool fresh;

	if (!p->parents)
		return 0;
	placed.known = number_record(p, process);
	if (placed.known == INTERN_NONE)
		return -ENOMEM;
	known_at(p->parents, placed.known)->in_profile = in_profile;
	return intern_add(&p->parents->profile, &placed, &fresh) == INTERN_NONE ? -ENOMEM : 0;
}

/* Returns whether the process has ended; if not, reads its name once more. */
static bool has_ended(struct known *one)
{
	struct procfs_stat stat;

	if (procfs_read_stat((pid_t)one->pid, &stat) || stat.start_time != one->start || stat.state == 'Z' ||
	    stat.state == 'X')
		return true;
	snprintf(one->comm, sizeof(one->comm), "%.15s", stat.comm);
	return false;
}

/* Adds a process that started others to the profile, as it is there if it has samples. */
static uint32_t add_parent(struct profile *profile, struct known *one, uint32_t above)
{
	bool ended = has_ended(one);
	struct profile_process_info info = {
		.pid = (int32_t)one->pid,
		.inner_pid = one->inner_pid,
		.name = one->cmdline ?: one->comm,
	};

	if (one->in_profile != PROFILE_NONE) {
		const struct profile_process *there = profile_process_at(profile, one->in_profile);

		info.inner_pid = there->inner_pid;
		info.name = profile_string(profile, there->name);
		info.container = profile_string(profile, there->container);
	}
	return profile_add_parent(profile, above, &info, ended);
}

/* Writes the chain above a process, the nearest first, up to the outermost that was chosen by PID, if any was. */
static size_t chain_of(const struct processes_parents *parents, uint32_t at, uint32_t out[PROFILE_PARENTS_MAX])
{
	size_t count = 0, tops = 0;
	bool any_top = known_at(parents, at)->top;

	for (at = known_at(parents, at)->above; at != INTERN_NONE && count < PROFILE_PARENTS_MAX;
	     at = known_at(parents, at)->above) {
		out[count++] = at;
		if (known_at(parents, at)->top)
			tops = count;
		any_top |= known_at(parents, at)->top;
	}
	return any_top ? tops : count;
}

int processes_tell_parents(const struct processes *p, struct profile *profile)
{
	for (uint32_t i = 0; p->parents && i < p->parents->profile.count; i++) {
		const struct placed *placed = intern_item(&p->parents->profile, i);
		uint32_t chain[PROFILE_PARENTS_MAX], above = PROFILE_NONE;
		size_t count = chain_of(p->parents, placed->known, chain);

		while (count-- > 0) {
			above = add_parent(profile, known_at(p->parents, chain[count]), above);
			if (above == PROFILE_NONE)
				return -ENOMEM;
		}
		if (above != PROFILE_NONE && profile_set_parent(profile, placed->in_profile, above))
			return -ENOMEM;
	}
	return 0;
}
