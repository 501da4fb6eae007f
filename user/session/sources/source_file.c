// SPDX-License-Identifier: Apache-2.0
/* Opens and reads source files in a helper process that has taken over the thread's credentials. */
#include "session/sources/source_file.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helper/helper.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/procfs.h"
#include "symbols/pysym.h"

/* Longest wait for an answer: it takes a fraction of a millisecond unless a file system hangs. */
#define PATIENCE_S 0.25
/* Room for /proc/PID/status of a process with more than SOURCE_GROUPS_MAX groups. */
#define STATUS_MAX (1 << 20)
/* Uncertainty of both clocks: a process's start is rounded down to a clock tick, and a file's time is about as coarse.
 */
#define CLOCKS_S 0.02
/* Three readings of clocks take less than a microsecond where nothing comes between them. */
#define BOOT_S     1e-4
#define BOOT_TRIES 8

struct question {
	pid_t pid;
	uint64_t start;
	struct source_rights rights;
	struct source_identity identity; /* of source_file_text() */
	char path[4096];
};

struct look_answer {
	struct source_rights rights;
	struct timespec placed; /* as path_below_open_placed() tells */
	struct source_identity identity;
};

static bool is_alive(const struct question *q)
{
	struct procfs_stat stat;

	return !procfs_read_stat(q->pid, &stat) && stat.start_time == q->start;
}

