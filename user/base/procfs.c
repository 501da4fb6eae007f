// SPDX-License-Identifier: Apache-2.0
/* Reads and parses files of /proc/PID. */
#include "base/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/procfs_internal.h"
#include "base/process_source.h"

/* comm is at most 64 bytes (workqueue names); 52 numbers of at most 20 digits follow it. */
#define STAT_MAX 2048
/* Most bytes of /proc/PID/status. Its longest line is that of the groups, of which a process can have 65,536. */
#define STATUS_MAX (1024 * 1024)
/* include/linux/sched.h; unchanged since 2.6. */
#define PF_KTHREAD 0x00200000

bool procfs_parse_number(char **text, int base, uint64_t *out)
{
	char *end;

	/* strtoull alone would take blanks, signs and 0x. */
	if (!((**text >= '0' && **text <= '9') || (base == 16 && **text >= 'a' && **text <= 'f')))
		return false;
	errno = 0;
	*out = strtoull(*text, &end, base);
	if (errno || end == *text || (*text)[1] == 'x')
		return false;
	*text = end;
	return true;
}

bool procfs_skip(char **text, char expected)
{
	if (**text != expected)
		return false;
	(*text)++;
	return true;
}

int procfs_parse_stat(const char *text, struct procfs_stat *out)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	char rest[STAT_MAX], *p = rest;
	uint64_t fields[29] = {0};
	size_t len;

	*out = (struct procfs_stat){.state = '\0'};
	/* A comm can hold ") R 1": the last parenthesis is the kernel's own, for only numbers follow. */
	if (!open || !close || close < open || close[1] != ' ')
		return -EBADMSG;
	len = close - open - 1;
	if (len >= sizeof(out->comm))
		len = sizeof(out->comm) - 1;
	memcpy(out->comm, open + 1, len);
	out->comm[len] = '\0';
	len = strlen(close + 2);
	if (len >= sizeof(rest))
		return -EBADMSG;
	memcpy(rest, close + 2, len + 1);
	if (!*p || p[1] != ' ')
		return -EBADMSG;
	out->state = *p;
	p += 2;
	/* Fields are numbered as in proc(5): 4 is ppid, 9 flags, 20 num_threads, 22 starttime. */
	for (int field = 4; field <= 22; field++) {
		bool negative = *p == '-';

		if (negative)
			p++;
		if (!procfs_parse_number(&p, 10, &fields[field]) || (field < 22 && !procfs_skip(&p, ' ')))
			return -EBADMSG;
		if (negative && (field == 4 || field == 14 || field == 15 || field == 22))
			return -EBADMSG;
	}
	if ((*p && *p != ' ' && *p != '\n') || fields[4] > INT_MAX || fields[20] > INT_MAX)
		return -EBADMSG;
	out->ppid = fields[4];
	out->kernel_thread = fields[9] & PF_KTHREAD;
	out->threads = fields[20];
	out->start_time = fields[22];
	for (int field = 23; field <= 28 && *p == ' '; field++) {
		p++;
		if (!procfs_parse_number(&p, 10, &fields[field]))
			return 0;
	}
	out->stack_start = fields[28];
	return 0;
}

