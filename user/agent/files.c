// SPDX-License-Identifier: Apache-2.0
/* The sink that writes each epoch to a file of a folder. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "output/file/place.h"

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
				       .keep_size = a->options.keep_size / a->nr_parts};
}

int agent_make_folder(const char *path, struct error *error)
{
	struct error why;
	int fd = output_place_open_folder(path, &why);

	if (fd < 0)
		return error_set(error, fd, "cannot use %s: %s", path, why.text);
	close(fd);
	return 0;
}

static int open_part(struct agent_part *part, struct error *error)
{
	const struct agent *a = part->agent;
	const struct archive_limits limits = limits_of(a);
	struct archive_store store = {.folder = -1};
	char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s/%s", a->options.dir, part->name), err;

	if (length >= (int)sizeof(path))
		return error_set(error, -ENAMETOOLONG, "cannot use the folder %s: %s", a->options.dir,
				 strerror(ENAMETOOLONG));
	err = archive_store_open(&store, a->nr_parts > 1 ? path : a->options.dir, error);
	err = err ?: archive_keeper_start(&part->keeper, &store, &limits, error);
	archive_store_close(&store);
	return err;
}

/* Profiles of several modes cannot be added up: each has a folder of its own. */
static int open_files(struct agent *a, struct error *error)
{
	int err = a->nr_parts > 1 ? agent_make_folder(a->options.dir, error) : 0;

	for (size_t i = 0; i < a->nr_parts && !err; i++)
		err = open_part(&a->parts[i], error);
	return err;
}

static int poll_part(struct agent_part *part)
{
	int err = archive_keeper_poll(&part->keeper, 0);

	if (err && !part->keeper_ended)
		log_error("the process that keeps the files of %s has ended: no more epochs can be written",
			  part->agent->options.dir);
	part->keeper_ended = err != 0;
	return err;
}

static int do_periodic_work(struct agent *a)
{
	int err = 0;

	for (size_t i = 0; i < a->nr_parts && !err; i++)
		err = poll_part(&a->parts[i]);
	return err;
}

static int take(struct agent *a, const struct agent_epoch *epoch)
{
	const struct archive_span span = {.begin_ms = epoch->begin_ns / 1000000,
					  .length_ms = epoch->length_ns / 1000000};
	struct archive_keeper *keeper = &epoch->part->keeper;
	int err = poll_part(epoch->part);

	if (err)
		return err;
	err = archive_keeper_write(keeper, &span, epoch->profile);
	if (err == -EBUSY && !archive_keeper_poll(keeper, PATIENCE_MS))
		err = archive_keeper_write(keeper, &span, epoch->profile);
	if (!err)
		return 0;
	if (err == -EBUSY)
		log_error("an epoch of %.0f s is lost: those before it are not on the disk of %s yet",
			  (double)epoch->length_ns / 1e9, a->options.dir);
	else
		log_error("an epoch of %.0f s is lost: it cannot be handed to the process that writes to %s: %s",
			  (double)epoch->length_ns / 1e9, a->options.dir, strerror(-err));
	epoch->part->metrics->unwritten++;
	return err == -EPIPE ? err : 0;
}

static void count(const struct agent *a, struct agent_metrics *metrics)
{
	for (size_t i = 0; i < a->nr_parts; i++) {
		metrics->modes[i].files = a->parts[i].keeper.counts;
		/* Those that it was handed and the disk did not take. */
		metrics->modes[i].unwritten += a->parts[i].keeper.counts.failed;
	}
}

static int reload(struct agent *a)
{
	const struct archive_limits limits = limits_of(a);

	int err = 0;

	for (size_t i = 0; i < a->nr_parts && !err; i++)
		err = archive_keeper_limit(&a->parts[i].keeper, &limits);
	return err;
}

static void close_files(struct agent *a)
{
	const double until = clock_s(CLOCK_MONOTONIC) + END_S;
	unsigned left = 0;

	for (size_t i = 0; i < a->nr_parts; i++) {
		double patience = until - clock_s(CLOCK_MONOTONIC);

		left += archive_keeper_stop(&a->parts[i].keeper, patience > 0 ? patience : 0);
	}
	if (left)
		log_error("%u epoch%s may be lost: the disk of %s did not take %s in %.0f s", left,
			  left == 1 ? "" : "s", a->options.dir, left == 1 ? "it" : "them", END_S);
}

const struct agent_sink agent_files_sink = {
	.name = "files",
	.is_wanted = is_wanted,
	.open = open_files,
	.take = take,
	.do_periodic_work = do_periodic_work,
	.count = count,
	.reload = reload,
	.close = close_files,
};
