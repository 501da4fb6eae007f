// SPDX-License-Identifier: Apache-2.0
/* Names waits by the kernel's description of them. */
#include "session/wait_name.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

	inet_ntop(six ? AF_INET6 : AF_INET, wait->address, address, sizeof(address));
	snprintf(out, size, "%s %s%s%s%s:%u", wait->flags & PYBPF_WAIT_DATAGRAM ? "udp" : "tcp",
		 wait->flags & PYBPF_WAIT_LISTENING ? "on " : "", six ? "[" : "", address, six ? "]" : "",
		 wait->number);
}

/* An abstract socket's name begins with NUL, and is written with @ as ss and /proc/net/unix do. */
static void name_unix(const struct pybpf_wait *wait, char *out, size_t size)
{
	const bool abstract = !wait->text[0] && wait->text[1];

	snprintf(out, size, "unix%s%s%.*s", wait->text[0] || abstract ? " " : "", abstract ? "@" : "",
		 (int)sizeof(wait->text) - 2, wait->text + abstract);
}

/* Writes what the descriptor is, or "". */
static void name_file(const struct pybpf_wait *wait, char *out, size_t size)
{
	const char *call = call_name(wait->call);

	out[0] = '\0';
	switch (wait->file) {
	case PYBPF_FILE_DEVICE:
		/* Only terminals, in /dev/pts, have numbers as names. */
		snprintf(out, size, "%s%s%s%.*s", call, *call ? " " : "",
			 isdigit((unsigned char)wait->text[0]) ? "pts/" : "", (int)sizeof(wait->text), wait->text);
		break;
	case PYBPF_FILE_REGULAR:
	case PYBPF_FILE_ANONYMOUS:
		snprintf(out, size, "%s%s%.*s", call, *call ? " " : "", (int)sizeof(wait->text), wait->text);
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
		snprintf(out, size, "socket of family %u", wait->number);
		break;
	default:
		break;
	}
}

void session_name_wait(const struct pybpf_wait *wait, char *out, size_t size)
{
	const char *state = session_state_name(wait->state);
	char detail[SESSION_WAIT_NAME - 32] = "";

	if (wait->file != PYBPF_FILE_NONE)
		name_file(wait, detail, sizeof(detail));
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
	else if (wait->state == PYBPF_STATE_OTHER || wait->state == PYBPF_STATE_DISK)
		snprintf(detail, sizeof(detail), "%s", call_name(wait->call));
	snprintf(out, size, "[%s%s%s]", state, *detail ? ": " : "", detail);
}
