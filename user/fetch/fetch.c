// SPDX-License-Identifier: Apache-2.0
/* The side that asks. */
#include "fetch/fetch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fetch/internal.h"

/* Seconds for which the end of the process is waited for. */
#define GRACE_S 2.0

struct fetch {
	pid_t pid;
	int socket, file;
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

/* Waits until the process has begun. Returns 0, or negative errno with a sentence in *error. */
static int wait_for_begin(int socket, struct error *error)
{
	struct error said;
	ssize_t n;

	do {
		n = recv(socket, &said, sizeof(said), 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(said))
		return error_set(error, -ECHILD, "the process that fetches ended before it began");
	said.text[sizeof(said.text) - 1] = '\0';
	return said.code ? error_set(error, said.code, "%s", said.text) : 0;
}

static int fork_process(struct fetch *fetch, struct fetch_process *process, struct error *error)
{
	int ends[2];

	fetch->file = memfd_create("pybpf-fetched", MFD_CLOEXEC);
	if (fetch->file < 0)
		return error_set(error, -errno, "cannot make a file in memory for what is fetched: %s",
				 strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return error_set(error, -errno, "cannot make a socket for the process that fetches: %s",
				 strerror(errno));
	fetch->pid = fork();
	if (fetch->pid == 0) {
		close(ends[0]);
		process->socket = ends[1];
		process->file = fetch->file;
		fetch_work(process);
	}
	close(ends[1]);
	fetch->socket = ends[0];
	if (fetch->pid < 0)
		return error_set(error, -errno, "cannot start the process that fetches: %s", strerror(errno));
	return wait_for_begin(fetch->socket, error);
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
	fetch->socket = fetch->file = -1;
	err = add_servers(&process, options->urls, error);
	err = err ?: fork_process(fetch, &process, error);
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
	return send(fetch->socket, &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(question)
		       ? 0
		       : -EPIPE;
}

int fetch_wait(struct fetch *fetch, double seconds, struct fetch_answer *answer)
{
	struct pollfd readable = {.fd = fetch->socket, .events = POLLIN};
	ssize_t n;

	poll(&readable, 1, seconds > 0 ? (int)(seconds * 1000) + 1 : 0);
	n = recv(fetch->socket, answer, sizeof(*answer), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EINPROGRESS;
	if (n != sizeof(*answer))
		*answer = (struct fetch_answer){.error = -EPIPE};
	return 0;
}

/* The closed socket ends the process. One that was stopped is left to itself. */
static void reap(pid_t pid)
{
	const double until = clock_s(CLOCK_MONOTONIC) + GRACE_S;

	while (waitpid(pid, NULL, WNOHANG) == 0 && clock_s(CLOCK_MONOTONIC) < until)
		poll(NULL, 0, 10);
}

void fetch_end(struct fetch **ended)
{
	struct fetch *fetch = *ended;

	if (!fetch)
		return;
	if (fetch->socket >= 0)
		close(fetch->socket);
	if (fetch->pid > 0)
		reap(fetch->pid);
	if (fetch->file >= 0)
		close(fetch->file);
	free(fetch);
	*ended = NULL;
}
