// SPDX-License-Identifier: Apache-2.0
/* Events by name, and whether this kernel has them. */
#include "kernel/event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/host_kernel.h"
#include "pybpf.h"

#define TRACEPOINT "tracepoint:"
#define UPROBE     "uprobe:"

/* Characters of names of tracepoints: they are identifiers in C. */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

static const struct {
	const char *name;
	uint64_t config;
} software[] = {
	{"page-faults", PERF_COUNT_SW_PAGE_FAULTS},
	{"minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES},
};

static bool is_name(const char *text, size_t length)
{
	return length && strspn(text, NAME_CHARACTERS) >= length;
}

static int parse_tracepoint(const char *name, char category[KERNEL_CATEGORY_SIZE], struct kernel_event *event)
{
	const char *colon = strchr(name, ':');
	size_t length = colon ? (size_t)(colon - name) : 0;

	if (length >= KERNEL_CATEGORY_SIZE || !is_name(name, length) || !is_name(colon + 1, strlen(colon + 1)))
		return -EINVAL;
	memcpy(category, name, length);
	category[length] = '\0';
	event->category = category;
	event->name = colon + 1;
	event->title = name;
	return 0;
}

/* A path may have colons, and a symbol has none. */
static int parse_function(const char *name, char path[PATH_MAX], struct kernel_event *event)
{
	const char *at = name + strlen(UPROBE), *colon = strrchr(at, ':');
	size_t length = colon ? (size_t)(colon - at) : 0;

	if (!length || length >= PATH_MAX || !colon[1])
		return -EINVAL;
	memcpy(path, at, length);
	path[length] = '\0';
	event->path = path;
	event->symbol = colon + 1;
	event->title = name;
	return 0;
}

int kernel_parse_event(const char *name, uint64_t period, struct kernel_event_text *text, struct kernel_event *event)
{
	*event = (struct kernel_event){.period = period, .kind = PYBPF_KIND_EVENTS};
	if (strncmp(name, TRACEPOINT, strlen(TRACEPOINT)) == 0)
		return parse_tracepoint(name + strlen(TRACEPOINT), text->category, event);
	if (strncmp(name, UPROBE, strlen(UPROBE)) == 0)
		return parse_function(name, text->path, event);
	for (size_t i = 0; i < sizeof(software) / sizeof(*software); i++) {
		if (strcmp(name, software[i].name) != 0)
			continue;
		event->type = PERF_TYPE_SOFTWARE;
		event->config = software[i].config;
		event->title = software[i].name;
		return 0;
	}
	return -EINVAL;
}

const struct kernel_point kernel_memory_points[KERNEL_MEMORY_POINTS] = {
	{"syscalls", "sys_exit_mmap"},
	{"syscalls", "sys_exit_mremap"},
};

int kernel_check_memory_points(struct error *error)
{
	struct host_kernel host;
	int err = 0;

	/* Before (f1a7941243c1) it gathers changes, and tells them at one of many faults. */
	host_kernel_look(&host);
	if (!host_kernel_at_least(&host, 6, 2))
		return error_set(error, -ENOTSUP, "only Linux 6.2 and newer tell each change of a process's memory");
	for (size_t i = 0; i < KERNEL_MEMORY_POINTS && !err; i++) {
		const struct kernel_event event = {
			.category = kernel_memory_points[i].category,
			.name = kernel_memory_points[i].name,
		};

		err = kernel_check_event(&event, error);
	}
	return err;
}

void kernel_choose_memory(bool held, struct kernel_event *event)
{
	*event = (struct kernel_event){
		.title = held ? "memory-bytes" : "touched-bytes",
		.unit = "bytes",
		.category = "kmem",
		.name = "rss_stat",
		.kind = PYBPF_KIND_EVENTS,
		.memory = true,
	};
}

const char *kernel_find_tracepoints(void)
{
	/* Where tracefs is mounted, also by debugfs (Documentation/trace/ftrace.rst). */
	static const char *const places[] = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (!access(places[i], X_OK))
			return places[i];
	}
	return NULL;
}

int kernel_check_event(const struct kernel_event *event, struct error *error)
{
	const char *events = kernel_find_tracepoints();
	char path[512];

	if (!event->category)
		return 0;
	if (!events)
		return error_set(error, -ENOENT,
				 "tracepoint %s:%s: tracefs is not mounted; `" KERNEL_MOUNT_TRACEFS "` mounts it",
				 event->category, event->name);
	snprintf(path, sizeof(path), "%s/%s/%s/id", events, event->category, event->name);
	if (access(path, R_OK))
		return error_set(
			error, -ENOENT,
			"this kernel has no tracepoint %s:%s; `ls %s` lists the categories, and `ls` of one its "
			"tracepoints",
			event->category, event->name, events);
	return 0;
}
