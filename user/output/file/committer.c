// SPDX-License-Identifier: Apache-2.0
/* Starts, runs and stops the process that gives output files their names. */
#include "output/file/committer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rights/priority.h"
#include "rights/rights.h"

/* For messages: "the process that ...". */
#define DOES "puts files in their places"

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

/* What the process begins with. */
struct begin {
	struct output_file *const *files;
	size_t count;
};

/*
 * Keeps stderr, the socket, and the files that get their names here. Others are those of the process that was forked:
 * its sockets to helpers, which read any process's memory, and what its caller left open. Stdout's reader does not wait
 * for this process.
 */
static int keep_descriptors(int fd, struct output_file *const files[], size_t count)
{
	int kept[1 + OUTPUT_COMMITTER_FILES * OUTPUT_FILE_DESCRIPTORS] = {fd};
	size_t kept_count = 1;

	for (size_t i = 0; i < count; i++)
		kept_count += output_file_descriptors(files[i], kept + kept_count);
	return child_let_go(STDOUT_FILENO, kept, kept_count);
}

static int give_up_rights(int fd, struct output_file *const files[], size_t count, struct error *error)
{
	int folders[OUTPUT_COMMITTER_FILES], err = keep_descriptors(fd, files, count);
	struct rights_wanted wanted = {.level = RIGHTS_COMMIT, .folders = folders};

	if (err)
		return error_set(error, err, "cannot prepare the process that " DOES ": %s", strerror(-err));
	for (size_t i = 0; i < count; i++) {
		wanted.override |= output_file_needs_override(files[i]);
		wanted.sticky |= output_file_needs_fowner(files[i]);
		if (*files[i]->name)
			folders[wanted.nr_folders++] = files[i]->folder;
	}
	return rights_drop(&wanted, error);
}

static void run_committer(int fd, void *state)
{
	const struct begin *begin = state;
	struct error error = {.code = 0};

	priority_restore();
	prctl(PR_SET_NAME, "pybpf-writer");
	/* Ctrl-C is meant for the other process. */
	child_block_signals();
	give_up_rights(fd, begin->files, begin->count, &error);
	if (child_say_begun(fd, &error))
		serve(fd, begin->files, begin->count);
}

int output_committer_start(struct output_committer *committer, struct output_file *const files[], size_t count,
			   struct error *error)
{
	struct begin begin = {files, count};
	bool any = false;
	int err;

	for (size_t i = 0; i < count; i++)
		any |= *files[i]->name != '\0';
	if (!any)
		return 0;
	err = child_start(&committer->process, DOES, run_committer, &begin, error);
	for (size_t i = 0; i < count && !err; i++)
		output_file_entrust(files[i]);
	return err;
}

int output_committer_commit(struct output_committer *committer, struct output_file *file, size_t index)
{
	unsigned char number = (unsigned char)index;
	bool is_kept = file->entrusted;
	int err = output_file_commit(file), answer = -EPIPE;

	if (err || !is_kept)
		return err;
	/* MSG_NOSIGNAL: if the committer was killed, that is an error to report, and must not end pybpf by SIGPIPE. */
	if (send(committer->process.socket, &number, 1, MSG_NOSIGNAL) != 1 ||
	    recv(committer->process.socket, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
		return -EPIPE;
	return answer;
}

void output_committer_stop(struct output_committer *committer)
{
	child_end(&committer->process, INFINITY);
}
