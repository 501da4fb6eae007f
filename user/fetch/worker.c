// SPDX-License-Identifier: Apache-2.0
/* The process that has the network: asks one server after the other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child/child.h"
#include "fetch/internal.h"
#include "rights/rights.h"

/* Bytes of a cause. */
#define TEXT_MAX 512

static int confine(struct fetch_process *process, struct error *error)
{
	const struct rlimit file_max = {FETCH_FILE_MAX, FETCH_FILE_MAX};
	int kept[] = {process->socket, process->file};
	int err = network_begin(kept, sizeof(kept) / sizeof(*kept), &process->curl, error);

	if (!err && setrlimit(RLIMIT_FSIZE, &file_max))
		err = error_set(error, -errno, "cannot limit what is fetched: %s", strerror(errno));
	return err ?: rights_drop(&(struct rights_wanted){.level = RIGHTS_NETWORK}, error);
}

/* Returns the URL of the file, which the caller frees, or NULL without memory. */
static char *url_of(const struct fetch_server *server, const struct fetch_question *question)
{
	char id[2 * FETCH_ID_MAX + 1] = "", *url = NULL;

	for (uint32_t i = 0; i < question->id_size; i++)
		snprintf(id + 2 * (size_t)i, 3, "%02x", question->id[i]);
	return asprintf(&url, "%s/buildid/%s/debuginfo", server->url, id) < 0 ? NULL : url;
}

/* Asks one server. Returns as fetch_transfer_run(). */
static int ask_server(struct fetch_transfer *transfer, struct fetch_server *server,
		      const struct fetch_question *question)
{
	char text[TEXT_MAX] = "out of memory", *url = url_of(server, question);
	int err = url ? fetch_transfer_run(transfer, url, question->deadline_s, text, sizeof(text)) : -EIO;
	bool in_time = clock_s(CLOCK_MONOTONIC) < question->deadline_s;

	free(url);
	if (err == -EIO || (err == -ETIMEDOUT && in_time)) {
		log_warn("cannot fetch from %s: %s; it is not asked again", server->url, text);
		server->is_dead = true;
		err = -EIO;
	}
	return err;
}

/* Asks servers until one has the file. What one said of it counts more than that another did not answer. */
static void find_answer(struct fetch_transfer *transfer, struct fetch_process *process,
			const struct fetch_question *question, struct fetch_answer *answer)
{
	*answer = (struct fetch_answer){.error = -EIO};
	for (uint32_t i = question->server; i < process->count; i++) {
		int err = process->servers[i].is_dead ? -EIO : ask_server(transfer, &process->servers[i], question);

		if (err == -EIO)
			continue;
		answer->error = err;
		answer->server = i;
		if (err != -ENOENT)
			break;
	}
	if (!answer->error)
		answer->size = transfer->size;
	else if (ftruncate(process->file, 0))
		answer->error = -EIO;
}

static void work(struct fetch_process *process, struct fetch_transfer *transfer)
{
	struct fetch_question question;
	struct fetch_answer answer;

	for (;;) {
		ssize_t n = recv(process->socket, &question, sizeof(question), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(question) || question.id_size > FETCH_ID_MAX)
			break;
		find_answer(transfer, process, &question, &answer);
		if (send(process->socket, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			break;
	}
}

void fetch_work(int socket, void *state)
{
	struct fetch_process *process = state;
	struct fetch_transfer transfer;
	struct error error = {.code = 0};

	process->socket = socket;
	prctl(PR_SET_NAME, "pybpf-fetch");
	confine(process, &error);
	if (!error.code && fetch_transfer_init(&transfer, process))
		error_set(&error, -ENOMEM, "cannot prepare libcurl: out of memory");
	if (child_say_begun(socket, &error))
		work(process, &transfer);
	/* child_start() then ends the process without the clean-up of libraries, which may wait for a name server. */
}
