// SPDX-License-Identifier: Apache-2.0
/* Sends discovery's questions to a helper, answers them there, and checks the answers, which are not trusted. */
#include "discovery/ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "container/cgroup.h"
#include "base/clock.h"
#include "base/scan.h"
#include "base/siphash.h"
#include "discovery/internal.h"
#include "helper/helper.h"
#include "pybpf.h"
#include "base/remote.h"

/*
 * Seconds that the main loop waits for an answer, which usually takes a millisecond, before it continues with its own
 * work.
 */
#define SLICE_S 0.02
/*
 * Seconds that a question without parsing may take. Its answer takes some 50 microseconds, or 0.1 s on a machine with
 * work for ten times its CPUs.
 */
#define SHORT_S 0.25

struct runtimes_question {
	pid_t pid;
	uint32_t room;
	bool many;
};

struct runtimes_answer {
	enum discovery_result result;
	uint32_t room;
	uint64_t count;
	struct error error;
	struct discovery_python pythons[PYBPF_MAX_RUNTIMES];
};

/* A compromised parser in a helper can write anything: every text in an answer is terminated within its array. */
#define END_TEXT(text) ((text)[sizeof(text) - 1] = '\0')

/* Copies the error that a helper reported; terminates its text and refuses a positive code. Returns the code. */
static int take_error(struct error *error, const struct error *said)
{
	*error = *said;
	END_TEXT(error->text);
	if (error->code > 0)
		error->code = -EIO;
	return error->code;
}

int discovery_serve_runtimes(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct runtimes_question *q = question;
	struct runtimes_answer *a = answer;
	size_t count = 0;

	if (question_size != sizeof(*q) || q->room > PYBPF_MAX_RUNTIMES)
		return -EINVAL;
	if (q->many)
		discovery_memo_begin(state);
	else
		discovery_memo_end(state);
	memset(a, 0, sizeof(*a));
	a->result = discovery_runtimes(state, q->pid, a->pythons, q->room, &count, &a->error);
	a->count = count;
	*size = sizeof(*a);
	return 0;
}

static void end_texts(struct discovery_python *python)
{
	END_TEXT(python->comm);
	END_TEXT(python->build.origin);
	END_TEXT(python->version);
	END_TEXT(python->path);
	END_TEXT(python->version_source);
	END_TEXT(python->runtime_source);
	python->map.path = "";
}

static void end_container_texts(struct container *container)
{
	END_TEXT(container->id);
	END_TEXT(container->name);
	END_TEXT(container->runtime);
	END_TEXT(container->pod_uid);
	END_TEXT(container->space);
	END_TEXT(container->image);
}

/* Reports in *error why a helper gave no answer about the process. err: negative errno of helper_ask(). */
static enum discovery_result unanswered(pid_t pid, int err, struct error *error)
{
	const char *at = helper_stuck_at();
	struct procfs_stat stat;

	if (procfs_read_stat(pid, &stat)) {
		error_set(error, -ESRCH, "there is no process %d (any more)", pid);
		return DISCOVERY_GONE;
	}
	if (err == -EBUSY) {
		error_set(error, err,
			  "process %d (%s) is left out: questions about it, or about its user's other processes, took "
			  "too long or ended a helper a moment ago; a file system there may not answer",
			  pid, stat.comm);
		return DISCOVERY_LATER;
	}
	if (err == -ETIMEDOUT)
		error_set(error, err,
			  "process %d (%s) is left out: looking at the files that it maps took more than %.0f s%s%s; a "
			  "file system there may not answer",
			  pid, stat.comm, HELPER_SLOW_S, at[0] ? ", the last of which was " : "", at);
	else
		error_set(error, err,
			  "process %d (%s) is left out: the files that it maps could not be looked at%s%s: %s", pid,
			  stat.comm, at[0] ? ", the last of which was " : "", at, helper_describe_error(err));
	return DISCOVERY_UNSUPPORTED;
}

