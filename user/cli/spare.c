// SPDX-License-Identifier: Apache-2.0
/* Opens a file on another file system, and waits until somebody has made room. */
#include "cli/spare.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/signals.h"

/* Bytes that a file system must have for the caller, to be of use; a large profile has some MiB. */
#define ROOM (16u << 20)
/* How often a pending signal is looked for, in milliseconds. */
#define LOOK_MS 100

static bool has_room(const char *folder)
{
	struct statvfs status;

	return !statvfs(folder, &status) && (uint64_t)status.f_bavail * status.f_frsize >= ROOM;
}

static bool try_folder(struct cli_spare *spare, const char *folder, const struct output_file *file, const char *name)
{
	struct error error;

	if (!folder || *folder != '/' || !has_room(folder) ||
	    snprintf(spare->path, sizeof(spare->path), "%s/pybpf-%d-%s", folder, getpid(), name) >=
		    (int)sizeof(spare->path))
		return false;
	error_clear(&error);
	if (output_file_open(&spare->file, spare->path, &error))
		return false;
	if (*spare->file.name && !spare->file.old.st_ino &&
	    spare->file.folder_status.st_dev != file->folder_status.st_dev && !output_file_give_as(&spare->file, file))
		return true;
	output_file_discard(&spare->file);
	return false;
}

void cli_spare_open(struct cli_spare *spare, const struct output_file *file, const char *path)
{
	const char *const folders[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
	const char *slash = strrchr(path, '/');

	if (!*file->name)
		return;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if (try_folder(spare, folders[i], file, slash ? slash + 1 : path))
			return;
	}
}

bool cli_spare_is_for(int err)
{
	return err == -ENOSPC || err == -EDQUOT;
}

/* Returns whether Enter was pressed, before Ctrl-D or a signal that ends a run, which are blocked. */
static bool is_agreed(void)
{
	const struct timespec now = {0};
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	sigset_t ends;
	char line[256];

	signals_of_end(&ends);
	while (sigtimedwait(&ends, NULL, &now) < 0) {
		if (poll(&input, 1, LOOK_MS) > 0)
			return read(STDIN_FILENO, line, sizeof(line)) > 0;
	}
	return false;
}

bool cli_spare_wait_for_room(FILE *stream, const char *path, int err)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp())
		return false;
	log_error("cannot write %s: %s; make room there and press Enter to write it again, or Ctrl-C to lose it", path,
		  strerror(-err));
	if (!is_agreed())
		return false;
	__fpurge(stream);
	clearerr(stream);
	return !ftruncate(fileno(stream), 0) && !fseek(stream, 0, SEEK_SET);
}
