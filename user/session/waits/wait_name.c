// SPDX-License-Identifier: Apache-2.0
/* Names waits by the kernel's description of them. */
#include "session/waits/wait_name.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "kernel/calls.h"
#include "profile/wait_words.h"
#include "symbols/tasks/task_awaits.h"
#include "symbols/tasks/task_read.h"

const char *session_state_name(enum pybpf_state state)
{
	static const char *const names[] = {
#define X(name, text) text,
		PYBPF_STATES(X)
#undef X
	};

	return state < PYBPF_NR_STATES ? names[state] : "";
}

static const char *call_name(unsigned call)
{
	static const char *const names[] = {
#define X(name, text) text,
		PYBPF_CALLS(X)
#undef X
	};

	return call < PYBPF_NR_CALLS ? names[call] : "";
}

static void name_inet(const struct pybpf_wait *wait, char *out, size_t size)
{
	const bool six = wait->file == PYBPF_FILE_INET6;
	char address[INET6_ADDRSTRLEN] = "";

	if (wait->flags & PYBPF_WAIT_ACCEPTED) {
		snprintf(out, size, WAIT_TCP_CLIENTS ":%" PRIu32, wait->number);
		return;
	}
	inet_ntop(six ? AF_INET6 : AF_INET, wait->address, address, sizeof(address));
	snprintf(out, size, "%s%s%s%s%s:%u", wait->flags & PYBPF_WAIT_DATAGRAM ? WAIT_UDP : WAIT_TCP,
		 wait->flags & PYBPF_WAIT_LISTENING ? WAIT_ON : "", six ? "[" : "", address, six ? "]" : "",
		 wait->number);
}

void session_set_wait_text(struct pybpf_wait *wait, const char *name, size_t size)
{
	if (size < sizeof(wait->text)) {
		memcpy(wait->text, name, size);
		return;
	}
	/* The program has padded it. */
	if (!name[size - 1]) {
		memcpy(wait->text, name, sizeof(wait->text) - 1);
		wait->flags |= wait->text[sizeof(wait->text) - 2] ? PYBPF_WAIT_CUT : 0;
		return;
	}
	wait->flags |= PYBPF_WAIT_CUT;
	wait->number = (uint32_t)size;
	memcpy(wait->text, name, PYBPF_WAIT_HEAD);
	memcpy(wait->text + PYBPF_WAIT_HEAD, name + size - PYBPF_WAIT_TAIL, PYBPF_WAIT_TAIL);
}

/* Room for a text with what stands for its middle. */
#define TEXT_MAX (PYBPF_WAIT_TEXT + 8)

/* Writes the text but for its first bytes, and "..." in place of what is cut. Returns out. */
static const char *read_text(const struct pybpf_wait *wait, size_t skipped, char out[TEXT_MAX])
{
	if (wait->flags & PYBPF_WAIT_CUT && wait->number)
		snprintf(out, TEXT_MAX, "%.*s...%.*s", (int)(PYBPF_WAIT_HEAD - skipped), wait->text + skipped,
			 (int)PYBPF_WAIT_TAIL, wait->text + PYBPF_WAIT_HEAD);
	else
		snprintf(out, TEXT_MAX, "%.*s%s", (int)(PYBPF_WAIT_TEXT - skipped), wait->text + skipped,
			 wait->flags & PYBPF_WAIT_CUT ? "..." : "");
	return out;
}

/* An abstract socket's name begins with NUL, and is written with @ as ss and /proc/net/unix do. */
static void name_unix(const struct pybpf_wait *wait, char *out, size_t size)
{
	const bool abstract = !wait->text[0] && wait->text[1];
	char text[TEXT_MAX];

	snprintf(out, size, "%s%s%s", wait->text[0] || abstract ? WAIT_UNIX : "unix", abstract ? "@" : "",
		 read_text(wait, abstract, text));
}

/* Families that have no addresses which say more. */
static void name_family(uint32_t family, char *out, size_t size)
{
	const char *name = family == AF_NETLINK ? "netlink" : family == AF_PACKET ? "packet" : NULL;

	if (name)
		snprintf(out, size, "%s", name);
	else
		snprintf(out, size, "socket of family %" PRIu32, family);
}

