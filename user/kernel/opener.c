// SPDX-License-Identifier: Apache-2.0
/* Both sides of the process that opens perf events. */
#include "kernel/opener.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "child/message.h"
#include "kernel/internal.h"
#include "rights/priority.h"
#include "rights/rights.h"

/* Longest wait for its end, in s: it has nothing to finish. */
#define GRACE_S 0.1
/* Longest wait for an answer, in ms: opening an event takes some 20 us. */
#define ANSWER_MS 200

struct question {
	int32_t what, number;
};

static int answer(struct kernel *k, const struct question *question, int fds[2])
{
	if (question->what == KERNEL_OPEN_SAMPLER && question->number >= 0 && question->number < k->sampler.count &&
	    k->sampler.attached[question->number].event)
		return kernel_sampler_open(k, question->number, fds);
	if (question->what != KERNEL_OPEN_MAPPINGS)
		return -EINVAL;
	fds[0] = kernel_mappings_open(k->mappings, question->number);
	return fds[0] < 0 ? fds[0] : 0;
}

/* Answers until the other side closes its end. */
static void serve(int socket, struct kernel *k)
{
	struct question question;

	while (recv(socket, &question, sizeof(question), 0) == sizeof(question)) {
		int fds[2] = {-1, -1}, err = answer(k, &question, fds);
		size_t count = err ? 0 : fds[1] >= 0 ? 2 : 1;

		err = child_send(socket, &err, sizeof(err), fds, count, 0);
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		if (err)
			return;
	}
}

/* Keeps the socket, and the programs that it attaches. Returns 0 or negative errno. */
static int keep_descriptors(int socket, struct kernel *k)
{
	int *kept = calloc((size_t)k->sampler.count + 1, sizeof(*kept)), err;
	size_t count = 0;

	if (!kept)
		return -ENOMEM;
	kept[count++] = socket;
	for (int i = 0; i < k->sampler.count; i++) {
		if (k->sampler.attached[i].event)
			kept[count++] = bpf_program__fd(kernel_get_program(k, k->sampler.attached[i].event));
	}
	err = child_let_go(STDOUT_FILENO, kept, count);
	free(kept);
	return err;
}

struct begin {
	struct kernel *kernel;
	pid_t parent;
};

static void run(int socket, void *state)
{
	const struct begin *begin = state;
	struct error error = {.code = 0};
	struct kernel *k = begin->kernel;
	int err;

	child_tie(begin->parent);
	priority_restore();
	prctl(PR_SET_NAME, "pybpf-opener");
	child_block_signals();
	err = keep_descriptors(socket, k);
	if (err)
		error_set(&error, err, "cannot prepare the process that opens events: %s", strerror(-err));
	else
		rights_drop(&(struct rights_wanted){.level = RIGHTS_OPEN}, &error);
	if (child_say_begun(socket, &error))
		serve(socket, k);
	_exit(0);
}

void kernel_start_opener(struct kernel *k)
{
	struct begin begin = {.kernel = k, .parent = getpid()};
	struct error error;

	if (child_start(&k->opener, "opens events on CPUs that come online", run, &begin, &error))
		log_warn("%s; CPUs that come online during the run are not sampled", error.text);
}

void kernel_end_opener(struct kernel *k)
{
	child_end(&k->opener, GRACE_S);
}

int kernel_ask_opener(struct kernel *k, enum kernel_opener_what what, int number, int fds[2])
{
	const struct question question = {.what = what, .number = number};
	struct pollfd readable = {.fd = k->opener.socket, .events = POLLIN};
	int32_t err;

	if (!k->opener.pid)
		return -EPIPE;
	if (!child_send(k->opener.socket, &question, sizeof(question), NULL, 0, MSG_DONTWAIT) &&
	    poll(&readable, 1, ANSWER_MS) == 1 &&
	    child_receive(k->opener.socket, &err, sizeof(err), fds, 2, MSG_DONTWAIT) == sizeof(err))
		return err;
	child_end(&k->opener, 0);
	log_warn("the process that opens events on CPUs that come online has ended or does not answer; CPUs that come "
		 "online from now on are not sampled");
	return -EPIPE;
}