/* Checks that an answer, which a compromised helper can have made up, is one that discovery_runtimes() can give. */
static bool is_sound(const struct runtimes_answer *answer, pid_t pid, size_t room)
{
	switch (answer->result) {
	case DISCOVERY_OK:
		if (!answer->count)
			return false;
		break;
	case DISCOVERY_NOT_PYTHON:
	case DISCOVERY_UNMAPPED:
	case DISCOVERY_UNSUPPORTED:
	case DISCOVERY_CONTRADICTED:
	case DISCOVERY_DENIED:
	case DISCOVERY_GONE:
	case DISCOVERY_ZOMBIE:
		break;
	default:
		return false;
	}
	for (size_t i = 0; i < answer->count && i < room; i++) {
		if (answer->pythons[i].pid != pid)
			return false;
	}
	return true;
}

enum discovery_result discovery_ask_runtimes(pid_t pid, uint64_t life, bool many, struct discovery_python *out,
					     size_t room, size_t *count, struct error *error)
{
	const struct runtimes_question question = {.pid = pid, .room = (uint32_t)room, .many = many};
	struct runtimes_answer *answer = malloc(sizeof(*answer));
	enum discovery_result result;
	size_t size = 0;
	int err = -ENOMEM;

	*count = 0;
	memset(out, 0, room * sizeof(*out));
	error_clear(error);
	if (answer)
		err = helper_ask(discovery_serve_runtimes, (struct helper_subject){pid, life}, &question,
				 sizeof(question), answer, sizeof(*answer), &size, SLICE_S);
	if (!err && (size != sizeof(*answer) || !is_sound(answer, pid, room)))
		err = -EPROTO;
	if (err) {
		free(answer);
		return err == -EINPROGRESS ? DISCOVERY_PENDING : unanswered(pid, err, error);
	}
	result = answer->result;
	*count = answer->count;
	memcpy(out, answer->pythons, room * sizeof(*out));
	for (size_t i = 0; i < room; i++)
		end_texts(&out[i]);
	take_error(error, &answer->error);
	free(answer);
	return result;
}

enum discovery_result discovery_wait_runtimes(pid_t pid, bool many, double unmapped_s, struct discovery_python *out,
					      size_t room, size_t *count, struct error *error)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	double until = clock_s(CLOCK_MONOTONIC) + unmapped_s;
	enum discovery_result result;

	while (1) {
		result = discovery_ask_runtimes(pid, 0, many, out, room, count, error);
		if (result != DISCOVERY_PENDING && (result != DISCOVERY_UNMAPPED || clock_s(CLOCK_MONOTONIC) >= until))
			break;
		if (helper_is_interrupted()) {
			result = DISCOVERY_PENDING;
			break;
		}
		nanosleep(&pause, NULL);
	}
	return result == DISCOVERY_LATER ? DISCOVERY_UNSUPPORTED : result;
}

int discovery_serve_validate(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	struct error *error = answer;
	struct discovery_python python;

	(void)state;
	if (question_size != sizeof(python))
		return -EINVAL;
	memcpy(&python, question, sizeof(python));
	end_texts(&python);
	error_clear(error);
	discovery_validate(&python, error);
	*size = sizeof(*error);
	return 0;
}

int discovery_ask_validate(const struct discovery_python *python, struct error *error)
{
	struct error said;
	size_t size;
	int err = helper_call(discovery_serve_validate, (struct helper_subject){.pid = python->pid}, python,
			      sizeof(*python), &said, sizeof(said), &size, SHORT_S);

	if (!err && size != sizeof(said))
		err = -EPROTO;
	if (err)
		return error_set(error, -EIO, "the memory of process %d (%s) cannot be read: %s", python->pid,
				 python->comm, helper_describe_error(err));
	return take_error(error, &said);
}

struct mapped_question {
	pid_t pid;
	uint64_t start, end;
};

struct mapped_answer {
	enum discovery_mapped what;
	uint64_t id;
};

