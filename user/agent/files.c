// SPDX-License-Identifier: Apache-2.0
/* The sink that writes each epoch to a file of a folder. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/internal.h"
#include "base/log.h"
#include "profile/saved.h"

/* How long an epoch waits for the process that keeps the files to hand out one. */
#define PATIENCE_MS 100

static bool is_wanted(const struct agent_options *options)
{
	return options->dir != NULL;
}

static struct archive_limits limits_of(const struct agent *a)
{
	return (struct archive_limits){.keep_ms = (uint64_t)(a->options.keep_s * 1000),
				       .keep_size = a->options.keep_size};
}

static int open_files(struct agent *a, struct error *error)
{
	const struct archive_limits limits = limits_of(a);
	struct archive_store store;
	int err = archive_store_open(&store, a->options.dir, error);

	err = err ?: archive_keeper_start(&a->keeper, &store, &limits, error);
	archive_store_close(&store);
	return err;
}

static int tend(struct agent *a)
{
	int err = archive_keeper_poll(&a->keeper, 0);

	if (err && !a->keeper_ended)
		log_error("the process that keeps the files of %s has ended: no more epochs can be written",
			  a->options.dir);
	a->keeper_ended = err != 0;
	return err;
}

static int take(struct agent *a, const struct agent_epoch *epoch)
{
	const struct archive_span span = {.begin_ms = epoch->begin_ns / 1000000,
					  .length_ms = epoch->length_ns / 1000000};
	int err = tend(a);
	FILE *file;

	if (err)
		return err;
	file = archive_keeper_file(&a->keeper);
	if (!file && !archive_keeper_poll(&a->keeper, PATIENCE_MS))
		file = archive_keeper_file(&a->keeper);
	if (!file) {
		log_error("an epoch of %.0f s is lost: no file for it could be made in time in %s",
			  (double)epoch->length_ns / 1e9, a->options.dir);
		a->metrics.unwritten++;
		return 0;
	}
	err = profile_save(epoch->profile, file);
	err = archive_keeper_commit(&a->keeper, &span, err);
	if (!err)
		return 0;
	log_error("an epoch of %.0f s is lost: it cannot be written to %s: %s", (double)epoch->length_ns / 1e9,
		  a->options.dir, strerror(-err));
	a->metrics.unwritten++;
	return err == -EPIPE ? err : 0;
}

static void count(const struct agent *a, struct agent_metrics *metrics)
{
	metrics->files = a->keeper.counts;
}

static int reload(struct agent *a)
{
	const struct archive_limits limits = limits_of(a);

	return archive_keeper_limit(&a->keeper, &limits);
}

static void close_files(struct agent *a)
{
	archive_keeper_stop(&a->keeper);
}

const struct agent_sink agent_files_sink = {
	.name = "files",
	.is_wanted = is_wanted,
	.open = open_files,
	.take = take,
	.tend = tend,
	.count = count,
	.reload = reload,
	.close = close_files,
};
