// SPDX-License-Identifier: Apache-2.0
/* The sink that writes each epoch to a file of a folder. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/internal.h"
#include "base/log.h"

/* How long an epoch waits for a place beside those that are not written yet. */
#define PATIENCE_MS 100
/* Seconds that the end waits for a disk: a snapshot, which freezes it, takes some. */
#define END_S 20.0

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

	if (err)
		return err;
	err = archive_keeper_write(&a->keeper, &span, epoch->profile);
	if (err == -EBUSY && !archive_keeper_poll(&a->keeper, PATIENCE_MS))
		err = archive_keeper_write(&a->keeper, &span, epoch->profile);
	if (!err)
		return 0;
	if (err == -EBUSY)
		log_error("an epoch of %.0f s is lost: the disk of %s has not taken those before it yet",
			  (double)epoch->length_ns / 1e9, a->options.dir);
	else
		log_error("an epoch of %.0f s is lost: it cannot be handed to what writes to %s: %s",
			  (double)epoch->length_ns / 1e9, a->options.dir, strerror(-err));
	a->metrics.unwritten++;
	return err == -EPIPE ? err : 0;
}

static void count(const struct agent *a, struct agent_metrics *metrics)
{
	metrics->files = a->keeper.counts;
	/* Those that it was handed and the disk did not take. */
	metrics->unwritten += a->keeper.counts.failed;
}

static int reload(struct agent *a)
{
	const struct archive_limits limits = limits_of(a);

	return archive_keeper_limit(&a->keeper, &limits);
}

static void close_files(struct agent *a)
{
	const unsigned left = archive_keeper_stop(&a->keeper, END_S);

	if (left)
		log_error("%u epoch%s may be lost: the disk of %s did not take %s in %.0f s", left,
			  left == 1 ? "" : "s", a->options.dir, left == 1 ? "it" : "them", END_S);
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