/* A child is not named where the state says that it is one. */
static void name_process(const struct pybpf_wait *wait, char *out, size_t size)
{
	const char *what = wait->state == PYBPF_STATE_CHILD ? "" : WAIT_PROCESS;

	if (wait->number)
		snprintf(out, size, "%s%" PRIu32, what, wait->number);
	else
		snprintf(out, size, "%s", wait->state == PYBPF_STATE_CHILD ? "" : "a process");
}

/* Writes what the descriptor is, or "". */
static void name_file(const struct pybpf_wait *wait, char *out, size_t size)
{
	const char *call = call_name(wait->call);
	char text[TEXT_MAX];

	out[0] = '\0';
	switch (wait->file) {
	case PYBPF_FILE_DEVICE:
		/* Only terminals, in /dev/pts, have numbers as names. */
		snprintf(out, size, "%s%s%s%s", call, *call ? " " : "",
			 isdigit((unsigned char)wait->text[0]) ? "pts/" : "", read_text(wait, 0, text));
		break;
	case PYBPF_FILE_REGULAR:
	case PYBPF_FILE_ANONYMOUS:
		snprintf(out, size, "%s%s%s", call, *call ? " " : "", read_text(wait, 0, text));
		break;
	case PYBPF_FILE_PIPE:
		snprintf(out, size, "%s", call);
		break;
	case PYBPF_FILE_INET:
	case PYBPF_FILE_INET6:
		name_inet(wait, out, size);
		break;
	case PYBPF_FILE_UNIX:
		name_unix(wait, out, size);
		break;
	case PYBPF_FILE_SOCKET:
		name_family(wait->number, out, size);
		break;
	case PYBPF_FILE_PROCESS:
		name_process(wait, out, size);
		break;
	default:
		break;
	}
}

/* Names what has ended the wait for an epoll set. */
static void name_ready(const struct pybpf_wait *wait, char *out, size_t size)
{
	static const char until[] = "epoll" WAIT_UNTIL;
	const size_t length = sizeof(until) - 1;

	memcpy(out, until, sizeof(until));
	if (wait->file == PYBPF_FILE_PIPE)
		snprintf(out + length, size - length, WAIT_PIPE);
	else
		name_file(wait, out + length, size - length);
}

void session_name_wait(const struct pybpf_wait *wait, char *out, size_t size)
{
	const char *state = session_state_name(wait->state);
	char detail[SESSION_WAIT_NAME - 32] = "";

	if (wait->file != PYBPF_FILE_NONE && wait->call == PYBPF_CALL_EPOLL)
		name_ready(wait, detail, sizeof(detail));
	else if (wait->file != PYBPF_FILE_NONE)
		name_file(wait, detail, sizeof(detail));
	else if (wait->state == PYBPF_STATE_THROTTLED && wait->number)
		snprintf(detail, sizeof(detail), "quota of %g CPU%s", wait->number / 1000.0,
			 wait->number == 1000 ? "" : "s");
	else if (wait->call == PYBPF_CALL_EPOLL)
		snprintf(detail, sizeof(detail), "epoll");
	else if (wait->call == PYBPF_CALL_POLL && wait->number)
		snprintf(detail, sizeof(detail), "%" PRIu32 " descriptor%s", wait->number,
			 wait->number == 1 ? "" : "s");
	else if (wait->call == PYBPF_CALL_SELECT && wait->state == PYBPF_STATE_POLL)
		snprintf(detail, sizeof(detail), "select");
	else if (wait->flags & PYBPF_WAIT_HAND_OVER)
		snprintf(detail, sizeof(detail), "handing over");
	else if (wait->state == PYBPF_STATE_CHILD && wait->number)
		snprintf(detail, sizeof(detail), "%" PRIu32, wait->number);
	else if (wait->call == PYBPF_CALL_OTHER)
		snprintf(detail, sizeof(detail), "%s", kernel_call_name(wait->number));
	else if (wait->state == PYBPF_STATE_OTHER || wait->state == PYBPF_STATE_DISK)
		snprintf(detail, sizeof(detail), "%s", call_name(wait->call));
	snprintf(out, size, "[%s%s%s]", state, *detail ? ": " : "", detail);
}

char *session_name_awaited(const struct task_read *task)
{
	char peer[SESSION_WAIT_NAME];

	if (task->awaits != TASK_AWAITS_OBJECT || !task->peer.file)
		return task_awaits_name(task);
	name_file(&task->peer, peer, sizeof(peer));
	return strdup(peer);
}