int discovery_serve_mapped_file(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct mapped_question *q = question;
	struct mapped_answer *a = answer;

	if (question_size != sizeof(*q))
		return -EINVAL;
	*a = (struct mapped_answer){.id = 0};
	*size = sizeof(*a);
	return discovery_mapped_file(state, q->pid, q->start, q->end, &a->what, &a->id);
}

int discovery_ask_mapped_file(pid_t pid, uint64_t start, uint64_t end, enum discovery_mapped *what, uint64_t *id)
{
	const struct mapped_question question = {.pid = pid, .start = start, .end = end};
	struct mapped_answer answer = {.id = 0};
	size_t size;
	int err = helper_call(discovery_serve_mapped_file, (struct helper_subject){.pid = pid}, &question,
			      sizeof(question), &answer, sizeof(answer), &size, SHORT_S);

	*what = answer.what;
	*id = answer.id;
	return err ?: size == sizeof(answer) ? 0 : -EPROTO;
}

int discovery_serve_container_of(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct discovery *discovery = state;
	const pid_t *pid = question;

	if (question_size != sizeof(*pid))
		return -EINVAL;
	*size = sizeof(struct container);
	return container_find_by_pid(discovery->containers, *pid, answer);
}

int discovery_ask_container_of(pid_t pid, struct container *out)
{
	size_t size;
	int err = helper_call(discovery_serve_container_of, (struct helper_subject){.pid = pid}, &pid, sizeof(pid), out,
			      sizeof(*out), &size, SHORT_S);

	if (!err && size != sizeof(*out))
		err = -EPROTO;
	if (!err)
		end_container_texts(out);
	return err;
}

int discovery_group_of(pid_t pid, uint64_t *id)
{
	char *text;
	int err = cgroup_read_text(pid, &text);

	*id = err ? 0 : siphash(siphash_process_key(), text, strlen(text));
	if (!err)
		free(text);
	return err;
}

struct found_containers {
	struct error error;
	size_t count;
	struct container_found items[DISCOVERY_CONTAINERS_MAX];
};
_Static_assert(sizeof(struct found_containers) <= HELPER_ANSWER_MAX, "an answer holds all containers");

int discovery_serve_container_find(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct discovery *discovery = state;
	struct found_containers *found = answer;
	const char *query = question;

	if (!question_size || query[question_size - 1])
		return -EINVAL;
	/* The items beyond the count are not sent. */
	memset(found, 0, offsetof(struct found_containers, items));
	container_find(discovery->containers, query, found->items, DISCOVERY_CONTAINERS_MAX, &found->count,
		       &found->error);
	*size = offsetof(struct found_containers, items) + found->count * sizeof(found->items[0]);
	return 0;
}

/* This process will access the directory, so the path alone must show that it is a control group's. */
static bool is_group(const char *directory)
{
	struct cgroup_mounts mounts;
	char path[PATH_MAX];
	bool inside;

	if (strstr(directory, "/..") || cgroup_mounts_read(&mounts))
		return false;
	inside = cgroup_find_path(&mounts, directory, path, sizeof(path));
	cgroup_mounts_free(&mounts);
	return inside;
}

/* Returns whether a helper can have given the answer; ends its texts. */
static bool is_sound_find(struct found_containers *found, size_t size)
{
	const size_t head = offsetof(struct found_containers, items);

	if (size < head || found->count > DISCOVERY_CONTAINERS_MAX ||
	    size != head + found->count * sizeof(found->items[0]) || found->error.code > 0 ||
	    (!found->error.code && !found->count))
		return false;
	for (size_t i = 0; i < found->count; i++) {
		struct container_found *item = &found->items[i];

		end_container_texts(&item->container);
		END_TEXT(item->group.controller);
		END_TEXT(item->group.path);
		END_TEXT(item->group.directory);
		if (!is_group(item->group.directory))
			return false;
	}
	return true;
}

