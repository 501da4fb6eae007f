// SPDX-License-Identifier: Apache-2.0
/* Starts, runs and stops the process that gives output files their names. */
#include "output/file/committer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rights/priority.h"
#include "rights/rights.h"

/*
 * Commits files on request, until the other process ends, which closes the socket; then discards the rest. Those
 * without a name are the other process's.
 */
static void serve(int fd, struct output_file *const files[], size_t count)
{
	unsigned char index;
	int err;

	while (recv(fd, &index, 1, 0) == 1) {
		err = index < count && *files[index]->name ? output_file_commit(files[index]) : -EINVAL;
		if (send(fd, &err, sizeof(err), MSG_NOSIGNAL) != (ssize_t)sizeof(err))
			break;
	}
	for (size_t i = 0; i < count; i++) {
		if (*files[i]->name)
			output_file_discard(files[i]);
	}
}

/*
 * Keeps stderr, the socket, and the files that get their names here. Others are those of the process that was forked:
 * its sockets to helpers, which read any process's memory, and what its caller left open.
 */
static int keep_descriptors(int fd, struct output_file *const files[], size_t count)
{
	int kept[1 + OUTPUT_COMMITTER_FILES * OUTPUT_FILE_DESCRIPTORS] = {fd};
	size_t kept_count = 1;

	/* Stdout's reader does not wait for this process. */
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	for (size_t i = 0; i < count; i++)
		kept_count += output_file_descriptors(files[i], kept + kept_count);
	return rights_keep_descriptors(kept, kept_count);
}

static void run_committer(int fd, struct output_file *const files[], size_t count)
{
	int folders[OUTPUT_COMMITTER_FILES];
	struct rights_wanted wanted = {.level = RIGHTS_COMMIT, .folders = folders};
	struct error answer;
	sigset_t all;
	int err;

	priority_restore();
	/* Ctrl-C is meant for the other process. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (size_t i = 0; i < count; i++) {
		wanted.override |= output_file_needs_override(files[i]);
		wanted.sticky |= output_file_needs_fowner(files[i]);
		if (*files[i]->name)
			folders[wanted.nr_folders++] = files[i]->folder;
	}
	error_clear(&answer);
	err = keep_descriptors(fd, files, count);
	if (err)
		error_set(&answer, err, "cannot close descriptors: %s", strerror(-err));
	else
		rights_drop(&wanted, &answer);
	if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) == (ssize_t)sizeof(answer) && !answer.code)
		serve(fd, files, count);
	_exit(0);
}

int output_committer_start(struct output_committer *committer, struct output_file *const files[], size_t count,
			   struct error *error)
{
	int ends[2], err;
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any |= *files[i]->name != '\0';
	if (!any)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		err = -errno;
		return error_set(error, err, "cannot make a socket: %s", strerror(-err));
	}
	committer->pid = fork();
	if (committer->pid < 0) {
		err = -errno;
		committer->pid = 0;
		close(ends[0]);
		close(ends[1]);
		return error_set(error, err, "cannot start a process: %s", strerror(-err));
	}
	if (committer->pid == 0) {
		close(ends[0]);
		run_committer(ends[1], files, count);
	}
	close(ends[1]);
	committer->fd = ends[0];
	if (recv(committer->fd, error, sizeof(*error), 0) != (ssize_t)sizeof(*error))
		error_set(error, -EPIPE, "the process that puts files in their places ended at once");
	if (error->code) {
		output_committer_stop(committer);
		return error->code;
	}
	for (size_t i = 0; i < count; i++)
		output_file_entrust(files[i]);
	return 0;
}

int output_committer_commit(struct output_committer *committer, struct output_file *file, size_t index)
{
	unsigned char number = (unsigned char)index;
	bool is_kept = file->entrusted;
	int err = output_file_commit(file), answer = -EPIPE;

	if (err || !is_kept)
		return err;
	/* MSG_NOSIGNAL: if the committer was killed, that is an error to report, and must not end pybpf by SIGPIPE. */
	if (send(committer->fd, &number, 1, MSG_NOSIGNAL) != 1 ||
	    recv(committer->fd, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
		return -EPIPE;
	return answer;
}

void output_committer_stop(struct output_committer *committer)
{
	if (!committer->pid)
		return;
	close(committer->fd);
	while (waitpid(committer->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*committer = (struct output_committer){0};
}