ssize_t procfs_read_some(pid_t pid, const char *name, char *buf, size_t size)
{
	size_t len = 0;
	char path[64];
	ssize_t n = 1;
	int fd;

	buf[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (len < size - 1 && n > 0) {
		n = read(fd, buf + len, size - 1 - len);
		if (n > 0)
			len += n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	if (n < 0)
		n = -errno;
	close(fd);
	buf[len] = '\0';
	return n < 0 ? n : (ssize_t)len;
}

/* Fills in what a process source (a core file) knows of its process. */
static int stat_source(const struct process_source *source, struct procfs_stat *out)
{
	*out = (struct procfs_stat){.state = 'S'};
	snprintf(out->comm, sizeof(out->comm), "%s", source->comm);
	return 0;
}

int procfs_read_task_stat(pid_t pid, pid_t tid, struct procfs_stat *out)
{
	const struct process_source *source = process_source_of(pid);
	char name[48], text[STAT_MAX];
	ssize_t n;

	if (source)
		return stat_source(source, out);
	snprintf(name, sizeof(name), "task/%d/stat", tid);
	n = procfs_read_some(pid, name, text, sizeof(text));
	return n < 0 ? (int)n : procfs_parse_stat(text, out);
}

/*
 * /proc/PID/stat has times of the whole process, for which the kernel goes through all its threads, twice
 * (do_task_stat() in fs/proc/array.c): half a millisecond for some thousand of them. Nothing else in it is different.
 */
int procfs_read_stat(pid_t pid, struct procfs_stat *out)
{
	return procfs_read_task_stat(pid, pid, out);
}

uint64_t procfs_program_start(pid_t pid, uint64_t start)
{
	struct procfs_stat child, parent;

	if (procfs_read_stat(pid, &child) || child.start_time != start)
		return start;
	while (child.stack_start && child.ppid > 0 && !procfs_read_stat(child.ppid, &parent) &&
	       parent.stack_start == child.stack_start && parent.start_time <= child.start_time)
		child = parent;
	return child.start_time;
}

int procfs_read_call(pid_t pid, pid_t tid, struct procfs_call *out)
{
	const struct process_source *source = process_source_of(pid);
	char name[64], text[256];
	ssize_t n;

	if (source)
		return source->call(source->of, tid, out);
	*out = (struct procfs_call){.number = -1};
	snprintf(name, sizeof(name), "task/%d/syscall", tid);
	n = procfs_read_some(pid, name, text, sizeof(text));
	if (n < 0)
		return (int)n;
	/* proc_pid_syscall() in fs/proc/base.c: its number, six arguments, the stack pointer, where it was called. */
	n = sscanf(text, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %*x %*x %" SCNx64 " %" SCNx64,
		   &out->number, &out->args[0], &out->args[1], &out->args[2], &out->args[3], &out->stack_pointer,
		   &out->pc);
	/* A running thread has the text "running". */
	if (n < 1)
		return -EAGAIN;
	/* Outside of a system call only stack pointer and pc follow. */
	if (out->number < 0) {
		out->stack_pointer = out->args[0];
		out->pc = out->args[1];
		memset(out->args, 0, sizeof(out->args));
	}
	return 0;
}

int procfs_read_sched(pid_t pid, pid_t tid, struct procfs_sched *out)
{
	char name[48], text[80], *end;
	ssize_t n;

	snprintf(name, sizeof(name), "task/%d/schedstat", tid);
	n = procfs_read_some(pid, name, text, sizeof(text));
	if (n < 0)
		return (int)n;
	/* proc_pid_schedstat() in fs/proc/base.c: both, and the number of time slices. */
	out->running_ns = strtoull(text, &end, 10);
	if (end == text || *end != ' ')
		return -EBADMSG;
	out->queued_ns = strtoull(end + 1, NULL, 10);
	return 0;
}

static bool has_ended(const struct procfs_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X';
}

pid_t procfs_task(pid_t pid, const struct procfs_stat *stat)
{
	const struct dirent *entry;
	struct procfs_stat own;
	char path[64];
	pid_t task = 0;
	DIR *tasks;

	if (!stat && procfs_read_stat(pid, &own))
		return 0;
	if (!stat)
		stat = &own;
	if (!has_ended(stat))
		return pid;
	/* An ended first thread counts among the threads until the last one has ended. */
	if (stat->threads < 2)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !task && (entry = readdir(tasks))) {
		char *end;
		long tid = strtol(entry->d_name, &end, 10);

		if (!*end && tid > 0 && tid <= INT_MAX && !procfs_read_stat((pid_t)tid, &own) && !has_ended(&own))
			task = (pid_t)tid;
	}
	if (tasks)
		closedir(tasks);
	return task;
}

/* Reads the number after `name` (with its colon) in a file of lines. Returns 0 or negative errno. */
static int line_number(const char *path, const char *name, uint64_t *out)
{
	int ret = -EBADMSG;
	char *line = NULL;
	size_t size = 0;
	FILE *file;

	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	errno = 0;
	while (getline(&line, &size, file) > 0) {
		char *value = line + strlen(name);

		if (strncmp(line, name, strlen(name)))
			continue;
		value += strspn(value, " \t");
		if (procfs_parse_number(&value, 10, out))
			ret = 0;
		break;
	}
	if (ret && errno == ENOMEM)
		ret = -ENOMEM;
	free(line);
	fclose(file);
	return ret;
}

static int status_number(pid_t pid, const char *name, uint64_t *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return line_number(path, name, out);
}

int procfs_fdinfo(int fd, const char *name, uint64_t *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return line_number(path, name, out);
}

int procfs_thread_group(pid_t tid, pid_t *out)
{
	uint64_t value;
	int err = status_number(tid, "Tgid:", &value);

	if (!err && value > INT_MAX)
		err = -EBADMSG;
	if (!err)
		*out = (pid_t)value;
	return err;
}

int procfs_rss(pid_t pid, uint64_t *kib)
{
	pid_t task = procfs_task(pid, NULL);

	return task ? status_number(task, "VmRSS:", kib) : -ESRCH;
}

/*
 * Returns the value of the line that begins with name (with its colon), or NULL. A comm cannot contain a newline there.
 */
static char *status_value(const char *text, const char *name)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, strlen(name)))
			return (char *)line + strlen(name) + strspn(line + strlen(name), "\t ");
	}
	return NULL;
}