int discovery_ask_container_find(const char *query, double patience_s, struct container_found *out, size_t *count,
				 struct error *error)
{
	struct found_containers *found = malloc(sizeof(*found));
	size_t size = 0;
	int err = -ENOMEM;

	*count = 0;
	if (found)
		err = helper_call(discovery_serve_container_find, (struct helper_subject){.pid = 0}, query,
				  strlen(query) + 1, found, sizeof(*found), &size, patience_s);
	if (!err && !is_sound_find(found, size))
		err = -EPROTO;
	if (err) {
		const char *at = helper_stuck_at();

		error_set(error, err, "container %s: cannot look for it: %s%s%s", query, helper_describe_error(err),
			  err == -ETIMEDOUT && at[0] ? ", at " : "", err == -ETIMEDOUT ? at : "");
	} else {
		err = take_error(error, &found->error);
		if (!err) {
			*count = found->count;
			memcpy(out, found->items, found->count * sizeof(*out));
		}
	}
	free(found);
	return err;
}

int discovery_serve_container_names(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct discovery *discovery = state;

	(void)question;
	if (question_size != 1)
		return -EINVAL;
	*size = sizeof(struct container_names);
	return container_count_names(discovery->containers, answer);
}

int discovery_ask_container_names(struct container_names *out)
{
	size_t size;
	int err = helper_call(discovery_serve_container_names, (struct helper_subject){.pid = 0}, "", 1, out,
			      sizeof(*out), &size, DISCOVERY_PATIENCE_S);

	if (!err && size != sizeof(*out))
		err = -EPROTO;
	END_TEXT(out->example);
	END_TEXT(out->root);
	return err;
}

int discovery_serve_cmdline(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	struct {
		pid_t pid;
		uint32_t size;
	} q;

	(void)state;
	if (question_size != sizeof(q))
		return -EINVAL;
	memcpy(&q, question, sizeof(q));
	if (!q.size || q.size > HELPER_ANSWER_MAX)
		return -EINVAL;
	scan_read_cmdline(q.pid, answer, q.size);
	*size = strlen(answer) + 1;
	return 0;
}

int discovery_ask_cmdline(pid_t pid, char *buf, size_t size)
{
	const uint32_t question[2] = {(uint32_t)pid, (uint32_t)size};
	size_t got;
	int err = helper_call(discovery_serve_cmdline, (struct helper_subject){.pid = pid}, question, sizeof(question),
			      buf, size, &got, SHORT_S);

	if (!err && (!got || buf[got - 1]))
		err = -EPROTO;
	if (err)
		buf[0] = '\0';
	return err;
}

struct memory_question {
	pid_t pid;
	uint64_t addr, size;
};

int discovery_serve_memory(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct memory_question *q = question;
	int err;

	(void)state;
	if (question_size != sizeof(*q) || q->size > HELPER_ANSWER_MAX)
		return -EINVAL;
	err = remote_read(q->pid, q->addr, answer, q->size);
	*size = err ? 0 : q->size;
	return err;
}

static int read_memory(pid_t pid, uint64_t addr, void *buf, size_t size)
{
	for (size_t done = 0; done < size;) {
		size_t part = size - done < HELPER_ANSWER_MAX ? size - done : HELPER_ANSWER_MAX, got;
		const struct memory_question question = {.pid = pid, .addr = addr + done, .size = part};
		int err = helper_call(discovery_serve_memory, (struct helper_subject){.pid = pid}, &question,
				      sizeof(question), (char *)buf + done, part, &got, SHORT_S);

		/* Without an answer nothing is known of the memory, not even that it is not mapped. */
		if (err == -EPERM || err == -ESRCH || err == -ENOSYS || helper_has_no_answer(err))
			return err;
		if (err)
			return -EFAULT;
		if (got != part)
			return -EPROTO;
		done += part;
	}
	return 0;
}

void discovery_ask_memory(void)
{
	remote_read_by(read_memory);
}
