// SPDX-License-Identifier: Apache-2.0
/* The side that asks. */
#include "fetch/fetch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child/child.h"
#include "fetch/internal.h"

/* Seconds for which the end of the process is waited for. */
#define GRACE_S 2.0

struct fetch {
	struct child process;
	int file; /* in memory; the process writes what it fetches to it. -1 before it is made */
};

/* Adds a server. Returns 0, or negative errno with a sentence in *error. */
static int add_server(struct fetch_process *process, const char *url, size_t length, struct error *error)
{
	char *copy;
	int err;

	if (process->count == FETCH_SERVERS_MAX)
		return error_set(error, -EINVAL, "more than %d servers of debuginfod are given; leave some out",
				 FETCH_SERVERS_MAX);
	while (length && url[length - 1] == '/')
		length--;
	copy = strndup(url, length);
	if (!copy)
		return error_set(error, -ENOMEM, "cannot keep the URLs of debuginfod: out of memory");
	process->servers[process->count++].url = copy;
	err = network_check_url(copy, error);
	if (!err && strchr(copy, '?'))
		err = error_set(error, -EINVAL,
				"%s: the URL of a server of debuginfod has no query; write "
				"http://HOST:PORT or https://HOST",
				copy);
	return err;
}

static int add_servers(struct fetch_process *process, const char *urls, struct error *error)
{
	int err = 0;

	while (!err && *(urls += strspn(urls, " \t\n"))) {
		size_t length = strcspn(urls, " \t\n");

		/* How files are to be signed (ima:enforcing), which is no server. */
		if (strncmp(urls, "ima:", 4) != 0)
			err = add_server(process, urls, length, error);
		urls += length;
	}
	if (!err && !process->count)
		err = error_set(error, -EINVAL,
				"no server of debuginfod is given; write http://HOST:PORT or "
				"https://HOST");
	return err;
}

static void free_servers(struct fetch_process *process)
{
	for (uint32_t i = 0; i < process->count; i++)
		free(process->servers[i].url);
}

static int start_process(struct fetch *fetch, struct fetch_process *process, struct error *error)
{
	fetch->file = memfd_create("pybpf-fetched", MFD_CLOEXEC);
	if (fetch->file < 0)
		return error_set(error, -errno, "cannot make a file in memory for what is fetched: %s",
				 strerror(errno));
	process->file = fetch->file;
	return child_start(&fetch->process, "fetches", fetch_work, process, error);
}

int fetch_start(const struct fetch_options *options, struct fetch **started, struct error *error)
{
	struct fetch_process process = {.silence_s =
						options->silence_s > 0 ? options->silence_s : FETCH_SILENCE_S_DEFAULT};
	struct fetch *fetch = calloc(1, sizeof(*fetch));
	int err;

	*started = NULL;
	if (!fetch)
		return error_set(error, -ENOMEM, "cannot start the process that fetches: out of memory");
	fetch->file = -1;
	err = add_servers(&process, options->urls, error);
	err = err ?: start_process(fetch, &process, error);
	free_servers(&process);
	if (err)
		fetch_end(&fetch);
	*started = fetch;
	return err;
}

int fetch_file(const struct fetch *fetch)
{
	return fetch->file;
}

int fetch_ask(struct fetch *fetch, const uint8_t *id, size_t id_size, uint32_t server, double deadline_s)
{
	struct fetch_question question = {.server = server, .deadline_s = deadline_s};

	question.id_size = (uint32_t)(id_size < sizeof(question.id) ? id_size : sizeof(question.id));
	memcpy(question.id, id, question.id_size);
	return send(fetch->process.socket, &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(question)
		       ? 0
		       : -EPIPE;
}

int fetch_wait(struct fetch *fetch, double seconds, struct fetch_answer *answer)
{
	struct pollfd readable = {.fd = fetch->process.socket, .events = POLLIN};
	ssize_t n;

	poll(&readable, 1, seconds > 0 ? (int)(seconds * 1000) + 1 : 0);
	n = recv(fetch->process.socket, answer, sizeof(*answer), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EINPROGRESS;
	if (n != sizeof(*answer))
		*answer = (struct fetch_answer){.error = -EPIPE};
	return 0;
}

void fetch_end(struct fetch **ended)
{
	struct fetch *fetch = *ended;

	if (!fetch)
		return;
	child_end(&fetch->process, GRACE_S);
	if (fetch->file >= 0)
		close(fetch->file);
	free(fetch);
	*ended = NULL;
}
