// SPDX-License-Identifier: Apache-2.0
/* See find_pythons.h. */
#include "session/run/find_pythons.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "cpython/facts.h"
#include "discovery/ask.h"
#include "discovery/below.h"
#include "helper/helper.h"

/* Longest wait for an interpreter to be mapped and set up, and the interval between checks for it. */
#define INTERPRETER_WAIT_S 3.0
#define INTERPRETER_POLL_S 0.002
/* Memory that contradicts a layout for this long is not explained by an unfinished loader, at any age of the program.
 */
#define CONTRADICTED_WAIT_S 1.0

/* Returns the seconds since the start of the process; a large number if unknown. */
static double age_of(pid_t pid)
{
	struct procfs_stat stat;

	if (procfs_read_stat(pid, &stat))
		return 1e9;
	return clock_s(CLOCK_BOOTTIME) - (double)stat.start_time / (double)sysconf(_SC_CLK_TCK);
}

static void refuse(pid_t pid, enum discovery_result result, const char *why)
{
	if (result == DISCOVERY_NOT_PYTHON)
		discovery_refuse_parent(LOG_ERROR, pid, why);
	else
		log_error("%s", why);
}

/*
 * Keeps the Pythons that run and fit their layout. Returns 0 if there is one; else keeps all and returns the last
 * error, -EIO where there was no answer.
 */
static int validate_pythons(struct discovery_python *out, size_t *count, struct error *error)
{
	size_t valid = 0;
	int err = 0;

	for (size_t i = 0; i < *count && err != -EIO; i++) {
		struct discovery_python here = out[i];

		err = discovery_ask_validate(&here, error);
		if (!err)
			out[valid++] = here;
	}
	if (!valid)
		return err;
	*count = valid;
	return 0;
}

/* An embedding program may start its interpreter at any later time. */
static void warn_of_no_interpreter(pid_t pid, const struct discovery_python *python, const struct error *error)
{
	if (cpython_is_newer(&python->build.layout))
		log_warn("%s", error->text);
	else
		log_warn("process %d has the code of Python %s, but no interpreter runs there yet", pid,
			 python->version);
}

int session_find_pythons(pid_t pid, bool children, struct discovery_python *out, size_t room, size_t *count)
{
	struct timespec pause = {.tv_nsec = (long)(INTERPRETER_POLL_S * 1e9)};
	double begin = clock_s(CLOCK_MONOTONIC);
	enum discovery_result result;
	struct error error;
	int err = 0;

	if (discovery_refuse_thread(pid))
		return -EINVAL;
	while (1) {
		result = discovery_wait_runtimes(pid, false, DISCOVERY_UNMAPPED_S, out, room, count, &error);
		if (result == DISCOVERY_PENDING || helper_is_interrupted()) {
			log_error("stopped by a signal while process %d was looked at; nothing was sampled", pid);
			return -EINTR;
		}
		if (*count > room)
			*count = room;
		if (children && (result == DISCOVERY_NOT_PYTHON || result == DISCOVERY_UNMAPPED ||
				 result == DISCOVERY_UNSUPPORTED)) {
			*count = 0;
			if (helper_has_no_answer(error.code))
				log_warn("%s", error.text);
			return 0;
		}
		if (result == DISCOVERY_OK || (result == DISCOVERY_CONTRADICTED && *count)) {
			err = validate_pythons(out, count, &error);
			if (!err)
				return 0;
			if (err == -EINVAL)
				result = DISCOVERY_CONTRADICTED;
			else if (err != -EAGAIN && err != -EIO)
				break;
		} else if (result != DISCOVERY_NOT_PYTHON && result != DISCOVERY_CONTRADICTED) {
			break;
		}
		if (age_of(pid) > INTERPRETER_WAIT_S &&
		    (result != DISCOVERY_CONTRADICTED || clock_s(CLOCK_MONOTONIC) - begin > CONTRADICTED_WAIT_S)) {
			if (result != DISCOVERY_OK || err == -EIO)
				break;
			warn_of_no_interpreter(pid, out, &error);
			return 0;
		}
		nanosleep(&pause, NULL);
	}
	refuse(pid, result, error.text);
	return result == DISCOVERY_GONE || result == DISCOVERY_ZOMBIE ? -ESRCH : -EINVAL;
}
