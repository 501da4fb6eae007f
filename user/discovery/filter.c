// SPDX-License-Identifier: Apache-2.0
/* Resolves the filter's containers and cgroups, and tells which processes match it. */
#include "discovery/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "discovery/ask.h"
#include "base/array.h"
#include "base/log.h"
#include "base/procfs.h"

/* Most ancestors of a process that are checked: reused PIDs could form a cycle. */
#define ANCESTORS_MAX 1024

int discovery_numbers_add(struct discovery_numbers *numbers, uint32_t number)
{
	if (discovery_numbers_have(numbers, number))
		return 0;
	if (array_reserve(&numbers->items, &numbers->room, numbers->count + 1, sizeof(*numbers->items)))
		return -ENOMEM;
	numbers->items[numbers->count++] = number;
	return 0;
}

bool discovery_numbers_have(const struct discovery_numbers *numbers, uint32_t number)
{
	for (size_t i = 0; i < numbers->count; i++)
		if (numbers->items[i] == number)
			return true;
	return false;
}

int discovery_texts_add(struct discovery_texts *texts, const char *text)
{
	if (array_reserve(&texts->items, &texts->room, texts->count + 1, sizeof(*texts->items)))
		return -ENOMEM;
	texts->items[texts->count++] = text;
	return 0;
}

/* Adds a group unless the filter has it. Returns 0 or -ENOMEM. */
static int add_group(struct discovery_filter *filter, const struct cgroup *group)
{
	for (size_t i = 0; i < filter->group_count; i++) {
		if (filter->groups[i].id == group->id && filter->groups[i].v1 == group->v1)
			return 0;
	}
	if (array_reserve(&filter->groups, &filter->groups_room, filter->group_count + 1, sizeof(*group)))
		return -ENOMEM;
	filter->groups[filter->group_count++] = *group;
	return 0;
}

/* Adds the groups of the containers that the query means now. Returns 0, or negative errno with *error. */
static int add_containers(struct discovery_filter *filter, const char *query, double patience_s, struct error *error)
{
	struct container_found *found = calloc(DISCOVERY_CONTAINERS_MAX, sizeof(*found));
	size_t count = 0;
	int err = found ? discovery_ask_container_find(query, patience_s, found, &count, error) : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++)
		err = add_group(filter, &found[i].group);
	free(found);
	return err;
}

int discovery_filter_look_again(struct discovery_filter *filter, double patience_s)
{
	size_t before = filter->group_count;
	struct error error;
	int err = 0;

	for (size_t i = 0; i < filter->containers.count && err != -ENOMEM; i++) {
		error_clear(&error);
		err = add_containers(filter, filter->containers.items[i], patience_s, &error);
		/* It does not run now, or not yet. */
		if (err)
			log_debug("%s", error.text);
	}
	/* All have to be in one hierarchy, as the kernel's filter looks into one. */
	while (filter->group_count > before && cgroup_check_hierarchy(filter->groups, filter->group_count, &error))
		filter->group_count--;
	return err == -ENOMEM ? err : 0;
}

int discovery_filter_resolve(struct discovery_filter *filter, struct error *error)
{
	struct cgroup_mounts mounts = {0};
	int err = 0;

	error_clear(error);
	for (size_t i = 0; i < filter->containers.count && !err; i++)
		err = add_containers(filter, filter->containers.items[i], DISCOVERY_PATIENCE_S, error);
	if (!err && filter->cgroups.count)
		err = cgroup_mounts_read(&mounts);
	for (size_t i = 0; i < filter->cgroups.count && !err; i++) {
		struct cgroup *group = calloc(1, sizeof(*group));

		err = group ? cgroup_resolve(&mounts, filter->cgroups.items[i], group, error) : -ENOMEM;
		err = err ?: add_group(filter, group);
		free(group);
	}
	cgroup_mounts_free(&mounts);
	if (err && !error->code)
		error_set(error, err, "cannot find out about the cgroups: %s", strerror(-err));
	return err;
}

bool discovery_is_below(const struct discovery_numbers *pids, pid_t pid)
{
	struct procfs_stat stat;

	for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
		if (discovery_numbers_have(pids, pid))
			return true;
		if (procfs_read_stat(pid, &stat))
			return false;
		pid = stat.ppid;
	}
	return false;
}

static bool in_any_group(const struct discovery_filter *filter, pid_t pid)
{
	bool found = false;
	char *text;

	if (!filter->group_count || cgroup_read_text(pid, &text))
		return false;
	for (size_t i = 0; i < filter->group_count && !found; i++)
		found = cgroup_holds(&filter->groups[i], text);
	free(text);
	return found;
}

static bool any_glob(const struct discovery_texts *globs, const char *text)
{
	for (size_t i = 0; i < globs->count; i++)
		if (!fnmatch(globs->items[i], text, 0))
			return true;
	return false;
}

static bool any_container(const struct discovery_texts *queries, const struct container *container)
{
	for (size_t i = 0; container && i < queries->count; i++)
		if (container_matches(container, queries->items[i]))
			return true;
	return false;
}

bool discovery_filter_is_empty(const struct discovery_filter *filter)
{
	return !filter->all && !filter->pids.count && !filter->containers.count && !filter->cgroups.count &&
	       !filter->users.count && !filter->not_users.count && !discovery_filter_has_names(filter);
}

bool discovery_filter_has_names(const struct discovery_filter *filter)
{
	return filter->comms.count || filter->not_comms.count || filter->not_pids.count || filter->not_containers.count;
}

bool discovery_filter_passes_names(const struct discovery_filter *filter, pid_t pid, const char *comm,
				   const struct container *container)
{
	return (!filter->comms.count || any_glob(&filter->comms, comm)) && !any_glob(&filter->not_comms, comm) &&
	       !discovery_numbers_have(&filter->not_pids, (uint32_t)pid) &&
	       !any_container(&filter->not_containers, container);
}

bool discovery_filter_means_containers(const struct discovery_filter *filter)
{
	return filter->containers.count > 1 ||
	       (filter->containers.count && container_is_pattern(filter->containers.items[0]));
}

bool discovery_filter_group_lives(const struct discovery_filter *filter)
{
	struct stat st;

	for (size_t i = 0; i < filter->group_count; i++) {
		if (!stat(filter->groups[i].directory, &st) && st.st_ino == filter->groups[i].id)
			return true;
	}
	return false;
}

bool discovery_filter_matches(const struct discovery_filter *filter, const struct scan_process *process,
			      const struct container *container)
{
	/* The cheap conditions come first. */
	if (!discovery_filter_passes_names(filter, process->pid, process->comm, container))
		return false;
	if (filter->users.count && !discovery_numbers_have(&filter->users, process->uid))
		return false;
	if (discovery_numbers_have(&filter->not_users, process->uid))
		return false;
	return filter->all || discovery_numbers_have(&filter->pids, process->pid) ||
	       (filter->children && discovery_is_below(&filter->pids, process->ppid)) ||
	       in_any_group(filter, process->pid);
}

void discovery_filter_free(struct discovery_filter *filter)
{
	struct discovery_numbers *numbers[] = {&filter->pids, &filter->users, &filter->not_pids, &filter->not_users};
	struct discovery_texts *texts[] = {&filter->containers, &filter->cgroups, &filter->comms, &filter->not_comms,
					   &filter->not_containers};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		free(numbers[i]->items);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]->items);
	free(filter->groups);
	*filter = (struct discovery_filter){.all = false};
}
