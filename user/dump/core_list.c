// SPDX-License-Identifier: Apache-2.0
/* The process of a core file as a row of a list, and which of the files that it had mapped are not there. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/procfs.h"
#include "base/text.h"
#include "discovery/ask.h"
#include "dump/core_internal.h"
#include "helper/helper.h"

/* Longest wait for an answer about the files: each takes some microseconds. */
#define PATIENCE_S 10.0

struct files_answer {
	uint64_t count, absent;
	int err;              /* of the first one */
	char first[PATH_MAX]; /* that is absent */
};

/* Counts the ELF files, and the files that may have been some, and how many are not there. */
int dump_serve_core_files(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct process_source *source = process_source_of(PROCESS_SOURCE_PID);
	struct dump_core *core = source ? source->of : NULL;
	struct files_answer *out = answer;

	(void)state;
	(void)question;
	(void)question_size;
	if (!core)
		return -EINVAL;
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < core->file.nr_maps; i++) {
		const struct core_map *map = &core->file.maps[i];
		int fd;

		if (map->path[0] != '/' || core->firsts[i] != i)
			continue;
		fd = dump_core_file(core, map);
		if (fd == -ENOEXEC)
			continue;
		out->count++;
		if (fd >= 0)
			continue;
		if (!out->absent++) {
			out->err = fd;
			snprintf(out->first, sizeof(out->first), "%.*s", (int)procfs_path_size(map->path), map->path);
		}
	}
	*size = sizeof(*out);
	return 0;
}

static void warn_of_files(const struct dump_core *core)
{
	const struct helper_subject subject = {.pid = PROCESS_SOURCE_PID};
	struct files_answer answer;
	size_t size;
	int err = helper_call(dump_serve_core_files, subject, "", 1, &answer, sizeof(answer), &size, PATIENCE_S);

	if (helper_has_no_answer(err))
		log_warn("whether the programs and libraries that process %d had mapped can be used is not known: %s",
			 core->file.pid, helper_describe_error(err));
	if (err || size != sizeof(answer) || !answer.absent || memchr(answer.first, '\0', PATH_MAX) == NULL)
		return;
	log_warn("%" PRIu64 " of the %" PRIu64
		 " programs and libraries that process %d had mapped cannot be used, so that "
		 "parts of its memory are unknown: %s%s%s%s; see --sysroot and --executable",
		 answer.absent, answer.count, core->file.pid, core->sysroot ? "below the sysroot, " : "", answer.first,
		 answer.err == -ESTALE ? "" : ": ",
		 answer.err == -ESTALE ? " is another file than the one that was mapped"
				       : strerror(answer.err < 0 ? -answer.err : EIO));
}

static int fill_row(const struct dump_core *core, const struct discovery_python *pythons, size_t count,
		    struct ps_row *row)
{
	const struct core_file *file = &core->file;

	row->process.pid = row->process.inside = file->pid;
	snprintf(row->process.comm, sizeof(row->process.comm), "%s", file->comm);
	row->process.threads = (unsigned)file->nr_threads;
	row->supported = true;
	row->command = text_printable(file->command[0] ? file->command : file->comm);
	row->user = strdup("");
	if (!row->command || !row->user)
		return -ENOMEM;
	return ps_fill_pythons(pythons, count, row);
}

int dump_core_list(const struct dump_core *core, struct ps_list *list, struct error *error)
{
	struct discovery_python *pythons = calloc(PYBPF_MAX_RUNTIMES, sizeof(*pythons));
	enum discovery_result result = DISCOVERY_UNSUPPORTED;
	size_t count = 0;
	int err = -ENOMEM;

	*list = (struct ps_list){.rows = calloc(1, sizeof(*list->rows))};
	warn_of_files(core);
	if (pythons && list->rows) {
		list->count = list->looked_at = 1;
		result = discovery_wait_runtimes(PROCESS_SOURCE_PID, false, 0, pythons, PYBPF_MAX_RUNTIMES, &count,
						 error);
		count = count > PYBPF_MAX_RUNTIMES ? PYBPF_MAX_RUNTIMES : count;
		err = result == DISCOVERY_OK || (result == DISCOVERY_CONTRADICTED && count) ? 0 : -ENOENT;
		if (!err)
			err = fill_row(core, pythons, count, list->rows);
		else
			dump_core_retell(core, error);
	}
	if (err == -ENOMEM)
		error_set(error, err, "cannot read %s: %s", core->name, strerror(ENOMEM));
	free(pythons);
	return err;
}

void dump_core_retell(const struct dump_core *core, struct error *error)
{
	char number[16], text[sizeof(error->text) + PATH_MAX];
	char *at;

	snprintf(number, sizeof(number), "%d", PROCESS_SOURCE_PID);
	at = strstr(error->text, number);
	if (!at)
		return;
	*at = '\0';
	snprintf(text, sizeof(text), "%s: %s%d%s", core->name, error->text, core->file.pid, at + strlen(number));
	error_write(error, error->code, "%s", text);
}