int procfs_parse_status(const char *text, struct procfs_status *out)
{
	char *uid = status_value(text, "Uid:"), *inside = status_value(text, "NSpid:");
	char *tracer = status_value(text, "TracerPid:");
	uint64_t number;

	*out = (struct procfs_status){.inside = 0};
	/* Real, effective, saved and file-system user ID. */
	if (!uid || !procfs_parse_number(&uid, 10, &number) || !procfs_skip(&uid, '\t') ||
	    !procfs_parse_number(&uid, 10, &number) || number > UINT32_MAX)
		return -EBADMSG;
	out->uid = number;
	if (tracer && procfs_parse_number(&tracer, 10, &number) && number <= INT_MAX)
		out->tracer = number;
	/* PIDs from the reader's namespace down to the process's own (kernel 4.1). */
	for (; inside && procfs_parse_number(&inside, 10, &number) && number <= INT_MAX; inside++) {
		out->inside = number;
		if (*inside != '\t')
			break;
	}
	return out->inside ? 0 : -EBADMSG;
}

int procfs_read_status(pid_t pid, struct procfs_status *out)
{
	char *text;
	int err = procfs_read(pid, "status", STATUS_MAX, &text, NULL);

	if (err)
		return err;
	err = procfs_parse_status(text, out);
	free(text);
	return err;
}

int procfs_read(pid_t pid, const char *name, size_t max, char **text, size_t *len)
{
	char *buf = NULL, *grown;
	size_t size, want = 4096;
	ssize_t n;

	/* A file of /proc has no size in advance, and parts from two reads need not fit together. */
	do {
		size = want < max + 2 ? want : max + 2;
		grown = realloc(buf, size);
		n = grown ? procfs_read_some(pid, name, grown, size) : -ENOMEM;
		buf = grown ?: buf;
		want *= 8;
	} while (n == (ssize_t)size - 1 && size < max + 2);
	if (n > (ssize_t)max)
		n = -EFBIG;
	if (n < 0) {
		free(buf);
		return n;
	}
	*text = buf;
	if (len)
		*len = n;
	return 0;
}

int procfs_peak_rss(pid_t pid, uint64_t *kib)
{
	return status_number(pid, "VmHWM:", kib);
}

const char *procfs_status_line(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? at + strlen(name) : "";
}

uint64_t procfs_status_number(const char *status, const char *name)
{
	return strtoull(procfs_status_line(status, name), NULL, 10);
}