static bool in_own_namespace(pid_t pid)
{
	char path[64], theirs[64], ours[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	n = readlink(path, theirs, sizeof(theirs));
	m = readlink("/proc/self/ns/user", ours, sizeof(ours));
	return n > 0 && n == m && !memcmp(theirs, ours, (size_t)n);
}

/*
 * The groups go with the user: they are taken only while the process has the user and group that the thread had. A
 * program that gains another user or group by exec does not gain its supplementary groups, and groups that the program
 * sets later belong to the user that it switches to.
 */
static void read_groups(pid_t pid, struct source_rights *rights)
{
	char *text = NULL, *line, *end;
	unsigned long uid, gid;

	rights->group_count = 0;
	if (procfs_read(pid, "status", STATUS_MAX, &text, NULL))
		return;
	line = strstr(text, "\nUid:");
	if (!line || sscanf(line, "\nUid: %*u %*u %*u %lu", &uid) != 1 || uid != rights->thread.fsuid)
		goto done;
	line = strstr(line, "\nGid:");
	if (!line || sscanf(line, "\nGid: %*u %*u %*u %lu", &gid) != 1 || gid != rights->thread.fsgid)
		goto done;
	line = strstr(line, "\nGroups:");
	if (!line)
		goto done;
	line += strlen("\nGroups:");
	while (rights->group_count < SOURCE_GROUPS_MAX) {
		line += strspn(line, "\t ");
		gid = strtoul(line, &end, 10);
		if (end == line)
			break;
		rights->groups[rights->group_count++] = (gid_t)gid;
		line = end;
	}
done:
	free(text);
}

struct capabilities {
	struct __user_cap_header_struct head;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static int get_capabilities(struct capabilities *caps)
{
	*caps = (struct capabilities){.head = {.version = _LINUX_CAPABILITY_VERSION_3}};
	return (int)syscall(SYS_capget, &caps->head, caps->data);
}

static void set_effective(struct capabilities *caps, int capability, bool on)
{
	uint32_t bit = 1u << (capability & 31);

	caps->data[capability >> 5].effective &= ~bit;
	if (on)
		caps->data[capability >> 5].effective |= caps->data[capability >> 5].permitted & bit;
}

static bool has(const struct source_rights *rights, int capability)
{
	return rights->own_namespace && rights->thread.capabilities >> capability & 1;
}

/*
 * Returns 0, or -EPERM where the helper cannot take over these rights: root without a capability, or another user, who
 * may read what the thread may not.
 */
static int become(const struct source_rights *rights)
{
	struct capabilities caps;
	uid_t own = geteuid();

	/* Needs CAP_SETGID; without it pybpf is not root, and reads with its own groups. */
	if (setgroups(rights->group_count, rights->groups) && own == 0)
		return -EPERM;
	setfsgid(rights->thread.fsgid);
	setfsuid(rights->thread.fsuid);
	/* Both calls return the previous ID, not an error: a second call shows whether the first took effect. */
	if ((uid_t)setfsuid((uid_t)-1) != rights->thread.fsuid)
		return -EPERM;
	if ((gid_t)setfsgid((gid_t)-1) != rights->thread.fsgid && own == 0)
		return -EPERM;
	if (get_capabilities(&caps))
		return -EPERM;
	set_effective(&caps, CAP_DAC_READ_SEARCH, has(rights, CAP_DAC_READ_SEARCH) || has(rights, CAP_DAC_OVERRIDE));
	set_effective(&caps, CAP_DAC_OVERRIDE, false);
	return syscall(SYS_capset, &caps.head, caps.data) ? -EPERM : 0;
}

static void become_self(void)
{
	struct capabilities caps;

	setfsuid(geteuid());
	setfsgid(getegid());
	setgroups(0, NULL);
	if (get_capabilities(&caps))
		return;
	set_effective(&caps, CAP_DAC_READ_SEARCH, true);
	set_effective(&caps, CAP_DAC_OVERRIDE, true);
	syscall(SYS_capset, &caps.head, caps.data);
	/* commit_creds() in kernel/cred.c clears it with each change of fsuid or fsgid. */
	helper_tie_to_forkserver();
}

static void identify(const struct stat *st, struct source_identity *out)
{
	*out = (struct source_identity){
		.dev = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.changed_s = st->st_ctim.tv_sec,
		.changed_ns = st->st_ctim.tv_nsec,
		.modified_s = st->st_mtim.tv_sec,
		.modified_ns = st->st_mtim.tv_nsec,
	};
}

/* Opens the path below the root of a process, with the rights. Returns a descriptor or negative errno. */
static int open_as(const struct source_rights *rights, pid_t root_of, const char *path, struct stat *st,
		   struct timespec *placed)
{
	int root = procfs_open_root(root_of, &path), fd;

	if (root < 0)
		return root;
	fd = become(rights);
	if (!fd)
		fd = procfs_open_below(root, path, st, placed);
	become_self();
	close(root);
	return fd;
}

static const struct question *checked(const void *question, size_t size)
{
	const struct question *q = question;

	return size == sizeof(*q) && !q->path[sizeof(q->path) - 1] && q->path[0] == '/' ? q : NULL;
}

int source_file_serve_look(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct question *q = checked(question, question_size);
	struct look_answer *a = answer;
	struct stat st = {0};
	int fd;

	(void)state;
	if (!q)
		return -EINVAL;
	memset(a, 0, sizeof(*a));
	a->rights.thread = q->rights.thread;
	a->rights.own_namespace = in_own_namespace(q->pid);
	read_groups(q->pid, &a->rights);
	fd = open_as(&a->rights, q->pid, q->path, &st, &a->placed);
	/* If the process has ended, the root opened may belong to another process with its PID. */
	if (fd >= 0 && !is_alive(q)) {
		close(fd);
		fd = -ESRCH;
	}
	if (fd < 0)
		return fd;
	close(fd);
	identify(&st, &a->identity);
	*size = sizeof(*a);
	return st.st_size > 0 && st.st_size <= SOURCE_FILE_MAX ? 0 : -EFBIG;
}

static int read_text(int fd, char *text, size_t size)
{
	if (io_read_at(fd, text, size, 0) != (ssize_t)size)
		return -EIO;
	return memchr(text, '\0', size) ? -EILSEQ : 0;
}

static int text_below(const struct question *q, pid_t root_of, char *text, size_t *size)
{
	struct source_identity identity;
	struct stat st;
	int fd = open_as(&q->rights, root_of, q->path, &st, &(struct timespec){0}), err = -ESTALE;

	if (fd < 0)
		return fd;
	identify(&st, &identity);
	if (!memcmp(&identity, &q->identity, sizeof(identity)) && identity.size <= SOURCE_FILE_MAX) {
		*size = identity.size;
		err = read_text(fd, text, *size);
	}
	close(fd);
	return err;
}

int source_file_serve_text(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct question *q = checked(question, question_size);
	int err = q ? -ESRCH : -EINVAL;

	(void)state;
	if (q && is_alive(q))
		err = text_below(q, q->pid, answer, size);
	if (q && err)
		err = text_below(q, getpid(), answer, size);
	if (err)
		*size = 0;
	return err;
}

bool source_read_rights(pid_t task, struct pybpf_rights *rights)
{
	/* setfsuid(2) treats UINT32_MAX as no user. */
	unsigned uid = UINT32_MAX, gid = UINT32_MAX;
	uint64_t effective = 0;
	char *status;
	bool known;

	*rights = (struct pybpf_rights){.fsuid = uid, .fsgid = gid};
	if (procfs_read(task, "status", STATUS_MAX, &status, NULL))
		return false;
	known = sscanf(procfs_status_line(status, "\nUid:"), "%*u %*u %*u %u", &uid) == 1 &&
		sscanf(procfs_status_line(status, "\nGid:"), "%*u %*u %*u %u", &gid) == 1 &&
		sscanf(procfs_status_line(status, "\nCapEff:"), "%" SCNx64, &effective) == 1;
	if (known)
		*rights = (struct pybpf_rights){.fsuid = uid, .fsgid = gid, .capabilities = effective};
	free(status);
	return known;
}

/* Returns NULL without memory, or where the path is too long. */
static struct question *make_question(const struct source_file *file)
{
	struct question *q = strlen(file->path) < sizeof(q->path) ? calloc(1, sizeof(*q)) : NULL;

	if (!q)
		return NULL;
	q->pid = file->pid;
	q->start = file->start;
	memcpy(q->path, file->path, strlen(file->path) + 1);
	return q;
}

/*
 * Returns the seconds since 1970 at the boot: the closest of several readings, as the thread may have to wait between
 * two clocks.
 */
static double boot_s(void)
{
	double closest = HUGE_VAL, boot = 0;

	for (int i = 0; i < BOOT_TRIES && closest > BOOT_S; i++) {
		const double before = clock_s(CLOCK_BOOTTIME), now = clock_s(CLOCK_REALTIME);
		const double took = clock_s(CLOCK_BOOTTIME) - before;

		if (took < closest)
			boot = now - before;
		closest = fmin(closest, took);
	}
	return boot;
}

/* Returns the seconds since 1970 at which the program began that the process runs. */
static double program_start_s(const struct source_file *file)
{
	return boot_s() + (double)procfs_program_start(file->pid, file->start) / (double)sysconf(_SC_CLK_TCK);
}

static double seconds(int64_t s, int64_t ns)
{
	return (double)s + (double)ns / 1e9;
}

/* A file that is moved to its place keeps its time of modification, but not that of its change. */
static bool is_older(const struct look_answer *found, double start_s)
{
	const struct source_identity *file = &found->identity;

	start_s += CLOCKS_S;
	return seconds(file->modified_s, file->modified_ns) <= start_s &&
	       seconds(file->changed_s, file->changed_ns) <= start_s &&
	       seconds(found->placed.tv_sec, found->placed.tv_nsec) <= start_s;
}

int source_file_look(const struct source_file *file, const struct pybpf_rights *thread, struct source_rights *rights,
		     struct source_identity *identity)
{
	struct question *q;
	struct look_answer answer;
	size_t size;
	int err;

	if (file->path[0] != '/')
		return -ENOENT;
	q = make_question(file);
	if (!q)
		return -ENOMEM;
	q->rights.thread = *thread;
	err = helper_call(source_file_serve_look, (struct helper_subject){.pid = file->pid}, q, sizeof(*q), &answer,
			  sizeof(answer), &size, PATIENCE_S);
	free(q);
	/* The helper's answer determines how much memory the text gets, so its sizes are checked. */
	if (!err && (size != sizeof(answer) || answer.identity.size > SOURCE_FILE_MAX ||
		     answer.rights.group_count > SOURCE_GROUPS_MAX))
		err = -EPROTO;
	if (err)
		return err;
	*rights = answer.rights;
	*identity = answer.identity;
	return is_older(&answer, program_start_s(file)) ? 0 : -ESTALE;
}

void source_file_leave_out(const char *shown, const char *path, int err)
{
	const char *why = helper_describe_error(err);

	if (path[0] == '<')
		why = "there is no such file";
	else if (path[0] != '/')
		why = "its path is relative, and the folder in which the program was then is not known";
	else if (err == -ESTALE)
		why = "it may be other code by now: it, or a link or folder on its path, was changed after the program "
		      "began, or it could not be read again";
	else if (err == -EXDEV)
		why = "two processes have different files of that name";
	else if (err == -EILSEQ)
		why = "it does not define the functions that ran";
	else if (err == -EFBIG)
		why = "it is empty, or larger than 1 MiB";
	log_info("%s: its source is left out: %s", shown, why);
}

/* Ends all lines as Python reads them. */
static void end_lines(char *text)
{
	char *out = text;

	for (; *text; text++) {
		if (*text == '\r' && text[1] == '\n')
			continue;
		*out++ = *text == '\r' ? '\n' : *text;
	}
	*out = '\0';
}

int source_file_text(const struct source_file *file, const struct source_rights *rights,
		     const struct source_identity *identity, char **out)
{
	struct question *q = make_question(file);
	char *text = q ? malloc(identity->size + 1) : NULL;
	size_t size = 0;
	int err = -ENOMEM;

	if (text) {
		q->rights = *rights;
		q->identity = *identity;
		err = helper_call(source_file_serve_text, (struct helper_subject){.pid = file->pid}, q, sizeof(*q),
				  text, identity->size, &size, PATIENCE_S);
	}
	free(q);
	if (!err && size != identity->size)
		err = -EPROTO;
	if (err) {
		free(text);
		return err;
	}
	text[size] = '\0';
	end_lines(text);
	*out = text;
	return 0;
}

int source_file_serve_look_at_path(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct question *q = checked(question, question_size);
	int err = q ? pysym_look_at_path(q->pid, q->path, answer) : -EINVAL;

	(void)state;
	if (!err)
		*size = sizeof(struct pysym_file);
	return err;
}

int source_file_look_at_path(pid_t pid, const char *path, struct pysym_file *out)
{
	struct question *q;
	size_t size;
	int err;

	if (!pysym_path_needs_look(path)) {
		*out = (struct pysym_file){.shown = (uint32_t)(pysym_short_path(path, NULL) - path)};
		return 0;
	}
	q = make_question(&(struct source_file){.pid = pid, .path = path});
	err = q ? helper_call(source_file_serve_look_at_path, (struct helper_subject){.pid = pid}, q, sizeof(*q), out,
			      sizeof(*out), &size, PATIENCE_S)
		: -ENOMEM;
	free(q);
	return err || (size == sizeof(*out) && out->shown < strlen(path)) ? err : -EPROTO;
}
